import type { InjectionEntry } from '../core/injections.ts';

/**
 * What svc did to a conversation, so that it does the same again: after a restart, a resume, a
 * fork or a rewind. An entry belongs to the human item whose fingerprint it carries.
 */
export interface Ledger {
  /**
   * Entries for these keys, in any order; keys without one are absent. Never throws: a ledger that
   * cannot be read answers nothing.
   */
  find(keys: readonly string[]): Promise<ReadonlyMap<string, LedgerEntry>>;
  /** Durable against a kill of the process when it returns. */
  record(entries: readonly LedgerEntry[]): void;
}

/** Keys come from `humanItems` in core/injections.ts. */
export type LedgerEntry = InjectionEntry;
