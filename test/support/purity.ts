import { TEXTS } from '../../src/adapters/texts.ts';
import type { RequestIdentity } from '../../src/core/conversation/view.ts';
import { Conversations, type Reading } from '../../src/proxy/conversations.ts';
import { CaptureKeeper } from '../../src/proxy/capture-keeper.ts';
import { AnswerWatch } from '../../src/proxy/relay.ts';
import type { Placement } from '../../src/core/recall/injections.ts';
import { readRequest } from './view-of.ts';
import { termsOf } from '../../src/core/recall/terms.ts';
import { FoundEntries, keyOf, type LedgerEntry } from '../../src/core/ledger/entries.ts';
import type { MemoryRecord, SpeakerRole } from '../../src/ports/memory.ts';
import { readWithOracle } from './answer-oracle.ts';
import { golden, type Recording, recordings } from './recordings.ts';

/**
 * Feeds recorded traffic of real clients through the product's own reading and capture, as a proxy
 * would that had been there, and judges every record that comes out of it.
 */

/** What a recorded scenario left in the memory. */
export interface Captured {
  readonly scenario: string;
  readonly records: readonly SaidRecord[];
}

export interface Replay {
  /** Changes a recording before it is read: another answer, another body. */
  readonly change?: (recording: Recording) => Recording;
  /** The recalled blocks that the request carried. */
  readonly placements?: (reading: Reading) => readonly Placement[];
}

/** Every scenario on its own, from an empty memory: the same words in one space are one record. */
export async function captureRecordings({ change, placements }: Replay = {}): Promise<Captured[]> {
  const scenarios = new Map<string, Recording[]>();
  for (const recording of recordings()) {
    const scenario = scenarioOf(recording);
    scenarios.set(scenario, [...(scenarios.get(scenario) ?? []), recording]);
  }
  const captured: Captured[] = [];
  for (const [scenario, recorded] of scenarios) {
    const records = new Map<string, SaidRecord>();
    const desk = new Desk((record) => records.set(`${record.space} ${record.digest}`, record));
    for (const recording of recorded) {
      // oxlint-disable-next-line no-await-in-loop -- A conversation is read in its order.
      await desk.take(change?.(recording) ?? recording, placements);
    }
    captured.push({ scenario, records: [...records.values()] });
  }
  return captured;
}

class Desk {
  readonly #conversations = new Conversations();
  readonly #entries = new Map<string, LedgerEntry>();
  readonly #keeper: CaptureKeeper;

  constructor(keep: (record: SaidRecord) => void) {
    this.#keeper = new CaptureKeeper({
      blockKey: 'a secret of these tests',
      clock: { now: () => Date.UTC(2026, 10, 20), monotonic: () => 0 },
      texts: TEXTS,
      outbox: {
        keep: (records) => {
          for (const record of records) keep(record);
          return true;
        },
        flush: async () => undefined,
      },
      ledger: {
        generation: () => 0,
        find: async () => new FoundEntries(this.#entries.values()),
        record: async (entries) => {
          for (const entry of entries) this.#entries.set(keyOf(entry), entry);
        },
        commit: async () => true,
        isShared: false,
      },
    });
  }

  async take(recording: Recording, placementsOf: Replay['placements'] = () => []): Promise<void> {
    const request = clientRequest(recording);
    const reading = request === undefined ? undefined : readRequest(this.#conversations, request);
    if (request === undefined || reading === undefined) return;
    const placements = placementsOf(reading);
    const { answer, status } = recording;
    const isStream = /^(?:event|data|:)/m.test(answer);
    const headers = ['content-type', isStream ? 'text/event-stream' : 'application/json'];
    const head = { status, headers };
    const watch = new AnswerWatch(request, head, {
      onAnswer: (said) => this.#keeper.keepAnswer(reading, said, placements),
    });
    watch.data(Buffer.from(answer));
    const isWhole = watch.beforeLast() && !recording.isCut;
    if (!isWhole && recording.isCut) this.#keeper.keepHuman(reading);
    else if (watch.isCut) this.#keeper.noteCut(reading);
    for (let left = 8; left > 0; left -= 1) {
      // oxlint-disable-next-line no-await-in-loop -- One exchange after the other.
      if (!(await this.#keeper.keepHistory(reading, placements))) break;
    }
  }
}

function clientRequest({ name, path, headers, body, dialect }: Recording) {
  if (dialect === undefined || path.includes('count_tokens')) return undefined;
  return {
    id: name,
    route: { kind: 'model', dialect } as const,
    method: 'POST',
    target: path,
    headers,
    body: Buffer.from(JSON.stringify(body)),
    startedAt: 0,
  };
}

function scenarioOf({ name }: Recording): string {
  return name.slice(0, name.lastIndexOf('/'));
}

export type Verdict =
  | 'useful'
  | 'not what a person typed'
  | 'not what an answer showed'
  | "a client's words"
  | 'a recalled block or a stub'
  | 'says nothing'
  | 'said twice';

export interface Judged {
  readonly scenario: string;
  readonly record: SaidRecord;
  readonly verdict: Verdict;
}

/**
 * The rules. A record is useful when all of these hold:
 * 1. of the user: it is, blanks aside, texts that the reference classifier says a person typed in a
 *    main request of this scenario, and nothing besides;
 * 2. of the assistant: it is visible text of answers recorded in this scenario and nothing besides,
 *    as an independent parser reads them: no reasoning, no arguments of tools;
 * 3. it holds no words that a client or svc puts around what is said;
 * 4. it says something: one word of a person besides stop words and steering words, two of an
 *    assistant ("done" is an answer, but not a memory);
 * 5. no other record of the scenario says the same in the same role.
 */
export function judge(captured: readonly Captured[]): Judged[] {
  const typed = typedByScenario();
  const shown = shownByScenario();
  return captured.flatMap(({ scenario, records }) => {
    const seen = new Set<string>();
    return records.map((record) => {
      const said = { typed: typed.get(scenario) ?? [], shown: shown.get(scenario) ?? [] };
      const key = `${record.role} ${flat(record.text)}`;
      const verdict = seen.has(key) ? 'said twice' : verdictOn(record, said);
      seen.add(key);
      return { scenario, record, verdict };
    });
  });
}

/** What clients and svc write around a text; none of it is anybody's words. */
type SaidRecord = MemoryRecord<SpeakerRole>;

const WRAPPED =
  /<\/?(?:system-reminder|environment_context|user_instructions|command-(?:name|message|args)|local-command|bash-(?:input|stdout)|task-notification|turn_aborted|current_datetime|stdin)|# AGENTS\.md instructions|\[SUGGESTION MODE|\[Request interrupted|This session is being continued from|Another language model started|CONTEXT CHECKPOINT COMPACTION|Respond with TEXT ONLY|cut off mid-stream|Caveat: The messages below/;
const OURS = /<\/?svc-memory|\[svc: /;
const WORDS_MIN = { user: 1, assistant: 2 };

interface Said {
  readonly typed: readonly string[];
  readonly shown: readonly string[];
}

function verdictOn({ role, text }: SaidRecord, { typed, shown }: Said): Verdict {
  if (OURS.test(text)) return 'a recalled block or a stub';
  if (WRAPPED.test(text)) return "a client's words";
  if (role === 'user' && !isMadeOf(text, typed)) return 'not what a person typed';
  if (role === 'assistant' && !isMadeOf(text, shown)) return 'not what an answer showed';
  return new Set(termsOf(text)).size < WORDS_MIN[role] ? 'says nothing' : 'useful';
}

/** The text is some of the pieces, one after the other, with blanks between them. */
function isMadeOf(text: string, pieces: readonly string[]): boolean {
  let rest = flat(text);
  const known = [...new Set(pieces.map(flat))].filter((piece) => piece !== '');
  known.sort((a, b) => b.length - a.length);
  for (const piece of known) rest = rest.replaceAll(piece, '');
  return rest === '';
}

function flat(text: string): string {
  return text.replaceAll(/\s+/g, '');
}

function typedByScenario(): ReadonlyMap<string, readonly string[]> {
  const texts = new Map<string, string[]>();
  for (const [name, { kind, human }] of Object.entries(golden())) {
    if (kind !== 'main') continue;
    const scenario = name.slice(0, name.lastIndexOf('/'));
    texts.set(scenario, [...(texts.get(scenario) ?? []), ...human]);
  }
  return texts;
}

function shownByScenario(): ReadonlyMap<string, readonly string[]> {
  const texts = new Map<string, string[]>();
  const kinds = golden();
  for (const recording of recordings()) {
    const kind = kinds[recording.name]?.kind as RequestIdentity['kind'] | undefined;
    if (recording.dialect === undefined || (kind !== undefined && kind !== 'main')) continue;
    const scenario = scenarioOf(recording);
    const { text } = readWithOracle(recording.dialect, recording.answer);
    texts.set(scenario, [...(texts.get(scenario) ?? []), ...text.split('\n\n')]);
  }
  return texts;
}

/** A whole answer in this dialect that shows one text, as providers send it without streaming. */
export function answerShowing(dialect: Recording['dialect'], text: string): string {
  switch (dialect) {
    case 'anthropic_messages':
      return JSON.stringify({
        type: 'message',
        role: 'assistant',
        content: [{ type: 'text', text }],
        stop_reason: 'end_turn',
      });
    case 'openai_chat_completions':
      return JSON.stringify({
        choices: [{ message: { role: 'assistant', content: text }, finish_reason: 'stop' }],
      });
    case 'openai_responses':
    case undefined:
  }
  return JSON.stringify({
    object: 'response',
    status: 'completed',
    output: [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text }] }],
  });
}

/** The recording with `more` behind every text that a person typed and in every tool's result. */
export function withPlanted(recording: Recording, more: string): Recording {
  const typed = new Set(golden()[recording.name]?.human);
  const plant = (value: unknown): unknown => {
    if (typeof value === 'string') {
      if (typed.has(value.trim())) return `${value}\n${more}`;
      return value.includes('needle-') ? `${value}\n${more}` : value;
    }
    if (Array.isArray(value)) return value.map(plant);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, plant(inner)]));
  };
  return {
    ...recording,
    body: plant(recording.body) as Record<string, unknown>,
    answer: answerShowing(recording.dialect, `It is set up as asked.\n${more}`),
  };
}
