import { exportLine } from '../../core/foreign/shell-quote.ts';
import { parseServiceUrl } from '../../core/settings/config-upstreams.ts';
import { CliError } from '../cli-error.ts';
import type { CommandContext } from '../context.ts';
import { codexTables } from './codex-tables.ts';
import { type ClaudeOptions, type CodexOptions, noteFor, shellOf } from './print-config.ts';

/**
 * `svc print-config … --service URL`: what a client needs to find a service instead of a proxy on its
 * own machine. The key comes from the environment, since arguments show in process lists.
 */

/** Also the variable with which a model reads left-out text, as the notes in its prompt say. */
const KEY_VARIABLE = 'SVC_SERVICE_KEY';

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
  const name = options.authToken === true ? 'ANTHROPIC_AUTH_TOKEN' : 'ANTHROPIC_API_KEY';
  const variables: [string, string][] = [
    // Without /v1: the client adds /v1/messages itself.
    ['ANTHROPIC_BASE_URL', originOf(url)],
    [name, key],
    [KEY_VARIABLE, key],
    // The client then says which requests are side calls and compactions.
    ['CLAUDE_CODE_GATEWAY_HINT_HEADERS', '1'],
  ];
  const note = noteFor(options, terminal);
  if (options.json === true) {
    terminal.json({ env: Object.fromEntries(variables) });
    note('Add this to ~/.claude/settings.json.');
    return;
  }
  terminal.out(variables.map(([one, value]) => exportLine(one, value, shell)).join('\n'));
  note(
    `Evaluate these lines in the shell that starts the client. The key is the one in ${KEY_VARIABLE}.`,
  );
}

export function printServiceCodex(
  url: string,
  options: CodexOptions,
  { terminal }: CommandContext,
): void {
  const credential = { variable: KEY_VARIABLE, instructions: `export ${KEY_VARIABLE}=svc_live_…` };
  const baseUrl = `${originOf(url)}/v1`;
  const tables = codexTables({ baseUrl, name: 'svc service', credential });
  terminal.out(['model_provider = "svc"', ...tables.flatMap((table) => ['', ...table])].join('\n'));
  const note = noteFor(options, terminal);
  note(
    'Put this into ~/.codex/config.toml: model_provider above the first [table], the rest at the end;',
  );
  note(`then export ${KEY_VARIABLE} before you start codex.`);
}

/** Flags that belong to a proxy on this machine. Throws CliError. */
export function refuseLocalFlags(options: object, flags: readonly string[]): void {
  const [wrong] = flags.filter((flag) => flag in options);
  if (wrong === undefined) return;
  const name = wrong.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  throw new CliError(`--${name} is for the proxy on this machine.`, 'Omit it with --service.', 2);
}

/** As a person pastes it, with /v1 or without. */
function originOf(text: string): string {
  const parsed = parseServiceUrl(text, true);
  if ('url' in parsed) return parsed.url;
  throw new CliError(`--service: expected ${parsed.allowed}.`, 'Give it as https://host:port', 2);
}
