import type { FoundEntries, LedgerAddress, LedgerEntry } from '../core/ledger/entries.ts';

/**
 * Everything that svc did to a conversation, so that it does the same again: after a restart, a
 * resume, a fork or a rewind. Entries and their addresses are in core/ledger/entries.ts.
 */
export interface Ledger {
  /**
   * The entries at these addresses. After `withinMs` milliseconds it resolves to those that it knows
   * by then, and says that others may be missing. Never throws.
   */
  find(addresses: readonly LedgerAddress[], withinMs: number): Promise<FoundEntries>;
  /**
   * Changes whenever blocks are forgotten. If it differs from the value that you read earlier, discard
   * what you found then.
   */
  generation(): number;
  /**
   * Resolves when the entries are durable against a kill of the process, so await it before bytes that
   * they describe are sent. An entry that is written once (`isWrittenOnce`) stays as it was first. When
   * they cannot be made durable, this process knows them nevertheless. Never throws.
   */
  record(entries: readonly LedgerEntry[]): Promise<void>;
  /**
   * Records entries that shape the bytes of the request in hand, before it is forwarded. False when they
   * are not known to every process that may serve this conversation: the request then goes without
   * what they describe. Never throws.
   */
  commit(entries: readonly LedgerEntry[]): Promise<boolean>;
  /** Other processes write to it too, so that it has no entry is true for the moment alone. */
  readonly isShared: boolean;
}

/** A ledger entry as it is stored: one shape for all kinds, in the journal and in the tables. */
export interface LedgerRow {
  readonly key: string;
  /** A recalled block, or the facts of another kind of entry as JSON. */
  readonly block: string;
  readonly form: 'text' | 'part';
  readonly at: number;
  /** An earlier row with this key stays. */
  readonly isOnce?: true;
}
