import type { Draft } from '../../core/settings/config-draft.ts';
import type { Environment } from '../../core/settings/config-values.ts';
import { exportLine, type Shell, SHELLS } from '../../core/foreign/shell-quote.ts';
import { CliError } from '../cli-error.ts';
import {
  addressOf,
  claudeVariables,
  proxyVariables,
  sparesLoopback,
  toolSearchVariables,
  CODEX_NAME,
  type CodexProvider,
  codexTables,
  isAt,
  LOCAL_VARIABLE,
  type Variables,
} from './client-variables.ts';
import type { CommandContext } from '../context.ts';
import type { Access } from '../../core/settings/config-schema.ts';
import { loadAccess, missingUpstreamText, storedUpstream } from '../setup/load-config.ts';
import type { Terminal } from '../terminal.ts';
import { parseServiceUrl } from '../../core/settings/config-upstreams.ts';

/**
 * Runs `svc print-config`: prints the settings with which a client finds the proxy. stdout is complete or empty,
 * because a shell evaluates it; hints for the user go to stderr.
 */

export interface ClaudeOptions {
  /** The address of a service that the client uses instead of the proxy on this machine. */
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
  const upstream = await storedUpstream(environment, 'anthropic_messages');
  if (upstream === undefined) note(missingUpstreamText('anthropic_messages'));
  const how = `Evaluate these lines in the shell that starts the client: ${EVALUATED[shell]}`;
  printVariables({ variables, shell, how }, options, terminal);
  explainClaude(options, environment, note);
  // These lines go to stderr, because an interactive zsh does not take a line with # for a comment.
  for (const [name, value] of Object.entries(toolSearchVariables(upstream, environment))) {
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
  const upstream = await storedUpstream(environment, 'openai_responses');
  if (options.openaiName === true) requireOpenAi(upstream);
  if (upstream === undefined) note(missingUpstreamText('openai_responses'));
  const credential =
    options.authCommand === true
      ? { tokenCommand: ['svc', 'config', 'token', '--start'] }
      : LOCAL_VARIABLE;
  terminal.out(codexToml({ baseUrl, name: codexName(options), credential }));
  note(CODEX_PLACE);
  note('or save it as ~/.codex/svc.config.toml and start with: codex -p svc');
  if (options.authCommand !== true) {
    note(`Before you start codex: ${LOCAL_VARIABLE.instructions}`);
  }
  noteProxy(environment, note);
}

interface PrintedVariables {
  readonly variables: Variables;
  readonly shell: Shell;
  /** Says what the user must do with the lines. */
  readonly how: string;
}

function printVariables(
  { variables, shell, how }: PrintedVariables,
  options: ClaudeOptions,
  terminal: Terminal,
): void {
  const note = noteFor(options, terminal);
  if (options.json === true) {
    terminal.json({ env: variables });
    note('Add this to ~/.claude/settings.json.');
    return;
  }
  const lines = Object.entries(variables).map(([name, value]) => exportLine(name, value, shell));
  terminal.out(lines.join('\n'));
  note(how);
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

type Note = (line: string) => void;

export function noteFor(options: { readonly quiet?: boolean }, terminal: Terminal): Note {
  return (line) => {
    if (options.quiet !== true) terminal.note(line);
  };
}

function shellOf(text: string): Shell {
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
  if (options.authToken !== true) {
    note('Claude Code asks once whether to use this key and suggests No. Answer Yes, or print');
    note('ANTHROPIC_AUTH_TOKEN instead, which it does not ask about, with --auth-token.');
  } else if (environment['ANTHROPIC_API_KEY']) {
    note('ANTHROPIC_API_KEY is set as well; unset it, or the client sends both.');
  }
}

export function noteProxy(environment: Environment, note: Note): void {
  if (proxyVariables(environment).length === 0 || sparesLoopback(environment)) return;
  note(
    'An HTTP proxy is set: export NO_PROXY with 127.0.0.1,localhost in it, or the client sends its requests to that proxy.',
  );
}

function codexToml(provider: CodexProvider): string {
  const tables = codexTables(provider).flatMap((table) => ['', ...table]);
  return ['model_provider = "svc"', ...tables].join('\n');
}

const CODEX_PLACE =
  'Put this into ~/.codex/config.toml: model_provider above the first [table], the rest at the end;';

export function codexName({ openaiName }: CodexOptions): string {
  return openaiName === true ? 'OpenAI' : CODEX_NAME;
}

/**
 * Throws CliError if the upstream is not OpenAI itself. For a provider with the name OpenAI, Codex adds marks to what a
 * user typed, and makes compactions that only OpenAI can read.
 */
export function requireOpenAi(upstream: Draft | undefined): void {
  if (isAt('api.openai.com', upstream)) return;
  throw new CliError(
    '--openai-name is only for an upstream that is OpenAI itself.',
    'Omit it, or add OpenAI: svc setup --yes --upstream openai --key-env OPENAI_API_KEY',
  );
}

/** The variable with the service's key. A model needs it in its shell, to read the texts left out of its prompt. */
const KEY_VARIABLE = 'SVC_SERVICE_KEY';

/**
 * Prints the settings with which Claude Code finds a service: `svc print-config claude --service URL`. The key comes
 * from the environment, because arguments are visible in process lists.
 */
export function printServiceClaude(
  url: string,
  options: ClaudeOptions,
  { environment, terminal }: CommandContext,
): void {
  const shell = shellOf(options.shell ?? 'sh');
  const key = environment[KEY_VARIABLE] ?? '';
  if (!/^svc_live_[\w-]+$/.test(key)) {
    const hint = `Set the key first: export ${KEY_VARIABLE}=svc_live_…`;
    throw new CliError(`${KEY_VARIABLE} holds no service key.`, hint);
  }
  const variables = {
    // The address has no /v1, because the client adds /v1/messages.
    ANTHROPIC_BASE_URL: originOf(url),
    [options.authToken === true ? 'ANTHROPIC_AUTH_TOKEN' : 'ANTHROPIC_API_KEY']: key,
    [KEY_VARIABLE]: key,
    // With this variable the client marks its side calls and compactions in a header.
    CLAUDE_CODE_GATEWAY_HINT_HEADERS: '1',
  };
  const how = `Evaluate these lines in the shell that starts the client. The key is the one in ${KEY_VARIABLE}.`;
  printVariables({ variables, shell, how }, options, terminal);
}

export function printServiceCodex(
  url: string,
  options: CodexOptions,
  { terminal }: CommandContext,
): void {
  const credential = { variable: KEY_VARIABLE, instructions: `export ${KEY_VARIABLE}=svc_live_…` };
  terminal.out(codexToml({ baseUrl: `${originOf(url)}/v1`, name: 'svc service', credential }));
  const note = noteFor(options, terminal);
  note(CODEX_PLACE);
  note(`then export ${KEY_VARIABLE} before you start codex.`);
}

/** Throws CliError if a flag is set that belongs to a proxy on this machine. */
export function refuseLocalFlags(options: object, flags: readonly string[]): void {
  const [wrong] = flags.filter((flag) => flag in options);
  if (wrong === undefined) return;
  const name = wrong.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  throw new CliError(`--${name} is for the proxy on this machine.`, 'Omit it with --service.', 2);
}

/** Returns the address without /v1, which a pasted address may have. */
function originOf(text: string): string {
  const parsed = parseServiceUrl(text, true);
  if ('url' in parsed) return parsed.url;
  throw new CliError(`--service: expected ${parsed.allowed}.`, 'Give it as https://host:port', 2);
}
