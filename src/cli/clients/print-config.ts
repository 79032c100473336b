import type { Environment } from '../../core/settings/config-values.ts';
import { exportLine, type Shell, SHELLS } from '../../core/foreign/shell-quote.ts';
import { CliError } from '../cli-error.ts';
import {
  addressOf,
  claudeVariables,
  proxyVariables,
  sparesLoopback,
  toolSearchVariables,
} from './client-variables.ts';
import { CODEX_NAME, codexTables } from './codex-tables.ts';
import type { CommandContext } from '../context.ts';
import type { Access } from '../../core/settings/config-schema.ts';
import { loadAccess } from '../setup/load-config.ts';
import { noteMissingUpstream, storedUpstream } from '../setup/missing-upstream.ts';
import type { Terminal } from '../terminal.ts';

/**
 * `svc print-config`: what a client needs to find the proxy. stdout is complete or empty, because
 * a shell evaluates it (R30); everything that a person should know besides goes to stderr.
 */

export interface ClaudeOptions {
  /** The address of a service, in place of the proxy on this machine. */
  readonly service?: string;
  readonly shell?: string;
  readonly authToken?: boolean;
  readonly json?: boolean;
  readonly quiet?: boolean;
}

export interface CodexOptions {
  readonly service?: string;
  readonly authCommand?: boolean;
  readonly openaiName?: boolean;
  readonly quiet?: boolean;
}

export async function printClaudeConfig(
  options: ClaudeOptions,
  { environment, terminal }: CommandContext,
): Promise<void> {
  const shell = shellOf(options.shell ?? 'sh');
  const access = await accessNow(environment);
  const variables = claudeVariables(access, { environment, authToken: options.authToken === true });
  const note = noteFor(options, terminal);
  await noteMissingUpstream(environment, 'anthropic_messages', note);
  if (options.json === true) {
    terminal.json({ env: Object.fromEntries(variables) });
    note('Add this to ~/.claude/settings.json.');
  } else {
    terminal.out(variables.map(([name, value]) => exportLine(name, value, shell)).join('\n'));
    note(`Evaluate these lines in the shell that starts the client: ${EVALUATED[shell]}`);
  }
  explainClaude(options, environment, note);
  // Not on stdout: an interactive zsh takes a line that begins with # for a command.
  const upstream = await storedUpstream(environment, 'anthropic_messages');
  for (const [name, value] of toolSearchVariables(upstream, environment)) {
    note(`# ${exportLine(name, value, shell)}`);
    note('# This makes MCP tool search work through svc, as it does without a base URL.');
  }
}

export async function printCodexConfig(
  options: CodexOptions,
  { environment, terminal }: CommandContext,
): Promise<void> {
  const access = await accessNow(environment);
  const baseUrl = `${addressOf(access)}/v1`;
  const note = noteFor(options, terminal);
  if (options.openaiName === true) await requireOpenAi(environment);
  await noteMissingUpstream(environment, 'openai_responses', note);
  terminal.out(codexToml(baseUrl, options));
  note(
    'Put this into ~/.codex/config.toml: model_provider above the first [table], the rest at the end;',
  );
  note('or save it as ~/.codex/svc.config.toml and start with: codex -p svc');
  if (options.authCommand !== true) {
    note('Before you start codex: export SVC_LOCAL_PROXY_TOKEN="$(svc config token)"');
  }
  noteProxy(environment, note);
}

async function accessNow(environment: Environment): Promise<Access> {
  const { runningAccess } = await import('./running-access.ts');
  const access = await runningAccess(await loadAccess(environment), environment);
  if (access !== undefined) return access;
  throw new CliError(
    'proxy.port is 0 and no proxy runs, so the port is unknown.',
    'Start it with: svc start --detach; or set a port: svc setup --yes --port 8765',
  );
}

export type Note = (line: string) => void;

export function noteFor(options: { readonly quiet?: boolean }, terminal: Terminal): Note {
  return (line) => {
    if (options.quiet !== true) terminal.note(line);
  };
}

export function shellOf(text: string): Shell {
  const shell = SHELLS.find((known) => known === text);
  if (shell !== undefined) return shell;
  throw new CliError(
    `--shell: expected one of ${SHELLS.join(', ')}.`,
    'Use sh for bash and zsh too, and cmd for the Windows command prompt.',
    2,
  );
}

const EVALUATED: Readonly<Record<Shell, string>> = {
  sh: 'eval "$(svc print-config claude)"',
  cmd: 'for /f "delims=" %i in (\'svc print-config claude --shell cmd\') do %i',
  fish: 'svc print-config claude --shell fish | source',
  powershell: 'svc print-config claude --shell powershell | Out-String | Invoke-Expression',
};

function explainClaude(options: ClaudeOptions, environment: Environment, note: Note): void {
  if (options.authToken === true) {
    if (environment['ANTHROPIC_API_KEY']) {
      note('ANTHROPIC_API_KEY is set as well; unset it, or the client sends both.');
    }
  } else {
    note('Claude Code asks once whether to use this key and suggests No. Answer Yes, or print');
    note('ANTHROPIC_AUTH_TOKEN instead, which it does not ask about, with --auth-token.');
  }
}

export function noteProxy(environment: Environment, note: Note): void {
  if (proxyVariables(environment).length === 0 || sparesLoopback(environment)) return;
  note(
    'An HTTP proxy is set: export NO_PROXY with 127.0.0.1,localhost in it, or codex sends its requests to that proxy.',
  );
}

function codexToml(baseUrl: string, options: CodexOptions): string {
  const tables = codexTables({
    baseUrl,
    name: codexName(options),
    credential:
      options.authCommand === true
        ? { tokenCommand: ['svc', 'config', 'token', '--start'] }
        : 'variable',
  });
  return ['model_provider = "svc"', ...tables.flatMap((table) => ['', ...table])].join('\n');
}

export function codexName({ openaiName }: CodexOptions): string {
  return openaiName === true ? 'OpenAI' : CODEX_NAME;
}

// With this name codex marks what a person typed, and makes compactions that only OpenAI reads.
export async function requireOpenAi(environment: Environment): Promise<void> {
  const responses = await storedUpstream(environment, 'openai_responses');
  if (/^https:\/\/api\.openai\.com(?:\/|$)/.test(String(responses?.['baseUrl']))) return;
  throw new CliError(
    '--openai-name is only for an upstream that is OpenAI itself.',
    'Omit it, or add OpenAI: svc setup --yes --upstream openai --key-env OPENAI_API_KEY',
  );
}
