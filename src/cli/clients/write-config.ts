import { dataFolder } from '../../adapters/files/data-folder.ts';
import { isInstalled } from '../../adapters/foreign/client-files.ts';
import { pathTokenOf } from '../../core/http/local-token.ts';
import type { Access } from '../../core/settings/config-schema.ts';
import type { Environment } from '../../core/settings/config-values.ts';
import { isBuiltInConfigurable } from './launch-codex.ts';
import { takesLogin } from './launch.ts';
import { versionOf } from './client-version.ts';
import { claudeFile } from './claude-file.ts';
import {
  type ClientFileForm,
  type Undone,
  undoClientFile,
  writeClientFile,
  type Written,
} from './client-file.ts';
import { addressOf, loopbackVariables, toolSearchVariables } from './client-variables.ts';
import { builtInBlock, codexFile, profileIn, providerBlock } from './codex-file.ts';
import type { JsonSetting } from './json-settings.ts';
import { codexTables } from './codex-tables.ts';
import type { CommandContext } from '../context.ts';
import { loadAccess } from '../setup/load-config.ts';
import { keyVariables, noteMissingUpstream, storedUpstream } from '../setup/missing-upstream.ts';
import { type CodexOptions, codexName, noteFor, noteProxy, requireOpenAi } from './print-config.ts';
import { commandLine, startCommand, tokenCommand } from './token-command.ts';

/**
 * `svc print-config codex|claude --write` and `--undo`: the client's own file, so that the client
 * finds the proxy however it is started. The file holds no token: the client asks svc for it.
 */

export interface WriteOptions {
  readonly undo?: boolean;
  readonly quiet?: boolean;
}

export interface WriteParts {
  /** This program. */
  readonly script: string;
}

/** True when Codex starts the proxy by itself from now on. */
export async function writeCodexConfig(
  options: WriteOptions & CodexOptions,
  context: CommandContext,
  { script }: WriteParts,
): Promise<boolean> {
  const { environment, terminal } = context;
  const note = noteFor(options, terminal);
  if (options.undo === true) {
    return undo(codexFile(environment, providerBlock([])), context, options);
  }
  if (options.openaiName === true) await requireOpenAi(environment);
  const access = await loadAccess(environment);
  const isLogin = takesLogin(await storedUpstream(environment, 'openai_responses'));
  const command = tokenCommand(environment, script);
  const isNew = await isNewCodex(environment);
  const knowsCommand = !isLogin && isNew;
  const base = knowsCommand ? addressOf(access) : withPathToken(access);
  const baseUrl = `${base}/v1`;
  const credential = isLogin ? 'login' : knowsCommand ? { tokenCommand: command } : 'path';
  const form = codexFile(
    environment,
    isLogin && isNew
      ? builtInBlock(baseUrl)
      : providerBlock(codexTables({ baseUrl, name: codexName(options), credential })),
  );
  const target = { form, client: 'Codex', baseUrl: `${addressOf(access)}/v1` };
  await write({ ...target, startsProxy: knowsCommand }, context, options);
  if (knowsCommand) warnOfNpx(command, context);
  await noteMissingUpstream(environment, 'openai_responses', note);
  const profile = await profileIn(form.path);
  if (profile !== undefined) {
    terminal.warn(`The profile ${profile}, which the file selects, names its own provider.`);
  }
  noteProxy(environment, note);
  return knowsCommand;
}

/** True when Claude Code starts the proxy by itself from now on. */
export async function writeClaudeConfig(
  options: WriteOptions,
  context: CommandContext,
  { script }: WriteParts,
): Promise<boolean> {
  const { environment, terminal } = context;
  const note = noteFor(options, terminal);
  if (options.undo === true) return undo(claudeFile(environment, []), context, options);
  const access = await loadAccess(environment);
  const upstream = await storedUpstream(environment, 'anthropic_messages');
  const isLogin = takesLogin(upstream);
  const baseUrl = isLogin ? withPathToken(access) : addressOf(access);
  const command = tokenCommand(environment, script);
  const variables = [
    ['ANTHROPIC_BASE_URL', baseUrl],
    ['CLAUDE_CODE_GATEWAY_HINT_HEADERS', '1'],
    // Set in a shell they would go along with every request, or take the place of a login.
    ['ANTHROPIC_API_KEY', ''],
    ['ANTHROPIC_AUTH_TOKEN', ''],
    ...loopbackVariables(access.host, environment),
  ] as const;
  const settings: JsonSetting[] = [
    isLogin
      ? startHook(startCommand(environment, script))
      : { path: ['apiKeyHelper'], value: commandLine(command) },
    ...variables.map(([name, value]) => ({ path: ['env', name], value })),
    ...toolSearchVariables(upstream, environment).map(([name, value]): JsonSetting => {
      return { path: ['env', name], value, isDefault: true };
    }),
  ];
  const form = claudeFile(environment, settings);
  const target = { form, client: 'Claude Code', baseUrl: addressOf(access), startsProxy: true };
  await write(target, context, options);
  warnOfNpx(command, context);
  await noteMissingUpstream(environment, 'anthropic_messages', note);
  return true;
}

/**
 * With a login Claude Code never asks svc for a token, so a hook starts the proxy. Claude Code runs the hooks of
 * SessionStart before its first request, also with -p, and gives the model what they print: this prints nothing.
 */
function startHook(command: readonly string[]): JsonSetting {
  const hook = { type: 'command', command: commandLine(command), timeout: START_HOOK_SECONDS };
  return { path: ['hooks', 'SessionStart'], value: { hooks: [hook] }, isItem: true };
}

/** A start takes less than a second; a busy machine needs several. Claude Code starts without it after this time. */
const START_HOOK_SECONDS = 15;

interface Target {
  readonly form: ClientFileForm;
  readonly client: string;
  readonly baseUrl: string;
  readonly startsProxy: boolean;
}

/** For a client that sends a credential of its own, or knows no command that prints one. */
function withPathToken(access: Access): string {
  return `${addressOf(access)}/t/${pathTokenOf(access.localToken)}`;
}

/**
 * Codex 0.80 knows neither a command for the token nor a base URL for its built-in provider; later ones
 * do. Where Codex is not found the newest is meant.
 */
async function isNewCodex(environment: Environment): Promise<boolean> {
  if (!isInstalled(environment, 'codex')) return true;
  const version = await versionOf('codex', environment);
  return version === '' || isBuiltInConfigurable(version);
}

async function write(
  target: Target,
  context: CommandContext,
  options: WriteOptions,
): Promise<void> {
  const written = await writeClientFile(target.form, dataFolder(context.environment));
  await noteWritten(target, written, { context, options });
}

export interface Asked {
  readonly context: CommandContext;
  readonly options: Pick<WriteOptions, 'quiet'>;
}

export async function noteWritten(
  { form, client, baseUrl, startsProxy }: Target,
  { path, outcome }: Written,
  { context: { environment, terminal }, options }: Asked,
): Promise<void> {
  const note = noteFor(options, terminal);
  note(outcome === 'written' ? `Changed ${path}.` : `${path} already has these settings.`);
  note(`${client} now uses ${baseUrl} for every session.`);
  if (startsProxy) note('It starts the proxy if none runs.');
  else terminal.warn('It cannot start the proxy. Keep the proxy running: svc unit install');
  note(`Undo this with: ${form.undoCommand}`);
  if (!startsProxy) return;
  const variables = await keyVariables(environment);
  if (variables.length === 0) return;
  terminal.warn(
    `A proxy that ${client} starts may not see ${variables.join(', ')}. Store the key in the file: svc setup --yes --upstream NAME --key-stdin`,
  );
}

/** The client's file names this program: one that may be gone tomorrow is no good there. */
export function warnOfNpx(command: readonly string[], { terminal }: CommandContext): void {
  if (!command.some((one) => /[\\/]_npx[\\/]/.test(one))) return;
  terminal.warn('svc runs from the cache of npx, which npm empties from time to time.');
  terminal.note('  Install svc, then run this command again: npm install -g svc-local-proxy');
}

const OUTCOMES = {
  restored: 'is restored byte for byte.',
  'taken-out': 'has no settings of svc any more; its other changes stay.',
  removed: 'is deleted, because svc had created it.',
  nothing: 'has no settings of svc.',
} as const;

async function undo(
  form: ClientFileForm,
  context: CommandContext,
  options: WriteOptions,
): Promise<false> {
  const undone = await undoClientFile(form, dataFolder(context.environment));
  noteUndone(undone, { context, options });
  return false;
}

export function noteUndone(
  { path, outcome }: Undone,
  { context: { terminal }, options }: Asked,
): void {
  noteFor(options, terminal)(`${path} ${OUTCOMES[outcome]}`);
}
