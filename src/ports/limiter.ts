import type { LeaseAsk, LimitAsk } from '../core/service/limits.ts';

export type { BudgetAsk, LeaseAsk, LimitAsk, RateAsk } from '../core/service/limits.ts';

/**
 * Counts calls against limits. Several limits of one call are taken together or not at all, so a call
 * that one of them refuses uses up nothing of the others. All that is named together is of one tenant:
 * the counts of two may lie on two servers. Rejects when it cannot tell; the caller then
 * blocks the call and never guesses.
 */
export interface Limiter {
  /** It counts in this process: it answers at once, and is never silent. */
  readonly isOwn?: true;
  take(asks: readonly LimitAsk[], signal: AbortSignal): Promise<LimitAnswer>;
  /**
   * Books more than was taken, or less where `more` is negative: the real cost of a call is known at its
   * end. No limit refuses that.
   */
  adjust(changes: readonly CostChange[], signal: AbortSignal): Promise<void>;
  /** Heartbeat: renews valid leases for their full time. An expired lease stays expired. */
  renew(leases: readonly LeaseAsk[], signal: AbortSignal): Promise<void>;
  release(leases: readonly LeaseAsk[], signal: AbortSignal): Promise<void>;
}

export interface CostChange {
  readonly ask: LimitAsk;
  readonly more: number;
}

export interface LimitAnswer {
  /** Name of the limit that refuses, with the longest wait; undefined: the call may pass. */
  readonly refusedBy: string | undefined;
  /** Milliseconds until all of them would let it pass; 0 when it may pass now. */
  readonly waitMs: number;
}
