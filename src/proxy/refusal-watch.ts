import { forgetOldest } from '../core/bytes/forget-oldest.ts';
import type { ConversationPlace } from '../core/recall/injections.ts';
import type { Clock } from '../ports/clock.ts';

/**
 * Remembers the conversations whose provider refused a request in both forms: as svc had changed it, and
 * as the client wrote it. The client's own request is at fault there, so sending it twice helps nobody.
 */

// As long as a change that was refused alone stays off.
const REMEMBERED_MS = 3_600_000;
const CONVERSATIONS_MAX = 1_024;

export class RefusalWatch {
  readonly #clock: Clock;
  /** When it was last refused in both forms, by conversation. */
  readonly #refusedAt = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether a refused change of this conversation is sent once more without it. */
  isTriedAgain(place: ConversationPlace): boolean {
    const refusedAt = this.#refusedAt.get(keyOf(place));
    return refusedAt === undefined || this.#clock.monotonic() - refusedAt > REMEMBERED_MS;
  }

  /** Both forms were refused. */
  note(place: ConversationPlace): void {
    this.#refusedAt.delete(keyOf(place));
    this.#refusedAt.set(keyOf(place), this.#clock.monotonic());
    forgetOldest(this.#refusedAt, CONVERSATIONS_MAX);
  }
}

function keyOf({ space, conversation }: ConversationPlace): string {
  return `${space}:${conversation}`;
}
