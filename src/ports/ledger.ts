import type { InjectionEntry } from '../core/recall/injections.ts';

/**
 * What svc did to a conversation, so that it does the same again: after a restart, a resume, a
 * fork or a rewind. An entry belongs to the human item whose fingerprint it carries.
 */
export interface Ledger {
  /**
   * Entries for these keys, in any order; keys without one are absent. Why there are none, when it
   * could not be read within `withinMs` milliseconds: then nothing is known, which is not the same.
   * Never throws.
   */
  find(
    keys: readonly string[],
    withinMs: number,
  ): Promise<ReadonlyMap<string, LedgerEntry> | LedgerMiss>;
  /** Another number than before: blocks were forgotten, and what was found earlier is not to be used. */
  generation(): number;
  /** Durable against a kill of the process when it returns. */
  record(entries: readonly LedgerEntry[]): void;
}

/** `late`: no answer in time. `unavailable`: it could not be read. */
export type LedgerMiss = 'late' | 'unavailable';

/** Keys come from `humanItems` in core/recall/injections.ts. */
export type LedgerEntry = InjectionEntry;
