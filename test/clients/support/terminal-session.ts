import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { clientEnvironment } from './claude-code.ts';
import { codexConfig } from './codex.ts';
import { type InstalledClient, binaryOf } from './installed-client.ts';
import { type Program, runProgram } from './program.ts';
import type { Stage } from './stage.ts';

/**
 * Clients as people use them, on a terminal. Only there do they make their side calls, such as the
 * title of a conversation. The terminal is that of util-linux's `script`.
 */

/** Why there is no terminal to be had; undefined when there is. */
export function missingTerminal(): string | undefined {
  const { error, stdout } = spawnSync('script', ['--version'], { encoding: 'utf8' });
  if (process.platform === 'linux' && error === undefined && stdout.includes('util-linux')) {
    return undefined;
  }
  return 'the program `script` of util-linux is not installed here';
}

/** The prompt is sent at once; the session stays open until it is closed. */
export function openClaude(client: InstalledClient, stage: Stage, prompt: string): Program {
  const trust = { [stage.project]: { hasTrustDialogAccepted: true } };
  const state = { hasCompletedOnboarding: true, projects: trust };
  writeFileSync(join(stage.home, '.claude.json'), JSON.stringify(state));
  return open(`exec '${binaryOf(client, 'claude')}' '${prompt}'`, stage, {
    ANTHROPIC_BASE_URL: stage.url,
    ANTHROPIC_AUTH_TOKEN: stage.svc.token,
    CLAUDE_CODE_GATEWAY_HINT_HEADERS: '1',
    DISABLE_AUTOUPDATER: '1',
  });
}

export function openCodex(client: InstalledClient, stage: Stage, prompt: string): Program {
  const folder = join(stage.home, '.codex');
  mkdirSync(folder, { recursive: true });
  const trust = `[projects."${stage.project}"]\ntrust_level = "trusted"\n`;
  writeFileSync(join(folder, 'config.toml'), `${codexConfig(stage.url)}${trust}`);
  // Without --no-daemon a server stays behind that keeps the environment of the first session.
  return open(`exec '${binaryOf(client, 'codex')}' --no-daemon '${prompt}'`, stage, {
    CODEX_HOME: folder,
    SVC_LOCAL_PROXY_TOKEN: stage.svc.token,
  });
}

export async function closeSession(program: Program): Promise<void> {
  program.child.kill('SIGTERM');
  await program.ended;
}

function open(command: string, stage: Stage, env: Readonly<Record<string, string>>): Program {
  return runProgram({
    file: 'script',
    args: ['-qfec', `stty rows 48 cols 160; ${command}`, '/dev/null'],
    folder: stage.project,
    env: { ...clientEnvironment(stage), TERM: 'xterm-256color', ...env },
  });
}
