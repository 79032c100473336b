import { join } from 'node:path';
import { readConfigFile } from '../../adapters/files/config-file.ts';
import { dataFolder, configFolder } from '../../adapters/files/own-folders.ts';
import { CLAUDE_FOLDER, isInstalled } from '../../adapters/foreign/client-files.ts';
import type { Dialect } from '../../core/conversation/view.ts';
import { withPathToken } from '../../core/http/local-token.ts';
import { parseRecall } from '../../core/settings/config-schema.ts';
import type { Draft } from '../../core/settings/config-draft.ts';
import type { Environment } from '../../core/settings/config-values.ts';
import { CliError, type ExitCode } from '../cli-error.ts';
import type { CommandContext } from '../context.ts';
import { loadAccess, keyVariables, storedUpstream, unservedError } from '../setup/load-config.ts';
import {
  type Applied,
  changedClientFile,
  type ClientFileForm,
  clientRecords,
  previewClientFile,
  undoClientFile,
  writeClientFile,
} from './client-file.ts';
import { NOT_POSSIBLE, type OtherClient, OTHER_CLIENTS } from './other-clients.ts';
import { clientFolder } from './client-home.ts';
import {
  addressOf,
  loopbackVariables,
  toolSearchVariables,
  codexTables,
} from './client-variables.ts';
import { CODEX, isBuiltInConfigurable, versionOf, CLAUDE, takesLogin } from './launch.ts';
import { builtInBlock, codexFile, profileIn, providerBlock } from './codex-file.ts';
import { type JsonSetting, jsonSettings } from './json-settings.ts';
import { factsOf } from './other-config.ts';
import { codexName, noteFor, noteProxy, requireOpenAi } from './print-config.ts';
import { nameBound } from '../proxy/recent-trouble.ts';
import { HOOKABLE, hookableOf } from './hook-files.ts';
import { commandLine, holdsStart, ownCommand, START, TOKEN } from './own-command.ts';

/**
 * Runs `svc connect NAME`, which changes the client's own settings, and `svc disconnect NAME`, which undoes that. With
 * these settings every start of the client uses the proxy, or, with --hooks, runs svc's hooks. If the client asks svc
 * for the token, the client's file does not contain the token. Without --yes both commands first say what they will
 * change, and ask; without a terminal they need --yes.
 */

export interface ConnectOptions {
  readonly yes?: boolean;
  readonly quiet?: boolean;
  /** The model, for clients whose settings must name one. */
  readonly model?: string;
  /** For Codex: give the provider the name OpenAI, see requireOpenAi(). */
  readonly openaiName?: boolean;
  /** True: use the client's own hooks for memory, without a proxy in the path. */
  readonly hooks?: boolean;
}

export interface ConnectableClient {
  /** The name as users type it. */
  readonly name: string;
  readonly title: string;
  /** The program's name in the search path. */
  readonly program: string;
  /** The dialects that work without a model's name in the settings, best first. */
  readonly dialects: readonly Dialect[];
  /** True if the client has a login that svc can forward. */
  readonly hasLogin: boolean;
  /** Returns the settings to write. Throws CliError if the configuration does not allow them. */
  plan(facts: PlanFacts): Promise<Connection>;
  /** Returns the form of the settings file, for removing svc's settings. */
  file(environment: Environment): ClientFileForm;
}

export interface PlanFacts {
  readonly options: ConnectOptions;
  readonly context: CommandContext;
}

/** What `connect` will write, and what it tells the user. */
export interface Connection {
  readonly form: ClientFileForm;
  readonly baseUrl: string;
  /** True if the client starts the proxy when none runs. */
  readonly startsProxy: boolean;
  readonly command?: readonly string[];
  readonly warnings: readonly string[];
}

export const CONNECTABLE: readonly ConnectableClient[] = [
  {
    ...CLAUDE,
    name: 'claude',
    title: 'Claude Code',
    hasLogin: true,
    plan: planClaude,
    file: (environment) => claudeFile(environment, []),
  },
  {
    ...CODEX,
    name: 'codex',
    title: 'Codex',
    hasLogin: true,
    plan: planCodex,
    file: (environment) => codexFile(environment, providerBlock([])),
  },
  ...OTHER_CLIENTS.flatMap(otherClient),
];

/** Returns the titles of the clients that start the proxy themselves, according to svc's records of their settings. */
export async function startingClients(environment: Environment): Promise<readonly string[]> {
  const records = await clientRecords(dataFolder(environment));
  return CONNECTABLE.flatMap((client) => {
    const { path } = client.file(environment);
    const isStarting = records.some(({ named, changes }) => {
      return named === path && holdsStart(JSON.stringify(changes));
    });
    return isStarting ? [client.title] : [];
  });
}

/** Returns the client with this name. Throws CliError with the reason if svc cannot connect it. */
function connectableOf(name: string): ConnectableClient {
  const client = CONNECTABLE.find((one) => one.name === name);
  if (client !== undefined) return client;
  const other = OTHER_CLIENTS.find((one) => one.name === name);
  const impossible = Object.hasOwn(NOT_POSSIBLE, name) ? NOT_POSSIBLE[name] : undefined;
  if (impossible !== undefined) throw new CliError(...impossible, 2);
  if (other !== undefined && typeof other.file === 'string') {
    const start = other.launch === undefined ? '' : `Start it with svc run ${name}, or see: `;
    throw new CliError(
      `svc changes no file of ${other.title}. ${other.file}`,
      `${start}svc print-config ${name}`,
      2,
    );
  }
  const names = CONNECTABLE.map((one) => one.name).join(', ');
  throw new CliError('svc does not know this client.', `Name one of ${names}.`, 2);
}

export async function connect(
  name: string,
  options: ConnectOptions,
  context: CommandContext,
): Promise<ExitCode> {
  if (options.hooks === true) return connectHooks(name, options, context);
  const client = connectableOf(name);
  const connection = await client.plan({ options, context });
  const message = `Change the settings of ${client.title}?`;
  if (!(await isAgreed(connection.form, message, { options, context }))) return 130;
  await carryOut(client, connection, { context, options });
  return 0;
}

export async function disconnect(
  name: string,
  options: Pick<ConnectOptions, 'yes' | 'quiet'>,
  context: CommandContext,
): Promise<ExitCode> {
  const { terminal, environment } = context;
  const { title, forms } = formsOf(name, environment);
  const folder = dataFolder(environment);
  const found = await Promise.all(
    forms.map(async (one) => ({ one, path: await changedClientFile(one, folder) })),
  );
  const changed = found.flatMap(({ path }) => path ?? []).join(' and ');
  if (changed !== '' && options.yes !== true) {
    terminal.note(`svc will remove its settings from ${changed}.`);
    const message = `Disconnect ${title} from svc?`;
    if (!(await isConfirmed(message, context))) return 130;
  }
  // If no file has svc's settings, the report is about the first file.
  const own = found.filter(({ path }) => path !== undefined);
  for (const { one } of own.length === 0 ? found.slice(0, 1) : own) {
    // oxlint-disable-next-line no-await-in-loop -- Their records share one lock.
    const { path, outcome, also } = await undoClientFile(one, folder);
    if (options.quiet === true) continue;
    terminal.note(`${path} ${OUTCOMES[outcome]}`);
    if (also !== undefined) terminal.note(`${also} ${OUTCOMES['taken-out']}`);
  }
  return 0;
}

/** Returns the forms of the client's files in which svc may have settings: for the proxy, and for hooks. */
function formsOf(
  name: string,
  environment: Environment,
): { readonly title: string; readonly forms: readonly ClientFileForm[] } {
  const hooked = hookableOf(name);
  if (hooked === undefined) {
    const client = connectableOf(name);
    return { title: client.title, forms: [client.file(environment)] };
  }
  const client = CONNECTABLE.find((one) => one.name === name);
  const hooks = hooked.form(environment, []);
  const file = client?.file(environment);
  const forms = file === undefined || file.path === hooks.path ? [hooks] : [file, hooks];
  return { title: hooked.title, forms };
}

/** Writes the client's hooks. They replace svc's settings for the proxy if these are in the same file. */
async function connectHooks(
  name: string,
  options: ConnectOptions,
  context: CommandContext,
): Promise<ExitCode> {
  const { terminal, environment } = context;
  const client = hookableOf(name);
  if (client === undefined) {
    const names = HOOKABLE.map((one) => one.name).join(', ');
    throw new CliError(
      `svc has no hooks for ${name}: only a client that keeps what a hook says in its own transcript can have them.`,
      `Name one of ${names}, or leave out --hooks.`,
      2,
    );
  }
  const folder = dataFolder(environment);
  const form = client.form(environment, ownCommand(environment, ['hook', name]));
  nameBound(folder, Date.now(), terminal);
  const message = `Change the hooks of ${client.title}?`;
  if (!(await isAgreed(form, message, { options, context }))) return 130;
  const { path, outcome } = await writeClientFile(form, folder);
  if (options.quiet === true) return 0;
  terminal.note(outcome === 'written' ? `Changed ${path}.` : `${path} already has these hooks.`);
  terminal.note(
    `${client.title} gets memory through its hooks, and its requests do not pass through svc.`,
  );
  const service = await memoryServiceOf(environment);
  if (service !== undefined) {
    terminal.note(`They recall from the memory service ${service}, and keep what was said there.`);
  }
  for (const line of client.next) terminal.note(line);
  terminal.note(`Undo this with: svc disconnect ${name}`);
  return 0;
}

/** Returns the address of the memory service; undefined if memories are on this machine. */
async function memoryServiceOf(environment: Environment): Promise<string | undefined> {
  const file = await readConfigFile(configFolder(environment));
  const { memory } = parseRecall(file?.value ?? {}, environment);
  return memory?.kind === 'hosted' ? memory.baseUrl : undefined;
}

const OUTCOMES = {
  restored: 'is restored byte for byte.',
  'taken-out': 'has no settings of svc any more; its other changes stay.',
  removed: 'is deleted, because svc had created it.',
  nothing: 'has no settings of svc.',
} as const;

/** Shows what would change in the file, and asks the user. With --yes, or if nothing would change, returns true. */
async function isAgreed(
  form: ClientFileForm,
  message: string,
  { options, context }: PlanFacts,
): Promise<boolean> {
  const preview = await previewClientFile(form, dataFolder(context.environment));
  if (preview === undefined || options.yes === true) return true;
  context.terminal.note(`svc will set in ${preview.path}:`);
  for (const line of previewLines(preview.change)) context.terminal.note(`  ${line}`);
  return isConfirmed(message, context);
}

async function isConfirmed(message: string, { terminal, asker }: CommandContext): Promise<boolean> {
  const confirm = asker?.(true);
  if (confirm === undefined) {
    const why = 'Nothing was changed, because there is no terminal to ask on.';
    throw new CliError(why, 'To confirm, add --yes.', 2);
  }
  const isSure = await confirm(message);
  if (!isSure) terminal.note('Nothing was changed.');
  return isSure;
}

/** Describes a change for the user. It hides the token in an address, and never shows a replaced value. */
function previewLines({ toml, json = [], whole }: Applied['change']): readonly string[] {
  const lines = [
    ...(whole === undefined ? [] : [`a plugin of svc, ${whole.split('\n').length} lines`]),
    ...(toml?.lines.filter((line) => line !== '') ?? []),
    ...json.map(({ path, value, before, isItem }) => {
      const instead = before !== undefined && isItem !== true ? ' (replaces your value)' : '';
      return `${path.join('.')}${isItem === true ? ' +=' : ' ='} ${JSON.stringify(value)}${instead}`;
    }),
  ];
  const aside = toml?.aside.length ?? 0;
  const shown = lines.map((line) => line.replaceAll(/\/t\/[\w-]+/g, '/t/…'));
  return aside === 0 ? shown : [...shown, `(${aside} lines of yours become comments)`];
}

/** Writes the client's settings for the proxy without asking. Returns true if the client now starts the proxy. */
export async function connectNow(
  client: ConnectableClient,
  context: CommandContext,
): Promise<boolean> {
  const connection = await client.plan({ options: {}, context });
  await carryOut(client, connection, { context, options: {} });
  return connection.startsProxy;
}

/** The variables that svc empties in Claude Code's settings, as keyVariables() writes them; see planClaude(). */
const EMPTIED: readonly string[] = ['$ANTHROPIC_API_KEY', '$ANTHROPIC_AUTH_TOKEN'];

async function carryOut(
  { name, title }: ConnectableClient,
  { form, baseUrl, startsProxy, command, warnings }: Connection,
  { context, options }: PlanFacts,
): Promise<void> {
  const { environment, terminal } = context;
  const { path, outcome } = await writeClientFile(form, dataFolder(environment));
  const note = noteFor(options, terminal);
  note(outcome === 'written' ? `Changed ${path}.` : `${path} already has these settings.`);
  note(`${title} now uses ${baseUrl} for every session.`);
  if (startsProxy) note('It starts the proxy if none runs.');
  else terminal.warn('It cannot start the proxy. Keep the proxy running: svc start --at-login');
  note(`Undo this with: svc disconnect ${name}`);
  const variables = startsProxy ? await keyVariables(environment) : [];
  if (variables.length > 0) {
    const emptied = variables.filter((one) => name === 'claude' && EMPTIED.includes(one));
    const lack =
      emptied.length === 0
        ? `which may lack ${variables.join(', ')}`
        : `in which these settings empty ${emptied.join(', ')}: without a running proxy no session would work`;
    terminal.warn(
      `${title} starts the proxy in its own environment, ${lack}. Store the key in svc's configuration instead: svc setup --yes --upstream NAME --key-stdin`,
    );
  }
  // The settings contain this program's path. npm may delete its cache, and then the client can start nothing.
  if (command?.some((one) => /[\\/]_npx[\\/]/.test(one)) === true) {
    terminal.warn('svc runs from the cache of npx, which npm empties from time to time.');
    terminal.note('  Install svc, then run this command again: npm install -g svc-local-proxy');
  }
  for (const warning of warnings) terminal.warn(warning);
  noteProxy(environment, note);
}

/** Returns the client's provider. Throws CliError if there is none: with svc's settings no session would work. */
async function upstreamOf(
  name: string,
  title: string,
  dialect: Dialect,
  environment: Environment,
): Promise<Draft> {
  const upstream = await storedUpstream(environment, dialect);
  if (upstream === undefined) throw unservedError(title, dialect, name);
  return upstream;
}

function claudeFile(environment: Environment, settings: readonly JsonSetting[]): ClientFileForm {
  const path = join(clientFolder(environment, CLAUDE_FOLDER), 'settings.json');
  return jsonSettings({ path, name: 'claude', settings, refusesComments: 'Claude Code' });
}

async function planClaude({ context: { environment } }: PlanFacts): Promise<Connection> {
  const access = await loadAccess(environment);
  const upstream = await upstreamOf('claude', 'Claude Code', 'anthropic_messages', environment);
  const isLogin = takesLogin(upstream);
  const baseUrl = isLogin ? withPathToken(addressOf(access), access.localToken) : addressOf(access);
  const command = ownCommand(environment, TOKEN);
  const variables = {
    ANTHROPIC_BASE_URL: baseUrl,
    CLAUDE_CODE_GATEWAY_HINT_HEADERS: '1',
    // Empty these two: the client would send the shell's value with every request, or use it instead of the login.
    ANTHROPIC_API_KEY: '',
    ANTHROPIC_AUTH_TOKEN: '',
    ...loopbackVariables(access.host, environment),
  };
  const settings: JsonSetting[] = [
    isLogin
      ? startHook(ownCommand(environment, START))
      : { path: ['apiKeyHelper'], value: commandLine(command) },
    ...Object.entries(variables).map(([name, value]) => ({ path: ['env', name], value })),
    ...Object.entries(toolSearchVariables(upstream, environment)).map(
      ([name, value]): JsonSetting => ({ path: ['env', name], value, isDefault: true }),
    ),
  ];
  const form = claudeFile(environment, settings);
  return { form, baseUrl: addressOf(access), startsProxy: true, command, warnings: [] };
}

/**
 * Returns a hook that starts the proxy. With a login Claude Code never asks svc for a token, but it runs SessionStart
 * hooks before its first request, also with -p. Claude Code gives a hook's stdout to the model, so this hook writes
 * nothing there.
 */
function startHook(command: readonly string[]): JsonSetting {
  const hook = { type: 'command', command: commandLine(command), timeout: START_HOOK_SECONDS };
  return { path: ['hooks', 'SessionStart'], value: { hooks: [hook] }, isItem: true };
}

/** Time limit of the hook. A start may take several seconds. After the limit Claude Code continues without the hook. */
const START_HOOK_SECONDS = 15;

async function planCodex({ options, context }: PlanFacts): Promise<Connection> {
  const { environment } = context;
  const access = await loadAccess(environment);
  const upstream = await upstreamOf('codex', 'Codex', 'openai_responses', environment);
  if (options.openaiName === true) requireOpenAi(upstream);
  const isLogin = takesLogin(upstream);
  const isNew = await isNewCodex(environment);
  const knowsCommand = !isLogin && isNew;
  const command = ownCommand(environment, TOKEN);
  const base = knowsCommand
    ? addressOf(access)
    : withPathToken(addressOf(access), access.localToken);
  const baseUrl = `${base}/v1`;
  const credential = isLogin ? 'login' : knowsCommand ? { tokenCommand: command } : 'path';
  const block =
    isLogin && isNew
      ? builtInBlock(baseUrl)
      : providerBlock(codexTables({ baseUrl, name: codexName(options), credential }));
  const form = codexFile(environment, block);
  const profile = await profileIn(form.path);
  return {
    form,
    baseUrl: `${addressOf(access)}/v1`,
    startsProxy: knowsCommand,
    ...(knowsCommand && { command }),
    warnings:
      profile === undefined
        ? []
        : [`The profile ${profile}, which the file selects, names its own provider.`],
  };
}

/**
 * Says whether the installed Codex supports a token command and another base URL for its built-in provider; see
 * isBuiltInConfigurable(). A Codex that is not found, or does not state its version, is assumed to be the newest.
 */
async function isNewCodex(environment: Environment): Promise<boolean> {
  if (!isInstalled(environment, 'codex')) return true;
  const version = await versionOf('codex', environment);
  return version === '' || isBuiltInConfigurable(version);
}

/** Returns a list with the client as `svc connect` needs it. The list is empty if svc changes no file of the client. */
function otherClient(client: OtherClient): readonly ConnectableClient[] {
  const { file, name, title, program, needsModel } = client;
  if (typeof file === 'string') return [];
  const formFor = (environment: Environment, settings: readonly JsonSetting[]) => {
    const { otherForm } = file;
    const path = file.path(environment);
    return jsonSettings({ path, name, settings, ...(otherForm !== undefined && { otherForm }) });
  };
  const plan = async ({ options, context }: PlanFacts) => {
    const { environment } = context;
    const facts = await factsOf(client, options, context);
    const command = ownCommand(environment, TOKEN);
    const settings = file.settings({ ...facts, tokenCommand: commandLine(command) });
    return {
      form: formFor(environment, settings),
      baseUrl: facts.url,
      startsProxy: file.asksToken,
      ...(file.asksToken && { command }),
      warnings: file.afterwards === undefined ? [] : [file.afterwards],
    };
  };
  const dialects = client.dialects.filter((one) => needsModel?.includes(one) !== true);
  const undone = (environment: Environment) => formFor(environment, []);
  return [{ name, title, program, dialects, hasLogin: false, plan, file: undone }];
}
