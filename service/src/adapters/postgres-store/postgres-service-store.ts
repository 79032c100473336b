import { isTenantId } from '../../core/tenants.ts';
import type { TenantFacts } from '../../ports/control-store.ts';
import type { ServiceStore, ServiceStoreHealth, TenantStore } from '../../ports/service-store.ts';
import { adminOf, type AdminRow } from '../service-store/admins.ts';
import { changeListOf, type ChangeRow, CHANGES_READ_MAX } from '../service-store/changes.ts';
import {
  planOf,
  type PlanRow,
  tenantFactsOf,
  tenantOf,
  type TenantRow,
} from '../service-store/control.ts';
import { keyOf } from '../service-store/keys.ts';
import {
  secretOf,
  type SecretRow,
  signingKeyOf,
  type SigningRow,
} from '../service-store/vault-table.ts';
import { type ConnectionOptions, Connections } from './connections.ts';
import { keepDays } from './days.ts';
import type { OpenDatabase } from './open-database.ts';
import { changeService, findTenant } from './control.ts';
import { type KeyRow, keyRowOf } from './key-rows.ts';
import { migrate, readSchema } from './migrations.ts';
import { settleOrigin } from './origin.ts';
import { PendingPassages } from './pending-passages.ts';
import { receiptCalls } from './receipts.ts';
import { CONTROL } from './statements/control.ts';
import { MEMORY } from './statements/memory.ts';
import { Statistics } from './statistics.ts';
import { TermKeys } from './term-keys.ts';
import { postgresTenantStore } from './tenant-store.ts';
import { listMasterKeys } from './vault.ts';
import { MemoryError } from '../../../../src/core/errors.ts';

/** The service's store on PostgreSQL: several nodes may have it open at once. */

export interface PostgresStoreOptions extends ConnectionOptions {
  /** Applies the migrations that are missing; else a database that lacks some is refused. */
  readonly migrates?: boolean;
  /** Canonical bytes that one space may hold. */
  readonly spaceBytesMax?: number;
  /** The operator says that only a standby with every acknowledged commit is promoted. */
  readonly trustsFailover?: boolean;
  readonly report?: (line: string) => void;
  /** How often tables are looked for that outgrew the planner's statistics. */
  readonly statisticsMs?: number;
}

const SPACE_BYTES_MAX = 16 * 1024 ** 3;

/** Returns at once: calls wait until the database is found and its tables are as they must be. */
export function openPostgresStore(options: PostgresStoreOptions): ServiceStore {
  const { spaceBytesMax = SPACE_BYTES_MAX, trustsFailover = false } = options;
  const { report = () => undefined } = options;
  const connections = new Connections(options, {
    settle: (transactions, origin) =>
      settleOrigin(transactions, origin, { trustsFailover, report }),
  });
  let opened: Promise<OpenDatabase> | undefined;
  const database = (): Promise<OpenDatabase> => {
    const asked = (opened ??= open(connections, options.migrates === true));
    // A database that is away now may be there at the next call.
    asked.catch(() => {
      if (opened === asked) opened = undefined;
    });
    return asked;
  };
  const tenants = new Map<string, TenantStore>();
  const statistics = new Statistics(
    async () => (await database()).connections,
    options.statisticsMs,
  );
  return {
    isShared: true,
    of(tenant) {
      if (!isTenantId(tenant)) throw new TypeError('This is not the id of a tenant.');
      const known = tenants.get(tenant);
      if (known !== undefined) return known;
      const made = postgresTenantStore({ tenant, database, spaceBytesMax });
      tenants.set(tenant, made);
      return made;
    },
    ...controlCalls(database),
    ...changeCalls(database),
    ...receiptCalls(database),
    async keepDays(kept) {
      await keepDays((await database()).connections, kept);
    },
    async unfinishedPurges() {
      return (await database()).connections.read(async (rows) =>
        (await rows.all<{ tenant_id: string; id: string }>(MEMORY.unfinishedPurges)).map(
          ({ tenant_id: tenant, id: purgeId }) => ({ tenant, purgeId }),
        ),
      );
    },
    async health() {
      return (await database()).connections.read(async (rows) => {
        const row = await rows.get<HealthRow>(MEMORY.health);
        return healthOf(row);
      });
    },
    async close() {
      statistics.stop();
      await connections.close();
    },
  };
}

async function open(connections: Connections, migrates: boolean): Promise<OpenDatabase> {
  let state = await readSchema(connections);
  if (state.missing.length > 0 && migrates) {
    await migrate(connections, Date.now());
    // There is a table now that notes which database this is.
    await connections.lookAgain();
    state = await readSchema(connections);
  }
  if (state.missing.length > 0 || state.secret === undefined) {
    const message = 'The database lacks tables of this version: run svc-service migrate.';
    throw new MemoryError('unavailable', message);
  }
  if (state.isMoving === true) {
    const message = 'A move to this database is incomplete: run svc-service move again.';
    throw new MemoryError('unavailable', message);
  }
  return { connections, keys: new TermKeys(state.secret), pending: new PendingPassages() };
}

type Database = () => Promise<OpenDatabase>;

function controlCalls(database: Database) {
  return {
    async findCaller(keyId, signal) {
      const { connections } = await database();
      return connections.read(async (rows) => {
        // An id must belong to one key: if two tenants had the same id, neither key is accepted.
        const [row, other] = await rows.all<CallerRow>(CONTROL.findCaller, keyId);
        if (row === undefined || other !== undefined) return undefined;
        const key = keyOf(keyRowOf(row));
        const { tenant_id: id, tenant_name: name, tenant_created_at: createdAt } = row;
        return { key, tenant: tenantFactsOf({ ...row, id, name, created_at: createdAt }) };
      }, signal);
    },
    async listTenants({ limit, after = '' }) {
      const { connections } = await database();
      return connections.read(async (rows) => {
        const found = await rows.all<OwnTenantRow>(CONTROL.listTenants, after, limit);
        return found.map(({ tenant_id: id, ...row }) => tenantOf({ ...row, id }));
      });
    },
    async findTenant(tenantId): Promise<TenantFacts | undefined> {
      return (await database()).connections.read((rows) => findTenant(rows, tenantId));
    },
    async listPlans({ limit, after = '' }) {
      const { connections } = await database();
      return connections.read(async (rows) =>
        (await rows.all<PlanRow>(CONTROL.listPlans, after, limit)).map(planOf),
      );
    },
    async findAdmin(adminId, signal) {
      const { connections } = await database();
      return connections.read(async (rows) => {
        const [row, other] = await rows.all<OwnAdminRow>(CONTROL.findAdmin, adminId);
        return row === undefined || other !== undefined ? undefined : adminOf(adminRowOf(row));
      }, signal);
    },
    async listAdmins(tenant, { limit, after = '' }) {
      const { connections } = await database();
      return connections.read(async (rows) => {
        const values = [tenant ?? null, after, limit];
        const found = await rows.all<OwnAdminRow>(CONTROL.listAdmins, ...values);
        return found.map((row) => adminOf(adminRowOf(row)));
      });
    },
    async noteAdminUse(adminId, at) {
      const { connections } = await database();
      await connections.write((rows) => rows.run(CONTROL.noteAdminUse, adminId, at));
    },
    async listMasterKeys() {
      return (await database()).connections.read(listMasterKeys);
    },
    async listSecrets({ limit, notUnder, after }) {
      const { connections } = await database();
      return connections.read(async (rows) => {
        const values = [notUnder ?? null, after?.tenant ?? '', after?.secretId ?? '', limit];
        const found = await rows.all<OwnSecretRow>(CONTROL.listSecrets, ...values);
        return found.map(({ tenant_id: tenant, ...row }) => secretOf({ ...row, tenant }));
      });
    },
    async listSigningKeys() {
      const { connections } = await database();
      return connections.read(async (rows) =>
        (await rows.all<SigningRow>(CONTROL.signingKeys)).map(signingKeyOf),
      );
    },
  } satisfies Partial<ServiceStore>;
}

function changeCalls(database: Database) {
  return {
    async changesSince(after, signal) {
      const { connections } = await database();
      const values = [after ?? Number.MAX_SAFE_INTEGER, CHANGES_READ_MAX];
      const asked = { statement: CONTROL.listChanges, values };
      return changeListOf(after, await connections.look<ChangeRow>(asked, signal));
    },
    async apply(change, note) {
      const { connections } = await database();
      return connections.writeOnce((rows) => changeService(rows, change, note));
    },
  } satisfies Partial<ServiceStore>;
}

type OwnTenantRow = Omit<TenantRow, 'id'> & { readonly tenant_id: string };
type OwnAdminRow = Omit<AdminRow, 'tenant'> & { readonly tenant_id: string };
type OwnSecretRow = Omit<SecretRow, 'tenant'> & { readonly tenant_id: string };
type CallerRow = KeyRow &
  Pick<TenantRow, 'plan' | 'status'> & {
    readonly tenant_name: string;
    readonly tenant_created_at: number;
    readonly limits: string;
  };

/** An operator belongs to no tenant, and a key has no empty part. */
function adminRowOf({ tenant_id: tenant, ...row }: OwnAdminRow): AdminRow {
  return { ...row, tenant: tenant === '' ? null : tenant };
}

interface HealthRow {
  readonly version: string;
  readonly spaces: number;
  readonly records: number;
  readonly keys: number;
  readonly tenants: number;
  readonly providers: number;
  readonly newest_at: number;
  readonly bytes: number;
}

function healthOf(row: HealthRow | undefined): ServiceStoreHealth {
  return {
    engine: `PostgreSQL ${row?.version ?? ''}`,
    spaces: row?.spaces ?? 0,
    records: row?.records ?? 0,
    keys: row?.keys ?? 0,
    tenants: row?.tenants ?? 0,
    providers: row?.providers ?? 0,
    newestAt: row?.newest_at ?? 0,
    bytes: row?.bytes ?? 0,
  };
}
