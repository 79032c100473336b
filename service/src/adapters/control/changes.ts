import { MemoryError } from '../../../../src/core/errors.ts';
import { type AuditNote, chainEvent } from '../../core/audit.ts';
import type { StoredSettings } from '../../core/account-settings.ts';
import { findClash, PROVIDERS_MAX, type TenantProvider } from '../../core/providers.ts';
import { SERVICE_TENANT, type Tenant } from '../../core/tenants.ts';
import type { Plan } from '../../core/plans.ts';
import { rotateKey } from '../../../../src/core/memory-api/keys.ts';
import type {
  ChangedFact,
  ChangeOutcome,
  ServiceChange,
  TenantChange,
  TenantFacts,
} from '../../ports/control-store.ts';
import type { Rows } from '../../ports/rows.ts';
import type {
  MasterKeyRow,
  RewrappedSecret,
  SealedSecret,
  VaultChange,
} from '../../ports/vault-store.ts';
import {
  keyOf,
  masterOf,
  type MasterRow,
  providerOf,
  type Row,
  settingsOf,
  type SettingsRow,
  tenantFactsOf,
  valuesOfKey,
} from './facts.ts';
import { CONTROL } from './statements.ts';

/**
 * Makes every change of tenants, plans, admins, keys, providers, settings and the vault, with its audit event in the
 * same transaction. The row with the number and hash of the tenant's last audit event is locked first, so changes of a
 * tenant run one after the other.
 */

/** Makes a change. `tenant`: the owner of the audit chain; SERVICE_TENANT for a change of the service itself. */
export async function applyWithEvent(
  rows: Rows,
  tenant: string,
  { change, note }: { readonly change: Change; readonly note: AuditNote },
): Promise<ChangeOutcome> {
  const head = await rows.get<AuditHead>(CONTROL.lockAudit, tenant);
  const outcome = await applyChange(rows, tenant, change);
  if (outcome !== 'done') return outcome;
  await chain(rows, tenant, { note, head });
  const fact = factOf(tenant, change);
  if (fact !== undefined) await addChange(rows, fact);
  return outcome;
}

type Change = TenantChange | ServiceChange;

export async function findTenant(rows: Rows, tenantId: string): Promise<TenantFacts | undefined> {
  const row = await rows.get<Row>(CONTROL.findTenant, tenantId);
  return row === undefined ? undefined : tenantFactsOf(row);
}

/** Writes an audit event. Call it in the transaction of the change that the event reports. */
export async function addEvent(rows: Rows, tenant: string, note: AuditNote): Promise<void> {
  const head = await rows.get<AuditHead>(CONTROL.lockAudit, tenant);
  await chain(rows, tenant, { note, head });
}

/**
 * Adds the changed fact, with the next number, to the list that every node reads, and deletes the oldest facts above
 * CHANGES_KEPT_MAX. Call it late in the transaction: it locks the row that counts the changes, and all other changes
 * wait for this lock until the commit.
 */
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

async function applyChange(rows: Rows, tenant: string, change: Change): Promise<ChangeOutcome> {
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
    case 'tenant.add':
      return addTenant(rows, change.tenant);
    case 'tenant.set':
      return setTenant(rows, change);
    case 'plan.put':
      return putPlan(rows, change.plan, change.isNew);
    case 'admin.add':
      return addAdmin(rows, change);
    case 'admin.revoke': {
      const { adminId, at, tenant: of = null } = change;
      return doneIf(await rows.run(CONTROL.revokeAdmin, adminId, at, of));
    }
    case 'master.add':
      return addMaster(rows, change);
    case 'master.retire':
      return retireMaster(rows, change);
    case 'secrets.rewrap':
      for (const row of change.rows) {
        // oxlint-disable-next-line no-await-in-loop -- A connection answers one query after the other.
        await rewrap(rows, row);
      }
      return 'done';
    case 'signing.add':
      await putSecret(rows, change.secret);
      await rows.run(CONTROL.retireSigningKeys, change.at);
      await rows.run(CONTROL.addSigningKey, change.kid, change.x, change.at);
      return 'done';
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
  // Two tenants may still add the same id at the same moment, but by chance that is practically impossible: an id has
  // 64 random bits.
  if ((await rows.get(CONTROL.isKeyId, key.keyId)) !== undefined) return 'exists';
  await rows.run(CONTROL.addKey, ...valuesOfKey({ ...key, tenant }));
  return 'done';
}

async function rotate(
  rows: Rows,
  tenant: string,
  { keyId, rotation }: Extract<TenantChange, { what: 'key.rotate' }>,
): Promise<ChangeOutcome> {
  const row = await rows.get<Row>(CONTROL.getKey, tenant, keyId);
  if (row === undefined || row['revoked_at'] !== null) return 'missing';
  const { hash, retired } = rotateKey(keyOf(row), rotation);
  const hashes = JSON.stringify(retired);
  return doneIf(await rows.run(CONTROL.rotateKey, tenant, keyId, hash, hashes, rotation.at));
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
  const known = await findTenant(rows, tenantId);
  if (known === undefined) return 'missing';
  if (plan !== null && !(await hasPlan(rows, plan))) return 'missing';
  // Another operator may have deleted the tenant a moment ago, and a deletion is final.
  if (known.status === 'deleted') return 'changed';
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

export async function listMasterKeys(rows: Rows): Promise<MasterKeyRow[]> {
  return (await rows.all<MasterRow>(CONTROL.masterKeys)).map(masterOf);
}

/**
 * Adds the secret, or replaces the stored secret with the same id. The secret's master key cannot be retired until the
 * commit.
 */
async function putSecret(rows: Rows, secret: SealedSecret): Promise<void> {
  await holdMaster(rows, secret.kek);
  await rows.run(
    CONTROL.putSecret,
    secret.tenant,
    secret.secretId,
    secret.owner,
    secret.purpose,
    secret.version,
    secret.kek,
    secret.wrapped,
    secret.ciphertext,
    secret.fingerprint,
    secret.savedAt,
  );
}

async function holdMaster(rows: Rows, kek: string): Promise<void> {
  if ((await rows.get(CONTROL.holdMasterKey, kek)) === undefined) {
    throw new MemoryError('unavailable', 'The master key of the secret is missing.');
  }
}

async function addMaster(
  rows: Rows,
  { id, canary, at }: Extract<VaultChange, { what: 'master.add' }>,
): Promise<ChangeOutcome> {
  const known = await rows.get(CONTROL.holdMasterKey, id);
  if (known !== undefined) return 'exists';
  await rows.run(CONTROL.demoteMasterKey);
  await rows.run(CONTROL.addMasterKey, id, canary.wrapped, canary.ciphertext, at);
  return 'done';
}

/** Retires a master key, unless it is the active one or a secret still needs it. */
async function retireMaster(
  rows: Rows,
  { id, at }: Extract<VaultChange, { what: 'master.retire' }>,
): Promise<ChangeOutcome> {
  // Writers of secrets lock the row of their master key. So lock it too, to wait for them before counting the secrets.
  await rows.get(CONTROL.lockMasterKey, id);
  const key = (await listMasterKeys(rows)).find((one) => one.id === id);
  if (key === undefined || key.state === 'retired') return 'missing';
  if (key.state === 'active' || key.secrets > 0) return 'used';
  await rows.run(CONTROL.retireMasterKey, id, at);
  return 'done';
}

/** Stores the data key of a secret, encrypted with another master key, unless the secret was changed meanwhile. */
async function rewrap(rows: Rows, row: RewrappedSecret): Promise<void> {
  const { tenant, secretId, version, kekBefore, kek, wrapped } = row;
  const changed = await rows.run(
    CONTROL.rewrapSecret,
    tenant,
    secretId,
    version,
    kekBefore,
    kek,
    wrapped,
  );
  if (changed > 0) await holdMaster(rows, kek);
}

type ProviderPut = Extract<TenantChange, { what: 'provider.put' }>;

/** Stores a provider. `limit`: the number of providers that the plan allows; null means no limit. */
async function putProvider(
  rows: Rows,
  { tenant, limit }: { readonly tenant: string; readonly limit: number | null },
  change: ProviderPut,
): Promise<ChangeOutcome> {
  const { provider, secrets } = change;
  const others = (await rows.all<Row>(CONTROL.listProviders, tenant)).map(providerOf);
  const refused = refusePut(change, others, limit);
  if (refused !== undefined) return refused;
  const { providerId, name, version } = provider;
  await rows.run(CONTROL.putProvider, tenant, providerId, name, version, JSON.stringify(provider));
  for (const secret of secrets) {
    // oxlint-disable-next-line no-await-in-loop -- A connection answers one query after the other.
    await putSecret(rows, { ...secret, tenant });
  }
  await removeSecrets(rows, { tenant, owner: providerId }, secretsOf(provider));
  return 'done';
}

async function removeProvider(
  rows: Rows,
  tenant: string,
  providerId: string,
): Promise<ChangeOutcome> {
  if ((await rows.run(CONTROL.removeProvider, tenant, providerId)) === 0) return 'missing';
  await removeSecrets(rows, { tenant, owner: providerId }, new Set());
  return 'done';
}

async function removeSecrets(
  rows: Rows,
  { tenant, owner }: { readonly tenant: string; readonly owner: string },
  kept: ReadonlySet<string>,
): Promise<void> {
  const found = await rows.all<{ id: string }>(CONTROL.ownedSecrets, tenant, owner);
  const gone = found.filter(({ id }) => !kept.has(id));
  await Promise.all(gone.map(({ id }) => rows.run(CONTROL.removeSecret, tenant, id)));
}

/** Returns why the provider may not be stored; undefined if it may. `others`: all stored providers of the tenant. */
function refusePut(
  { provider, ifVersion }: Pick<ProviderPut, 'provider' | 'ifVersion'>,
  others: readonly TenantProvider[],
  limit: number | null,
): ChangeOutcome | undefined {
  const before = others.find(({ providerId }) => providerId === provider.providerId);
  if (ifVersion !== undefined && before === undefined) return 'missing';
  if (ifVersion !== before?.version) return 'changed';
  const isFull = others.length >= Math.min(limit ?? PROVIDERS_MAX, PROVIDERS_MAX);
  if (before === undefined && isFull) return 'limit';
  const namesake = others.find(({ name }) => name === provider.name);
  if (namesake !== undefined && namesake.providerId !== provider.providerId) return 'exists';
  return findClash(provider, others) === undefined ? undefined : 'clash';
}

function secretsOf({ credential, headers, query }: TenantProvider): ReadonlySet<string> {
  const ids = [credential, ...headers, ...query].map((one) => one?.secretId);
  return new Set(ids.filter((id) => id !== undefined));
}

/** The maximum number of stored changes. A node that has missed over CHANGES_READ_MAX drops its caches. */
const CHANGES_KEPT_MAX = 10_000;

/** Returns the fact that nodes must drop from their caches; undefined if no node caches it. */
function factOf(tenant: string, change: Change): ChangedFact | undefined {
  const fact = (kind: ChangedFact['kind'], id: string, owner = tenant) => {
    return { tenant: owner, kind, id };
  };
  switch (change.what) {
    case 'key.add':
      return fact('key', change.key.keyId);
    case 'key.rotate':
    case 'key.revoke':
      return fact('key', change.keyId);
    case 'provider.put':
      return fact('provider', change.provider.providerId);
    case 'provider.remove':
      return fact('provider', change.providerId);
    case 'settings.put':
      return fact('settings', tenant);
    case 'tenant.add':
      return fact('tenant', change.tenant.tenantId, change.tenant.tenantId);
    case 'tenant.set':
      return fact('tenant', change.tenantId, change.tenantId);
    case 'plan.put':
      return fact('plan', change.plan.name);
    case 'admin.add':
      return fact('admin', change.admin.adminId, change.admin.tenant ?? SERVICE_TENANT);
    case 'admin.revoke':
      return fact('admin', change.adminId, change.tenant ?? SERVICE_TENANT);
    case 'signing.add':
      return fact('signing', '');
    // Nodes cache secrets in plain form, which another master key does not change.
    case 'event':
    case 'master.add':
    case 'master.retire':
    case 'secrets.rewrap':
      return undefined;
  }
}
