import { MemoryError } from '../../../src/core/errors.ts';
import type { Clock } from '../../../src/ports/clock.ts';
import { SERVICE_TENANT } from '../core/tenants.ts';
import type { ServiceStore, TenantStore } from '../ports/service-store.ts';
import { underLease } from './leases.ts';

/** The jobs of a serving process. They delete under leases, so that no two nodes delete the same rows at once. */

const HOUR_MS = 3_600_000;
/** How often unfinished purges are looked for: twice per lease, so another node continues a purge within a minute. */
const PURGES_MS = 15_000;

/** Starts both jobs: to delete what has expired, and to finish purges. Returns a function that ends them. */
export function startJobs(parts: RetentionParts): () => Promise<void> {
  const jobs = [repeat(expiry(parts), HOUR_MS, true), repeat(() => finishPurges(parts), PURGES_MS)];
  return async () => void (await Promise.all(jobs.map((stop) => stop())));
}

/** Repeats a job, also after a failure. Returns a function that ends the job, and resolves when it no longer runs. */
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

export interface RetentionParts extends PurgeParts {
  /** Days for which audit events are kept; undefined means for ever. */
  readonly auditDays?: number | undefined;
}

const DAY_MS = 24 * HOUR_MS;
const TENANTS_AT_ONCE = 100;
/** Maximum number of receipts deleted in one transaction, which takes a few milliseconds. */
const DROPPED_AT_ONCE = 500;

/** The lease of a process that deletes receipts. `receipts archive` takes it too, so that it finds complete days. */
export const RECEIPTS_LEASE = 'job:receipts';

/**
 * Deletes receipts and audit events that are older than their tenant's plan or the service's settings allow, and other
 * expired rows (see keepDays). Daily sums stay. If another process holds the lease, this one does nothing.
 */
export async function dropExpired(parts: RetentionParts): Promise<void> {
  const { store, randomBytes } = parts;
  const needs = { store: store.of(SERVICE_TENANT), randomBytes };
  await underLease(needs, RECEIPTS_LEASE, () => sweep(parts));
}

/** How far the clock and the time since the start of the process may drift apart before that counts as a jump. */
const DRIFT_MS = 60_000;
/**
 * How long after the last jump of the clock nothing expires: a little less than the pause between two runs of the job.
 */
const STEADY_MS = 50 * 60_000;

/**
 * Returns the job that deletes what is expired. It deletes nothing in the first hour of the process, nor in the hour
 * after the clock jumped: a machine may start with a clock that is a year ahead, and would delete everything.
 */
export function expiry(parts: RetentionParts): () => Promise<void> {
  const { clock, store } = parts;
  let steady: { readonly lead: number; readonly since: number } | undefined;
  return async () => {
    const [now, at] = [clock.now(), clock.monotonic()];
    const lead = now - at;
    if (steady === undefined || Math.abs(lead - steady.lead) > DRIFT_MS)
      steady = { lead, since: at };
    if (at - steady.since >= STEADY_MS) await dropExpired(parts);
    else await store.keepDays({ now, isUnsure: true });
  };
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
    // One tenant after the other, so that calls run in between.
    // oxlint-disable-next-line no-await-in-loop
    await dropOld(store.of(tenant), now - days * DAY_MS);
  }
}

/** Returns for each tenant the number of days for which its plan keeps receipts; Infinity if the plan sets no limit. */
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

/** Deletes receipts in batches. Returns the number of deleted receipts. */
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

/** Erases the records of unfinished purges of all tenants. */
export async function finishPurges(parts: PurgeParts): Promise<void> {
  for (const { tenant, purgeId } of await parts.store.unfinishedPurges()) {
    // oxlint-disable-next-line no-await-in-loop -- One after the other: calls pass in between.
    await erase({ ...parts, store: parts.store.of(tenant) }, purgeId);
  }
}

/**
 * Erases the records of a purge, and resolves with the time at which the purge was found finished. Undefined if it is
 * unfinished: another process is erasing the records, or the store cannot erase them now.
 */
export async function erase(
  parts: Omit<PurgeParts, 'store'> & { readonly store: TenantStore },
  purgeId: string,
): Promise<number | undefined> {
  const { store, clock } = parts;
  const erasing = underLease(parts, `purge:${purgeId}`, async () => {
    for (;;) {
      const now = clock.now();
      // One batch after the other, so that other calls run in between.
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
