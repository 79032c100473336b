import { conversationKeyOf, type ConversationOwner } from '../core/ledger/entries.ts';
import { withinDeadline } from './deadline.ts';

/**
 * Runs work that no request waits for, one piece at a time. It stores the history of sessions that began before svc
 * started, outputs that a later request may leave out, and the state of the files that an exchange is about. If work of
 * the first two kinds is lost, a later request adds it again. But a session may send no more requests, so a shutdown
 * runs as much of the work as it can within LAST_WORK_MS.
 */

/** Factor in the bounds: most conversations have two kinds of work at once, outputs and history. */
const KINDS = 2;
/**
 * Bound on the bodies that queued work keeps in memory, in bytes: for each kind as much as the cache of recent bodies.
 */
const BYTES_MAX = KINDS * 24 * 1024 * 1024;
/**
 * Bound on queued work. One user's agents work on a few conversations at once. Without the bound thousands of short
 * conversations could wait in a busy proxy.
 */
const WORKS_MAX = KINDS * 128;

/**
 * Deadline of the queued work at a shutdown, in milliseconds. The user waits for it. Storing an exchange takes about 12
 * ms.
 */
export const LAST_WORK_MS = 500;

interface QueuedWork {
  readonly kind: 'outputs' | 'history' | 'files';
  /** Does one piece of the work. Returns true if there may be another one. */
  readonly doOne: () => unknown;
  /** The most pieces that the work may have. */
  readonly times: number;
  /** Bytes that the work keeps in memory while it waits. */
  readonly bytes: number;
}

export class BackgroundQueue {
  readonly #pace: BackgroundPace;
  readonly #onDone: (() => void) | undefined;
  /** Queued work by kind and conversation, oldest first. */
  readonly #waiting = new Map<string, QueuedWork>();
  #bytes = 0;
  #isClosed = false;
  #running: Promise<void> = Promise.resolve();

  /** `onDone` is called after each piece of work that succeeds. */
  constructor(pace: BackgroundPace, onDone?: () => void) {
    this.#pace = pace;
    this.#onDone = onDone;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Adds work, which replaces queued work of the same kind and conversation. Above the bounds the oldest work is
   * dropped.
   */
  add(owner: ConversationOwner, work: QueuedWork): void {
    const key = `${work.kind} ${conversationKeyOf(owner)}`;
    this.#take(key);
    if (work.times === 0 || this.#isClosed) return;
    this.#put(key, work);
    for (const oldest of this.#waiting.keys()) {
      const isWithin = this.#bytes <= BYTES_MAX && this.#waiting.size <= WORKS_MAX;
      if (isWithin || oldest === key) break;
      this.#take(oldest);
    }
    this.#pace.wants(this);
  }

  /** Drops all work. Later calls of add() do nothing. */
  close(): void {
    this.#isClosed = true;
    this.#waiting.clear();
    this.#bytes = 0;
  }

  /** Runs one piece of the oldest work. Never rejects. */
  runOne(): Promise<void> {
    this.#running = this.#runOldest();
    return this.#running;
  }

  /** Runs all queued work without pauses, for at most `withinMs` milliseconds. Never rejects. */
  async drain(withinMs: number): Promise<void> {
    await withinDeadline(withinMs, (late) => this.#runAll(late)).catch(() => undefined);
  }

  async #runAll(late: AbortSignal): Promise<void> {
    await this.#running;
    while (!late.aborted && this.#waiting.size > 0) {
      // oxlint-disable-next-line no-await-in-loop -- The store takes one after the other.
      await this.#runOldest();
    }
  }

  async #runOldest(): Promise<void> {
    const [key] = this.#waiting.keys();
    const work = key === undefined ? undefined : this.#take(key);
    if (key === undefined || work === undefined) return;
    const isMore = (await this.#tryOne(work)) && work.times > 1;
    // Puts the rest of the work at the end of the queue, unless a later request has replaced it meanwhile.
    if (isMore && !this.#isClosed && !this.#waiting.has(key)) {
      this.#put(key, { ...work, times: work.times - 1 });
    }
    if (this.#waiting.size > 0) this.#pace.wants(this);
  }

  // Runs one piece and catches its error. Nothing handles a rejection of the timer's call, so an error would end the
  // process.
  async #tryOne({ doOne }: QueuedWork): Promise<boolean> {
    try {
      const isMore = (await doOne()) === true;
      this.#onDone?.();
      return isMore;
    } catch {
      return false;
    }
  }

  #put(key: string, work: QueuedWork): void {
    this.#waiting.set(key, work);
    this.#bytes += work.bytes;
  }

  #take(key: string): QueuedWork | undefined {
    const work = this.#waiting.get(key);
    this.#waiting.delete(key);
    this.#bytes -= work?.bytes ?? 0;
    return work;
  }
}

/**
 * Decides when background work runs: one piece after the other, with a rest after each, so that while work waits, it
 * takes at most a certain share of the time. In a service each key has its own queue. The queues have one pace, and run
 * in rotation.
 */
export class BackgroundPace {
  readonly #paceMs: number;
  /** Milliseconds of rest after each millisecond of work. */
  readonly #restRatio: number;
  /** Queues with work, the least recently served first. */
  readonly #queues = new Set<BackgroundQueue>();
  #isPlanned = false;

  /** `paceMs`: least milliseconds before each piece. `share`: the largest share of the time that pieces may take. */
  constructor({ paceMs, share }: { readonly paceMs: number; readonly share: number }) {
    this.#paceMs = paceMs;
    this.#restRatio = 1 / share - 1;
  }

  /** Notes that a queue has work. */
  wants(queue: BackgroundQueue): void {
    this.#queues.add(queue);
    this.#plan(this.#paceMs);
  }

  // Plans the next piece. The timer does not keep the process alive.
  #plan(ms: number): void {
    if (this.#isPlanned) return;
    this.#isPlanned = true;
    setTimeout(() => void this.#step(), ms).unref();
  }

  async #step(): Promise<void> {
    const began = performance.now();
    const [queue] = this.#queues;
    if (queue !== undefined) {
      this.#queues.delete(queue);
      await queue.runOne();
    }
    this.#isPlanned = false;
    const tookMs = performance.now() - began;
    if (this.#queues.size > 0) this.#plan(Math.max(this.#paceMs, tookMs * this.#restRatio));
  }
}
