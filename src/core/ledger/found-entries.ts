import {
  type EntryOf,
  keyOf,
  type LedgerAddress,
  type LedgerEntry,
  type LedgerKind,
} from './entries.ts';

/** `late`: no answer in time. `unavailable`: it could not be read. */
export type LedgerMiss = 'late' | 'unavailable';

/** What a ledger knows of the addresses that it was asked for. */
export class FoundEntries {
  /** Why there may be more entries than were found; undefined when all are known. */
  readonly missing: LedgerMiss | undefined;
  readonly #entries: ReadonlyMap<string, LedgerEntry>;

  constructor(entries: Iterable<LedgerEntry>, missing?: LedgerMiss) {
    this.#entries = new Map(Array.from(entries, (entry) => [keyOf(entry), entry]));
    this.missing = missing;
  }

  get<Kind extends LedgerKind>(
    address: LedgerAddress & { readonly kind: Kind },
  ): EntryOf<Kind> | undefined {
    const entry = this.#entries.get(keyOf(address));
    return entry !== undefined && isOfKind(entry, address.kind) ? entry : undefined;
  }

  has(address: LedgerAddress): boolean {
    return this.#entries.has(keyOf(address));
  }
}

function isOfKind<Kind extends LedgerKind>(
  entry: LedgerEntry,
  kind: Kind,
): entry is EntryOf<Kind> & LedgerEntry {
  return entry.kind === kind;
}
