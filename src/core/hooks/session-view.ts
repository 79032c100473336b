import { finish } from '../bytes/steps.ts';
import { asRecord, type Fields, isRecord, parseJson } from '../bytes/json-fields.ts';
import { groupExchanges } from '../conversation/exchanges.ts';
import { cleanExchange, heldDigests } from '../memory/captures.ts';
import { filesOfSession } from '../memory/concerned-files.ts';
import { newestPromptIndex } from '../recall/injections.ts';
import { actionOf } from '../recall/second-look.ts';
import { viewSteps } from '../request/request-view.ts';
import { HOOK_CLIENTS, type HookClient } from './hook-clients.ts';
import type { HookEvent } from './hook-event.ts';
import type { HookQuestion, TranscriptTail } from './hook-question.ts';

/** Reads the end of a session's transcript as if it were the client's next request. */

/** Returns what a hook asks the memory; undefined if there is nothing to ask. */
export function questionOf(
  { client, transcript }: HookClient,
  event: HookEvent,
  tail: TranscriptTail | undefined,
): HookQuestion | undefined {
  const { kind, session, folder, occasion, prompt } = event;
  const place = { client, session, folder, occasion };
  if (kind === 'compacted') return { ...place, kind, ...NOTHING_SAID };
  const facts =
    transcript === undefined || tail === undefined
      ? factsOfCalls(event)
      : factsOfSession(transcript, tail);
  const { action, ...said } = facts;
  switch (kind) {
    case 'tool':
      return action === undefined ? undefined : { ...place, kind: 'look', ...facts };
    case 'start':
      return said.isOpening ? { ...place, kind, ...said, prompt: '' } : undefined;
    case 'prompt': {
      // A text that the client wrote itself, such as the end of a background task, is no question.
      if (prompt === '') return undefined;
      // The client may have written the prompt into the transcript already.
      const around = said.prompt === prompt ? said.around.slice(0, -1) : said.around;
      return { ...place, kind, ...said, around, prompt };
    }
    case 'stop':
    case 'end':
      return undefined;
  }
}

type SessionFacts = Pick<
  HookQuestion,
  'prompt' | 'answer' | 'around' | 'held' | 'files' | 'isOpening' | 'action'
>;

const NOTHING_SAID: SessionFacts = {
  prompt: '',
  answer: '',
  around: [],
  held: [],
  files: [],
  isOpening: true,
};

type Transcript = NonNullable<HookClient['transcript']>;

/** Reads the facts of a session. Only the lines after the last compaction count. */
function factsOfSession(transcript: Transcript, { text, isWhole }: TranscriptTail): SessionFacts {
  const items: unknown[] = [];
  for (const line of text.split('\n')) {
    const fields = asRecord(parseJson(line));
    if (isCompaction(fields)) items.length = 0;
    const item = itemIn(transcript, fields);
    if (item !== undefined) items.push(item);
  }
  return factsOfItems(transcript, items, isWhole);
}

/** Reads the facts for a client whose event has the calls since the prompt. */
function factsOfCalls({ prompt, calls }: Pick<HookEvent, 'prompt' | 'calls'>): SessionFacts {
  if (calls.length === 0) return NOTHING_SAID;
  const rounds = calls.flatMap(({ name, input, output }, at) => {
    const id = `call_${at}`;
    const text = typeof output === 'string' ? output : JSON.stringify(output ?? '');
    return [
      { role: 'assistant', content: [{ type: 'tool_use', id, name, input }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: text }] },
    ];
  });
  const items = [{ role: 'user', content: prompt }, ...rounds];
  return factsOfItems(HOOK_CLIENTS.claude.transcript, items, true);
}

function factsOfItems(
  { client, dialect }: Transcript,
  items: readonly unknown[],
  isWhole: boolean,
): SessionFacts {
  const list = client === 'codex' ? 'input' : 'messages';
  const body = Buffer.from(JSON.stringify({ model: '', [list]: items }));
  const view = finish(viewSteps(body, { dialect, hasFrames: () => true }, undefined));
  if (view === undefined || view === 'too_large') return { ...NOTHING_SAID, isOpening: isWhole };
  const exchanges = groupExchanges(view.items);
  const humans = exchanges.filter(({ humanText }) => humanText !== '');
  const action = actionOf(view, newestPromptIndex(view));
  return {
    prompt: humans.at(-1)?.humanText ?? '',
    answer: exchanges.findLast(({ assistantText }) => assistantText !== '')?.assistantText ?? '',
    around: humans.map(({ humanText }) => humanText),
    held: exchanges.flatMap((exchange) => heldDigests(cleanExchange(exchange), [])),
    files: filesOfSession(view),
    isOpening: isWhole && !view.items.some(({ role }) => role === 'assistant'),
    ...(action !== undefined && { action }),
  };
}

/** Says whether a line of a transcript marks a compaction, in Claude Code or in Codex. */
function isCompaction({ isCompactSummary, type, subtype }: Fields): boolean {
  return isCompactSummary === true || type === 'compacted' || subtype === 'compact_boundary';
}

function itemIn({ client }: Transcript, fields: Fields): unknown {
  if (client === 'codex') {
    return fields['type'] === 'response_item' && isRecord(fields['payload'])
      ? fields['payload']
      : undefined;
  }
  const { type, message, isSidechain, isMeta } = fields;
  if (isSidechain === true || isMeta === true || !isRecord(message)) return undefined;
  return type === 'user' || type === 'assistant'
    ? { role: message['role'], content: message['content'] }
    : undefined;
}
