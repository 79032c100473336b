import type { AuditNote } from '../../core/audit.ts';
import type { Plan, PlanLimits } from '../../core/plans.ts';
import { SERVICE_TENANT, type Tenant, type TenantStatus } from '../../core/tenants.ts';
import type {
  ChangeOutcome,
  Page,
  ServiceChange,
  TenantChange,
  TenantFacts,
} from '../../ports/control-store.ts';
import type { Database } from '../../../../src/adapters/store/database.ts';
import { AdminTable } from './admins.ts';
import { ProviderTable } from './providers.ts';
import { SettingsTable } from './account-settings.ts';
import { AuditTable } from './audit-table.ts';
import { ChangeTable, factOf } from './changes.ts';
import { VaultTable } from './vault-table.ts';
import type { KeyTable } from './keys.ts';

/** Tenants, plans, admins and keys as rows, and every change of them with its audit event. */

export interface TenantRow {
  readonly id: string;
  readonly name: string;
  readonly plan: string;
  readonly status: TenantStatus;
  readonly created_at: number;
}

export interface PlanRow {
  readonly name: string;
  readonly limits: string;
  readonly created_at: number;
}

export class Control {
  readonly #database: Database;
  readonly #keys: KeyTable;
  readonly admins: AdminTable;
  readonly vault: VaultTable;
  readonly providers: ProviderTable;
  readonly settings: SettingsTable;
  readonly audit: AuditTable;
  readonly changes: ChangeTable;

  constructor(database: Database, keys: KeyTable) {
    this.#database = database;
    this.#keys = keys;
    this.admins = new AdminTable(database);
    this.vault = new VaultTable(database);
    this.providers = new ProviderTable(database, this.vault);
    this.settings = new SettingsTable(database);
    this.audit = new AuditTable(database);
    this.changes = new ChangeTable(database);
  }

  listTenants({ limit, after = '' }: Page): Tenant[] {
    const sql = 'SELECT * FROM tenants WHERE id > ? ORDER BY id LIMIT ?';
    return this.#database.all<TenantRow>(sql, after, limit).map(tenantOf);
  }

  findTenant(tenantId: string): TenantFacts | undefined {
    const row = this.#database.get<TenantFactsRow>(
      `SELECT t.*, p.limits FROM tenants t JOIN plans p ON p.name = t.plan WHERE t.id = ?`,
      tenantId,
    );
    return row === undefined ? undefined : tenantFactsOf(row);
  }

  listPlans({ limit, after = '' }: Page): Plan[] {
    const sql = 'SELECT * FROM plans WHERE name > ? ORDER BY name LIMIT ?';
    return this.#database.all<PlanRow>(sql, after, limit).map(planOf);
  }

  applyService(change: ServiceChange, note: AuditNote): ChangeOutcome {
    const asked = { tenant: SERVICE_TENANT, change, note };
    return this.#withEvent(asked, () => this.#service(change));
  }

  applyTenant(tenant: string, change: TenantChange, note: AuditNote): ChangeOutcome {
    return this.#withEvent({ tenant, change, note }, () => this.#tenant(tenant, change));
  }

  #withEvent({ tenant, change, note }: AskedChange, work: () => ChangeOutcome): ChangeOutcome {
    return this.#database.transaction(() => {
      const outcome = work();
      if (outcome !== 'done') return outcome;
      this.audit.chain(tenant, note);
      const fact = factOf(tenant, change);
      if (fact !== undefined) this.changes.add(fact);
      return outcome;
    });
  }

  #tenant(tenant: string, change: TenantChange): ChangeOutcome {
    switch (change.what) {
      case 'key.add': {
        const { keys } = this.findTenant(tenant)?.limits ?? {};
        if (keys === undefined) return 'missing';
        if (keys !== null && this.#keys.count(tenant) >= keys) return 'limit';
        return this.#keys.add({ ...change.key, tenant }) ? 'done' : 'exists';
      }
      case 'key.rotate':
        return this.#keys.rotate(tenant, change.keyId, change.rotation) ? 'done' : 'missing';
      case 'key.revoke': {
        const { keyId, at } = change;
        return this.#keys.revoke({ tenant, keyId, at }) ? 'done' : 'missing';
      }
      case 'provider.put': {
        const { providers } = this.findTenant(tenant)?.limits ?? {};
        if (providers === undefined) return 'missing';
        return this.providers.put(tenant, change, providers);
      }
      case 'event':
        return 'done';
      case 'provider.remove':
        return this.providers.remove(tenant, change.providerId) ? 'done' : 'missing';
      case 'settings.put':
        if (this.findTenant(tenant) === undefined) return 'missing';
        return this.settings.put(tenant, change.settings, change.ifVersion);
    }
  }

  #service(change: ServiceChange): ChangeOutcome {
    switch (change.what) {
      case 'tenant.add':
        return this.#addTenant(change.tenant);
      case 'tenant.set':
        return this.#setTenant(change);
      case 'plan.put':
        return this.#putPlan(change.plan, change.isNew);
      case 'admin.add': {
        const { tenant } = change.admin;
        if (tenant !== undefined && this.findTenant(tenant) === undefined) return 'missing';
        return this.admins.add(change.admin) ? 'done' : 'exists';
      }
      case 'admin.revoke':
        return this.admins.revoke(change) ? 'done' : 'missing';
      case 'master.add':
      case 'master.retire':
      case 'secrets.rewrap':
      case 'signing.add':
        return this.vault.apply(change);
    }
  }

  #addTenant({ tenantId, name, plan, status, createdAt }: Tenant): ChangeOutcome {
    if (!this.#hasPlan(plan)) return 'missing';
    const added = this.#database.run(
      `INSERT INTO tenants (id, name, plan, status, created_at) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT DO NOTHING`,
      tenantId,
      name,
      plan,
      status,
      createdAt,
    );
    return added > 0 ? 'done' : 'exists';
  }

  #setTenant(change: Extract<ServiceChange, { what: 'tenant.set' }>): ChangeOutcome {
    if (change.plan !== undefined && !this.#hasPlan(change.plan)) return 'missing';
    const changed = this.#database.run(
      `UPDATE tenants SET name = coalesce(?, name), plan = coalesce(?, plan),
         status = coalesce(?, status) WHERE id = ?`,
      change.name ?? null,
      change.plan ?? null,
      change.status ?? null,
      change.tenantId,
    );
    return changed > 0 ? 'done' : 'missing';
  }

  #putPlan({ name, limits, createdAt }: Plan, isNew: boolean): ChangeOutcome {
    if (this.#hasPlan(name) === isNew) return isNew ? 'exists' : 'missing';
    this.#database.run(
      `INSERT INTO plans (name, limits, created_at) VALUES (?, ?, ?)
       ON CONFLICT (name) DO UPDATE SET limits = excluded.limits`,
      name,
      JSON.stringify(limits),
      createdAt,
    );
    return 'done';
  }

  #hasPlan(name: string): boolean {
    return this.#database.get('SELECT 1 FROM plans WHERE name = ?', name) !== undefined;
  }
}

interface AskedChange {
  readonly tenant: string;
  readonly change: TenantChange | ServiceChange;
  readonly note: AuditNote;
}

export type TenantFactsRow = TenantRow & Pick<PlanRow, 'limits'>;

export function tenantFactsOf(row: TenantFactsRow): TenantFacts {
  return { ...tenantOf(row), limits: limitsOf(row) };
}

export function planOf(row: PlanRow): Plan {
  return { name: row.name, limits: limitsOf(row), createdAt: row.created_at };
}

export function tenantOf({ id, name, plan, status, created_at: createdAt }: TenantRow): Tenant {
  return { tenantId: id, name, plan, status, createdAt };
}

// Only this file writes these texts.
/* oxlint-disable typescript/no-unsafe-type-assertion */
function limitsOf({ limits }: Pick<PlanRow, 'limits'>): PlanLimits {
  return JSON.parse(limits) as PlanLimits;
}
