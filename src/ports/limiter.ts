import type { Rate } from '../core/service/rates.ts';

/**
 * Counts calls against limits. Several limits of one call are taken together or not at all, so a call
 * that one of them refuses uses up nothing of the others. Rejects when it cannot tell; the caller then
 * blocks the call and never guesses.
 */
export interface Limiter {
  take(asks: readonly LimitAsk[], signal: AbortSignal): Promise<LimitAnswer>;
}

export interface LimitAsk {
  /** The limit's name, for the caller who meets it. */
  readonly name: string;
  /** Whose: equal buckets share one count. */
  readonly bucket: string;
  readonly rate: Rate;
}

export interface LimitAnswer {
  /** Name of the limit that refuses, with the longest wait; undefined: the call may pass. */
  readonly refusedBy: string | undefined;
  /** Milliseconds until all of them would let it pass; 0 when it may pass now. */
  readonly waitMs: number;
}
