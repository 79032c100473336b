import { createHash } from 'node:crypto';
import { canonicalJson } from '../../../src/core/memory-api/canonical.ts';

/**
 * Audit events: who changed what, and when. The events of a tenant form a chain: each contains the hash of the event
 * before, so that a removed or changed event is noticed. An event has names and counts, never a secret or a memory's
 * text.
 */

export type AuditKind =
  | 'key.created'
  | 'key.rotated'
  | 'key.revoked'
  | 'provider.created'
  | 'provider.updated'
  | 'provider.deleted'
  | 'settings.updated'
  | 'memory.item_deleted'
  | 'memory.purge_requested'
  | 'provider.models_fetched'
  | 'tenant.created'
  | 'tenant.updated'
  | 'tenant.suspended'
  | 'tenant.resumed'
  | 'tenant.deleted'
  | 'plan.created'
  | 'plan.updated'
  | 'admin.created'
  | 'admin.revoked'
  | 'vault.kek_added'
  | 'vault.kek_retired'
  | 'vault.rotated'
  | 'signing_key.rotated';

export interface AuditActor {
  readonly type: 'admin' | 'key' | 'cli' | 'system';
  readonly id: string;
  /** Keyed hash of an admin's address; null for a command on the service's machine and for a service key. */
  readonly ip_hash: string | null;
}

/** The content of an event before it gets its place in the chain. */
export interface AuditNote {
  /** `evt_` and 26 characters. */
  readonly event_id: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly kind: AuditKind;
  readonly actor: AuditActor;
  readonly target: { readonly type: string; readonly id: string };
  readonly details: Readonly<Record<string, string | number | boolean | null>>;
}

export interface AuditEvent extends AuditNote {
  readonly tenant: string;
  /** Counts the tenant's events: 1, 2, 3 … */
  readonly number: number;
  /** Hash of the previous event; '' for the first. */
  readonly previous: string;
  readonly hash: string;
}

/** Makes the next event of a tenant's chain. `last`: the tenant's newest event; undefined if it has none. */
export function chainEvent(
  tenant: string,
  note: AuditNote,
  last: Pick<AuditEvent, 'number' | 'hash'> | undefined,
): AuditEvent {
  const event = {
    ...note,
    tenant,
    number: (last?.number ?? 0) + 1,
    previous: last?.hash ?? '',
  };
  return { ...event, hash: hashOf(event) };
}

function hashOf(event: Omit<AuditEvent, 'hash'>): string {
  return createHash('sha256')
    .update(canonicalJson(event) ?? '')
    .digest('hex');
}
