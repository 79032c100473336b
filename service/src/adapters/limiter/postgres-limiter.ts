import { pastBuckets } from '../../core/limits.ts';
import { bookCost, takeCost } from '../../core/rates.ts';
import type { Clock } from '../../../../src/ports/clock.ts';
import type {
  CallEnd,
  CostChange,
  LeaseAsk,
  LimitAnswer,
  LimitAsk,
  Limiter,
} from '../../ports/limiter.ts';
import { Connections, type ConnectionOptions } from '../postgres-store/connections.ts';
import type { Rows } from '../postgres-store/rows.ts';
import { LIMITS } from '../postgres-store/statements/limits.ts';

/**
 * The limiter of a service on PostgreSQL that has no Redis: enough for some hundred requests a second.
 * The rows of a call's limits are locked in one order, judged, and written, in one transaction.
 */

export interface PostgresLimiterOptions extends ConnectionOptions {
  /** In tests: its time is taken for the server's own. */
  readonly clock?: Pick<Clock, 'now'>;
}

/** The end of a running call is unknown, so this is a guess. */
const LEASE_WAIT_MS = 1000;
const PASSED: LimitAnswer = { refusedBy: undefined, waitMs: 0 };

interface LockedRow {
  readonly kind: LimitAsk['kind'];
  readonly bucket: string;
  readonly value: number | null;
  readonly now: number;
}

interface Locked {
  readonly now: number;
  /** By kind and bucket; null where nothing was counted yet. */
  readonly values: ReadonlyMap<string, number | null>;
}

export class PostgresLimiter implements Limiter {
  readonly #connections: Connections;
  readonly #clock: Pick<Clock, 'now'> | undefined;

  constructor({ clock, ...options }: PostgresLimiterOptions) {
    this.#connections = new Connections(options);
    this.#clock = clock;
  }

  async take(asks: readonly LimitAsk[], signal: AbortSignal): Promise<LimitAnswer> {
    if (asks.length === 0) return PASSED;
    // Runs at most once: an unconfirmed commit may have counted the call already.
    return this.#connections.writeOnce((rows) => this.#take(rows, asks), signal);
  }

  async renew(leases: readonly LeaseAsk[], signal: AbortSignal): Promise<void> {
    const [first] = leases;
    if (first === undefined) return;
    const ttls = leases.map(({ ttlMs }) => ttlMs);
    const values = [first.tenant, ...namesOf(leases), this.#now(), ttls] as const;
    await this.#connections.write((rows) => rows.run(LIMITS.renewLeases, ...values), signal);
  }

  async settle({ leases, changes }: CallEnd, signal: AbortSignal): Promise<void> {
    const [first] = leases;
    if (first === undefined && changes.length === 0) return;
    // Costs that were booked twice would be wrong, and a lease that is not given back expires.
    await this.#connections.writeOnce(async (rows) => {
      // The limits are locked before the leases, as by take(): two calls never wait for each other.
      const next = await this.#booked(rows, changes);
      await Promise.all([
        this.#set(rows, next),
        first && rows.run(LIMITS.releaseLeases, first.tenant, ...namesOf(leases)),
      ]);
    }, signal);
  }

  close(): Promise<void> {
    return this.#connections.close();
  }

  async #take(rows: Rows, asks: readonly LimitAsk[]): Promise<LimitAnswer> {
    const { now, values } = await this.#lock(rows, asks);
    const uncounted = asks.filter((ask) => isUncounted(ask, values)).map(({ bucket }) => bucket);
    if (uncounted.length > 0) return { ...PASSED, uncounted };
    const standing = await this.#standing(rows, asks, now);
    const next = new Map<LimitAsk, number>();
    let worst: LimitAnswer = PASSED;
    for (const ask of asks) {
      const value = values.get(keyOf(ask)) ?? null;
      const judged = judge(ask, { value, now, standing: standing.get(ask.bucket) ?? 0 });
      if (judged.waitMs > worst.waitMs) worst = { refusedBy: ask.name, waitMs: judged.waitMs };
      if (judged.value !== undefined) next.set(ask, judged.value);
    }
    if (worst.waitMs > 0) {
      await this.#set(rows, floorsOf(asks, values));
      return worst;
    }
    await this.#set(rows, next);
    for (const ask of asks) {
      // The first call of a day or a month.
      if (ask.kind !== 'budget' || values.get(keyOf(ask)) !== null) continue;
      const { from, to } = pastBuckets(ask);
      // oxlint-disable-next-line no-await-in-loop -- Two at most, in one transaction.
      await rows.run(LIMITS.dropBudgets, ask.tenant, from, to);
    }
    const leases = leasesIn(asks);
    const [first] = leases;
    if (first === undefined) return PASSED;
    const ends = leases.map(({ ttlMs }) => now + ttlMs);
    await rows.run(LIMITS.addLeases, first.tenant, ...namesOf(leases), ends);
    return PASSED;
  }

  async #booked(rows: Rows, changes: readonly CostChange[]): Promise<Map<LimitAsk, number>> {
    const next = new Map<LimitAsk, number>();
    if (changes.length === 0) return next;
    const { now, values } = await this.#lock(
      rows,
      changes.map(({ ask }) => ask),
    );
    for (const { ask, more } of changes) {
      const value = values.get(keyOf(ask)) ?? null;
      if (ask.kind === 'rate') next.set(ask, bookCost(ask.rate, value ?? now, more));
      if (ask.kind === 'budget' && value !== null) next.set(ask, Math.max(0, value + more));
    }
    return next;
  }

  /** All limits of a call are one tenant's. */
  async #lock(rows: Rows, asks: readonly LimitAsk[]): Promise<Locked> {
    const tenant = asks[0]?.tenant ?? '';
    const kinds = asks.map(({ kind }) => kind);
    const buckets = asks.map(({ bucket }) => bucket);
    await rows.run(LIMITS.makeLimits, tenant, kinds, buckets);
    const values = [tenant, kinds, buckets, this.#now()] as const;
    const locked = await rows.all<LockedRow>(LIMITS.lockLimits, ...values);
    return {
      now: locked[0]?.now ?? 0,
      values: new Map(locked.map((row) => [keyOf(row), row.value])),
    };
  }

  /** Calls that run, without those that ended without a word. */
  async #standing(
    rows: Rows,
    asks: readonly LimitAsk[],
    now: number,
  ): Promise<ReadonlyMap<string, number>> {
    const leases = leasesIn(asks);
    const [first] = leases;
    if (first === undefined) return new Map();
    const buckets = leases.map(({ bucket }) => bucket);
    await rows.run(LIMITS.endLeases, first.tenant, buckets, now);
    const found = await rows.all<{ bucket: string; standing: number }>(
      LIMITS.countLeases,
      first.tenant,
      buckets,
    );
    return new Map(found.map(({ bucket, standing }) => [bucket, standing]));
  }

  async #set(rows: Rows, next: ReadonlyMap<LimitAsk, number>): Promise<void> {
    const asks = [...next.keys()];
    const [first] = asks;
    if (first === undefined) return;
    await rows.run(
      LIMITS.setLimits,
      first.tenant,
      asks.map(({ kind }) => kind),
      asks.map(({ bucket }) => bucket),
      [...next.values()],
    );
  }

  #now(): number | null {
    return this.#clock?.now() ?? null;
  }
}

interface State {
  readonly value: number | null;
  readonly now: number;
  readonly standing: number;
}

function judge(
  ask: LimitAsk,
  { value, now, standing }: State,
): { readonly waitMs: number; readonly value?: number } {
  switch (ask.kind) {
    case 'rate': {
      const { rate, cost } = ask;
      const { dueAt, waitMs } = takeCost(rate, { dueAt: value ?? undefined, now, cost });
      return { waitMs, value: dueAt };
    }
    case 'budget': {
      const spent = Math.max(value ?? 0, ask.known ?? 0);
      const isOver = spent >= ask.max || spent + ask.cost > ask.max;
      return { waitMs: isOver ? Math.max(1, ask.until - now) : 0, value: spent + ask.cost };
    }
    case 'lease':
      return { waitMs: standing < ask.max ? 0 : LEASE_WAIT_MS };
  }
}

function isUncounted(ask: LimitAsk, values: Locked['values']): boolean {
  if (ask.kind !== 'budget' || ask.known !== undefined) return false;
  return (values.get(keyOf(ask)) ?? null) === null;
}

/** A refused call keeps what is known of a budget too, because else each refusal would read it. */
function floorsOf(asks: readonly LimitAsk[], values: Locked['values']): Map<LimitAsk, number> {
  const floors = new Map<LimitAsk, number>();
  for (const ask of asks) {
    if (ask.kind !== 'budget' || ask.known === undefined) continue;
    if ((values.get(keyOf(ask)) ?? null) === null) floors.set(ask, ask.known);
  }
  return floors;
}

function leasesIn(asks: readonly LimitAsk[]): LeaseAsk[] {
  return asks.filter((ask) => ask.kind === 'lease');
}

function namesOf(leases: readonly LeaseAsk[]): [string[], string[]] {
  return [leases.map(({ bucket }) => bucket), leases.map(({ leaseId }) => leaseId)];
}

function keyOf({ kind, bucket }: Pick<LimitAsk, 'kind' | 'bucket'>): string {
  return `${kind} ${bucket}`;
}
