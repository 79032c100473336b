import { conversationKeyOf, type ConversationOwner } from '../core/ledger/entries.ts';
import { withinDeadline } from './deadline.ts';

/**
 * Runs work that no request waits for, a piece at a time: storing the history of sessions that
 * began before svc did, and outputs that may be left out one day. Later requests hold both too; but
 * a session may have had its last request, or may come back compacted, so the queue is drained at
 * shutdown.
 *
 * A piece runs when its handler has no request in hand: on a person's machine that is svc as a whole,
 * in a service one key. That moment may never come, so a piece that has waited long enough runs
 * between the requests of other conversations.
 */

/** Two kinds of work may wait for one conversation, and hold on to the same body. */
const KINDS = 2;
/** Bodies that waiting work may hold on to: as much as the views of recent bodies. */
const BYTES_MAX = KINDS * 24 * 1024 * 1024;
/**
 * A person's agents work on a few conversations at once, and a later request offers the work of its
 * conversation again. Without this bound, thousands of short ones wait on a proxy that is never idle.
 */
const WORKS_MAX = KINDS * 128;
/** Pieces take some 10 ms: on a busy proxy this is 1 % of a core. */
const PATIENCE_MS = 1_000;

/** The requests that svc has in hand. While a provider thinks, a request is not in hand. */
export class BusyCounter {
  readonly #held = new Set<HeldRequest>();

  get isIdle(): boolean {
    return this.#held.size === 0;
  }

  isBusyWith(conversation: string): boolean {
    return [...this.#held].some((one) => one.conversation === conversation);
  }

  hold(): HeldRequest {
    return new HeldRequest(this.#held);
  }
}

/** A request in hand, until it is released, once or more often. */
class HeldRequest {
  /** The key of its conversation, once that is known. */
  conversation: string | undefined;
  readonly #all: Set<HeldRequest>;
  #timer: NodeJS.Timeout | undefined;

  constructor(all: Set<HeldRequest>) {
    this.#all = all;
    all.add(this);
  }

  belongsTo(owner: ConversationOwner): void {
    this.conversation ??= conversationKeyOf(owner);
  }

  /** Releases it after so many milliseconds and runs `then`, unless it is released before. */
  releaseAfter(ms: number, then: () => void): void {
    if (!this.#all.has(this)) return;
    this.#timer = setTimeout(() => {
      this.release();
      then();
    }, ms).unref();
  }

  release(): void {
    clearTimeout(this.#timer);
    this.#all.delete(this);
  }
}

/** Work of one conversation. */
interface QueuedWork {
  /** One piece; says whether there was one. */
  readonly doOne: () => boolean | Promise<boolean>;
  /** At most so many pieces. */
  readonly times: number;
  /** Bytes that it holds on to while it waits. */
  readonly bytes: number;
}

interface Waiting extends QueuedWork {
  readonly conversation: string;
  /** Since its last piece, or since it came; as performance.now(). */
  readonly since: number;
}

export class BackgroundQueue implements PacedQueue {
  readonly #busy: BusyCounter;
  readonly #pace: BackgroundPace;
  /** By kind and conversation; the one that has waited longest is the first. */
  readonly #waiting = new Map<string, Waiting>();
  #bytes = 0;
  #isClosed = false;
  #running: Promise<void> = Promise.resolve();

  constructor(busy: BusyCounter, pace: BackgroundPace) {
    this.#busy = busy;
    this.#pace = pace;
  }

  get isEmpty(): boolean {
    return this.#waiting.size === 0;
  }

  /** Bytes that the waiting work holds on to. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Replaces the work of this kind that an earlier request of the conversation left waiting. */
  add(owner: ConversationOwner, work: QueuedWork, kind = ''): void {
    const conversation = conversationKeyOf(owner);
    const key = kind + conversation;
    this.#take(key);
    if (work.times === 0 || this.#isClosed) return;
    this.#put(key, { ...work, conversation });
    for (const oldest of this.#waiting.keys()) {
      const isWithin = this.#bytes <= BYTES_MAX && this.#waiting.size <= WORKS_MAX;
      if (isWithin || oldest === key) break;
      this.#take(oldest);
    }
    this.#pace.wants(this);
  }

  /** Forgets all work, and takes none any more. */
  close(): void {
    this.#isClosed = true;
    this.#waiting.clear();
    this.#bytes = 0;
  }

  begin(): Promise<void> | undefined {
    const key = this.#next();
    if (key === undefined) return undefined;
    this.#running = this.#run(key);
    return this.#running;
  }

  /** Runs all that waits, without pauses, for so many milliseconds at most. Never rejects. */
  async drain(withinMs: number): Promise<void> {
    await withinDeadline(withinMs, (late) => this.#runAll(late)).catch(() => undefined);
  }

  async #runAll(late: AbortSignal): Promise<void> {
    await this.#running;
    while (!late.aborted) {
      const [key] = this.#waiting.keys();
      if (key === undefined) return;
      // oxlint-disable-next-line no-await-in-loop -- The store takes one after the other.
      await this.#run(key);
    }
  }

  /** The conversation whose piece may run now. */
  #next(): string | undefined {
    if (this.#busy.isIdle) return this.#waiting.keys().next().value;
    const before = performance.now() - PATIENCE_MS;
    for (const [key, { since, conversation }] of this.#waiting) {
      if (since > before) return undefined;
      if (!this.#busy.isBusyWith(conversation)) return key;
    }
    return undefined;
  }

  async #run(key: string): Promise<void> {
    const work = this.#take(key);
    if (work === undefined) return;
    const isMore = (await tryOne(work)) && work.times > 1;
    // Behind the others: they alternate. A later request may have replaced it meanwhile.
    if (!isMore || this.#isClosed || this.#waiting.has(key)) return;
    this.#put(key, { ...work, times: work.times - 1 });
    this.#pace.wants(this);
  }

  #put(key: string, work: Omit<Waiting, 'since'>): void {
    this.#waiting.set(key, { ...work, since: performance.now() });
    this.#bytes += work.bytes;
  }

  #take(key: string): Waiting | undefined {
    const work = this.#waiting.get(key);
    this.#waiting.delete(key);
    this.#bytes -= work?.bytes ?? 0;
    return work;
  }
}

// No caller awaits this promise: an uncaught error would end the process, and every answer with it.
async function tryOne({ doOne }: QueuedWork): Promise<boolean> {
  try {
    return await doOne();
  } catch {
    return false;
  }
}

/**
 * Decides when background work runs: one piece after the other, in the time that requests leave over.
 *
 * On a person's machine each queue has a pace of its own. In a service one pace serves the queues of
 * all keys, which take their pieces by turns: the pieces together take a share of the time at most,
 * however many keys have work.
 */

/** Work that waits for its time. */
interface PacedQueue {
  readonly isEmpty: boolean;
  /** Begins a piece; undefined where none may run now. Never rejects. */
  begin(): Promise<void> | undefined;
}

interface PaceOptions {
  /** Milliseconds before each piece. */
  readonly paceMs: number;
  /** The pieces, with their waits, take no larger part of the time. */
  readonly share?: number;
}

/** Thousands of queues may wait for their keys at once: a look at all of them would be work itself. */
const LOOKS_MAX = 64;

export class BackgroundPace {
  readonly #paceMs: number;
  /** Milliseconds of rest for each millisecond of work. */
  readonly #restRatio: number;
  /** The one that was looked at longest ago is the first. It holds work, and nothing of a conversation. */
  readonly #queues = new Set<PacedQueue>();
  #isPlanned = false;

  constructor({ paceMs, share = 1 }: PaceOptions) {
    this.#paceMs = paceMs;
    this.#restRatio = 1 / share - 1;
  }

  /** The queue has work. */
  wants(queue: PacedQueue): void {
    this.#queues.add(queue);
    this.#plan(this.#paceMs);
  }

  // The process may end in between.
  #plan(ms: number): void {
    if (this.#isPlanned) return;
    this.#isPlanned = true;
    setTimeout(() => void this.#step(), ms).unref();
  }

  async #step(): Promise<void> {
    const began = performance.now();
    await this.#beginOne();
    this.#isPlanned = false;
    const tookMs = performance.now() - began;
    if (this.#queues.size > 0) this.#plan(Math.max(this.#paceMs, tookMs * this.#restRatio));
  }

  #beginOne(): Promise<void> | undefined {
    let looks = Math.min(this.#queues.size, LOOKS_MAX);
    for (const queue of this.#queues) {
      if (looks === 0) break;
      looks -= 1;
      this.#queues.delete(queue);
      if (queue.isEmpty) continue;
      this.#queues.add(queue);
      const begun = queue.begin();
      if (begun !== undefined) return begun;
    }
    return undefined;
  }
}
