import type { Database } from '../../../../src/adapters/store/database.ts';
import type { SqlValue } from '../../../../src/adapters/store/driver.ts';

/** Receipts that were made since a backup: a restore keeps them, with the sums of their days. */

const AT_ONCE = 500;

export function carryReceipts(from: Database, to: Database): void {
  copyReceipts(from, to);
  for (const table of ['receipt_heads', 'usage_days'] as const) {
    // They only grow, so the present ones count what the backup has.
    const rows = from.all<Row>(`SELECT * FROM ${table}`);
    to.transaction(() => {
      to.run(`DELETE FROM ${table}`);
      insert(to, table, rows);
    });
  }
}

type Row = Readonly<Record<string, SqlValue>>;

function copyReceipts(from: Database, to: Database): void {
  for (let last = 0; ;) {
    const rows = from.all<Row>(
      `SELECT rowid, * FROM receipts WHERE rowid > ? ORDER BY rowid LIMIT ${AT_ONCE}`,
      last,
    );
    to.transaction(() => insert(to, 'receipts', rows));
    if (rows.length < AT_ONCE) return;
    last = Number(rows.at(-1)?.['rowid']);
  }
}

function insert(to: Database, table: string, rows: readonly Row[]): void {
  for (const row of rows) {
    // A row gets a number of its own there.
    const names = Object.keys(row).filter((name) => name !== 'rowid');
    const marks = names.map(() => '?').join(', ');
    const sql = `INSERT OR IGNORE INTO ${table} (${names.join(', ')}) VALUES (${marks})`;
    to.run(sql, ...names.map((name) => row[name] ?? null));
  }
}
