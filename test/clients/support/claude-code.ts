import { join } from 'node:path';
import { type InstalledClient, binaryOf } from './installed-client.ts';
import { type Program, type ProgramEnd, runProgram } from './program.ts';
import type { ClientPlace } from './stage.ts';

export interface ClaudeStart {
  readonly prompt: string;
  readonly args?: readonly string[];
  /** Each as `Name: value`. */
  readonly headers?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly token?: string;
  readonly project?: string;
}

/** Claude Code in print mode, as `svc print-config claude` tells a user to set it up. */
export function startClaude(
  client: InstalledClient,
  stage: ClientPlace,
  start: ClaudeStart,
): Program {
  const headers = start.headers ?? [];
  return runProgram({
    file: binaryOf(client, 'claude'),
    args: ['-p', start.prompt, '--allowedTools', 'Bash', ...(start.args ?? [])],
    folder: start.project ?? stage.project,
    env: {
      ...clientEnvironment(stage),
      ANTHROPIC_BASE_URL: stage.url,
      ANTHROPIC_AUTH_TOKEN: start.token ?? stage.svc.token,
      CLAUDE_CODE_GATEWAY_HINT_HEADERS: '1',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      DISABLE_AUTOUPDATER: '1',
      ...(headers.length === 0 ? {} : { ANTHROPIC_CUSTOM_HEADERS: headers.join('\n') }),
      ...start.env,
    },
  });
}

export async function runClaude(
  client: InstalledClient,
  stage: ClientPlace,
  start: ClaudeStart,
): Promise<ProgramEnd> {
  return startClaude(client, stage, start).ended;
}

/** A fresh user: nothing of the machine's own settings, and no way out but the loopback. */
export function clientEnvironment(stage: ClientPlace): Readonly<Record<string, string>> {
  const noProxy = '127.0.0.1,localhost,::1';
  return {
    PATH: process.env['PATH'] ?? '',
    HOME: stage.home,
    XDG_CONFIG_HOME: join(stage.home, '.config'),
    TERM: 'dumb',
    LANG: 'C.UTF-8',
    NO_PROXY: noProxy,
    no_proxy: noProxy,
    // Port 9 answers nobody: clients that call home get nowhere, at once.
    HTTPS_PROXY: 'http://127.0.0.1:9',
    https_proxy: 'http://127.0.0.1:9',
  };
}
