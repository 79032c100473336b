import { hookTextsIn } from '../core/hooks/hook-texts.ts';
import type { Heard } from '../core/memory/echoes.ts';
import type { Answer } from '../core/dialects/dialect-answer.ts';
import type { RecordText } from '../core/memory/record.ts';
import { type Exchange, exchangeBefore } from '../core/conversation/exchanges.ts';
import type { AddressOf } from '../core/ledger/entries.ts';
import type { Placement } from '../core/recall/injections.ts';
import type { MemoryRecord, SpeakerRole } from '../ports/memory.ts';
import type { ConversationState, Reading } from './conversations.ts';
import type { Captured, ProxyDependencies } from './dependencies.ts';
import type { BackgroundQueue } from './background-queue.ts';

// Deadline for the ledger, in milliseconds. No request waits for it, and the next request tries again.
const LEDGER_MS = 1000;

const NOWHERE = { start: 0, number: 0 };

type KeeperDependencies = Pick<
  ProxyDependencies,
  'clock' | 'outbox' | 'ledger' | 'texts' | 'blockKey' | 'hookKey'
>;

/**
 * Bound on the texts that wait in memory while the disk refuses writes, in characters: some hundred exchanges. Above it
 * the oldest captures are lost.
 */
const HELD_CHARS_MAX = 4 << 20;
/** Milliseconds until svc repeats a failed write. A new capture repeats it earlier. */
const RETRY_MS = 5000;

type OnFinished = (reading: Reading, finished: FinishedExchange) => void;

/** Makes records of the questions and answers of a conversation, and puts them into the outbox. */
export class CaptureKeeper {
  readonly #dependencies: KeeperDependencies;
  readonly #onFinished: OnFinished;
  /** Captures that the outbox could not write, because the disk is full or read-only; the oldest first. */
  readonly #held: (readonly MemoryRecord<SpeakerRole>[])[] = [];
  #heldChars = 0;
  #retry: NodeJS.Timeout | undefined;

  /** `onFinished` is called with each exchange that an answer ends, after its records were given to the outbox. */
  constructor(dependencies: KeeperDependencies, onFinished: OnFinished = () => undefined) {
    this.#dependencies = dependencies;
    this.#onFinished = onFinished;
  }

  /** Says whether keepHistory() may find something to store. */
  hasHistory(reading: Reading): boolean {
    const { items } = reading.view;
    const last = items[(items.at(-1)?.soFar.exchange.start ?? 0) - 1];
    if (last === undefined || reading.identity.kind !== 'main') return false;
    // Items before the first prompt, such as a system message, are no exchange.
    const { hasHuman, isAnswered } = last.soFar.exchange;
    const isExchange = hasHuman || isAnswered;
    return isExchange && !this.#keptOf(reading).keptHistories.has(last.fingerprint);
  }

  /**
   * Stores the newest exchange of the history that is not stored yet, mostly because the session began before svc.
   * Returns false if none is left, or if the ledger did not answer. `placements`: the recalled blocks of the request.
   * What an answer repeats of them is not stored. Never rejects.
   */
  async keepHistory(reading: Reading, placements: readonly Placement[]): Promise<boolean> {
    const { items } = reading.view;
    const { keptExchanges, keptHistories } = this.#keptOf(reading);
    let end = items.at(-1)?.soFar.exchange.start ?? 0;
    // The fingerprint of the last item before the newest exchange identifies the whole history.
    const history = items[end - 1]?.fingerprint;
    if (history === undefined || !this.hasHistory(reading)) return false;
    while (end > 0 && !keptHistories.has(items[end - 1]?.fingerprint ?? '')) {
      const { start, number } = items[end - 1]?.soFar.exchange ?? NOWHERE;
      const id = items[start]?.fingerprint ?? '';
      if (!keptExchanges.has(id)) {
        const wasCut = await this.#wasCut(reading, id);
        // The ledger did not answer. The next request contains this exchange again, so svc tries again then.
        if (wasCut === undefined) return false;
        const exchange = exchangeBefore(items, end);
        if (exchange !== undefined) {
          this.#keepFinished(reading, { exchange, number, wasCut }, placements);
        }
        keptExchanges.set(id, true);
        return true;
      }
      end = start;
    }
    // Everything up to this fingerprint is stored, so the single exchanges need not be remembered.
    keptHistories.set(history, true);
    keptExchanges.clear();
    return false;
  }

  #keepFinished(
    reading: Reading,
    place: ExchangePlace & { readonly wasCut: boolean },
    placements: readonly Placement[],
  ): void {
    const { exchange, wasCut } = place;
    // An answer that was cut off may be wrong, so only the question is stored.
    const isWhole = !exchange.isOpen && !exchange.wasInterrupted && !wasCut;
    const answer = isWhole ? exchange.assistantText : '';
    const heard = this.#heardBy(reading, exchange, placements);
    const { texts: kept } = this.#dependencies;
    const texts = [
      kept.captureHuman(exchange.humanText, heard),
      kept.captureAssistant(answer, heard, isWhole ? exchange.lastText : ''),
    ];
    this.#outbox(recordsOf(reading, place, texts, this.#dependencies.clock.now()));
  }

  /** Stores the question and the answer when the answer has ended. Call it before the client has its last byte. */
  keepAnswer(reading: Reading, answer: Answer, placements: readonly Placement[]): Captured {
    if (!answer.isComplete || answer.isFailed) {
      this.noteCut(reading);
      return 0;
    }
    // If the answer calls a tool, the exchange continues: its first round stores the question, and other rounds store
    // nothing.
    const goesOn = answer.callsTools && !answer.isCutShort;
    const isLaterRound = reading.view.items.at(-1)?.soFar.exchange.isAnswered === true;
    const place = goesOn && isLaterRound ? undefined : placeOf(reading);
    if (place === undefined) return 0;
    const { exchange } = place;
    const heard = this.#heardBy(reading, exchange, placements);
    const human = this.#questionOf(reading, exchange, heard);
    if (goesOn) return this.#keep(reading, place, [human]).captured;
    if (answer.isCutShort) {
      const { captured } = this.#keep(reading, place, [human]);
      this.noteCut(reading);
      return captured;
    }
    const said = closedText(exchange, answer);
    const answered = this.#dependencies.texts.captureAssistant(said, heard, answer.text);
    const { records, captured } = this.#keep(reading, place, [human, answered]);
    this.#onFinished(reading, { exchange, records: records.toReversed() });
    const id = reading.view.items[exchange.start]?.fingerprint ?? '';
    this.#keptOf(reading).keptExchanges.set(id, true);
    return captured;
  }

  /** Stores the question of an answer that the user stopped. */
  keepHuman(reading: Reading): void {
    const place = placeOf(reading);
    if (place === undefined) return;
    const { exchange } = place;
    const heard = this.#heardBy(reading, exchange, []);
    this.#keep(reading, place, [this.#questionOf(reading, exchange, heard)]);
    this.noteCut(reading);
  }

  /**
   * Records in the ledger that the answer was cut off, because the client may later send it as history without a sign
   * of that.
   */
  noteCut(reading: Reading): void {
    const start = placeOf(reading)?.exchange.start;
    const fingerprint = start === undefined ? undefined : reading.view.items[start]?.fingerprint;
    if (fingerprint === undefined) return;
    const at = this.#dependencies.clock.now();
    void this.#dependencies.ledger.record([{ ...cutAddress(reading, fingerprint), at }]);
  }

  /** Says whether an answer was cut off; undefined if the ledger did not answer. */
  async #wasCut(reading: Reading, fingerprint: string): Promise<boolean | undefined> {
    const address = cutAddress(reading, fingerprint);
    const found = await this.#dependencies.ledger.find([address], LEDGER_MS);
    if (found.has(address)) return true;
    return found.missing === undefined ? false : undefined;
  }

  #keep(reading: Reading, place: ExchangePlace, texts: readonly (RecordText | undefined)[]): Kept {
    const at = this.#dependencies.clock.now();
    const records = recordsOf(reading, place, texts, at);
    const isKept = this.#outbox(records.map((record) => ({ ...record, isTimed: true })));
    return { records, captured: isKept ? records.length : 'failed' };
  }

  /**
   * Returns the record of an exchange's question. It is cached, because the last round of a tool loop needs it again
   * after the first one, and looking for secrets is most of the work.
   */
  #questionOf({ state }: Reading, { humanText }: Exchange, heard: Heard): RecordText | undefined {
    const blocks = heard.blocks.join('\0');
    const known = state.question;
    if (known?.humanText === humanText && known.blocks === blocks) return known.record;
    const record = this.#dependencies.texts.captureHuman(humanText, heard);
    state.question = { humanText, blocks, record };
    return record;
  }

  /** Collects the recalled blocks, of the proxy and of hooks, that the model had read before its last answer. */
  #heardBy(
    { view, identity }: Reading,
    { humanText, start, end, isOpen }: Exchange,
    placements: readonly Placement[],
  ): Heard {
    const { blockKey, hookKey } = this.#dependencies;
    const byHooks = hookTextsIn(view, identity.client, hookKey).placed;
    const said = view.items.slice(start, end).findLastIndex((item) => item.assistantText !== '');
    const from = view.items[isOpen ? end : start + said]?.start ?? Infinity;
    const blocks = [...placements, ...byHooks]
      .filter(({ item }) => item.start < from)
      .map(({ block }) => block);
    return { blocks, key: blockKey, question: humanText };
  }

  /** Puts records into the outbox. Returns false if the write failed, so that they wait in memory. */
  #outbox(records: readonly MemoryRecord<SpeakerRole>[]): boolean {
    if (records.length === 0) return true;
    this.#keepHeld();
    if (this.#dependencies.outbox.keep(records)) return true;
    this.#held.push(records);
    this.#heldChars += charsIn(records);
    while (this.#heldChars > HELD_CHARS_MAX) this.#heldChars -= charsIn(this.#held.shift() ?? []);
    this.#retryLater();
    return false;
  }

  /** Tries once more to write the captures that wait in memory. Returns how many records are still not written. */
  keepLast(): number {
    this.#keepHeld();
    return this.#held.reduce((sum, records) => sum + records.length, 0);
  }

  #keepHeld(): void {
    for (let first = this.#held[0]; first !== undefined; first = this.#held[0]) {
      if (!this.#dependencies.outbox.keep(first)) return;
      this.#held.shift();
      this.#heldChars -= charsIn(first);
    }
  }

  #retryLater(): void {
    if (this.#retry !== undefined || this.#held.length === 0) return;
    this.#retry = setTimeout(() => {
      this.#retry = undefined;
      this.#keepHeld();
      this.#retryLater();
    }, RETRY_MS);
    this.#retry.unref();
  }

  /** Returns the state. After a forget, or with a new store, it first clears the state's notes of what is stored. */
  #keptOf({ state }: Reading): ConversationState {
    const generation = this.#dependencies.ledger.generation();
    if (state.keptIn !== generation) {
      state.keptExchanges.clear();
      state.keptHistories.clear();
    }
    state.keptIn = generation;
    return state;
  }
}

/** Joins the visible text of an open exchange with the answer that ends it. */
function closedText(exchange: Exchange, answer: Answer): string {
  return [exchange.assistantText, answer.text].filter((text) => text.trim() !== '').join('\n\n');
}

function charsIn(records: readonly MemoryRecord<SpeakerRole>[]): number {
  return records.reduce((sum, { text }) => sum + text.length, 0);
}

interface Kept {
  readonly records: readonly MemoryRecord<SpeakerRole>[];
  readonly captured: Captured;
}

interface ExchangePlace {
  readonly exchange: Exchange;
  /** The number of the exchange in its conversation, from 0. */
  readonly number: number;
}

/** Returns the newest exchange of a request, if the memory may store it. */
function placeOf({ identity, view }: Reading): ExchangePlace | undefined {
  if (identity.kind !== 'main') return undefined;
  const exchange = exchangeBefore(view.items);
  const number = view.items.at(-1)?.soFar.exchange.number;
  return exchange === undefined || number === undefined ? undefined : { exchange, number };
}

/**
 * Returns the ledger address for an answer that was cut off. It is the same in all conversations of the scope with the
 * same beginning, because a conversation that continues as a copy (a fork) contains the same answer.
 */
function cutAddress({ place }: Reading, fingerprint: string): AddressOf<'cut-answer'> {
  return { kind: 'cut-answer', tenant: place.tenant, scope: place.scope, fingerprint };
}

function recordsOf(
  reading: Reading,
  { exchange, number }: ExchangePlace,
  texts: readonly (RecordText | undefined)[],
  at: number,
): readonly MemoryRecord<SpeakerRole>[] {
  const fingerprint = reading.view.items[exchange.human ?? -1]?.fingerprint;
  if (fingerprint === undefined) return [];
  const { branch, place, identity } = reading;
  const isVerified = identity.isKnown && !exchange.isUnverified;
  const shared = {
    space: place.space,
    conversation: place.conversation,
    client: identity.client,
    at,
    fingerprint,
    exchange: number,
    ...(branch === undefined ? {} : { branch }),
  };
  return texts.flatMap((text): MemoryRecord<SpeakerRole>[] => {
    if (text === undefined) return [];
    const isDoubtful = text.role === 'user' && !isVerified;
    return [{ ...text, ...shared, ...(isDoubtful && { source: 'unverified' as const }) }];
  });
}

/** Deadline for delivering the records, in milliseconds. They must be in the store before their provenance. */
const FLUSH_MS = 10_000;

export interface FinishedExchange {
  readonly exchange: Exchange;
  /** The records of the exchange: the answer, then the question. */
  readonly records: readonly MemoryRecord[];
}

/**
 * Returns a function that stores the provenance of an exchange: the commit and the state of its files. It does so after
 * the answer was relayed. A failed attempt is not repeated, so recall cannot notice for this exchange that its files
 * have changed.
 */
export function provenanceKeeper(
  dependencies: Pick<ProxyDependencies, 'outbox' | 'code' | 'texts'>,
  queue: BackgroundQueue,
): OnFinished {
  return ({ workplace, view, place }, { exchange, records }) => {
    const { code, outbox, texts } = dependencies;
    if (code === undefined || workplace === undefined) return;
    if (records.length === 0 || !exchange.hasToolState) return;
    const doOne = async (): Promise<void> => {
      const said = records.map(({ text }) => text).join('\n');
      const now = await code.reader.look(workplace, texts.concernedFiles(view, exchange, said));
      if (now === undefined) return;
      await outbox.flush(FLUSH_MS);
      const digests = records.map(({ digest }) => digest);
      await code.provenance.keep([{ space: place.space, digests, root: workplace.root, ...now }]);
    };
    queue.add(place, { kind: 'files', doOne, times: 1, bytes: view.bytes.length });
  };
}
