import type { LeaseAsk, LimitAsk } from '../core/limits.ts';

export type { BudgetAsk, LeaseAsk, LimitAsk, RateAsk } from '../core/limits.ts';

/**
 * Counts calls against limits. The limits of one call are taken all together or not at all, so a refused call uses up
 * nothing. All limits of one call belong to one tenant, because two tenants may be counted on two servers. `take`
 * rejects if the limiter cannot count; the caller must then refuse the call.
 */
export interface Limiter {
  /** Resolves if the limiter can count now; otherwise rejects. */
  ping(): Promise<void>;
  /**
   * Counts a call against its limits. If the answer has `uncounted`, nothing was counted: call again with `known` for
   * each of these budgets. The limiter stores `known`, even if it then refuses the call.
   */
  take(asks: readonly LimitAsk[], signal: AbortSignal): Promise<LimitAnswer>;
  /**
   * Renews the leases of running calls for their full time. An expired lease stays expired. A lease that the limiter
   * has lost, such as in a restart of the Redis server, is taken again.
   */
  renew(leases: readonly LeaseAsk[], signal: AbortSignal): Promise<void>;
  /**
   * Books the end of a call; no limit can refuse it. A budget without a count stays without one, because the receipt
   * of this call will be in `known` at the next call.
   */
  settle(end: CallEnd, signal: AbortSignal): Promise<void>;
}

export interface CallEnd {
  /** Leases that the call gives back. */
  readonly leases: readonly LeaseAsk[];
  /** For each limit, how much the real cost differs from the cost that was taken at the beginning of the call. */
  readonly changes: readonly CostChange[];
}

export interface CostChange {
  readonly ask: LimitAsk;
  /** Negative if the call cost less than was taken. */
  readonly more: number;
}

export interface LimitAnswer {
  /** The name of the limit that refuses with the longest wait; undefined if the call may pass. */
  readonly refusedBy: string | undefined;
  /** The longest wait of the refusing limits in milliseconds: a guess for running calls. 0 if the call may pass now. */
  readonly waitMs: number;
  /** Buckets of budgets that have no count yet, and for which the call gave no `known`. */
  readonly uncounted?: readonly string[];
}
