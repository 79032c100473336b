import { MemoryError } from '../../../../src/core/errors.ts';

/** After that the server may have room again. */
const NARROW_MS = 5000;

/** At most so many at once. Who finds no place waits for one, and not for long. */
export class Slots {
  readonly #count: number;
  #limit: number;
  #taken = 0;
  #wider: NodeJS.Timeout | undefined;
  readonly #waiting = new Set<() => void>();

  constructor(count: number) {
    this.#count = count;
    this.#limit = count;
  }

  /** Resolves with what gives the place back. Throws MemoryError when none was free in time. */
  async take(withinMs: number): Promise<() => void> {
    if (this.#taken < this.#limit) this.#taken += 1;
    else await this.#wait(withinMs);
    return () => {
      this.#taken -= 1;
      this.#hand();
    };
  }

  /** For a while there are fewer places, and one at least: the server gives no more. */
  narrow(limit: number): void {
    this.#limit = Math.min(this.#limit, Math.max(1, limit));
    clearTimeout(this.#wider);
    this.#wider = setTimeout(() => {
      this.#limit = this.#count;
      this.#hand();
    }, NARROW_MS).unref();
  }

  #wait(withinMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const handed = (): void => {
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(() => {
        this.#waiting.delete(handed);
        reject(new MemoryError('unavailable', 'All connections to the database are in use.'));
      }, withinMs);
      this.#waiting.add(handed);
    });
  }

  /** A place goes to the one that waits longest. */
  #hand(): void {
    for (const next of this.#waiting) {
      if (this.#taken >= this.#limit) return;
      this.#waiting.delete(next);
      this.#taken += 1;
      next();
    }
  }
}
