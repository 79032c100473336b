import { type AuditNote, chainEvent } from '../../core/audit.ts';
import type { StoredSettings } from '../../core/account-settings.ts';
import { rotateKey } from '../../../../src/core/memory-api/keys.ts';
import type { Plan } from '../../core/plans.ts';
import { SERVICE_TENANT, type Tenant } from '../../core/tenants.ts';
import type {
  ChangedFact,
  ChangeOutcome,
  ServiceChange,
  TenantChange,
  TenantFacts,
} from '../../ports/control-store.ts';
import { settingsOf, type SettingsRow } from '../service-store/account-settings.ts';
import { CHANGES_KEPT_MAX, factOf } from '../service-store/changes.ts';
import { tenantFactsOf, type TenantFactsRow } from '../service-store/control.ts';
import { keyOf, valuesOfKey } from '../service-store/keys.ts';
import type { Rows } from './rows.ts';
import { type KeyRow, keyRowOf } from './key-rows.ts';
import { putProvider, removeProvider } from './providers.ts';
import { CONTROL } from './statements/control.ts';
import { changeVault } from './vault.ts';

/**
 * Every change of who may do what, with its audit event in the same transaction. The head of a
 * tenant's chain of events is locked first, so changes of one tenant come one after the other.
 */

export function changeService(
  rows: Rows,
  change: ServiceChange,
  note: AuditNote,
): Promise<ChangeOutcome> {
  const asked = { tenant: SERVICE_TENANT, change, note };
  return withEvent(rows, asked, () => applyToService(rows, change));
}

export function changeTenant(
  rows: Rows,
  tenant: string,
  { change, note }: { readonly change: TenantChange; readonly note: AuditNote },
): Promise<ChangeOutcome> {
  return withEvent(rows, { tenant, change, note }, () => applyToTenant(rows, tenant, change));
}

export async function findTenant(rows: Rows, tenantId: string): Promise<TenantFacts | undefined> {
  const row = await rows.get<Omit<TenantFactsRow, 'id'> & { tenant_id: string }>(
    CONTROL.findTenant,
    tenantId,
  );
  return row === undefined ? undefined : tenantFactsOf({ ...row, id: row.tenant_id });
}

/** Call it within the transaction of what the event tells. */
export async function addEvent(rows: Rows, tenant: string, note: AuditNote): Promise<void> {
  const head = await rows.get<AuditHead>(CONTROL.lockAudit, tenant);
  await chain(rows, tenant, { note, head });
}

async function withEvent(
  rows: Rows,
  { tenant, change, note }: AskedChange,
  work: () => Promise<ChangeOutcome>,
): Promise<ChangeOutcome> {
  const head = await rows.get<AuditHead>(CONTROL.lockAudit, tenant);
  const outcome = await work();
  if (outcome !== 'done') return outcome;
  await chain(rows, tenant, { note, head });
  const fact = factOf(tenant, change);
  if (fact !== undefined) await addChange(rows, fact);
  return outcome;
}

interface AskedChange {
  readonly tenant: string;
  readonly change: TenantChange | ServiceChange;
  readonly note: AuditNote;
}

/** Last in its transaction: until the commit every other change waits for the count. */
export async function addChange(rows: Rows, { tenant, kind, id }: ChangedFact): Promise<void> {
  const { number = 0 } = (await rows.get<{ number: number }>(CONTROL.nextChange)) ?? {};
  await rows.run(CONTROL.addChange, tenant, number, kind, id);
  await rows.run(CONTROL.dropChanges, number - CHANGES_KEPT_MAX);
}

interface AuditHead {
  readonly number: number;
  readonly hash: string;
}

async function chain(
  rows: Rows,
  tenant: string,
  { note, head }: { readonly note: AuditNote; readonly head: AuditHead | undefined },
): Promise<void> {
  const event = chainEvent(tenant, note, head);
  await rows.run(CONTROL.addAudit, tenant, event.number, event.at, JSON.stringify(event));
  await rows.run(CONTROL.moveAudit, tenant, event.number, event.hash);
}

async function applyToTenant(
  rows: Rows,
  tenant: string,
  change: TenantChange,
): Promise<ChangeOutcome> {
  switch (change.what) {
    case 'key.add':
      return addKey(rows, tenant, change.key);
    case 'key.rotate':
      return rotate(rows, tenant, change);
    case 'key.revoke': {
      const { keyId, at } = change;
      return doneIf(await rows.run(CONTROL.revokeKey, tenant, keyId, at));
    }
    case 'provider.put': {
      const { providers } = (await findTenant(rows, tenant))?.limits ?? {};
      if (providers === undefined) return 'missing';
      return putProvider(rows, { tenant, limit: providers }, change);
    }
    case 'event':
      return 'done';
    case 'provider.remove':
      return removeProvider(rows, tenant, change.providerId);
    case 'settings.put':
      return putSettings(rows, tenant, change);
  }
}

export async function getSettings(rows: Rows, tenant: string): Promise<StoredSettings> {
  return settingsOf(await rows.get<SettingsRow>(CONTROL.getSettings, tenant));
}

async function putSettings(
  rows: Rows,
  tenant: string,
  { settings, ifVersion }: Extract<TenantChange, { what: 'settings.put' }>,
): Promise<ChangeOutcome> {
  if ((await findTenant(rows, tenant)) === undefined) return 'missing';
  if ((await getSettings(rows, tenant)).version !== ifVersion) return 'changed';
  await rows.run(CONTROL.putSettings, tenant, ifVersion + 1, JSON.stringify(settings));
  return 'done';
}

async function addKey(
  rows: Rows,
  tenant: string,
  key: Extract<TenantChange, { what: 'key.add' }>['key'],
): Promise<ChangeOutcome> {
  const { keys } = (await findTenant(rows, tenant))?.limits ?? {};
  if (keys === undefined) return 'missing';
  const held = await rows.get<{ keys: number }>(CONTROL.countKeys, tenant);
  if (keys !== null && (held?.keys ?? 0) >= keys) return 'limit';
  // An id has 60 random bits: two at the same moment do not share one.
  if ((await rows.get(CONTROL.isKeyId, key.keyId)) !== undefined) return 'exists';
  await rows.run(CONTROL.addKey, ...valuesOfKey({ ...key, tenant }));
  return 'done';
}

async function rotate(
  rows: Rows,
  tenant: string,
  { keyId, rotation }: Extract<TenantChange, { what: 'key.rotate' }>,
): Promise<ChangeOutcome> {
  const row = await rows.get<KeyRow>(CONTROL.getKey, tenant, keyId);
  if (row === undefined || row.revoked_at !== null) return 'missing';
  const { hash, retired } = rotateKey(keyOf(keyRowOf(row)), rotation);
  const hashes = JSON.stringify(retired);
  return doneIf(await rows.run(CONTROL.rotateKey, tenant, keyId, hash, hashes, rotation.at));
}

async function applyToService(rows: Rows, change: ServiceChange): Promise<ChangeOutcome> {
  switch (change.what) {
    case 'tenant.add':
      return addTenant(rows, change.tenant);
    case 'tenant.set':
      return setTenant(rows, change);
    case 'plan.put':
      return putPlan(rows, change.plan, change.isNew);
    case 'admin.add':
      return addAdmin(rows, change);
    case 'admin.revoke': {
      const { adminId, at, tenant = null } = change;
      return doneIf(await rows.run(CONTROL.revokeAdmin, adminId, at, tenant));
    }
    case 'master.add':
    case 'master.retire':
    case 'secrets.rewrap':
    case 'signing.add':
      return changeVault(rows, change);
  }
}

async function addAdmin(
  rows: Rows,
  { admin }: Extract<ServiceChange, { what: 'admin.add' }>,
): Promise<ChangeOutcome> {
  const { tenant, adminId, name, role, hash, createdAt, expiresAt = null } = admin;
  if (tenant !== undefined && (await findTenant(rows, tenant)) === undefined) return 'missing';
  if ((await rows.get(CONTROL.findAdmin, adminId)) !== undefined) return 'exists';
  const values = [tenant ?? '', adminId, name, role, hash, createdAt, expiresAt];
  await rows.run(CONTROL.addAdmin, ...values);
  return 'done';
}

async function addTenant(
  rows: Rows,
  { tenantId, name, plan, status, createdAt }: Tenant,
): Promise<ChangeOutcome> {
  if (!(await hasPlan(rows, plan))) return 'missing';
  const added = await rows.run(CONTROL.addTenant, tenantId, name, plan, status, createdAt);
  return added > 0 ? 'done' : 'exists';
}

async function setTenant(
  rows: Rows,
  change: Extract<ServiceChange, { what: 'tenant.set' }>,
): Promise<ChangeOutcome> {
  const { tenantId, name = null, plan = null, status = null } = change;
  if (plan !== null && !(await hasPlan(rows, plan))) return 'missing';
  return doneIf(await rows.run(CONTROL.setTenant, tenantId, name, plan, status));
}

async function putPlan(
  rows: Rows,
  { name, limits, createdAt }: Plan,
  isNew: boolean,
): Promise<ChangeOutcome> {
  if ((await hasPlan(rows, name)) === isNew) return isNew ? 'exists' : 'missing';
  await rows.run(CONTROL.putPlan, name, JSON.stringify(limits), createdAt);
  return 'done';
}

async function hasPlan(rows: Rows, name: string): Promise<boolean> {
  return (await rows.get(CONTROL.hasPlan, name)) !== undefined;
}

function doneIf(changed: number): ChangeOutcome {
  return changed > 0 ? 'done' : 'missing';
}
