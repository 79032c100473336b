import { quotedIn } from '../../../../src/adapters/journals/ledger-row.ts';
import type { LedgerRow } from '../../../../src/ports/ledger.ts';
import type { Database } from '../../../../src/adapters/store/database.ts';

/** The ledger of every tenant as rows. No row of one tenant is read or changed for another. */

/** A conversation that is idle for longer starts with a cold provider cache anyway. */
const AGE_MAX_MS = 90 * 24 * 3_600_000;
/** Pruning on every write would cost more than the write. */
const WRITES_PER_PRUNE = 256;
/** The row that says when a tenant last forgot something. No key of an entry is without a colon. */
const FORGOTTEN_KEY = 'forgotten';

export class ServiceLedgerTable {
  readonly #database: Database;
  #writes = 0;

  constructor(database: Database) {
    this.#database = database;
  }

  find(tenant: string, keys: readonly string[]): LedgerRow[] {
    return this.#database.all<LedgerRow>(
      `SELECT key, block, form, at FROM tenant_ledger
       WHERE tenant_id = ? AND key IN (SELECT value FROM json_each(?))`,
      tenant,
      JSON.stringify(keys),
    );
  }

  /**
   * A later row for the same key wins; a key that is written once keeps its first row. A block that
   * was placed before a purge may arrive after it: it stays out.
   */
  record(tenant: string, rows: readonly LedgerRow[]): void {
    this.#database.unsyncedTransaction(() => {
      const forgottenAt = this.find(tenant, [FORGOTTEN_KEY])[0]?.at ?? -Infinity;
      for (const row of rows) {
        const isLate = row.at <= forgottenAt && quotedIn(row).length > 0;
        this.#put(tenant, isLate ? { ...row, block: '' } : row);
      }
      this.#writes += 1;
      if (this.#writes % WRITES_PER_PRUNE !== 1) return;
      const newest = rows.reduce((last, { at }) => Math.max(last, at), 0);
      this.#database.run('DELETE FROM tenant_ledger WHERE at < ?', newest - AGE_MAX_MS);
    });
  }

  /**
   * Empties the blocks of a tenant that quote a record of this space, in the transaction of a purge. A purged
   * text must not be said again, though the provider's cache breaks there once. An entry without a block
   * keeps its prompt from being recalled for again.
   */
  forgetBlocks(tenant: string, space: string, at: number): void {
    const row = { key: FORGOTTEN_KEY, block: '', form: 'text', at } as const;
    this.#put(tenant, row);
    const sql = "UPDATE tenant_ledger SET block = '', at = ? WHERE tenant_id = ? AND key = ?";
    for (const { key, block } of this.#database.all<Pick<LedgerRow, 'key' | 'block'>>(
      "SELECT key, block FROM tenant_ledger WHERE tenant_id = ? AND block <> ''",
      tenant,
    )) {
      if (quotedIn({ block }).some((one) => one.space === space))
        this.#database.run(sql, at, tenant, key);
    }
  }

  #put(tenant: string, { key, block, form, at, isOnce }: LedgerRow): void {
    const conflict =
      isOnce === true
        ? 'DO NOTHING'
        : `DO UPDATE SET block = excluded.block, form = excluded.form,
         at = excluded.at WHERE excluded.at >= tenant_ledger.at`;
    this.#database.run(
      `INSERT INTO tenant_ledger (tenant_id, key, block, form, at) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT (tenant_id, key) ${conflict}`,
      tenant,
      key,
      block,
      form,
      at,
    );
  }
}
