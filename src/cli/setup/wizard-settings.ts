import { probeProxy } from '../../adapters/processes/local-calls.ts';
import { asRecord } from '../../core/bytes/json-fields.ts';
import { DIALECTS } from '../../core/conversation/view.ts';
import { hasLongCache } from '../../core/shortening/pricing.ts';
import type { Draft } from '../../core/settings/config-draft.ts';
import { parseProxySetting, type ProxySettingName } from '../../core/settings/config-proxy.ts';
import { COMPRESSION_MODES, MEMORY_MODES } from '../../core/settings/settings.ts';
import { storedSettings } from './wizard-summary.ts';
import type { Answers } from './wizard-answers.ts';
import { confirm, input, select } from './wizard-prompts.ts';

/** The wizard's questions about the proxy itself. Each gives the settings that its answers change. */

export async function askAddress(answers: Answers): Promise<Draft> {
  const { host, port } = storedSettings(answers.draft);
  const answer = await input(
    {
      message: 'On which port of this machine should svc listen?',
      default: String(port),
      validate: (text) => judgePort(text, host, answers),
    },
    answers.dependencies.streams,
  );
  return changed({ port }, { port: answer });
}

/** In the first setup the port is a question only where the usual one is taken. */
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
  const { streams } = answers.dependencies;
  const memoryMode = await select(
    {
      message: 'How should svc use its memory?',
      default: before.memoryMode,
      choices: MEMORY_MODES.toReversed().map((value) => ({
        value,
        name: value,
        description: MEMORY_WORDS[value],
      })),
    },
    streams,
  );
  const compressionMode = await select(
    {
      message: 'What should svc do with long requests?',
      default: before.compressionMode,
      choices: COMPRESSION_MODES.toReversed().map((value) => ({
        value,
        name: value,
        description: COMPRESSION_WORDS[value],
      })),
    },
    streams,
  );
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
 * Asks for the long cache where a key pays for an API that has one. With a login the client itself asks
 * its provider for an hour.
 */
export async function askCacheTtl(answers: Answers): Promise<Draft> {
  const { context, draft, stored, dependencies } = answers;
  const upstreams: readonly unknown[] = Array.isArray(draft['upstreams']) ? draft['upstreams'] : [];
  const paid = upstreams.map(asRecord).filter(({ auth }) => auth !== 'client');
  const isPaid = paid.some(({ apiStyle }) =>
    DIALECTS.some((dialect) => dialect === apiStyle && hasLongCache(dialect)),
  );
  if (!isPaid) return {};
  const before = storedSettings(draft);
  context.terminal.note(CACHE_PRICE);
  const isWanted = await confirm(
    {
      message: 'Cache tools and system prompt for an hour after a pause?',
      default: stored === undefined || before.cacheTtl === 'auto',
    },
    dependencies.streams,
  );
  return changed(before, { cacheTtl: isWanted ? 'auto' : 'client' });
}

// By npm run bench:sessions: 72.0 instead of 76.9 % of direct, and 4 of 86 sessions above it instead of 3.
const CACHE_PRICE =
  'A cache of an hour costs 2 instead of 1.25 of the input price when it is written, and sessions with ' +
  'pauses cost about 5 % less in all.';

async function askNumber(
  answers: Answers,
  name: 'inputBudget' | 'recalledTokensMax',
  message: string,
): Promise<string> {
  return input(
    {
      message,
      default: String(storedSettings(answers.draft)[name]),
      validate: (text) =>
        parseProxySetting(name, text) !== undefined ||
        'Expected a whole number in the allowed range.',
    },
    answers.dependencies.streams,
  );
}

/** Only changed answers go into the file. */
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
