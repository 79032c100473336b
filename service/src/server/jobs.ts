import { MemoryError } from '../../../src/core/errors.ts';
import type { Clock } from '../../../src/ports/clock.ts';
import { SERVICE_TENANT } from '../core/tenants.ts';
import type { ServiceStore, TenantStore } from '../ports/service-store.ts';
import { underLease } from './leases.ts';

/** Jobs of a process that serves: each runs on one node at a time, under a lease. */

const HOUR_MS = 3_600_000;
/** Half of a lease: another node continues the purge of a dead node within a minute. */
const PURGES_MS = 15_000;

/** Begins both jobs: one looks now and once an hour, the other every 15 seconds. Returns what ends them. */
export function startJobs(parts: RetentionParts): () => Promise<void> {
  const jobs = [
    repeat(() => dropExpired(parts), HOUR_MS, true),
    repeat(() => finishPurges(parts), PURGES_MS),
  ];
  return async () => void (await Promise.all(jobs.map((stop) => stop())));
}

/** A failure waits for the next run. Returns what ends it, once no run is under way any more. */
function repeat(work: () => Promise<void>, periodMs: number, isAtOnce = false) {
  let running = Promise.resolve();
  const run = (): void => {
    running = running.then(work).catch(() => undefined);
  };
  if (isAtOnce) run();
  const timer = setInterval(run, periodMs).unref();
  return async (): Promise<void> => {
    clearInterval(timer);
    await running;
  };
}

export interface RetentionParts {
  readonly store: ServiceStore;
  readonly clock: Clock;
  readonly randomBytes: (count: number) => Uint8Array;
  /** Days that audit events are kept; for ever where it is not given. */
  readonly auditDays?: number | undefined;
}

const DAY_MS = 24 * HOUR_MS;
const TENANTS_AT_ONCE = 100;
/** Receipts in one transaction: a few milliseconds, after which calls pass. */
const DROPPED_AT_ONCE = 500;

/**
 * A process that removes receipts from the database holds this lease, because an archive must find
 * complete days.
 */
export const RECEIPTS_LEASE = 'job:receipts';

/**
 * Deletes receipts that are older than the plan of their tenant keeps them, and events that are older than the service
 * keeps them. Sums of days stay. Another process may be doing it at this moment: then this one does nothing.
 */
export async function dropExpired(parts: RetentionParts): Promise<void> {
  const { store, randomBytes } = parts;
  const needs = { store: store.of(SERVICE_TENANT), randomBytes };
  await underLease(needs, RECEIPTS_LEASE, () => sweep(parts));
}

async function sweep({ store, clock, auditDays }: RetentionParts): Promise<void> {
  const now = clock.now();
  const kept = await keptDays(store);
  const longest = Math.max(...kept.values());
  await store.keepDays({
    now,
    ...(Number.isFinite(longest) ? { receiptsFrom: now - longest * DAY_MS } : {}),
    ...(auditDays === undefined ? {} : { auditFrom: now - auditDays * DAY_MS }),
  });
  for (const [tenant, days] of kept) {
    if (!Number.isFinite(days)) continue;
    // One tenant after the other, on purpose: calls pass in between.
    // oxlint-disable-next-line no-await-in-loop
    await dropOld(store.of(tenant), now - days * DAY_MS);
  }
}

/** By tenant; Infinity where its plan sets no end. */
async function keptDays(store: ServiceStore): Promise<ReadonlyMap<string, number>> {
  const kept = new Map<string, number>();
  for (let after: string | undefined; ;) {
    /* oxlint-disable no-await-in-loop -- One page after the other. */
    const tenants = await store.listTenants({ limit: TENANTS_AT_ONCE, after });
    for (const { tenantId } of tenants) {
      const days = (await store.findTenant(tenantId))?.limits.retention_days;
      kept.set(tenantId, days ?? Infinity);
    }
    /* oxlint-enable no-await-in-loop */
    if (tenants.length < TENANTS_AT_ONCE) return kept;
    after = tenants.at(-1)?.tenantId;
  }
}

/** The number of receipts that were deleted. */
export async function dropOld(store: TenantStore, before: number): Promise<number> {
  let dropped = 0;
  for (;;) {
    // oxlint-disable-next-line no-await-in-loop -- Calls pass in between.
    const some = await store.dropReceipts({ before, limit: DROPPED_AT_ONCE });
    dropped += some;
    if (some < DROPPED_AT_ONCE) return dropped;
  }
}

export interface PurgeParts {
  readonly store: ServiceStore;
  readonly clock: Clock;
  readonly randomBytes: (count: number) => Uint8Array;
}

/** Erases the records of purges that were begun. If the process that does it dies, another one continues. */
export async function finishPurges(parts: PurgeParts): Promise<void> {
  for (const { tenant, purgeId } of await parts.store.unfinishedPurges()) {
    // oxlint-disable-next-line no-await-in-loop -- One after the other: calls pass in between.
    await erase({ ...parts, store: parts.store.of(tenant) }, purgeId);
  }
}

/**
 * Resolves with the time when the last record was gone; undefined if that is not so yet: another process
 * erases them now, or the store cannot erase them now.
 */
export async function erase(
  parts: Omit<PurgeParts, 'store'> & { readonly store: TenantStore },
  purgeId: string,
): Promise<number | undefined> {
  const { store, clock } = parts;
  const erasing = underLease(parts, `purge:${purgeId}`, async () => {
    for (;;) {
      const now = clock.now();
      // One part after the other, on purpose: recalls pass in between.
      // oxlint-disable-next-line no-await-in-loop
      if (await store.continuePurge(purgeId, now)) return now;
    }
  });
  const done = await erasing.catch((error: unknown) => {
    if (error instanceof MemoryError) return undefined;
    throw error;
  });
  return done?.result;
}
