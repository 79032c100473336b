import type { AdminRole } from '../../core/admins.ts';
import type { AuditKind, AuditNote } from '../../core/audit.ts';
import type { ChangeOutcome, Page, TenantFacts } from '../../ports/control-store.ts';
import type { Receipts } from '../../ports/receipts.ts';
import type { ProviderLinks } from '../../ports/provider-links.ts';
import type { TenantStore } from '../../ports/service-store.ts';
import { ServiceFault } from '../fault.ts';
import { newId } from '../../core/ids.ts';
import type { ServiceLimits, ServingParts } from '../parts.ts';

/** One console call that was let in, as its operation sees it, and what the operations share. */

export type ConsoleParts = Pick<
  ServingParts,
  'store' | 'pepper' | 'clock' | 'randomBytes' | 'vault' | 'signer' | 'listCatalog'
> & {
  readonly settings: Pick<ServiceLimits, 'egress'>;
  /** Undefined beside the process that serves. */
  readonly receipts: Receipts | undefined;
  readonly links: ProviderLinks;
};

/** The caller: an admin with a token, or a person at the machine, who may do everything. */
export interface ConsoleActor {
  readonly type: 'admin' | 'cli';
  readonly id: string;
  readonly role: AdminRole;
  /** Undefined: every tenant. */
  readonly tenant: string | undefined;
  readonly ipHash: string | null;
}

export interface ConsoleRequest {
  readonly method: string;
  /** The part of the path behind `/v1/svc/console/`. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** Named by an operator; undefined: the actor's own, or `default`. */
  readonly tenant: string | undefined;
  /** Parsed JSON; undefined where there is none. */
  readonly body: unknown;
  /** The version that the caller has seen, by If-Match. */
  readonly ifVersion?: number | undefined;
}

export interface ConsoleReply {
  readonly status: 200 | 201 | 204;
  /** Undefined with 204. */
  readonly body?: unknown;
}

export interface ConsoleCall extends ConsoleRequest {
  readonly actor: ConsoleActor;
  readonly parts: ConsoleParts;
  readonly parameter: string;
  readonly tenantId: string;
  readonly now: number;
}

export type ConsoleOperation = (call: ConsoleCall) => Promise<ConsoleReply>;

/** The tenant of a call, which must exist. */
export async function findTenant(call: ConsoleCall): Promise<TenantFacts> {
  const facts = await call.parts.store.findTenant(call.tenantId);
  if (facts === undefined) throw new ServiceFault('NOT_FOUND', 'There is no such tenant.');
  return facts;
}

export function storeOf({ parts, tenantId }: ConsoleCall): TenantStore {
  return parts.store.of(tenantId);
}

export function noteOf(
  { actor, parts, now }: ConsoleCall,
  kind: AuditKind,
  about: Pick<AuditNote, 'target' | 'details'>,
): AuditNote {
  const { type, id, ipHash } = actor;
  return {
    event_id: newId('evt', parts.randomBytes),
    at: now,
    kind,
    actor: { type, id, ip_hash: ipHash },
    ...about,
  };
}

/** Throws ServiceFault for every outcome but 'done'. `what` names the thing for people. */
export function mustBeDone(outcome: ChangeOutcome, what: string): void {
  switch (outcome) {
    case 'done':
      return;
    case 'missing':
      throw new ServiceFault('NOT_FOUND', `There is no such ${what}.`);
    case 'exists':
      throw new ServiceFault('CONFLICT', `There is a ${what} of this name already.`);
    case 'used':
      throw new ServiceFault('CONFLICT', `The ${what} is still in use.`);
    case 'changed':
      throw new ServiceFault('CONFLICT', `The ${what} has changed since: read it again.`);
    case 'clash':
      throw new ServiceFault('CONFLICT', `Another ${what} has one of its models.`);
    case 'limit':
      throw new ServiceFault('PLAN_LIMIT_REACHED', `The plan allows no further ${what}.`);
  }
}

const PAGE_MAX = 100;

/** One element more than asked for shows whether there is another page. */
export function pageOf(query: URLSearchParams, fallback = PAGE_MAX): Page {
  const limit = query.get('limit') ?? String(fallback);
  const after = query.get('after') ?? undefined;
  if (!/^\d{1,3}$/.test(limit) || Number(limit) < 1 || Number(limit) > PAGE_MAX) {
    const message = `limit is not a whole number from 1 to ${PAGE_MAX}.`;
    throw new ServiceFault('INVALID_REQUEST', message, { param: 'limit' });
  }
  if (after !== undefined && !/^[\w-]{1,128}$/.test(after)) {
    throw new ServiceFault('INVALID_REQUEST', 'after is not an id.', { param: 'after' });
  }
  return { limit: Number(limit) + 1, after };
}

export interface RowForm<Row> {
  readonly idOf: (row: Row) => string;
  readonly wireOf: (row: Row) => unknown;
}

export function listReply<Row>(
  rows: readonly Row[],
  { limit }: Page,
  { idOf, wireOf }: RowForm<Row>,
): ConsoleReply {
  const shown = rows.slice(0, limit - 1);
  const [first] = shown;
  const last = shown.at(-1);
  const hasMore = rows.length > shown.length;
  return {
    status: 200,
    body: {
      object: 'list',
      data: shown.map(wireOf),
      first_id: first === undefined ? null : idOf(first),
      last_id: last === undefined ? null : idOf(last),
      has_more: hasMore,
      next_cursor: hasMore && last !== undefined ? idOf(last) : null,
    },
  };
}
