import type { InjectionEntry } from '../core/injections.ts';

/**
 * What svc did to a conversation, so that it does the same again: after a restart, a resume, a
 * fork or a rewind. An entry belongs to the human item whose fingerprint it carries.
 */
export interface Ledger {
  /**
   * Entries for these keys, in any order; keys without one are absent. Undefined when it could not
   * be read within `withinMs` milliseconds: then nothing is known, which is not the same. Never throws.
   */
  find(
    keys: readonly string[],
    withinMs: number,
  ): Promise<ReadonlyMap<string, LedgerEntry> | undefined>;
  /** Durable against a kill of the process when it returns. */
  record(entries: readonly LedgerEntry[]): void;
}

/** Keys come from `humanItems` in core/injections.ts. */
export type LedgerEntry = InjectionEntry;
