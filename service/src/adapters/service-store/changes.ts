import { SERVICE_TENANT } from '../../core/tenants.ts';
import type {
  ChangedFact,
  ChangeList,
  ServiceChange,
  TenantChange,
} from '../../ports/control-store.ts';
import type { Database } from '../../../../src/adapters/store/database.ts';

/** The list of what was changed. Every node reads it and forgets what it names. */

/** A node reads once a second; one that missed more forgets everything. */
export const CHANGES_READ_MAX = 1000;
/** A node that was away for so many changes has forgotten its facts long before. */
export const CHANGES_KEPT_MAX = 10_000;

/** Undefined for a change that no node keeps in memory. */
export function factOf(
  tenant: string,
  change: TenantChange | ServiceChange,
): ChangedFact | undefined {
  switch (change.what) {
    case 'key.add':
      return { tenant, kind: 'key', id: change.key.keyId };
    case 'key.rotate':
    case 'key.revoke':
      return { tenant, kind: 'key', id: change.keyId };
    case 'provider.put':
      return { tenant, kind: 'provider', id: change.provider.providerId };
    case 'provider.remove':
      return { tenant, kind: 'provider', id: change.providerId };
    case 'settings.put':
      return { tenant, kind: 'settings', id: tenant };
    case 'tenant.add':
      return { tenant: change.tenant.tenantId, kind: 'tenant', id: change.tenant.tenantId };
    case 'tenant.set':
      return { tenant: change.tenantId, kind: 'tenant', id: change.tenantId };
    case 'plan.put':
      return { tenant, kind: 'plan', id: change.plan.name };
    case 'admin.add':
      return {
        tenant: change.admin.tenant ?? SERVICE_TENANT,
        kind: 'admin',
        id: change.admin.adminId,
      };
    case 'admin.revoke':
      return { tenant: change.tenant ?? SERVICE_TENANT, kind: 'admin', id: change.adminId };
    case 'signing.add':
      return { tenant, kind: 'signing', id: '' };
    // The secrets of the vault stay what they are under another master key.
    case 'event':
    case 'master.add':
    case 'master.retire':
    case 'secrets.rewrap':
      return undefined;
  }
}

export interface ChangeRow {
  readonly last: number;
  /** Null where nothing was changed. */
  readonly number: number | null;
  readonly tenant: string | null;
  readonly kind: string | null;
  readonly id: string | null;
}

/** Each row with the last number of all; at least one row. */
export function changeListOf(after: number | undefined, rows: readonly ChangeRow[]): ChangeList {
  const last = rows[0]?.last ?? 0;
  if (after === undefined) return { last, changes: [] };
  const changes = rows.flatMap(({ tenant, kind, id }) =>
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Only `apply` writes them.
    tenant === null ? [] : [{ tenant, kind, id } as ChangedFact],
  );
  // Some are missing: they were dropped, or the database is that of an earlier day.
  return { last, changes: last - after === changes.length ? changes : undefined };
}

export class ChangeTable {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Call it within the transaction of the change. */
  add({ tenant, kind, id }: ChangedFact): void {
    const sql = 'INSERT INTO changes (tenant, kind, id) VALUES (?, ?, ?)';
    this.#database.run(sql, tenant, kind, id);
    const drop = 'DELETE FROM changes WHERE number <= (SELECT max(number) FROM changes) - ?';
    this.#database.run(drop, CHANGES_KEPT_MAX);
  }

  since(after: number | undefined): ChangeList {
    const rows = this.#database.all<ChangeRow>(
      `SELECT l.last, c.number, c.tenant, c.kind, c.id
       FROM (SELECT coalesce(max(number), 0) AS last FROM changes) l
       LEFT JOIN changes c ON c.number > ? ORDER BY c.number LIMIT ?`,
      after ?? Number.MAX_SAFE_INTEGER,
      CHANGES_READ_MAX,
    );
    return changeListOf(after, rows);
  }
}
