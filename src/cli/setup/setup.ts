import { readConfigFile, repairModes } from '../../adapters/files/config-file.ts';
import { dataFolder, configFolder } from '../../adapters/files/own-folders.ts';
import {
  type Draft,
  type UpstreamDraft,
  upstreamsFromEnvironment,
} from '../../core/settings/config-draft.ts';
import {
  parseProxySetting,
  PROXY_FLAG_NAMES,
  type ProxyFlags,
} from '../../core/settings/config-proxy.ts';
import { parseConfig } from '../../core/settings/config-schema.ts';
import { isRecord } from '../../core/bytes/json-fields.ts';
import { clientRecords } from '../clients/client-file.ts';
import { CliError } from '../cli-error.ts';
import type { CommandContext } from '../context.ts';
import { configError } from './load-config.ts';
import { noteNext, refuseUnusable, saveConfig } from './setup-save.ts';
import { storedSettings } from './wizard-answers.ts';
import {
  choice,
  chooseUpstreams,
  type UpstreamFlags,
  type UpstreamSources,
  usage,
  keyGiven,
} from './setup-upstream.ts';
import { type LoginFacts, LOGINS } from '../../core/http/logins.ts';
import { LOGIN_STYLES } from '../../core/settings/config-upstreams.ts';

/** Runs `svc setup` with flags: makes or changes the configuration. Members that no flag names stay unchanged. */

export interface SetupOptions extends UpstreamFlags, MemoryFlags {
  readonly yes?: boolean;
  readonly remove?: string;
  readonly replace?: boolean;
  readonly flags: ProxyFlags;
}

const EXAMPLES =
  'For example: svc setup --yes --upstream anthropic --key-env ANTHROPIC_API_KEY (see svc setup --help)';

export async function setup(options: SetupOptions, sources: UpstreamSources): Promise<void> {
  const { context } = sources;
  const { environment, terminal } = context;
  if (options.yes !== true) {
    throw usage(
      'setup asks questions only on a terminal. Without a terminal, give options and --yes.',
      EXAMPLES,
    );
  }
  const folder = configFolder(environment);
  // Read the file before stdin, so that a broken file is reported first.
  const before = await readConfigFile(folder);
  refuseUnusable(before);
  for (const path of await repairModes(folder)) terminal.note(`Made private: ${path}`);
  const draft = isRecord(before?.value) ? before.value : undefined;
  if (options.keyStdin === true && options.serviceKeyStdin === true) {
    throw usage('stdin can hold only one key. Give the other key with its variable.', EXAMPLES);
  }
  const upstreams = await chosenUpstreams(options, draft, sources);
  const memory = await chooseMemory(options, draft ?? {}, context);
  const { remove, replace = false, flags } = options;
  const removed = remove === undefined ? [] : [remove];
  const changes = { upstreams, settings: proxyChanges(flags), removed, replace };
  const saved = await saveConfig(memory === undefined ? changes : { ...changes, memory }, context);
  noteNext(saved, terminal);
  await warnOfAddress(draft ?? {}, saved, context);
}

/**
 * If the address of svc has changed, warns of each file that `svc connect` has written: it may name the earlier
 * address, which overrides what `svc run` sets.
 */
async function warnOfAddress(before: Draft, after: Draft, context: CommandContext): Promise<void> {
  const [old, now] = [before, after].map(storedSettings);
  if (old?.host === now?.host && old?.port === now?.port) return;
  for (const { named } of await clientRecords(dataFolder(context.environment))) {
    const write = 'Write it again with: svc connect CLIENT';
    context.terminal.warn(`${named} names the earlier address of svc. ${write}`);
  }
}

/** The options that need --upstream. */
const OF_A_PROVIDER = [
  'keyEnv',
  'keyStdin',
  'baseUrl',
  'apiStyle',
  'auth',
  'allowPrivate',
] as const satisfies readonly (keyof UpstreamFlags)[];

async function chosenUpstreams(
  options: SetupOptions,
  draft: Draft | undefined,
  sources: UpstreamSources,
): Promise<readonly UpstreamDraft[]> {
  const { context } = sources;
  if (options.upstream !== undefined) return chooseUpstreams(options, draft ?? {}, sources);
  if (OF_A_PROVIDER.some((name) => options[name] !== undefined)) {
    throw usage('Which provider are these options for? Name it with --upstream.', EXAMPLES);
  }
  // The first setup without an upstream uses the keys in the environment, as `svc start` does.
  return draft === undefined ? upstreamsFromEnvironment(context.environment) : [];
}

function proxyChanges(flags: ProxyFlags): Draft {
  const { problems } = parseConfig({}, {}, flags);
  const wrong = problems.filter(({ origin }) => origin !== undefined);
  if (wrong.length > 0) throw configError('', wrong);
  const given = PROXY_FLAG_NAMES.filter((name) => flags[name] !== undefined);
  return Object.fromEntries(
    given.map((name) => [name, parseProxySetting(name, flags[name] ?? '')]),
  );
}

interface MemoryFlags {
  readonly memory?: string;
  readonly memoryUrl?: string;
  /** The name of the variable with the service key. The file stores this name instead of a key. */
  readonly serviceKeyEnv?: string;
  readonly serviceKeyStdin?: boolean;
  /** True: the service's address may be in the user's own network. */
  readonly memoryAllowPrivate?: boolean;
}

/** Returns the new member `memory`: present values, which flags override. Undefined if no flag is about the memory. */
async function chooseMemory(
  flags: MemoryFlags,
  draft: Draft,
  context: CommandContext,
): Promise<Draft | undefined> {
  const kind = choice('--memory', flags.memory, ['embedded', 'hosted']);
  const { memoryUrl, serviceKeyEnv, serviceKeyStdin, memoryAllowPrivate } = flags;
  const about = [memoryUrl, serviceKeyEnv, serviceKeyStdin, memoryAllowPrivate];
  const isAboutService = about.some((it) => it !== undefined);
  if (kind === undefined && !isAboutService) return undefined;
  const before = isRecord(draft['memory']) ? draft['memory'] : {};
  if ((kind ?? before['kind'] ?? 'embedded') === 'embedded') {
    if (!isAboutService) return { kind: 'embedded' };
    throw usage('A URL and a service key need --memory hosted.');
  }
  const baseUrl = memoryUrl ?? before['baseUrl'];
  const serviceKey =
    (await keyGiven('--service-key', serviceKeyEnv, serviceKeyStdin, context)) ??
    before['serviceKey'];
  if (baseUrl === undefined) throw usage('Where is the memory service? Give --memory-url.');
  if (serviceKey === undefined) {
    throw usage(
      'Where is the service key?',
      'Give --service-key-env SVC_SERVICE_KEY (the file then names the variable), or --service-key-stdin.',
    );
  }
  // The permission to use a private address is for that address only.
  const isSame = baseUrl === before['baseUrl'];
  const allowPrivate = memoryAllowPrivate ?? (isSame ? before['allowPrivate'] : undefined);
  return {
    kind: 'hosted',
    baseUrl,
    serviceKey,
    ...(allowPrivate === undefined ? {} : { allowPrivate }),
    ...(isSame && before['proxy'] !== undefined ? { proxy: before['proxy'] } : {}),
  };
}

interface LoginOptions extends SetupOptions {
  readonly login: string;
}

/**
 * What svc prints before it asks whether to use a login: what svc does with the login, the providers' own terms, and
 * what stops working.
 */
export const LOGIN_RISK = [
  'With a login, svc passes on the requests of your own client, on your own machine, with the login that the client sends. svc never logs in. It never reads, stores, refreshes or lends a login.',
  'Your provider decides whether it accepts a client with another base URL. Anthropic’s terms allow a subscription login for Claude Code and claude.ai, and forbid third parties to offer it or to route requests through it for their users. The provider may limit or close an account.',
  'With the newest models, a conversation in which svc placed a memory cannot continue without svc: Claude Code repairs it once and loses the model’s earlier thinking.',
  'A custom base URL also disables some features of Claude Code, such as managed settings and Remote Control.',
];

export function loginQuestion({ client, baseUrl }: LoginFacts): string {
  return `Pass the login of ${client} on to ${baseUrl}?`;
}

export function loginUpstream({ login, baseUrl }: LoginFacts): UpstreamDraft {
  return { name: `${login}-login`, apiStyle: LOGIN_STYLES[login], baseUrl, auth: 'client' };
}

/**
 * Runs `svc setup --login claude|codex`: lets svc forward the client's own subscription login. svc prints the risk and
 * asks; `--yes` does not answer this question.
 */
export async function setupLogin(options: LoginOptions, context: CommandContext): Promise<void> {
  const { terminal } = context;
  const { login: name, replace = false, flags } = options;
  // Without a terminal `confirm` is undefined, and stdin has the answer.
  const confirm = context.asker?.();
  const known = Object.values(LOGINS).find(({ login }) => login === name);
  if (known === undefined) throw usage('--login: expected claude or codex.');
  const { login } = known;
  if (NOT_FOR_LOGINS.some((option) => options[option] !== undefined)) {
    throw usage(
      'With --login, setup changes no other provider and no place of memories.',
      'Give these options to a second svc setup --yes',
    );
  }
  const settings = proxyChanges(flags);
  for (const line of LOGIN_RISK) terminal.note(line);
  const question = loginQuestion(known);
  const isWanted = confirm === undefined ? await answeredByInput(context) : await confirm(question);
  if (!isWanted) {
    throw new CliError(
      'Nothing was changed: the login was not turned on.',
      `Answer yes on a terminal, or: echo yes | svc setup --login ${login}`,
    );
  }
  const before = (await readConfigFile(configFolder(context.environment)))?.value;
  const changes = { upstreams: [loginUpstream(known)], settings, removed: [], replace };
  const saved = await saveConfig(changes, context);
  terminal.note(
    'Shortening is off for this login, because a subscription is not billed per token. Memory is on.',
  );
  noteNext(saved, terminal);
  await warnOfAddress(isRecord(before) ? before : {}, saved, context);
}

/** The options that `--login` excludes. */
const NOT_FOR_LOGINS = [
  ...OF_A_PROVIDER,
  'upstream',
  'remove',
  'memory',
  'memoryUrl',
  'memoryAllowPrivate',
  'serviceKeyEnv',
  'serviceKeyStdin',
] as const;

const ANSWER_CHARS_MAX = 100;

async function answeredByInput({ stdin }: CommandContext): Promise<boolean> {
  if (stdin === undefined || stdin.isTTY === true) return false;
  let text = '';
  for await (const piece of stdin) {
    text += typeof piece === 'string' ? piece : Buffer.from(piece).toString('utf8');
    if (text.length > ANSWER_CHARS_MAX) return false;
  }
  return /^y(?:es)?$/i.test(text.trim());
}
