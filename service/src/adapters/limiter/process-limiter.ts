import { Recent } from '../../../../src/core/bytes/recent.ts';
import { bookCost, BUCKETS_MAX, takeCost } from '../../core/rates.ts';
import type { Clock } from '../../../../src/ports/clock.ts';
import type {
  BudgetAsk,
  CallEnd,
  LeaseAsk,
  LimitAnswer,
  LimitAsk,
  Limiter,
} from '../../ports/limiter.ts';

/** Counts limits in memory, for a service with one process. */

/** The wait that a caller is told if too many calls are running, because nobody knows when one will end. */
const LEASE_WAIT_MS = 1000;

export class ProcessLimiter implements Limiter {
  readonly #clock: Clock;
  readonly #due = new Recent<string, number>(BUCKETS_MAX);
  readonly #spent = new Recent<string, number>(BUCKETS_MAX);
  /**
   * By bucket, then by the id of a lease: when the lease ends, in milliseconds of the monotonic clock. All leases have
   * the same length, so the first lease of a bucket ends first.
   */
  readonly #leases = new Map<string, Map<string, number>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Always resolves, because this limiter works as long as its process does. */
  async ping(): Promise<void> {}

  async take(asks: readonly LimitAsk[]): Promise<LimitAnswer> {
    const now = this.#clock.monotonic();
    const uncounted = asks.flatMap((ask) => (this.#isUncounted(ask) ? [ask.bucket] : []));
    if (uncounted.length > 0) return { refusedBy: undefined, waitMs: 0, uncounted };
    for (const ask of asks) this.#begin(ask);
    let refusedBy: string | undefined;
    let waitMs = 0;
    for (const ask of asks) {
      const wait = this.#waitMs(ask, now);
      if (wait <= waitMs) continue;
      waitMs = wait;
      refusedBy = ask.name;
    }
    if (refusedBy === undefined) for (const ask of asks) this.#book(ask, now);
    return { refusedBy, waitMs };
  }

  async renew(leases: readonly LeaseAsk[]): Promise<void> {
    const now = this.#clock.monotonic();
    for (const { bucket, leaseId, ttlMs } of leases) {
      const standing = this.#standing(bucket, now);
      // Insert the lease again at the end of the map, because the map is sorted by the ends of its leases.
      if (standing.delete(leaseId)) standing.set(leaseId, now + ttlMs);
    }
  }

  async settle({ leases, changes }: CallEnd): Promise<void> {
    for (const { bucket, leaseId } of leases) {
      const standing = this.#leases.get(bucket);
      standing?.delete(leaseId);
      if (standing?.size === 0) this.#leases.delete(bucket);
    }
    for (const { ask, more } of changes) {
      if (ask.kind === 'rate') {
        const due = this.#due.get(ask.bucket) ?? this.#clock.monotonic();
        this.#due.set(ask.bucket, bookCost(ask.rate, due, more));
      } else if (ask.kind === 'budget' && this.#spent.get(ask.bucket) !== undefined) {
        this.#spent.set(ask.bucket, Math.max(0, this.#spentOf(ask) + more));
      }
    }
  }

  /** Returns the milliseconds to wait for this limit; 0 if it lets the call pass. */
  #waitMs(ask: LimitAsk, now: number): number {
    switch (ask.kind) {
      case 'rate': {
        const { rate, bucket, cost } = ask;
        return takeCost(rate, { dueAt: this.#due.get(bucket), now, cost }).waitMs;
      }
      case 'budget': {
        const spent = this.#spentOf(ask);
        const isOver = spent >= ask.max || spent + ask.cost > ask.max;
        return isOver ? Math.max(1, ask.until - this.#clock.now()) : 0;
      }
      case 'lease':
        return this.#standing(ask.bucket, now).size < ask.max ? 0 : LEASE_WAIT_MS;
    }
  }

  #book(ask: LimitAsk, now: number): void {
    switch (ask.kind) {
      case 'rate': {
        const { rate, bucket, cost } = ask;
        this.#due.set(bucket, takeCost(rate, { dueAt: this.#due.get(bucket), now, cost }).dueAt);
        return;
      }
      case 'budget':
        this.#spent.set(ask.bucket, this.#spentOf(ask) + ask.cost);
        return;
      case 'lease': {
        const standing = this.#standing(ask.bucket, now);
        standing.delete(ask.leaseId);
        this.#leases.set(ask.bucket, standing.set(ask.leaseId, now + ask.ttlMs));
      }
    }
  }

  #spentOf({ bucket, known = 0 }: BudgetAsk): number {
    return Math.max(this.#spent.get(bucket) ?? 0, known);
  }

  /**
   * Stores the `known` spending of a budget, even if the call is then refused. Otherwise each refused call would read
   * the spending from the receipts again.
   */
  #begin(ask: LimitAsk): void {
    if (ask.kind === 'budget' && this.#spent.get(ask.bucket) === undefined) {
      this.#spent.set(ask.bucket, ask.known ?? 0);
    }
  }

  #isUncounted(ask: LimitAsk): boolean {
    if (ask.kind !== 'budget' || ask.known !== undefined) return false;
    return this.#spent.get(ask.bucket) === undefined;
  }

  /** Returns the running leases of a bucket, after removing the expired ones. */
  #standing(bucket: string, now: number): Map<string, number> {
    const standing = this.#leases.get(bucket) ?? new Map<string, number>();
    for (const [leaseId, endsAt] of standing) {
      if (endsAt > now) break;
      standing.delete(leaseId);
    }
    return standing;
  }
}
