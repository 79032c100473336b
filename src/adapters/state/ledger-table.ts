import type { QuotedRecord } from '../../core/ledger/entries.ts';
import type { LedgerRow } from '../../ports/ledger.ts';
import { quotedIn, rowFrom } from '../journals/ledger-row.ts';
import type { Statements } from '../store/statements.ts';

/** The rows of the ledger in `state.db`, and what the store's thread does with many of them. */

/**
 * The row whose number says when something was forgotten. Each forgetting writes it again, so that it comes
 * behind every row that was there. No clock is asked. No key of an entry is without a colon.
 */
export const FORGOTTEN_KEY = 'forgotten';

/** A year of heavy use; a block is 2 kB, so at most about 400 MB. */
const ROWS_MAX = 200_000;
/** Rows that are read at once: 2 MB. */
const FORGET_ROWS = 1000;

interface StoredRow {
  readonly n: number;
  readonly key: string;
  readonly value: string;
}

/** JSON: a row can get a further fact without a further column. */
export function valueOf(row: LedgerRow): string {
  return JSON.stringify({ ...row, key: undefined, isOnce: undefined });
}

export function rowIn(key: string, value: string): LedgerRow | undefined {
  const fields: unknown = JSON.parse(value);
  return typeof fields === 'object' ? rowFrom({ ...fields, key }) : undefined;
}

/** An entry without a block keeps its prompt from being recalled for again. */
export function withoutQuotes(row: LedgerRow): LedgerRow {
  return quotedIn(row).length === 0 ? row : { ...row, block: '' };
}

export function noteForgotten(rows: Statements): void {
  rows.run('INSERT OR REPLACE INTO ledger (key, value) VALUES (?, ?)', FORGOTTEN_KEY, '{}');
}

/**
 * Empties the blocks that quote such records, and returns how many. A forgotten text must not be sent again,
 * though the provider's cache breaks there once.
 */
export function emptyBlocks(rows: Statements, isForgotten: IsQuoted): number {
  return changeBlocks(rows, isForgotten, (row) => ({ ...row, block: '' }));
}

/** Makes the blocks that quote such records too old for a new conversation. Conversations that have them keep them. */
export function retireBlocks(rows: Statements, isRetired: IsQuoted): number {
  return changeBlocks(rows, isRetired, (row) => ({ ...row, at: 0 }));
}

/**
 * Changes rows in the order of their numbers. The last ones are read in the transaction that writes the note of the
 * forgetting: a block that was recorded before the note is changed here, and whoever records a later one reads the note.
 */
function changeBlocks(
  rows: Statements,
  isQuoted: IsQuoted,
  change: (row: LedgerRow) => LedgerRow,
): number {
  let changed = 0;
  let last = 0;
  for (;;) {
    const read = rows.transaction(() => {
      const some = quotingRows(rows, last);
      for (const { key, value } of some) {
        const row = rowIn(key, value);
        if (row === undefined || !quotedIn(row).some(isQuoted)) continue;
        const sql = 'INSERT OR REPLACE INTO ledger (key, value) VALUES (?, ?)';
        rows.run(sql, key, valueOf(change(row)));
        changed += 1;
      }
      last = some.at(-1)?.n ?? last;
      if (some.length < FORGET_ROWS) noteForgotten(rows);
      return some.length;
    });
    if (read < FORGET_ROWS) return changed;
  }
}

/** Finds all records that blocks quote, by their spaces. */
export function placedRecords(rows: Statements): PlacedRecords {
  const placed = new Map<string, Set<string>>();
  for (let last = 0; ;) {
    const some = quotingRows(rows, last);
    for (const { ref, space } of some.flatMap(({ key, value }) =>
      quotedIn(rowIn(key, value) ?? NO_ROW),
    )) {
      placed.set(space, (placed.get(space) ?? new Set()).add(ref));
    }
    last = some.at(-1)?.n ?? last;
    if (some.length < FORGET_ROWS) return placed;
  }
}

export type PlacedRecords = ReadonlyMap<string, ReadonlySet<string>>;

const NO_ROW = { block: '' };

type IsQuoted = (record: QuotedRecord) => boolean;

/** The next rows that may quote a record: most have no block. JSON writes the end of a line as two characters. */
function quotingRows(rows: Statements, last: number): readonly StoredRow[] {
  return rows.all<StoredRow>(
    "SELECT n, key, value FROM ledger WHERE n > ? AND instr(value, '\\nm_') ORDER BY n LIMIT ?",
    last,
    FORGET_ROWS,
  );
}

/** Deletes the rows that were written longest ago. */
export function pruneLedger(rows: Statements): void {
  rows.run(
    'DELETE FROM ledger WHERE n <= (SELECT n FROM ledger ORDER BY n DESC LIMIT 1 OFFSET ?)',
    ROWS_MAX,
  );
}
