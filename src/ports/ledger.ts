import type { FoundEntries, LedgerAddress, LedgerEntry } from '../core/ledger/entries.ts';

/**
 * Stores everything that svc did to a conversation, so that it does the same again after a restart, a resume, a fork
 * or a rewind. Entries and their addresses are in core/ledger/entries.ts.
 */
export interface Ledger {
  /**
   * Returns the entries at these addresses. After `withinMs` milliseconds it resolves to those known by then, and
   * says that others may be missing. Never throws.
   */
  find(addresses: readonly LedgerAddress[], withinMs: number): Promise<FoundEntries>;
  /**
   * Returns a number that changes whenever blocks are forgotten. If it differs from the value that you read earlier,
   * discard what you found then.
   */
  generation(): number;
  /**
   * Records entries. It resolves when they would survive a kill of the process, so await it before sending bytes
   * that they describe. An entry that is written once (`isWrittenOnce`) keeps its first value. If they cannot be
   * written, this process still remembers them. Never throws.
   */
  record(entries: readonly LedgerEntry[]): Promise<void>;
  /**
   * Records entries on which the bytes of this request depend, before it is forwarded. Returns false if other
   * processes that may serve this conversation would not know them: then the request must go without what they
   * describe. Never throws.
   */
  commit(entries: readonly LedgerEntry[]): Promise<boolean>;
  /** True if other processes write to the ledger too, so that a missing entry may appear later. */
  readonly isShared: boolean;
}

/** A ledger entry as it is stored: one form for all kinds, in the journal and in the tables. */
export interface LedgerRow {
  readonly key: string;
  /** A recalled block, or the content of another kind of entry as JSON. */
  readonly block: string;
  readonly form: 'text' | 'part';
  readonly at: number;
  /** True: if a row with this key exists, it stays unchanged. */
  readonly isOnce?: true;
}
