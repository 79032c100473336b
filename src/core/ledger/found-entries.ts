import {
  type EntryOf,
  keyOf,
  type LedgerAddress,
  type LedgerEntry,
  type LedgerKind,
} from './entries.ts';

/** `late`: no answer in time. `unavailable`: it could not be read. */
export type LedgerMiss = 'late' | 'unavailable';

/** The entries that a ledger found at the addresses in question. */
export class FoundEntries {
  /** Why there may be more entries than were found; undefined when all are known. */
  readonly missing: LedgerMiss | undefined;
  readonly #entries: ReadonlyMap<string, LedgerEntry>;
  /**
   * Fingerprints of the items that have entries. Thousands of items are looked up and few have any,
   * and a fingerprint is compared much faster than a key is built.
   */
  readonly #fingerprints = new Set<string>();

  constructor(entries: Iterable<LedgerEntry>, missing?: LedgerMiss) {
    this.missing = missing;
    const byKey = new Map<string, LedgerEntry>();
    for (const entry of entries) {
      byKey.set(keyOf(entry), entry);
      if ('fingerprint' in entry) this.#fingerprints.add(entry.fingerprint);
    }
    this.#entries = byKey;
  }

  get<Kind extends LedgerKind>(
    address: LedgerAddress & { readonly kind: Kind },
  ): EntryOf<Kind> | undefined {
    const entry = this.#at(address);
    return entry !== undefined && isOfKind(entry, address.kind) ? entry : undefined;
  }

  has(address: LedgerAddress): boolean {
    return this.#at(address) !== undefined;
  }

  #at(address: LedgerAddress): LedgerEntry | undefined {
    const isAbsent = 'fingerprint' in address && !this.#fingerprints.has(address.fingerprint);
    return isAbsent ? undefined : this.#entries.get(keyOf(address));
  }
}

function isOfKind<Kind extends LedgerKind>(
  entry: LedgerEntry,
  kind: Kind,
): entry is EntryOf<Kind> & LedgerEntry {
  return entry.kind === kind;
}
