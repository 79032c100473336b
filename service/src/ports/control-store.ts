import type { AccountSettings, StoredSettings } from '../core/account-settings.ts';
import type { StoredAdmin } from '../core/admins.ts';
import type { AuditEvent, AuditNote } from '../core/audit.ts';
import type { Rotation, StoredKey } from '../../../src/core/memory-api/keys.ts';
import type { Plan, PlanLimits } from '../core/plans.ts';
import type { TenantProvider } from '../core/providers.ts';
import type { Tenant, TenantStatus } from '../core/tenants.ts';
import type { SealedSecret, VaultChange, VaultStore } from './vault-store.ts';

/**
 * The tenants, plans, keys and admins of a service. None of them changes without an audit event:
 * `apply` writes both in one transaction, or neither.
 */

/** One page of a list; `after` is the id of the last element that the caller has. */
export interface Page {
  readonly limit: number;
  readonly after: string | undefined;
}

export interface KeyPage extends Page {
  /** Without keys that are revoked. */
  readonly isLive?: boolean;
}

export interface ServiceControl extends VaultStore {
  /** The changes after this number; undefined: only the last number is asked for. */
  changesSince(after: number | undefined, signal: AbortSignal): Promise<ChangeList>;
  listTenants(page: Page): Promise<readonly Tenant[]>;
  findTenant(tenantId: string): Promise<TenantFacts | undefined>;
  listPlans(page: Page): Promise<readonly Plan[]>;
  findAdmin(adminId: string, signal: AbortSignal): Promise<StoredAdmin | undefined>;
  /** Oldest first; of one tenant, or all of them with the operators. */
  listAdmins(tenant: string | undefined, page: Page): Promise<readonly StoredAdmin[]>;
  noteAdminUse(adminId: string, at: number): Promise<void>;
  apply(change: ServiceChange, note: AuditNote): Promise<ChangeOutcome>;
}

export interface TenantControl {
  /** Oldest first. Without a page: all, revoked ones too. */
  listKeys(page?: KeyPage): Promise<readonly StoredKey[]>;
  /** A key of this tenant. */
  getKey(keyId: string): Promise<StoredKey | undefined>;
  /** A power cut may take it. A key that does not exist is no error. */
  noteKeyUse(keyId: string, at: number): Promise<void>;
  /** By id; at most PROVIDERS_MAX. */
  listProviders(): Promise<readonly TenantProvider[]>;
  /** The defaults, if they were never changed. */
  getSettings(): Promise<StoredSettings>;
  /** Newest first; `after` is the number of an event. */
  listAudit(page: Page): Promise<readonly AuditEvent[]>;
  /** Sealed; a secret of another tenant is not found. */
  findSecret(secretId: string): Promise<SealedSecret | undefined>;
  /** Changes of one tenant come one after the other, over all nodes. */
  apply(change: TenantChange, note: AuditNote): Promise<ChangeOutcome>;
}

/** A fact that nodes keep in memory. `apply` writes one for each change, in the same transaction. */
export interface ChangedFact {
  /** The service itself for plans, operators and signing keys. */
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
  /** Texts of the tenant were purged: blocks that quote them must not be placed again. */
  | 'purge';

export interface ChangeList {
  /** The number of the last change of all. Numbers follow each other without a gap, as commits do. */
  readonly last: number;
  /** In their order; undefined: too many, or some are not kept any more, so anything may have changed. */
  readonly changes: readonly ChangedFact[] | undefined;
}

/** Everything that a request needs to know of its caller, in one look-up. */
export interface Caller {
  readonly key: StoredKey;
  readonly tenant: TenantFacts;
}

export interface TenantFacts extends Tenant {
  readonly limits: PlanLimits;
}

/** The outcomes beside 'done' change nothing and leave no event. */
export type ChangeOutcome =
  | 'done'
  /** There is no such thing, or it is revoked already. */
  | 'missing'
  /** There is one of this name already. */
  | 'exists'
  /** The plan allows no more of it. */
  | 'limit'
  /** Something still needs it. */
  | 'used'
  /** It is at another version than the caller has seen. */
  | 'changed'
  /** Another provider has one of its models already. */
  | 'clash';

export type TenantChange =
  | {
      readonly what: 'key.add';
      /** The key is of this tenant, whatever it says. */
      readonly key: Omit<StoredKey, 'tenant'>;
    }
  | { readonly what: 'key.rotate'; readonly keyId: string; readonly rotation: Rotation }
  | { readonly what: 'key.revoke'; readonly keyId: string; readonly at: number }
  | {
      readonly what: 'provider.put';
      readonly provider: TenantProvider;
      /** The version before it; undefined: there is no such provider yet. */
      readonly ifVersion: number | undefined;
      /** New ones. The provider's secrets that it does not name any more are destroyed. */
      readonly secrets: readonly SealedSecret[];
    }
  | { readonly what: 'provider.remove'; readonly providerId: string }
  | {
      readonly what: 'settings.put';
      readonly settings: AccountSettings;
      /** The version that the caller read; 0 if they were never changed. */
      readonly ifVersion: number;
    }
  /** Something was done that changes no row: only its event is written. */
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
      /** Undefined: of any tenant, and operators. */
      readonly tenant: string | undefined;
      readonly at: number;
    };

/**
 * Leases for work that only one process may do at a time, over all nodes. A lease expires by itself
 * when its holder dies. The store's own clock decides, so a node with a wrong clock cannot take
 * another node's lease.
 */
export interface LeaseStore {
  /** Undefined: this holder has the lease now. Otherwise the note of the present holder. */
  takeLease(lease: Lease): Promise<string | undefined>;
  /** False: it has ended, and another process may hold it. */
  renewLease(lease: Lease): Promise<boolean>;
  endLease(lease: Pick<Lease, 'name' | 'holder'>): Promise<void>;
  /** The valid leases whose names begin with this prefix, by name. */
  listLeases(start: string): Promise<readonly StandingLease[]>;
}

export interface Lease extends StandingLease {
  /** Milliseconds from now on. */
  readonly ms: number;
}

export interface StandingLease {
  readonly name: string;
  readonly holder: string;
  /** For other callers that find the lease taken; not a secret. */
  readonly note: string;
}
