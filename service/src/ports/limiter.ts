import type { LeaseAsk, LimitAsk } from '../core/limits.ts';

export type { BudgetAsk, LeaseAsk, LimitAsk, RateAsk } from '../core/limits.ts';

/**
 * Counts calls against limits. Several limits of one call are taken together or not at all, so a call
 * that one of them refuses uses up nothing of the others. All that is named together is of one tenant:
 * the counts of two may lie on two servers. Rejects when it cannot tell; the caller then
 * blocks the call and never guesses.
 */
export interface Limiter {
  /** It counts in this process: it answers at once, and is never silent. */
  readonly isOwn?: true;
  /** Rejects while it does not answer. Absent if it counts in this process. */
  ping?(): Promise<void>;
  /**
   * Books nothing if it answers `uncounted`: then ask again, with what is known of these budgets. It
   * keeps that, whether it lets the call pass or not.
   */
  take(asks: readonly LimitAsk[], signal: AbortSignal): Promise<LimitAnswer>;
  /** Heartbeat: renews valid leases for their full time. An expired lease stays expired. */
  renew(leases: readonly LeaseAsk[], signal: AbortSignal): Promise<void>;
  /**
   * The end of a call. No limit refuses it. A budget without a count stays without one: the receipt of
   * the call is in what is known at the next call.
   */
  settle(end: CallEnd, signal: AbortSignal): Promise<void>;
}

export interface CallEnd {
  /** They are given back. */
  readonly leases: readonly LeaseAsk[];
  /** The real costs of the call, which are known at its end. */
  readonly changes: readonly CostChange[];
}

export interface CostChange {
  readonly ask: LimitAsk;
  /** Negative where it cost less than was taken. */
  readonly more: number;
}

export interface LimitAnswer {
  /** Name of the limit that refuses, with the longest wait; undefined: the call may pass. */
  readonly refusedBy: string | undefined;
  /** Milliseconds until all of them would let it pass; 0 when it may pass now. */
  readonly waitMs: number;
  /** Buckets of budgets that have no count here, and came without what is known. */
  readonly uncounted?: readonly string[];
}
