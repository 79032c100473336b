import { createHash } from 'node:crypto';
import { canonicalJson } from '../../../src/core/memory-api/canonical.ts';

/**
 * Audit events: who changed what, and when. Each carries the hash of the one before it in the same
 * tenant, so an event that was removed or altered shows. An event holds names and counts, never a
 * secret and never a text of a memory.
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
  /** Keyed hash of the caller's address; null where there is none. */
  readonly ip_hash: string | null;
}

/** The facts of an event, before it gets its place in the chain. */
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
  /** 1, 2, 3 … in the tenant. */
  readonly number: number;
  /** Hash of the event before; the empty text for the first. */
  readonly previous: string;
  readonly hash: string;
}

/** `last`: the newest event of the tenant so far. */
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

/** Events of one tenant, oldest first, from the first on. The number of the first that is wrong. */
export function findBreak(tenant: string, events: readonly AuditEvent[]): number | undefined {
  let previous = '';
  for (const [at, event] of events.entries()) {
    const { hash, ...facts } = event;
    const isInPlace = event.number === at + 1 && event.tenant === tenant;
    if (!isInPlace || event.previous !== previous || hashOf(facts) !== hash) return at + 1;
    previous = hash;
  }
  return undefined;
}

function hashOf(event: Omit<AuditEvent, 'hash'>): string {
  return createHash('sha256')
    .update(canonicalJson(event) ?? '')
    .digest('hex');
}
