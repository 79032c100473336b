import { probeProxy } from '../../adapters/processes/health-probe.ts';
import type { Draft } from '../../core/settings/config-draft.ts';
import { parseProxySetting, type ProxySettingName } from '../../core/settings/config-proxy.ts';
import { COMPRESSION_MODES, MEMORY_MODES } from '../../core/settings/settings.ts';
import { storedSettings } from './wizard-summary.ts';
import type { Answers } from './wizard-answers.ts';
import { input, select } from './wizard-prompts.ts';

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
  deterministic: 'leave out old tool output if that is proven safe and saves money',
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
  return changed(before, { memoryMode, compressionMode, inputBudget, recalledTokensMax });
}

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
