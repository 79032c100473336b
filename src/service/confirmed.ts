import { Recent } from '../core/bytes/recent.ts';
import type { Clock } from '../ports/clock.ts';
import { MemoryError } from '../ports/memory.ts';

/**
 * Remembers what the store said last. When the store is away, what it said a short time ago still
 * counts, so that models go on; after that the store's own error does.
 */

/** A revoked key works for no longer than this while its store is away. */
const GOOD_MS = 60_000;
/** Active keys of a large service. */
const NAMES_MAX = 20_000;

export class Confirmed<Value> {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #known = new Recent<string, { readonly value: Value; readonly at: number }>(NAMES_MAX);

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** Asks the store; what it said of this name at most 60 s ago where it cannot answer. */
  async ask(name: string, look: () => Promise<Value>): Promise<Value> {
    try {
      const value = await look();
      this.#known.set(name, { value, at: this.#clock.monotonic() });
      return value;
    } catch (error) {
      const known = this.#known.get(name);
      const isAway = error instanceof MemoryError;
      if (!isAway || known === undefined || this.#clock.monotonic() - known.at > GOOD_MS) {
        throw error;
      }
      return known.value;
    }
  }
}
