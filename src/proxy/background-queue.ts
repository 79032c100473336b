import { conversationKeyOf, type ConversationOwner } from '../core/ledger/entries.ts';
import { withinDeadline } from './deadline.ts';

/**
 * Runs work that no request waits for, a piece at a time: storing the history of sessions that
 * began before svc did, and outputs that may be left out one day. Later requests hold both too; but
 * a session may have had its last request, or may come back compacted, so the queue is drained at
 * shutdown.
 */

/** Most of the work of one conversation holds the same body: its outputs, and its history. */
const KINDS = 2;
/** Bodies that waiting work may hold on to: as much as the views of recent bodies. */
const BYTES_MAX = KINDS * 24 * 1024 * 1024;
/**
 * A person's agents work on a few conversations at once, and a later request offers the work of its
 * conversation again. Without this bound, thousands of short ones would wait on a busy proxy.
 */
const WORKS_MAX = KINDS * 128;

/** Work of one conversation. */
interface QueuedWork {
  readonly kind: 'outputs' | 'history' | 'files';
  /** One piece; says whether there was one. */
  readonly doOne: () => boolean | Promise<boolean>;
  /** At most so many pieces. */
  readonly times: number;
  /** Bytes that it holds on to while it waits. */
  readonly bytes: number;
}

export class BackgroundQueue implements PacedQueue {
  readonly #pace: BackgroundPace;
  /** By kind and conversation; the one that has waited longest is the first. */
  readonly #waiting = new Map<string, QueuedWork>();
  #bytes = 0;
  #isClosed = false;
  #running: Promise<void> = Promise.resolve();

  constructor(pace: BackgroundPace) {
    this.#pace = pace;
  }

  /** Bytes that the waiting work holds on to. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Replaces the work of this kind that an earlier request of the conversation left waiting. */
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

  /** Forgets all work, and takes none any more. */
  close(): void {
    this.#isClosed = true;
    this.#waiting.clear();
    this.#bytes = 0;
  }

  runOne(): Promise<void> {
    this.#running = this.#runOldest();
    return this.#running;
  }

  /** Runs all that waits, without pauses, for so many milliseconds at most. Never rejects. */
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
    const isMore = (await tryOne(work)) && work.times > 1;
    // Behind the others: they alternate. A later request may have replaced it meanwhile.
    if (isMore && !this.#isClosed && !this.#waiting.has(key)) {
      this.#put(key, { ...work, times: work.times - 1 });
    }
    if (this.#waiting.size > 0) this.#pace.wants(this);
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

// No caller awaits this promise: an uncaught error would end the process, and every answer with it.
async function tryOne({ doOne }: QueuedWork): Promise<boolean> {
  try {
    return await doOne();
  } catch {
    return false;
  }
}

/** Work that waits for its time. */
interface PacedQueue {
  /** Runs the piece that has waited longest, and asks for the next one. Never rejects. */
  runOne(): Promise<void>;
}

interface PaceOptions {
  /** Milliseconds before each piece. */
  readonly paceMs: number;
  /** The pieces, with their waits, take no larger part of the time. */
  readonly share: number;
}

/**
 * Decides when background work runs: one piece after the other, with a rest after each, so that all pieces together take
 * a share of the time at most. A request that comes meanwhile waits until the running piece ends, and for no other. In a
 * service all keys have queues of their own and share one pace; the queues take turns.
 */
export class BackgroundPace {
  readonly #paceMs: number;
  /** Milliseconds of rest for each millisecond of work. */
  readonly #restRatio: number;
  /** The one that had its turn longest ago is the first. */
  readonly #queues = new Set<PacedQueue>();
  #isPlanned = false;

  constructor({ paceMs, share }: PaceOptions) {
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
