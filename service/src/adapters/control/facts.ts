import {
  ACCOUNT_DEFAULTS,
  type AccountSettings,
  type StoredSettings,
} from '../../core/account-settings.ts';
import type { AdminRole, StoredAdmin } from '../../core/admins.ts';
import type { AuditEvent } from '../../core/audit.ts';
import type { Plan, PlanLimits } from '../../core/plans.ts';
import type { TenantProvider } from '../../core/providers.ts';
import type { Tenant, TenantStatus } from '../../core/tenants.ts';
import type { KeyScope, RetiredHash, StoredKey } from '../../../../src/core/memory-api/keys.ts';
import type { ChangedFact, ChangeList, TenantFacts } from '../../ports/control-store.ts';
import type {
  MasterKeyRow,
  MasterKeyState,
  SealedSecret,
  SigningKeyRow,
} from '../../ports/vault-store.ts';

/** The rows of the control plane, and the facts that they hold. */

// Only the control plane writes the texts that are parsed here.
/* oxlint-disable typescript/no-unsafe-type-assertion */

export interface KeyRow {
  readonly tenant_id: string;
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

export function keyOf(row: KeyRow): StoredKey {
  return {
    tenant: row.tenant_id,
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
    ...timesOf(row),
    ...(row.rotated_at === null ? {} : { rotatedAt: row.rotated_at }),
  };
}

export interface AdminRow {
  readonly id: string;
  readonly tenant_id: string;
  readonly name: string;
  readonly role: AdminRole;
  readonly hash: string;
  readonly created_at: number;
  readonly expires_at: number | null;
  readonly revoked_at: number | null;
  readonly used_at: number | null;
}

/** An operator belongs to no tenant, and its column is empty. */
export function adminOf(row: AdminRow): StoredAdmin {
  return {
    adminId: row.id,
    ...(row.tenant_id === '' ? {} : { tenant: row.tenant_id }),
    name: row.name,
    role: row.role,
    hash: row.hash,
    ...timesOf(row),
  };
}

/** The times that keys and admins have in common. */
function timesOf(row: Pick<AdminRow, 'created_at' | 'expires_at' | 'revoked_at' | 'used_at'>) {
  return {
    createdAt: row.created_at,
    ...(row.expires_at === null ? {} : { expiresAt: row.expires_at }),
    ...(row.revoked_at === null ? {} : { revokedAt: row.revoked_at }),
    ...(row.used_at === null ? {} : { usedAt: row.used_at }),
  };
}

export interface TenantRow {
  readonly tenant_id: string;
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

export type TenantFactsRow = TenantRow & Pick<PlanRow, 'limits'>;

export function tenantFactsOf(row: TenantFactsRow): TenantFacts {
  return { ...tenantOf(row), limits: limitsOf(row) };
}

export function planOf(row: PlanRow): Plan {
  return { name: row.name, limits: limitsOf(row), createdAt: row.created_at };
}

export function tenantOf({
  tenant_id: id,
  name,
  plan,
  status,
  created_at: createdAt,
}: TenantRow): Tenant {
  return { tenantId: id, name, plan, status, createdAt };
}

function limitsOf({ limits }: Pick<PlanRow, 'limits'>): PlanLimits {
  return JSON.parse(limits) as PlanLimits;
}

export interface SettingsRow {
  readonly version: number;
  readonly settings: string;
}

/** A tenant without a row has the defaults. */
export function settingsOf(row: SettingsRow | undefined): StoredSettings {
  if (row === undefined) return { ...ACCOUNT_DEFAULTS, version: 0 };
  const saved = JSON.parse(row.settings) as Partial<AccountSettings>;
  return { ...ACCOUNT_DEFAULTS, ...saved, version: row.version };
}

export function providerOf(facts: string): TenantProvider {
  return JSON.parse(facts) as TenantProvider;
}

export interface SecretRow {
  readonly tenant_id: string;
  readonly id: string;
  readonly owner: string;
  readonly purpose: string;
  readonly version: number;
  readonly kek: string;
  readonly wrapped: Uint8Array;
  readonly ciphertext: Uint8Array;
  readonly fingerprint: string;
  readonly saved_at: number;
}

export interface MasterRow {
  readonly id: string;
  readonly state: MasterKeyState;
  readonly wrapped: Uint8Array;
  readonly ciphertext: Uint8Array;
  readonly created_at: number;
  readonly retired_at: number | null;
  readonly secrets: number;
}

export interface SigningRow {
  readonly kid: string;
  readonly x: string;
  readonly created_at: number;
  readonly retired_at: number | null;
}

export function secretOf(row: SecretRow): SealedSecret {
  const {
    tenant_id: tenant,
    id,
    owner,
    purpose,
    version,
    kek,
    wrapped,
    ciphertext,
    fingerprint,
  } = row;
  return {
    tenant,
    secretId: id,
    owner,
    purpose,
    version,
    kek,
    wrapped,
    ciphertext,
    fingerprint,
    savedAt: row.saved_at,
  };
}

export function signingKeyOf(row: SigningRow): SigningKeyRow {
  const { kid, x, created_at: createdAt, retired_at: retiredAt } = row;
  return { kid, x, createdAt, ...(retiredAt === null ? {} : { retiredAt }) };
}

export function masterOf(row: MasterRow): MasterKeyRow {
  const { id, state, wrapped, ciphertext, secrets } = row;
  return {
    id,
    state,
    canary: { kek: id, wrapped, ciphertext },
    createdAt: row.created_at,
    ...(row.retired_at === null ? {} : { retiredAt: row.retired_at }),
    secrets,
  };
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
    tenant === null ? [] : [{ tenant, kind, id } as ChangedFact],
  );
  // Some are missing: they were dropped, or the database is that of an earlier day.
  return { last, changes: last - after === changes.length ? changes : undefined };
}

export function eventOf(text: string): AuditEvent {
  return JSON.parse(text) as AuditEvent;
}
