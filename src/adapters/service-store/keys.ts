import type { KeyScope, StoredKey } from '../../core/service/keys.ts';
import type { Database } from '../store/database.ts';
import type { KeyChange } from './protocol.ts';

/** Keys as rows: their hashes, never the keys. */

interface KeyRow {
  readonly tenant: string;
  readonly id: string;
  readonly name: string;
  readonly hash: string;
  readonly scopes: string;
  readonly spaces: string | null;
  readonly created_at: number;
  readonly expires_at: number | null;
  readonly revoked_at: number | null;
  readonly used_at: number | null;
}

export class KeyTable {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  find(keyId: string): StoredKey | undefined {
    const row = this.#database.get<KeyRow>('SELECT * FROM service_keys WHERE id = ?', keyId);
    return row === undefined ? undefined : keyOf(row);
  }

  list(tenant: string): StoredKey[] {
    const sql = 'SELECT * FROM service_keys WHERE tenant = ? ORDER BY created_at, id';
    return this.#database.all<KeyRow>(sql, tenant).map(keyOf);
  }

  add(key: StoredKey): void {
    this.#database.run(
      `INSERT INTO service_keys (tenant, id, name, hash, scopes, spaces, created_at, expires_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
      key.tenant,
      key.keyId,
      key.name,
      key.hash,
      JSON.stringify(key.scopes),
      key.spaces === undefined ? null : JSON.stringify(key.spaces),
      key.createdAt,
      key.expiresAt ?? null,
    );
  }

  revoke({ tenant, keyId, at }: KeyChange): boolean {
    const sql = `UPDATE service_keys SET revoked_at = ?
      WHERE tenant = ? AND id = ? AND revoked_at IS NULL`;
    return this.#database.run(sql, at, tenant, keyId) > 0;
  }

  noteUse({ tenant, keyId, at }: KeyChange): void {
    this.#database.unsyncedTransaction(() => {
      const sql = 'UPDATE service_keys SET used_at = ? WHERE tenant = ? AND id = ?';
      this.#database.run(sql, at, tenant, keyId);
    });
  }
}

// Only add() writes these texts.
/* oxlint-disable typescript/no-unsafe-type-assertion */
function keyOf(row: KeyRow): StoredKey {
  return {
    tenant: row.tenant,
    keyId: row.id,
    name: row.name,
    hash: row.hash,
    scopes: JSON.parse(row.scopes) as KeyScope[],
    ...(row.spaces === null ? {} : { spaces: JSON.parse(row.spaces) as string[] }),
    createdAt: row.created_at,
    ...(row.expires_at === null ? {} : { expiresAt: row.expires_at }),
    ...(row.revoked_at === null ? {} : { revokedAt: row.revoked_at }),
    ...(row.used_at === null ? {} : { usedAt: row.used_at }),
  };
}
