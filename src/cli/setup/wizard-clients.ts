import { isInstalled } from '../../adapters/foreign/client-files.ts';
import { type Draft, upstreamEntries } from '../../core/settings/config-draft.ts';
import { reportError } from '../cli-error.ts';
import { connect, CONNECTABLE, type ConnectableClient, connectNow } from '../clients/connect.ts';
import { takesLogin } from '../clients/launch.ts';
import type { CommandContext } from '../context.ts';
import type { StartedClient } from './setup-save.ts';
import type { Answers, Wiring } from './wizard-answers.ts';
import { mkdirSync, rmSync, rmdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { dataFolder } from '../../adapters/files/own-folders.ts';
import { lookQuestion } from '../../core/memory/captures.ts';
import type { TranscriptRecord } from '../../core/memory/transcripts.ts';
import type { RecalledExchange } from '../../core/recall/agent-facts.ts';
import type { ProxySettings } from '../../core/settings/settings.ts';
import type { CliStore } from '../compose-store.ts';
import { withStore } from '../store.ts';
import { timeText } from '../listing.ts';
import { oneLine } from '../terminal.ts';

/** Asks which installed clients should use svc. Keeps the earlier answer if all of them were offered before. */
export async function askClients(answers: Answers): Promise<Wiring> {
  const { context, draft, hooked, wiring } = answers;
  const found = CONNECTABLE.filter(
    (client) =>
      isInstalled(context.environment, client.program) &&
      isServed(client, draft) &&
      !hooked.some((login) => login === client.name),
  );
  const offered = found.map(({ name }) => name);
  const known = wiring?.offered ?? [];
  const isKnown = offered.every((name) => known.includes(name));
  if (found.length === 0 || (wiring !== undefined && isKnown)) {
    const chosen = wiring?.chosen.filter((name) => offered.includes(name)) ?? [];
    return { offered, chosen };
  }
  const titles = listText(found.map(({ title }) => title));
  const choice = await answers.prompts.select({
    message: `Should ${titles} use svc from now on?`,
    choices: [
      {
        value: 'all' as const,
        name: found.length === 1 ? 'Yes' : `Yes: ${titles}`,
        description: `svc changes ${found.length === 1 ? 'its settings file' : 'their settings files'}; svc uninstall restores every byte`,
      },
      ...(found.length === 1
        ? []
        : [{ value: 'some' as const, name: 'Some of them', description: 'svc asks for each' }]),
      {
        value: 'none' as const,
        name: `No, I start ${found.length === 1 ? 'it' : 'them'} with svc run`,
        description: `svc changes no file: svc run ${found[0]?.name ?? ''}`,
      },
    ],
  });
  if (choice === 'none') return { offered, chosen: [] };
  if (choice === 'all') return { offered, chosen: offered };
  const chosen: string[] = [];
  for (const { name, title } of found) {
    // oxlint-disable-next-line no-await-in-loop -- One question after the other.
    if (await answers.prompts.confirm({ message: `Should ${title} use svc?` })) chosen.push(name);
  }
  return { offered, chosen };
}

function isServed({ dialects, hasLogin }: ConnectableClient, draft: Draft): boolean {
  return upstreamEntries(draft).some((one) => {
    const isSpoken = dialects.some((dialect) => one['apiStyle'] === dialect);
    return isSpoken && (hasLogin || !takesLogin(one));
  });
}

/** Changes the settings of the chosen clients, and adds hooks to the hooked ones. Reports a failure, and continues. */
export async function wireClients(
  { chosen, hooked }: Pick<Answers, 'hooked'> & Pick<Wiring, 'chosen'>,
  context: CommandContext,
): Promise<{ readonly wired: readonly StartedClient[]; readonly failed: number }> {
  const wired: StartedClient[] = [];
  let failed = 0;
  const hasHooks = ({ name }: ConnectableClient): boolean => hooked.some((one) => one === name);
  for (const client of CONNECTABLE.filter((one) => chosen.includes(one.name) || hasHooks(one))) {
    try {
      const startsProxy = hasHooks(client)
        ? // oxlint-disable-next-line no-await-in-loop -- Their records share one lock.
          (await connect(client.name, { hooks: true, yes: true }, context)) === 0
        : // oxlint-disable-next-line no-await-in-loop -- As above.
          await connectNow(client, context);
      wired.push({ program: client.program, startsProxy });
    } catch (error) {
      failed += 1;
      reportError(error, context.terminal);
      context.terminal.warn(`${client.title} does not use svc yet.`);
    }
  }
  return { wired, failed };
}

export function clientTitles(names: readonly string[]): readonly string[] {
  return CONNECTABLE.filter(({ name }) => names.includes(name)).map(({ title }) => title);
}

/** Returns a list as text: `a`, `a and b`, `a, b and c`. */
export function listText(words: readonly string[]): string {
  const last = words.at(-1) ?? '';
  return words.length < 2 ? last : `${words.slice(0, -1).join(', ')} and ${last}`;
}

/** Bound on the prompts for which svc tries a recall: the newest of each session, the newest sessions first. */
const PROMPTS_MAX = 8;
/** Deadline of filling the temporary store and of these recalls together, in milliseconds, while the user waits. */
const WAIT_MS = 5000;
/** Bounds on what a preview shows: characters of the prompt and of a quote, and the number of quotes. */
const LINE_CHARS = 90;
const QUOTES_MAX = 2;

type RecallSettings = Pick<ProxySettings, 'recalledTokensMax' | 'recallQuietPercent'>;

/**
 * Returns lines that show what recall would have added to one of the newest prompts. It tries that with a temporary
 * store inside the data folder. Returns none if recall finds nothing, or the store fails or is late.
 */
export async function previewLines(
  records: readonly TranscriptRecord[],
  settings: RecallSettings,
  context: CommandContext,
): Promise<readonly string[]> {
  const data = dataFolder(context.environment);
  const folder = join(data, 'preview');
  let made: string | undefined;
  try {
    rmSync(folder, { recursive: true, force: true });
    made = mkdirSync(folder, { recursive: true, mode: 0o700 });
    const own = { ...context, environment: { SVC_DATA_HOME: folder } };
    return await withStore(own, (store) => ask(records, store, settings), 'log');
  } catch {
    return [];
  } finally {
    rmSync(folder, { recursive: true, force: true });
    // Remove the folders that were made here, because setup leaves nothing until the user confirms.
    if (made !== undefined) removeEmpty(dirname(folder), made);
  }
}

/** Removes the folder, then its parents up to `first`, until one of them is not empty. */
function removeEmpty(folder: string, first: string): void {
  if (!folder.startsWith(first)) return;
  try {
    rmdirSync(folder);
    removeEmpty(dirname(folder), first);
  } catch {
    // The folder is not empty: another program has put something there meanwhile.
  }
}

async function ask(
  records: readonly TranscriptRecord[],
  { memory, desk }: CliStore,
  settings: RecallSettings,
): Promise<readonly string[]> {
  const end = AbortSignal.timeout(WAIT_MS);
  await memory.capture(records, end);
  for (const prompt of lastPrompts(records)) {
    if (end.aborted) break;
    const { text, space, conversation, at: now } = prompt;
    const asked = { space, conversation, now, settings };
    const look = await desk?.look(lookQuestion(text, asked));
    const earlier = look?.exchanges.find(({ at }) => at < prompt.at);
    if (earlier !== undefined) return linesFor(prompt, earlier);
  }
  return [];
}

function lastPrompts(records: readonly TranscriptRecord[]): readonly TranscriptRecord[] {
  const newest = new Map<string, TranscriptRecord>();
  for (const record of records.toSorted((a, b) => b.at - a.at)) {
    if (record.role === 'user' && !newest.has(record.conversation)) {
      newest.set(record.conversation, record);
    }
  }
  return [...newest.values()].slice(0, PROMPTS_MAX);
}

function linesFor(prompt: TranscriptRecord, { at, quotes }: RecalledExchange): readonly string[] {
  return [
    `For example, svc would have added to your prompt of ${timeText(prompt.at)}: ${oneLine(prompt.text, LINE_CHARS)}`,
    ...quotes.slice(0, QUOTES_MAX).map(({ role, text }) => {
      const who = role === 'user' ? 'you' : 'agent';
      return `  ${timeText(at)}  ${who}: ${oneLine(text, LINE_CHARS)}`;
    }),
  ];
}
