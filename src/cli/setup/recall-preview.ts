import { existsSync, mkdirSync, rmdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { dataFolder } from '../../adapters/files/data-folder.ts';
import { questionText } from '../../core/memory/captures.ts';
import type { TranscriptRecord } from '../../core/memory/transcripts.ts';
import type { RecalledExchange } from '../../core/recall/agent-facts.ts';
import type { ProxySettings } from '../../core/settings/settings.ts';
import type { CliStore } from '../compose-store.ts';
import type { CommandContext } from '../context.ts';
import { withLog } from '../store.ts';
import { timeText } from '../listing.ts';
import { oneLine } from '../terminal.ts';

/** Shows what recall would have added to one of the last prompts, from the sessions before it. */

/** Prompts that are asked for, the newest first: each in another session. */
const PROMPTS_MAX = 8;
const PROMPT_CHARS_MAX = 4096;
/** The person waits at a question. */
const WAIT_MS = 5000;
const LINE_CHARS = 90;
const QUOTES_MAX = 2;

type RecallSettings = Pick<ProxySettings, 'recalledTokensMax' | 'recallQuietPercent'>;

/**
 * Keeps the records for the length of this call in a store of their own, in a folder of the data folder that it removes.
 * Resolves to no lines if recall would have said nothing, or the store fails or is late.
 */
export async function previewLines(
  records: readonly TranscriptRecord[],
  settings: RecallSettings,
  context: CommandContext,
): Promise<readonly string[]> {
  const data = dataFolder(context.environment);
  const isNew = !existsSync(data);
  const folder = join(data, 'preview');
  try {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const own = { ...context, environment: { SVC_DATA_HOME: folder } };
    return await withLog(own, (store) => ask(records, store, settings));
  } catch {
    return [];
  } finally {
    rmSync(folder, { recursive: true, force: true });
    // Until the person says "write", setup leaves nothing behind.
    if (isNew) rmdirSync(data);
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
    const look = await desk?.look(questionOf(prompt, settings));
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

function questionOf(
  { space, text, conversation, at }: TranscriptRecord,
  { recalledTokensMax, recallQuietPercent }: RecallSettings,
) {
  return {
    space,
    humanText: questionText(text, PROMPT_CHARS_MAX),
    assistantText: '',
    excludeDigests: [],
    tokensMax: recalledTokensMax,
    now: at,
    agent: { conversation, branch: '', quietShare: recallQuietPercent / 100, briefTokensMax: 0 },
  };
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
