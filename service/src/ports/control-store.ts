import type { AccountSettings, StoredSettings } from '../core/account-settings.ts';
import type { StoredAdmin } from '../core/admins.ts';
import type { AuditEvent, AuditNote } from '../core/audit.ts';
import type { Rotation, StoredKey } from '../../../src/core/memory-api/keys.ts';
import type { Plan, PlanLimits } from '../core/plans.ts';
import type { TenantProvider } from '../core/providers.ts';
import type { Tenant, TenantStatus } from '../core/tenants.ts';
import type { SealedSecret, VaultChange, VaultStore } from './vault-store.ts';

/**
 * The interface to tenants, plans, admins, keys, providers, settings, audit events, changes and leases. `apply` writes
 * a change and its audit event together.
 */

/** One page of a list. `after` is the id of the last element that the caller has already. */
export interface Page {
  readonly limit: number;
  readonly after: string | undefined;
}

export interface KeyPage extends Page {
  /** True to leave out revoked keys. */
  readonly isLive?: boolean;
}

export interface ServiceControl extends VaultStore {
  /** Returns the changes after this number. With undefined it returns only the last number. */
  changesSince(after: number | undefined, signal: AbortSignal): Promise<ChangeList>;
  listTenants(page: Page): Promise<readonly Tenant[]>;
  findTenant(tenantId: string): Promise<TenantFacts | undefined>;
  listPlans(page: Page): Promise<readonly Plan[]>;
  findAdmin(adminId: string, signal: AbortSignal): Promise<StoredAdmin | undefined>;
  /** Lists admins, oldest first: those of one tenant, or all admins and operators. */
  listAdmins(tenant: string | undefined, page: Page): Promise<readonly StoredAdmin[]>;
  noteAdminUse(adminId: string, at: number): Promise<void>;
  apply(change: ServiceChange, note: AuditNote): Promise<ChangeOutcome>;
}

export interface TenantControl {
  /** Lists keys, oldest first. Without a page it returns up to 10,000 keys, also revoked ones. */
  listKeys(page?: KeyPage): Promise<readonly StoredKey[]>;
  /** Returns a key of this tenant; undefined if it has none with this id. */
  getKey(keyId: string): Promise<StoredKey | undefined>;
  /** Stores when a key was used. A power cut may lose that time. Does nothing if the key does not exist. */
  noteKeyUse(keyId: string, at: number): Promise<void>;
  /** Lists providers by id, at most PROVIDERS_MAX. */
  listProviders(): Promise<readonly TenantProvider[]>;
  /** Returns the tenant's settings; the defaults if they were never changed. */
  getSettings(): Promise<StoredSettings>;
  /** Lists events, newest first. `after` is the number of an event. */
  listAudit(page: Page): Promise<readonly AuditEvent[]>;
  /** Returns the sealed secret. A secret of another tenant is not found. */
  findSecret(secretId: string): Promise<SealedSecret | undefined>;
  /** Makes a change. Changes of one tenant run one after the other, over all nodes. */
  apply(change: TenantChange, note: AuditNote): Promise<ChangeOutcome>;
}

/** Names a changed fact that nodes cache. The name is stored in the transaction of the change. */
export interface ChangedFact {
  /**
   * The tenant whose fact changed. SERVICE_TENANT for plans, operators and signing keys, and for an admin who is
   * revoked by an operator that names no tenant.
   */
  readonly tenant: string;
  readonly kind: FactKind;
  readonly id: string;
}

type FactKind =
  | 'key'
  | 'tenant'
  | 'provider'
  | 'settings'
  | 'plan'
  | 'admin'
  | 'signing'
  /** Texts of the tenant were purged, so blocks that quote them must not be added again. */
  | 'purge';

export interface ChangeList {
  /**
   * The number of the latest change. Numbers follow the order of the commits. Only a new epoch on PostgreSQL leaves a
   * gap.
   */
  readonly last: number;
  /**
   * The changes in order. Undefined if there are too many, if some were deleted, or if the database was restored: then
   * anything may have changed.
   */
  readonly changes: readonly ChangedFact[] | undefined;
}

export interface Caller {
  readonly key: StoredKey;
  readonly tenant: TenantFacts;
}

export interface TenantFacts extends Tenant {
  readonly limits: PlanLimits;
}

/**
 * The result of a change. Every result except 'done' changes nothing and writes no event. The target is what the change
 * adds, replaces or ends, such as a key.
 */
export type ChangeOutcome =
  | 'done'
  /** The target, or what else the change names, does not exist; or the target is already revoked or retired. */
  | 'missing'
  /** Something of the same kind with this name or id exists already. */
  | 'exists'
  /** The tenant has as many targets of this kind as its plan allows. */
  | 'limit'
  /** Something still uses the target, or the target is the active master key. */
  | 'used'
  /** The version differs from the one that the caller read, or the tenant was deleted. */
  | 'changed'
  /** Another provider already has one of the models. */
  | 'clash';

export type TenantChange =
  | {
      readonly what: 'key.add';
      /** The new key. It belongs to the tenant of this store. */
      readonly key: Omit<StoredKey, 'tenant'>;
    }
  | { readonly what: 'key.rotate'; readonly keyId: string; readonly rotation: Rotation }
  | { readonly what: 'key.revoke'; readonly keyId: string; readonly at: number }
  | {
      readonly what: 'provider.put';
      readonly provider: TenantProvider;
      /** The version that is replaced; undefined for a new provider. */
      readonly ifVersion: number | undefined;
      /** The new secrets. Secrets that the provider no longer refers to are destroyed. */
      readonly secrets: readonly SealedSecret[];
    }
  | { readonly what: 'provider.remove'; readonly providerId: string }
  | {
      readonly what: 'settings.put';
      readonly settings: AccountSettings;
      /** The version that the caller read; 0 if the settings were never changed. */
      readonly ifVersion: number;
    }
  /** Writes only an audit event, for an action that changes no row. */
  | { readonly what: 'event' };

export type ServiceChange =
  | VaultChange
  | { readonly what: 'tenant.add'; readonly tenant: Tenant }
  | {
      readonly what: 'tenant.set';
      readonly tenantId: string;
      readonly name?: string;
      readonly plan?: string;
      readonly status?: TenantStatus;
    }
  | { readonly what: 'plan.put'; readonly plan: Plan; readonly isNew: boolean }
  | { readonly what: 'admin.add'; readonly admin: StoredAdmin }
  | {
      readonly what: 'admin.revoke';
      readonly adminId: string;
      /** The tenant to which the admin must belong. Undefined: any tenant, or none, as for an operator. */
      readonly tenant: string | undefined;
      readonly at: number;
    };

/**
 * Leases for work that only one process of all nodes may do at a time. A lease expires by itself if its holder dies.
 * The store's clock decides, so a node with a wrong clock cannot take another node's lease.
 */
export interface LeaseStore {
  /** Takes the lease and returns undefined, or returns the note of the present holder. */
  takeLease(lease: Lease): Promise<string | undefined>;
  /** Renews the lease. Returns false if it has expired; another process may hold it by then. */
  renewLease(lease: Lease): Promise<boolean>;
  endLease(lease: Pick<Lease, 'name' | 'holder'>): Promise<void>;
  /** Lists the valid leases whose names begin with `start`, ordered by name. */
  listLeases(start: string): Promise<readonly StandingLease[]>;
}

export interface Lease extends StandingLease {
  /** How long the lease lasts, in milliseconds. */
  readonly ms: number;
}

export interface StandingLease {
  readonly name: string;
  readonly holder: string;
  /** A text for other callers that find the lease taken. It is not secret. */
  readonly note: string;
}
