import type { AdminRole, StoredAdmin } from '../../core/admins.ts';
import type { Page } from '../../ports/control-store.ts';
import type { Database } from '../../../../src/adapters/store/database.ts';

/** Admins as rows: hashes of their tokens, never the tokens. */

export interface AdminRow {
  readonly id: string;
  readonly tenant: string | null;
  readonly name: string;
  readonly role: AdminRole;
  readonly hash: string;
  readonly created_at: number;
  readonly expires_at: number | null;
  readonly revoked_at: number | null;
  readonly used_at: number | null;
}

export class AdminTable {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  find(adminId: string): StoredAdmin | undefined {
    const row = this.#database.get<AdminRow>('SELECT * FROM admins WHERE id = ?', adminId);
    return row === undefined ? undefined : adminOf(row);
  }

  list(tenant: string | undefined, { limit, after = '' }: Page): StoredAdmin[] {
    return this.#database
      .all<AdminRow>(
        `SELECT * FROM admins WHERE (?1 IS NULL OR tenant = ?1) AND (created_at, id) > (
           coalesce((SELECT created_at FROM admins WHERE id = ?2), -1), ?2)
         ORDER BY created_at, id LIMIT ?3`,
        tenant ?? null,
        after,
        limit,
      )
      .map(adminOf);
  }

  /** False when there is one of this id. */
  add(admin: StoredAdmin): boolean {
    const added = this.#database.run(
      `INSERT INTO admins (id, tenant, name, role, hash, created_at, expires_at)
       VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
      admin.adminId,
      admin.tenant ?? null,
      admin.name,
      admin.role,
      admin.hash,
      admin.createdAt,
      admin.expiresAt ?? null,
    );
    return added > 0;
  }

  revoke({
    adminId,
    tenant,
    at,
  }: {
    readonly adminId: string;
    readonly tenant: string | undefined;
    readonly at: number;
  }): boolean {
    const changed = this.#database.run(
      `UPDATE admins SET revoked_at = ?1
       WHERE id = ?2 AND revoked_at IS NULL AND (?3 IS NULL OR tenant = ?3)`,
      at,
      adminId,
      tenant ?? null,
    );
    return changed > 0;
  }

  noteUse(adminId: string, at: number): void {
    this.#database.unsyncedTransaction(() => {
      this.#database.run('UPDATE admins SET used_at = ? WHERE id = ?', at, adminId);
    });
  }
}

export function adminOf(row: AdminRow): StoredAdmin {
  return {
    adminId: row.id,
    ...(row.tenant === null ? {} : { tenant: row.tenant }),
    name: row.name,
    role: row.role,
    hash: row.hash,
    createdAt: row.created_at,
    ...(row.expires_at === null ? {} : { expiresAt: row.expires_at }),
    ...(row.revoked_at === null ? {} : { revokedAt: row.revoked_at }),
    ...(row.used_at === null ? {} : { usedAt: row.used_at }),
  };
}
