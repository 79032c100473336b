import { randomUUID } from 'node:crypto';
import type { DeskRecord } from '../../ports/memory-desk.ts';

/**
 * Records that were forgotten in the page a moment ago, so that it can be undone. The store has
 * forgotten them already: nothing is left of them on disk. They are in this process's memory for a
 * minute, and then nowhere.
 */
const KEPT_MS = 60_000;
const LISTS_MAX = 20;

export class ForgottenRecords {
  readonly #now: () => number;
  readonly #lists = new Map<
    string,
    { readonly records: readonly DeskRecord[]; readonly at: number }
  >();

  constructor(now: () => number) {
    this.#now = now;
  }

  get keptMs(): number {
    return KEPT_MS;
  }

  /** The name by which they are taken back. */
  keep(records: readonly DeskRecord[]): string {
    const name = randomUUID();
    this.#lists.set(name, { records, at: this.#now() });
    const [oldest] = this.#lists.keys();
    if (this.#lists.size > LISTS_MAX && oldest !== undefined) this.#lists.delete(oldest);
    setTimeout(() => this.#lists.delete(name), KEPT_MS).unref();
    return name;
  }

  /** Once. Undefined when the minute is over. */
  take(name: string): readonly DeskRecord[] | undefined {
    const list = this.#lists.get(name);
    this.#lists.delete(name);
    return list === undefined || this.#now() - list.at > KEPT_MS ? undefined : list.records;
  }
}
