import { Recent } from '../../../src/core/bytes/recent.ts';
import type { Clock } from '../../../src/ports/clock.ts';
import type { ChangedFact } from '../ports/control-store.ts';
import { withinDeadline } from '../../../src/proxy/deadline.ts';
import type { ChangeWatch } from './change-watch.ts';
import { MemoryError } from '../../../src/core/errors.ts';

/**
 * Caches facts from the store. While this process reads the list of changes, it uses a cached fact
 * without asking the store; a change drops it. While the store is unavailable, a recently confirmed
 * fact stays valid for a short time, so that model requests continue. After that the store's error
 * applies.
 */

/** A revoked key works for no longer than this while the store is away. */
const GOOD_MS = 60_000;
/** A slower store counts as unavailable, because a request must not wait longer. */
const LOOK_MS = 2_000;
/** Active keys of a large service. */
const NAMES_MAX = 20_000;

export interface ConfirmedOptions<Value> {
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly changes: ChangeWatch;
  /** Whether a change concerns what is remembered under this name. */
  readonly concerns: (fact: ChangedFact, name: string, value: Value) => boolean;
}

interface Known<Value> {
  readonly name: string;
  readonly value: Value;
  /** When the store was asked for it. */
  readonly at: number;
}

export class Confirmed<Value> {
  readonly #options: ConfirmedOptions<Value>;
  readonly #known = new Recent<string, Known<Value>>(NAMES_MAX);
  /** Counts what changed: an answer that was under way meanwhile is not kept. */
  #changes = 0;

  constructor(options: ConfirmedOptions<Value>) {
    this.#options = options;
    options.changes.onChange((fact) => this.#drop(fact));
  }

  /** The remembered value, or the store's. Throws what `look` throws. */
  async ask(name: string, look: () => Promise<Value>): Promise<Value> {
    const { clock, changes } = this.#options;
    const known = this.#known.get(name);
    const isFollowed = clock.monotonic() - changes.readAt <= GOOD_MS;
    if (known !== undefined && isFollowed) return known.value;
    const before = this.#changes;
    const at = clock.monotonic();
    try {
      const value = await withinDeadline(LOOK_MS, look);
      if (value === undefined) this.#known.delete(name);
      else if (before === this.#changes) this.#known.set(name, { name, value, at });
      return value;
    } catch (error) {
      const last = this.#known.get(name);
      if (!(error instanceof MemoryError) || last === undefined) throw error;
      if (clock.monotonic() - Math.max(last.at, changes.readAt) > GOOD_MS) throw error;
      return last.value;
    }
  }

  #drop(fact: ChangedFact | undefined): void {
    this.#changes += 1;
    if (fact === undefined) {
      this.#known.clear();
      return;
    }
    for (const { name, value } of this.#known.values()) {
      if (this.#options.concerns(fact, name, value)) this.#known.delete(name);
    }
  }
}
