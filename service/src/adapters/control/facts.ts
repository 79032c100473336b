import {
  ACCOUNT_DEFAULTS,
  type AccountSettings,
  camelOf,
  type StoredSettings,
} from '../../core/account-settings.ts';
import type { StoredAdmin } from '../../core/admins.ts';
import type { AuditEvent } from '../../core/audit.ts';
import type { Plan } from '../../core/plans.ts';
import type { TenantProvider } from '../../core/providers.ts';
import type { Tenant } from '../../core/tenants.ts';
import type { StoredKey } from '../../../../src/core/memory-api/keys.ts';
import type { Caller, ChangedFact, ChangeList, TenantFacts } from '../../ports/control-store.ts';
import type { ClosedHead, OpenHead, StoredReceipt } from '../../ports/receipt-store.ts';
import type { MasterKeyRow, SealedSecret, SigningKeyRow } from '../../ports/vault-store.ts';

/**
 * Converts rows of the control plane to facts. Most facts have a member for each column that is not null: `createdAt`
 * for `created_at`. A provider and an audit event are read from one column with JSON.
 */

// Only the control plane writes the JSON that is parsed here.
/* oxlint-disable typescript/no-unsafe-type-assertion, typescript/no-unnecessary-type-parameters */

export type Row = Readonly<Record<string, unknown>>;

/**
 * Makes a function that converts a row to a fact. The name of a member is its column's name in camel case, except for
 * the columns in `names`. `json`: columns with JSON.
 */
export function readerOf<Fact>(
  names: Readonly<Record<string, string>> = {},
  json: readonly string[] = [],
): (row: Row) => Fact {
  return (row) => {
    const members = Object.entries(row).flatMap(([column, value]) => {
      if (value === null) return [];
      const isJson = json.includes(column);
      const fact: unknown = isJson ? JSON.parse(value as string) : value;
      return [[names[column] ?? camelOf(column), fact]];
    });
    return Object.fromEntries(members) as Fact;
  };
}

export const keyOf = readerOf<StoredKey>({ tenant_id: 'tenant', id: 'keyId' }, [
  'retired',
  'scopes',
  'spaces',
  'allowed_models',
]);
export const tenantOf = readerOf<Tenant>({ tenant_id: 'tenantId' });
export const tenantFactsOf = readerOf<TenantFacts>({ tenant_id: 'tenantId' }, ['limits']);
export const planOf = readerOf<Plan>({}, ['limits']);
export const secretOf = readerOf<SealedSecret>({ tenant_id: 'tenant', id: 'secretId' });
export const signingKeyOf = readerOf<SigningKeyRow>();
export const receiptOf = readerOf<StoredReceipt>({ id: 'receiptId' });
export const headOf = readerOf<OpenHead | ClosedHead>({ tenant_id: 'tenant' });
const adminIn = readerOf<StoredAdmin>({ tenant_id: 'tenant', id: 'adminId' });
const masterIn = readerOf<Omit<MasterKeyRow, 'canary'>>();

export function callerOf({ tenant_name: name, tenant_created_at: at, ...row }: Row): Caller {
  const { plan, status, limits, ...key } = row;
  const tenant = { tenant_id: key['tenant_id'], name, created_at: at, plan, status, limits };
  return { key: keyOf(key), tenant: tenantFactsOf(tenant) };
}

/** Parses an admin. An operator belongs to no tenant, so its column `tenant_id` is ''. */
export function adminOf({ tenant_id: tenant, ...row }: Row): StoredAdmin {
  return adminIn(tenant === '' ? row : { ...row, tenant_id: tenant });
}

export function masterOf({ wrapped, ciphertext, ...row }: MasterRow): MasterKeyRow {
  return { ...masterIn(row), canary: { kek: row.id, wrapped, ciphertext } };
}

export interface MasterRow extends Row {
  readonly id: string;
  readonly wrapped: Uint8Array;
  readonly ciphertext: Uint8Array;
}

/** Returns the values of a new row, in the order of the columns in `CONTROL.addKey`. */
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

export interface SettingsRow {
  readonly version: number;
  readonly settings: string;
}

/** Parses a tenant's settings. A tenant without a row has the defaults. */
export function settingsOf(row: SettingsRow | undefined): StoredSettings {
  if (row === undefined) return { ...ACCOUNT_DEFAULTS, version: 0 };
  const saved = JSON.parse(row.settings) as Partial<AccountSettings>;
  return { ...ACCOUNT_DEFAULTS, ...saved, version: row.version };
}

export function providerOf({ facts }: Row): TenantProvider {
  return JSON.parse(facts as string) as TenantProvider;
}

export interface ChangeRow {
  readonly last: number;
  /** The number of the change; null in a row that has no change. */
  readonly number: number | null;
  readonly tenant: string | null;
  readonly kind: string | null;
  readonly id: string | null;
}

/** Converts the rows of `CONTROL.listChanges`: at least one, each with the number of the latest change. */
export function changeListOf(after: number | undefined, rows: readonly ChangeRow[]): ChangeList {
  const last = rows[0]?.last ?? 0;
  if (after === undefined) return { last, changes: [] };
  const changes = rows.flatMap(({ tenant, kind, id }) =>
    tenant === null ? [] : [{ tenant, kind, id } as ChangedFact],
  );
  // `last - after` is not the count of the rows if changes were deleted, if the limit of the query left some out, or if
  // the database was restored from a backup.
  return { last, changes: last - after === changes.length ? changes : undefined };
}

export function eventOf({ event }: Row): AuditEvent {
  return JSON.parse(event as string) as AuditEvent;
}
