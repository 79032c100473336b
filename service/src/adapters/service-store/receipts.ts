import { firstReceiptIdAt } from '../../core/receipt-id.ts';
import type { Page } from '../../ports/control-store.ts';
import type {
  ClosedHead,
  OpenHead,
  ReceiptFilter,
  ReceiptRow,
  StoredReceipt,
} from '../../ports/receipt-store.ts';
import { Conditions } from '../../../../src/adapters/store/conditions.ts';
import type { Database } from '../../../../src/adapters/store/database.ts';
import type { UsageTable } from './usage.ts';
import { newestOf, usageOf } from './usage-counts.ts';

/** Signed receipts and the heads of their nodes as rows. A stored receipt never changes. */

export interface HeadRow {
  readonly tenant: string;
  readonly node: string;
  readonly last_seq: number;
  readonly body: string | null;
}

export class ReceiptTable {
  readonly #database: Database;
  readonly #usage: UsageTable;

  constructor(database: Database, usage: UsageTable) {
    this.#database = database;
    this.#usage = usage;
  }

  store(rows: readonly ReceiptRow[]): void {
    this.#database.transaction(() => {
      for (const row of newestOf(rows)) this.#raiseHead(row);
      const added = rows.filter((row) => this.#add(row));
      for (const row of usageOf(added)) this.#usage.add(row);
    });
  }

  find(tenant: string, receiptId: string): StoredReceipt | undefined {
    const sql = 'SELECT id AS receiptId, body FROM receipts WHERE tenant = ? AND id = ?';
    return this.#database.get<StoredReceipt>(sql, tenant, receiptId);
  }

  list(tenant: string, filter: ReceiptFilter): StoredReceipt[] {
    const { order, limit, after, before, from, to, status, model, keyId, providerId } = filter;
    const isDown = order === 'desc';
    const conditions = new Conditions();
    conditions.add('tenant = ?', tenant);
    conditions.add(isDown ? 'id < ?' : 'id > ?', after);
    conditions.add(isDown ? 'id > ?' : 'id < ?', before);
    conditions.add('id >= ?', from === undefined ? undefined : firstReceiptIdAt(from));
    conditions.add('id < ?', to === undefined ? undefined : firstReceiptIdAt(to));
    conditions.add('status = ?', status);
    conditions.add('model = ?', model);
    conditions.add('key = ?', keyId);
    conditions.add('provider = ?', providerId);
    // The page in front of an element is read backwards from it.
    const isBackwards = before !== undefined && after === undefined;
    const isDescending = isDown !== isBackwards;
    const rows = this.#database.all<StoredReceipt>(
      `SELECT id AS receiptId, body FROM receipts ${conditions.where}
       ORDER BY id ${isDescending ? 'DESC' : 'ASC'} LIMIT ?`,
      ...conditions.values,
      limit,
    );
    return isBackwards ? rows.toReversed() : rows;
  }

  drop(tenant: string, before: number, limit: number): number {
    return this.#database.run(
      `DELETE FROM receipts WHERE rowid IN (
         SELECT rowid FROM receipts WHERE tenant = ? AND id < ? ORDER BY id LIMIT ?)`,
      tenant,
      firstReceiptIdAt(before),
      limit,
    );
  }

  heads(tenant: string, { limit, after = '' }: Page): (OpenHead | ClosedHead)[] {
    const sql = 'SELECT * FROM receipt_heads WHERE tenant = ? AND node > ? ORDER BY node LIMIT ?';
    return this.#database.all<HeadRow>(sql, tenant, after, limit).map(headOf);
  }

  openHeads(node: string, limit: number): OpenHead[] {
    const sql = `SELECT * FROM receipt_heads WHERE node = ? AND body IS NULL
      ORDER BY tenant LIMIT ?`;
    return this.#database
      .all<HeadRow>(sql, node, limit)
      .map((row) => ({ tenant: row.tenant, node: row.node, lastSeq: row.last_seq }));
  }

  closeHeads(heads: readonly ClosedHead[]): void {
    this.#database.transaction(() => {
      for (const { tenant, node, lastSeq, body } of heads) {
        this.#database.run(
          `INSERT INTO receipt_heads (tenant, node, last_seq, body) VALUES (?, ?, ?, ?)
           ON CONFLICT (tenant, node) DO UPDATE SET last_seq = excluded.last_seq,
             body = excluded.body WHERE receipt_heads.body IS NULL`,
          tenant,
          node,
          lastSeq,
          body,
        );
      }
    });
  }

  /** False for one that is there already. */
  #add({ tenant, receiptId, keyId, providerId, model, status, body }: ReceiptRow): boolean {
    const added = this.#database.run(
      `INSERT INTO receipts (tenant, id, key, provider, model, status, body)
       VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
      tenant,
      receiptId,
      keyId,
      providerId,
      model,
      status,
      body,
    );
    return added > 0;
  }

  #raiseHead({ tenant, node, seq }: ReceiptRow): void {
    this.#database.run(
      `INSERT INTO receipt_heads (tenant, node, last_seq) VALUES (?, ?, ?)
       ON CONFLICT (tenant, node) DO UPDATE SET last_seq = max(last_seq, excluded.last_seq)
         WHERE receipt_heads.body IS NULL`,
      tenant,
      node,
      seq,
    );
  }
}

export function headOf({ tenant, node, last_seq: lastSeq, body }: HeadRow): OpenHead | ClosedHead {
  return { tenant, node, lastSeq, ...(body === null ? {} : { body }) };
}
