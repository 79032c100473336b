import type { MemoryState } from '../core/plan/continuity.ts';
import type { Clock } from '../ports/clock.ts';
import {
  type Memory,
  MemoryError,
  type MemoryFailure,
  type RecallAnswer,
  type RecallQuestion,
} from '../ports/memory.ts';
import { withinDeadline } from './deadline.ts';

/**
 * Asks the memory and never waits longer than the deadline. A memory that keeps failing is left
 * alone for a while, so that a dead one costs nothing. Every failure here becomes a state.
 */

export interface Recalled {
  readonly answer: RecallAnswer;
  readonly state: MemoryState;
}

const NOTHING: RecallAnswer = { passages: [] };

// R23: after three failures in a row the memory is presumed down, and asked again after two seconds.
const FAILURES_MAX = 3;
const PAUSE_MS = 2_000;

const STATE_OF_FAILURE: Readonly<Record<MemoryFailure, MemoryState>> = {
  timeout: 'degraded_timeout',
  unavailable: 'degraded_unavailable',
  denied: 'degraded_denied',
  rate_limited: 'degraded_rate_limited',
  invalid: 'degraded_invalid',
};

export class RecallGuard {
  readonly #memory: Memory;
  readonly #clock: Clock;
  #failures = 0;
  #pausedUntil = 0;
  #pausedState: MemoryState = 'degraded_unavailable';

  constructor(memory: Memory, clock: Clock) {
    this.#memory = memory;
    this.#clock = clock;
  }

  /** Never throws. Resolves within `deadlineMs`. */
  async recall(question: RecallQuestion, deadlineMs: number): Promise<Recalled> {
    if (this.#isPaused()) return { answer: NOTHING, state: this.#pausedState };
    try {
      const answer = await withinDeadline(deadlineMs, (signal) =>
        this.#memory.recall(question, signal),
      );
      this.#failures = 0;
      return { answer, state: isEmpty(answer) ? 'empty' : 'recalled' };
    } catch (error) {
      return { answer: NOTHING, state: this.#failed(error) };
    }
  }

  #isPaused(): boolean {
    return this.#failures >= FAILURES_MAX && this.#clock.monotonic() < this.#pausedUntil;
  }

  #failed(error: unknown): MemoryState {
    this.#failures += 1;
    // Half-open: after the pause one request asks again, and one more failure starts a new pause.
    if (this.#failures >= FAILURES_MAX) this.#pausedUntil = this.#clock.monotonic() + PAUSE_MS;
    const reason = error instanceof MemoryError ? error.reason : 'unavailable';
    // A refused key and a limit stay what they are; after anything else the memory is not there.
    const isLasting = reason === 'denied' || reason === 'rate_limited';
    this.#pausedState = STATE_OF_FAILURE[isLasting ? reason : 'unavailable'];
    return STATE_OF_FAILURE[reason];
  }
}

function isEmpty({ passages, exchanges = [], sessions = [] }: RecallAnswer): boolean {
  return passages.length + exchanges.length + sessions.length === 0;
}
