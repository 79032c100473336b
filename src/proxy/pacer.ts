import { forgetOldest } from '../core/bytes/forget-oldest.ts';
import { withinDeadline } from './memory-deadline.ts';

/**
 * Does what nobody waits for, a piece at a time and never while svc has a request in hand: the
 * history of sessions that began before svc did, and the outputs that may be left out one day. Both
 * stand in every later request too; but a session may have had its last one, or may come back
 * compacted, so what still waits is done when svc ends.
 */

/** One person's agents at work side by side. Each holds on to a body, so they are few. */
const CONVERSATIONS_MAX = 4;

/** Knows whether svc has a request in hand. While a provider thinks, it has not. */
export class Hands {
  #held = 0;

  get areFree(): boolean {
    return this.#held === 0;
  }

  /** A request is in hand until what this returns is called, once or more often. */
  hold(): () => void {
    this.#held += 1;
    let isHeld = true;
    return () => {
      if (isHeld) this.#held -= 1;
      isHeld = false;
    };
  }
}

/** Of one conversation. */
export interface PacedWork {
  /** One piece; says whether there was one. */
  readonly doOne: () => boolean | Promise<boolean>;
  /** At most so many pieces. */
  readonly times: number;
}

export class Pacer {
  readonly #hands: Hands;
  readonly #paceMs: number;
  /** By conversation; the oldest request is the next. */
  readonly #waiting = new Map<string, PacedWork>();
  #isPlanned = false;
  #doing: Promise<void> = Promise.resolve();

  /** `paceMs`: before each piece. */
  constructor(hands: Hands, paceMs: number) {
    this.#hands = hands;
    this.#paceMs = paceMs;
  }

  /** Takes the place of what an earlier request of the conversation left to do. */
  add({ space, conversation }: { space: string; conversation: string }, work: PacedWork): void {
    const key = `${space} ${conversation}`;
    this.#waiting.delete(key);
    if (work.times === 0) return;
    this.#waiting.set(key, work);
    forgetOldest(this.#waiting, CONVERSATIONS_MAX);
    this.#plan();
  }

  /** Does all that waits, without pauses, for so many milliseconds at most. Never rejects. */
  async drain(withinMs: number): Promise<void> {
    await withinDeadline(withinMs, (late) => this.#doAll(late)).catch(() => undefined);
  }

  async #doAll(late: AbortSignal): Promise<void> {
    await this.#doing;
    while (this.#waiting.size > 0 && !late.aborted) {
      // oxlint-disable-next-line no-await-in-loop -- The store takes one after the other.
      await this.#doNext();
    }
  }

  // The process may end in between.
  #plan(): void {
    if (this.#isPlanned) return;
    this.#isPlanned = true;
    setTimeout(() => void this.#step(), this.#paceMs).unref();
  }

  async #step(): Promise<void> {
    if (this.#hands.areFree) {
      this.#doing = this.#doNext();
      await this.#doing;
    }
    this.#isPlanned = false;
    if (this.#waiting.size > 0) this.#plan();
  }

  async #doNext(): Promise<void> {
    const next = this.#waiting.entries().next().value;
    if (next === undefined) return;
    const [key, { doOne, times }] = next;
    this.#waiting.delete(key);
    const isMore = (await tryOne(doOne)) && times > 1;
    // Behind the others: they take turns. A later request may have taken its place meanwhile.
    if (isMore && !this.#waiting.has(key)) this.#waiting.set(key, { doOne, times: times - 1 });
  }
}

// Nobody waits here who could catch it: an error would end the process, and every answer with it.
async function tryOne(doOne: PacedWork['doOne']): Promise<boolean> {
  try {
    return await doOne();
  } catch {
    return false;
  }
}
