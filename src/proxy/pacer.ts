/**
 * Does what nobody waits for, a piece at a time and never while svc has a request in hand: the
 * history of sessions that began before svc did, and the outputs that may be left out one day. Nothing
 * is lost by waiting, because both stand in every later request too.
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
  readonly doOne: () => boolean;
  /** At most so many pieces. */
  readonly times: number;
}

export class Pacer {
  readonly #hands: Hands;
  readonly #paceMs: number;
  /** By conversation; the oldest request is the next. */
  readonly #waiting = new Map<string, PacedWork>();
  #isPlanned = false;

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
    for (const oldest of this.#waiting.keys()) {
      if (this.#waiting.size <= CONVERSATIONS_MAX) break;
      this.#waiting.delete(oldest);
    }
    this.#plan();
  }

  // The process may end in between.
  #plan(): void {
    if (this.#isPlanned) return;
    this.#isPlanned = true;
    setTimeout(() => this.#step(), this.#paceMs).unref();
  }

  #step(): void {
    this.#isPlanned = false;
    if (this.#hands.areFree) this.#doNext();
    if (this.#waiting.size > 0) this.#plan();
  }

  #doNext(): void {
    const next = this.#waiting.entries().next().value;
    if (next === undefined) return;
    const [key, { doOne, times }] = next;
    this.#waiting.delete(key);
    // Behind the others: they take turns.
    if (tryOne(doOne) && times > 1) this.#waiting.set(key, { doOne, times: times - 1 });
  }
}

// Nobody waits here who could catch it: an error would end the process, and every answer with it.
function tryOne(doOne: () => boolean): boolean {
  try {
    return doOne();
  } catch {
    return false;
  }
}
