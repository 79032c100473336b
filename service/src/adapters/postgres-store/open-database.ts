import type { Connections } from './connections.ts';
import type { TermKeys } from './term-keys.ts';
import { forgetOldest } from '../../../../src/core/bytes/recent.ts';
import { PENDING } from './statements/upkeep.ts';

/** The database as every part of a store has it: found, and with its tables as they must be. */
export interface OpenDatabase {
  readonly connections: Connections;
  /** Hashes words with the secret of this database. */
  readonly keys: TermKeys;
  readonly pending: PendingPassages;
}

/**
 * New passages wait in a list of their part of the table until they go into the index together (see
 * `PENDING_PASSAGES`). That takes the server some 40 ms, and the capture that fills the list would wait for
 * it. So a node puts them in beside its captures, a little before the list is full.
 */

/** About 360 kB of the list, which has room for 512. */
const WORDS_MAX = 15_000;
const TENANTS_MAX = 10_000;

export class PendingPassages {
  /** The number of the part that holds a tenant's passages. It never changes. */
  readonly #parts = new Map<string, number>();
  /** Words of this node's captures that wait, by part. */
  readonly #words = new Map<number, number>();
  #isBusy = false;

  /** A capture has added so many words. No call waits for the rest, and an error loses nothing. */
  note(connections: Connections, tenant: string, words: number): void {
    if (words > 0) this.#note(connections, tenant, words).catch(() => undefined);
  }

  async #note(connections: Connections, tenant: string, words: number): Promise<void> {
    const part = this.#parts.get(tenant) ?? (await this.#find(connections, tenant));
    if (part === undefined) return;
    const waiting = (this.#words.get(part) ?? 0) + words;
    this.#words.set(part, waiting);
    if (waiting < WORDS_MAX || this.#isBusy) return;
    this.#isBusy = true;
    try {
      await connections.job((rows) => rows.run(PENDING.putIn, part));
    } finally {
      this.#isBusy = false;
      // It has put in most of what came meanwhile, too.
      this.#words.delete(part);
    }
  }

  async #find(connections: Connections, tenant: string): Promise<number | undefined> {
    const row = await connections.job((rows) => rows.get<{ part: number }>(PENDING.partOf, tenant));
    if (row === undefined) return undefined;
    this.#parts.set(tenant, row.part);
    forgetOldest(this.#parts, TENANTS_MAX);
    return row.part;
  }
}
