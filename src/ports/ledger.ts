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

export interface LedgerEntry {
  /** From `ledgerKeys` in core/injections.ts. */
  readonly key: string;
  /** The recalled block, byte for byte; '' when the recall found nothing worth saying. */
  readonly block: string;
  /** How the block went in first: glued to a string, or as a part of its own. */
  readonly form: 'text' | 'part';
  /** Blocks of earlier items are left out from here on. */
  readonly dropsEarlier: boolean;
  /** Milliseconds since 1970. */
  readonly at: number;
}
