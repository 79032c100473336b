import {
  type KeyScope,
  type RetiredHash,
  rotateKey,
  type Rotation,
  type StoredKey,
} from '../../../../src/core/memory-api/keys.ts';
import type { KeyPage } from '../../ports/control-store.ts';
import type { Database } from '../../../../src/adapters/store/database.ts';
import type { KeyChange } from './protocol.ts';

/** Keys as rows: their hashes, never the keys. */

export interface KeyRow {
  readonly tenant: string;
  readonly id: string;
  readonly name: string;
  readonly hash: string;
  readonly retired: string | null;
  readonly scopes: string;
  readonly spaces: string | null;
  readonly allowed_models: string | null;
  readonly tokens_per_day: number | null;
  readonly tokens_per_month: number | null;
  readonly created_at: number;
  readonly expires_at: number | null;
  readonly revoked_at: number | null;
  readonly used_at: number | null;
  readonly rotated_at: number | null;
}

export class KeyTable {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** The one look-up that no tenant binds: it is the key that says which tenant calls. */
  find(keyId: string): StoredKey | undefined {
    const row = this.#database.get<KeyRow>('SELECT * FROM service_keys WHERE id = ?', keyId);
    return row === undefined ? undefined : keyOf(row);
  }

  get(tenant: string, keyId: string): StoredKey | undefined {
    const sql = 'SELECT * FROM service_keys WHERE tenant = ? AND id = ?';
    const row = this.#database.get<KeyRow>(sql, tenant, keyId);
    return row === undefined ? undefined : keyOf(row);
  }

  list(tenant: string, { limit, after = '', isLive = false }: KeyPage): StoredKey[] {
    return this.#database
      .all<KeyRow>(
        `SELECT * FROM service_keys WHERE tenant = ?1 AND (created_at, id) > (
           coalesce((SELECT created_at FROM service_keys WHERE tenant = ?1 AND id = ?2), -1), ?2)
           AND (NOT ?4 OR revoked_at IS NULL)
         ORDER BY created_at, id LIMIT ?3`,
        tenant,
        after,
        limit,
        isLive ? 1 : 0,
      )
      .map(keyOf);
  }

  /** Keys that count for the plan. */
  count(tenant: string): number {
    const sql = 'SELECT count(*) AS keys FROM service_keys WHERE tenant = ? AND revoked_at IS NULL';
    return this.#database.get<{ keys: number }>(sql, tenant)?.keys ?? 0;
  }

  /** False when there is one of this id. */
  add(key: StoredKey): boolean {
    const added = this.#database.run(
      `INSERT INTO service_keys (tenant, id, name, hash, scopes, spaces, allowed_models,
         tokens_per_day, tokens_per_month, created_at, expires_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
      ...valuesOfKey(key),
    );
    return added > 0;
  }

  /** False when there is no such key, or it is revoked. */
  rotate(tenant: string, keyId: string, rotation: Rotation): boolean {
    const key = this.get(tenant, keyId);
    if (key === undefined || key.revokedAt !== undefined) return false;
    const { hash, retired } = rotateKey(key, rotation);
    const sql = `UPDATE service_keys SET hash = ?, retired = ?, rotated_at = ?
      WHERE tenant = ? AND id = ?`;
    this.#database.run(sql, hash, JSON.stringify(retired), rotation.at, tenant, keyId);
    return true;
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

/** The values of a new row in the order of its columns. */
export function valuesOfKey(key: StoredKey): (string | number | null)[] {
  return [
    key.tenant,
    key.keyId,
    key.name,
    key.hash,
    JSON.stringify(key.scopes),
    key.spaces === undefined ? null : JSON.stringify(key.spaces),
    key.allowedModels === undefined ? null : JSON.stringify(key.allowedModels),
    key.tokensPerDay ?? null,
    key.tokensPerMonth ?? null,
    key.createdAt,
    key.expiresAt ?? null,
  ];
}

// Only `valuesOfKey` and `rotate` write these texts.
/* oxlint-disable typescript/no-unsafe-type-assertion */
export function keyOf(row: KeyRow): StoredKey {
  return {
    tenant: row.tenant,
    keyId: row.id,
    name: row.name,
    hash: row.hash,
    ...(row.retired === null ? {} : { retired: JSON.parse(row.retired) as RetiredHash[] }),
    scopes: JSON.parse(row.scopes) as KeyScope[],
    ...(row.spaces === null ? {} : { spaces: JSON.parse(row.spaces) as string[] }),
    ...(row.allowed_models === null
      ? {}
      : { allowedModels: JSON.parse(row.allowed_models) as string[] }),
    ...(row.tokens_per_day === null ? {} : { tokensPerDay: row.tokens_per_day }),
    ...(row.tokens_per_month === null ? {} : { tokensPerMonth: row.tokens_per_month }),
    createdAt: row.created_at,
    ...(row.expires_at === null ? {} : { expiresAt: row.expires_at }),
    ...(row.revoked_at === null ? {} : { revokedAt: row.revoked_at }),
    ...(row.used_at === null ? {} : { usedAt: row.used_at }),
    ...(row.rotated_at === null ? {} : { rotatedAt: row.rotated_at }),
  };
}
