import type { FoundEntries, LedgerAddress, LedgerEntry } from '../core/ledger/entries.ts';

/**
 * Stores the changes that svc made to a conversation, except the request to clear outputs, which svc decides anew each
 * time. So svc makes the same changes again after a restart, a resume, a fork or a rewind. Entries and their addresses
 * are defined in core/ledger/entries.ts.
 */
export interface Ledger {
  /**
   * Returns the entries at these addresses. After `withinMs` milliseconds it resolves to the entries found so far, and
   * `FoundEntries` says that others may be missing. Never throws.
   */
  find(addresses: readonly LedgerAddress[], withinMs: number): Promise<FoundEntries>;
  /**
   * Returns a number that changes whenever texts are forgotten. If it has changed since a call of find(), discard the
   * entries that this call returned: their blocks may quote a forgotten text.
   */
  generation(): number;
  /**
   * Records entries. Await it before sending the bytes that they describe: it resolves when the entries would survive a
   * kill of the process, or when they cannot be written soon. Until they are written, this process remembers them. An
   * entry that is written once (`isWrittenOnce`) keeps its first value, unless a later one has `replaces`. Never
   * throws.
   */
  record(entries: readonly LedgerEntry[]): Promise<void>;
  /**
   * Records the changes of a request before it is forwarded. Returns false if a process that may serve the conversation
   * would not find the entries, or if they quote a text that was forgotten meanwhile. If it returns false, forward the
   * request without these changes. Never throws.
   */
  commit(entries: readonly LedgerEntry[]): Promise<boolean>;
  /**
   * True if several nodes of a service share the ledger, so that another one may have served the conversation
   * meanwhile.
   */
  readonly isShared: boolean;
}

/** A ledger entry as it is stored in a table or a journal. All kinds of entries have this form. */
export interface LedgerRow {
  readonly key: string;
  /** A recalled block, or the content of another kind of entry as JSON. */
  readonly block: string;
  readonly form: 'text' | 'part';
  readonly at: number;
  /** True: an existing row with this key stays unchanged, and this row is dropped. */
  readonly isOnce?: true;
}
