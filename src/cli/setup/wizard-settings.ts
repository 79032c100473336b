import { probeProxy } from '../../adapters/processes/local-calls.ts';
import { asRecord } from '../../core/bytes/json-fields.ts';
import { DIALECTS } from '../../core/dialects/apis.ts';
import { hasLongCache } from '../../core/shortening/pricing.ts';
import { type Draft, upstreamEntries } from '../../core/settings/config-draft.ts';
import { parseProxySetting, type ProxySettingName } from '../../core/settings/config-proxy.ts';
import { COMPRESSION_MODES, MEMORY_MODES } from '../../core/http/modes.ts';
import {
  storedSettings,
  type Answers,
  askNext,
  askSecret,
  type Next,
  noteUnset,
} from './wizard-answers.ts';
import { dataFolder } from '../../adapters/files/own-folders.ts';
import { parseServiceUrl } from '../../core/settings/config-upstreams.ts';
import { type Environment, Findings, namedVariable } from '../../core/settings/config-values.ts';
import { readNetworkProxy } from '../../core/settings/network-proxy.ts';
import { isOwnMachineUrl } from '../../core/settings/own-machine.ts';
import type { HostedSettings } from '../../adapters/memory-client/open-hosted-memory.ts';
import { type KeyCheck, meaningOf } from '../doctor/key-check.ts';
import { MemoryError, type MemoryFailure } from '../../core/errors.ts';

/**
 * The wizard's questions about proxy and memory. The exported functions return the settings that the answers change.
 */

export async function askAddress(answers: Answers): Promise<Draft> {
  const { host, port } = storedSettings(answers.draft);
  const answer = await answers.prompts.input({
    message: 'On which port of this machine should svc listen?',
    default: String(port),
    validate: (text) => judgePort(text, host, answers),
  });
  return changed({ port }, { port: answer });
}

/** Asks for the port if another program uses the present one; otherwise asks nothing. */
export async function askBusyPort(answers: Answers): Promise<Draft> {
  const { host, port } = storedSettings(answers.draft);
  const judged = await judgePort(String(port), host, answers);
  if (judged === true) return {};
  answers.context.terminal.warn(judged);
  return askAddress(answers);
}

async function judgePort(text: string, host: string, { draft }: Answers): Promise<string | true> {
  const port = parseProxySetting('port', text);
  if (typeof port !== 'number') return 'A port is a number from 0 to 65535; 8765 is the default.';
  if (port === 0) return true;
  const token = typeof draft['localToken'] === 'string' ? draft['localToken'] : '';
  const { listener } = await probeProxy({ host, port }, token);
  const isForeign = listener === 'stranger' || listener === 'silent';
  return isForeign ? `Another program uses port ${port}. Choose another port.` : true;
}

const MEMORY_WORDS = {
  'read-write': 'recall memories and store new ones',
  read: 'recall memories and store nothing new',
  write: 'store new memories and recall nothing',
  off: 'neither',
} as const;

const COMPRESSION_WORDS = {
  deterministic:
    'leave out old tool output if that is proven safe and saves money; nothing with the newest models, which bind their thinking to it',
  shadow: 'change nothing and measure what could be left out',
  passthrough: 'change nothing',
} as const;

export async function askModes(answers: Answers): Promise<Draft> {
  const before = storedSettings(answers.draft);
  const { prompts } = answers;
  const memoryMode = await prompts.select({
    message: 'How should svc use its memory?',
    default: before.memoryMode,
    choices: MEMORY_MODES.toReversed().map((value) => ({
      value,
      name: value,
      description: MEMORY_WORDS[value],
    })),
  });
  const compressionMode = await prompts.select({
    message: 'What should svc do with long requests?',
    default: before.compressionMode,
    choices: COMPRESSION_MODES.toReversed().map((value) => ({
      value,
      name: value,
      description: COMPRESSION_WORDS[value],
    })),
  });
  const inputBudget = await askNumber(
    answers,
    'inputBudget',
    'Above how many tokens should svc consider shortening?',
  );
  const recalledTokensMax = await askNumber(
    answers,
    'recalledTokensMax',
    'How many tokens may recalled memory add to a request?',
  );
  const cacheTtl = await askCacheTtl(answers);
  const asked = { memoryMode, compressionMode, inputBudget, recalledTokensMax };
  return { ...changed(before, asked), ...cacheTtl };
}

/**
 * Asks whether the provider should cache for an hour. Asks only if svc has a key for an API with such a cache: with a
 * login the client itself asks its provider for an hour.
 */
export async function askCacheTtl(answers: Answers): Promise<Draft> {
  const { context, draft, stored } = answers;
  const paid = upstreamEntries(draft).filter(({ auth }) => auth !== 'client');
  const isPaid = paid.some(({ apiStyle }) =>
    DIALECTS.some((dialect) => dialect === apiStyle && hasLongCache(dialect)),
  );
  if (!isPaid) return {};
  const before = storedSettings(draft);
  context.terminal.note(CACHE_PRICE);
  const isWanted = await answers.prompts.confirm({
    message: 'Cache tools and system prompt for an hour after a pause?',
    default: stored === undefined || before.cacheTtl === 'auto',
  });
  return changed(before, { cacheTtl: isWanted ? 'auto' : 'client' });
}

// Measured with `npm run bench:sessions` on 86 sessions. With this setting their input costs 72.0 % of the direct
// price, and 4 sessions cost more than the direct price; without it 76.9 %, and 3 sessions.
const CACHE_PRICE =
  'After five minutes without a request the provider forgets what it has cached, and the next request pays for all of it. ' +
  'svc can ask it to remember tools and system prompt for an hour. To write that costs 2 instead of 1.25 times the input ' +
  'price, and sessions with pauses cost about 5 % less in all.';

async function askNumber(
  answers: Answers,
  name: 'inputBudget' | 'recalledTokensMax',
  message: string,
): Promise<string> {
  return answers.prompts.input({
    message,
    default: String(storedSettings(answers.draft)[name]),
    validate: (text) =>
      parseProxySetting(name, text) !== undefined ||
      'Expected a whole number in the allowed range.',
  });
}

/** Parses the answers, and returns those that differ from `before`. The file gets no other members. */
function changed(
  before: Readonly<Partial<Record<ProxySettingName, unknown>>>,
  answers: Readonly<Partial<Record<ProxySettingName, string>>>,
): Draft {
  const entries = Object.entries(answers).map(([name, text]): [string, unknown] => [
    name,
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Keys of the record above.
    parseProxySetting(name as ProxySettingName, text),
  ]);
  return Object.fromEntries(entries.filter(([name, value]) => value !== Reflect.get(before, name)));
}

/** Asks where memories are stored. Returns the new member `memory`; undefined if nothing changes. */
export async function askMemory(answers: Answers): Promise<Draft | undefined> {
  const { draft, context } = answers;
  const memory = asRecord(draft['memory']);
  const kind = await answers.prompts.select({
    message: 'Where should memories be stored?',
    default: memory['kind'] === 'hosted' ? 'hosted' : 'embedded',
    choices: [
      {
        value: 'embedded',
        name: 'On this machine',
        description: `one SQLite file in ${dataFolder(context.environment)}; no account`,
      },
      {
        value: 'hosted',
        name: 'With a memory service',
        description: 'for several machines or a team; needs a URL and a service key',
      },
    ] as const,
  });
  if (kind === 'embedded') return memory['kind'] === 'hosted' ? { kind } : undefined;
  return askService(memory, answers);
}

async function askService(memory: Draft, answers: Answers): Promise<Draft | undefined> {
  const { prompts } = answers;
  const before = typeof memory['baseUrl'] === 'string' ? { default: memory['baseUrl'] } : {};
  const baseUrl = await prompts.input({
    message: 'Base URL of the memory service:',
    ...before,
    validate: (text) => {
      const parsed = parseServiceUrl(text, true);
      return 'allowed' in parsed ? `Expected ${parsed.allowed}.` : true;
    },
  });
  for (;;) {
    const question = {
      message: 'Where is its service key?',
      direct: 'The service key:',
      stored: memory['serviceKey'],
      offered: ['SVC_SERVICE_KEY'],
    };
    const answer = await askSecret(question, answers);
    if (answer.kind === 'back') return undefined;
    const serviceKey = answer.kind === 'key' ? answer.key : memory['serviceKey'];
    // A user who types a private address thereby allows svc to use it.
    const isOwn = 'allowed' in parseServiceUrl(baseUrl);
    const isKept = memory['baseUrl'] === baseUrl && memory['allowPrivate'] === true;
    const isSame = memory['baseUrl'] === baseUrl && memory['proxy'] !== undefined;
    const place = {
      baseUrl,
      ...(isOwn || isKept ? { allowPrivate: true } : {}),
      ...(isSame ? { proxy: memory['proxy'] } : {}),
    };
    const chosen = { kind: 'hosted', ...place, serviceKey };
    const next = await judge(chosen, answers);
    if (next === 'leave') return undefined;
    if (next === 'keep') return chosen;
  }
}

/** Asks the memory service whether it accepts the key. If not, the user may type the key again. */
async function judge(
  draft: Pick<HostedSettings, 'baseUrl'> & { readonly allowPrivate?: boolean; serviceKey: unknown },
  answers: Answers,
): Promise<Next> {
  const { terminal, environment } = answers.context;
  const serviceKey = resolved(draft.serviceKey, environment);
  if (serviceKey === undefined) {
    noteUnset(answers);
    return 'keep';
  }
  const { baseUrl } = draft;
  const at = { path: 'memory', item: { ...draft }, environment, findings: new Findings() };
  const proxy = readNetworkProxy(at, baseUrl);
  const allowPrivate = draft.allowPrivate === true || isOwnMachineUrl(baseUrl);
  terminal.note(`Testing the key: asking ${new URL(baseUrl).host} what it may do …`);
  const own = { kind: 'hosted', baseUrl, serviceKey, allowPrivate } as const;
  const checked = await checkService(proxy === undefined ? own : { ...own, proxy });
  const leave = 'Keep the present memory setting';
  return askNext({ who: 'memory service', ...checked, leave }, answers);
}

function resolved(credential: unknown, environment: Environment): string | undefined {
  if (typeof credential === 'string') return credential;
  const name = namedVariable(credential);
  return name === undefined ? undefined : environment[name] || undefined;
}

/** Deadline of the test, in milliseconds. By default a request waits only 600 ms for a service. */
const ANSWER_MS = 5000;
const WHO = 'the memory service';

/** Checks whether a memory service can be reached and accepts its key, with the first call that a proxy makes. */
async function checkService(settings: HostedSettings): Promise<KeyCheck> {
  const { openHostedMemory } = await import('../../adapters/memory-client/open-hosted-memory.ts');
  const service = openHostedMemory({ settings, recallMs: ANSWER_MS, report: () => undefined });
  const from = performance.now();
  try {
    const { key } = await service.operations.whoAmI(AbortSignal.timeout(ANSWER_MS));
    const ms = Math.round(performance.now() - from);
    const may = key.scopes.length === 0 ? 'nothing' : key.scopes.join(', ');
    return { state: 'accepted', found: `the key is accepted and may: ${may}; ${ms} ms` };
  } catch (error) {
    if (error instanceof MemoryError) return checkOf(error);
    throw error;
  } finally {
    await service.close();
  }
}

const FAILURES: Readonly<Record<Exclude<MemoryFailure, 'unavailable'>, KeyCheck>> = {
  denied: { state: 'refused', found: `${WHO} refuses the service key, or blocks it` },
  invalid: {
    state: 'unknown',
    found: 'the program at this address is not a memory service: is the URL right?',
  },
  rate_limited: { state: 'unknown', found: `${WHO} answers, but limits this key now` },
  timeout: { state: 'unreachable', found: `${WHO} does not answer in time` },
};

function checkOf({ reason, message }: MemoryError): KeyCheck {
  if (reason !== 'unavailable') return FAILURES[reason];
  // A word in capitals in parentheses is an error code of the connection.
  const code = /\(([A-Z][A-Z0-9_]+)\)/.exec(message)?.[1];
  const isRefused = code === 'SVC_ADDRESS_REFUSED' || message.includes('is not allowed');
  if (isRefused) {
    const found = 'its address is private, which svc uses only if you allow it';
    return { state: 'not_allowed', found };
  }
  if (code === undefined || message.includes('refused')) {
    return { state: 'unknown', found: `${WHO} has a fault` };
  }
  return { state: 'unreachable', found: meaningOf(code) };
}
