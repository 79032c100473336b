import type { BudgetAsk, LeaseAsk, Limiter, RateAsk } from '../../src/ports/limiter.ts';

/** Limits to ask for, and limiters that go wrong. */

export const rateAsk = (bucket: string, perMinute = 60, burst = 2): RateAsk => ({
  kind: 'rate',
  name: `limit of ${bucket}`,
  tenant: 'acme',
  bucket,
  rate: { perMinute, burst },
  cost: 1,
});

/** Milliseconds that a test's budgets last. */
export const BUDGET_MS = 3_600_000;

export const budgetAsk = (bucket: string, more: Partial<BudgetAsk> = {}): BudgetAsk => ({
  kind: 'budget',
  name: `budget of ${bucket}`,
  tenant: 'acme',
  bucket,
  max: 100,
  cost: 10,
  known: 0,
  until: BUDGET_MS,
  ...more,
});

export const leaseAsk = (leaseId: string, more: Partial<LeaseAsk> = {}): LeaseAsk => ({
  kind: 'lease',
  name: 'places',
  tenant: 'acme',
  bucket: 'places',
  max: 2,
  leaseId,
  ttlMs: 30_000,
  ...more,
});

/** Its other calls do what the one for taking does. */
export function limiterOf(take: Limiter['take']): Limiter {
  const tell = async (): Promise<void> => {
    await take([], AbortSignal.timeout(1000));
  };
  return { ping: tell, take, renew: tell, settle: tell };
}
