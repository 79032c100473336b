import { groupBy } from '../../../src/core/bytes/batches.ts';
import type { Clock } from '../../../src/ports/clock.ts';
import { withinDeadline } from '../../../src/proxy/deadline.ts';
import {
  costDifference,
  HEARTBEAT_MS,
  type LeaseAsk,
  type LimitAsk,
  limitsOfModelCalls,
  type ModelLimits,
  type SpentTokens,
  type TokenBudget,
} from '../core/limits.ts';
import type { Caller } from '../ports/control-store.ts';
import type { CostChange, LimitAnswer, Limiter } from '../ports/limiter.ts';
import type { Receipts } from '../ports/receipt-store.ts';
import type { ServiceStore } from '../ports/service-store.ts';
import { ServiceFault } from './fault.ts';

/**
 * Accepts a call if its limits allow it. If the limiter fails or does not answer, the call is refused, so an outage
 * never lets a caller exceed the plan.
 */

/** Deadline of the limiter's answer. A limiter on the same network answers in a millisecond. */
const LIMITER_MS = 1000;
const RETRY_AFTER_MS = 2000;

/**
 * Counts a call against its limits. `knownOf` returns the tokens that are spent of a budget; it is called if the
 * limiter has no count of the budget. Throws ServiceFault RATE_LIMIT_EXCEEDED or RATE_LIMITER_UNAVAILABLE.
 */
export async function takeLimits(
  limiter: Limiter,
  asks: readonly LimitAsk[],
  knownOf: (bucket: string) => Promise<number> = async () => 0,
): Promise<void> {
  // A call without a limit skips the limiter, so a failed limiter does not stop it.
  if (asks.length === 0) return;
  let answer = await askLimiter(limiter, asks);
  if (answer.uncounted !== undefined) {
    answer = await askLimiter(limiter, await withKnown(asks, answer.uncounted, knownOf));
  }
  // The limiter has lost its counts between the two answers.
  if (answer.uncounted !== undefined) throw limiterUnavailable();
  const { refusedBy, waitMs } = answer;
  if (refusedBy === undefined) return;
  const message = `The limit ${refusedBy} is reached.`;
  throw new ServiceFault('RATE_LIMIT_EXCEEDED', message, { afterMs: waitMs, param: refusedBy });
}

function withKnown(
  asks: readonly LimitAsk[],
  uncounted: readonly string[],
  knownOf: (bucket: string) => Promise<number>,
): Promise<LimitAsk[]> {
  const known = asks.map(async (ask) => {
    if (ask.kind !== 'budget' || !uncounted.includes(ask.bucket)) return ask;
    return { ...ask, known: await knownOf(ask.bucket) };
  });
  return Promise.all(known);
}

/** Asks the limiter. If it fails before the deadline, asks it once more at once. */
async function askLimiter(limiter: Limiter, asks: readonly LimitAsk[]): Promise<LimitAnswer> {
  try {
    return await withinDeadline(LIMITER_MS, (signal) =>
      limiter.take(asks, signal).catch((error: unknown) => {
        if (signal.aborted) throw error;
        return limiter.take(asks, signal);
      }),
    );
  } catch {
    throw limiterUnavailable();
  }
}

export function limiterUnavailable(): ServiceFault {
  const message = 'The service cannot check limits now, so it refuses the call.';
  return new ServiceFault('RATE_LIMITER_UNAVAILABLE', message, { afterMs: RETRY_AFTER_MS });
}

export interface AdmittedCall {
  /**
   * Corrects the counts to the real cost. Call it at the end of the call; it never throws and does not wait. 'unused'
   * gives all tokens back, because no provider charged any. Undefined means that the cost is unknown: the estimate
   * stays.
   */
  settle(spent: SpentTokens | 'unused' | undefined): void;
}

export interface AskingCall {
  readonly caller: Caller;
  /** Identifies this call; no two calls ever have the same id. */
  readonly callId: string;
  /** The estimated number of input tokens of the client's request. */
  readonly inputTokens: number;
}

/** Deadline of storing the closed receipts and then reading from the sums of usage how much of a budget is spent. */
const STORE_MS = 1000;
/** Deadline of a message to the limiter, so that messages to a limiter that does not answer do not fill the memory. */
const SETTLE_MS = 5000;

interface Needs {
  readonly limiter: Limiter;
  readonly store: ServiceStore;
  readonly receipts: Pick<Receipts, 'flush'>;
  readonly clock: Clock;
  /** Calls of one key per minute; null means no limit. */
  readonly settings: { readonly requestsPerMinute: number | null };
}

/**
 * Admits model calls if all their limits allow it, and books the real cost at the end. A call counts as soon as its key
 * is known, unless its tenant is suspended or the service stops. So a call that is refused later counts too, and so
 * does a list of models. Tokens are checked before the memory is asked, with an estimate that is corrected once the
 * provider has counted them.
 */
export class ModelAdmission {
  readonly #parts: Needs;
  /** Sums of usage that are being read, by budget, so that two calls share one read. */
  readonly #reading = new Map<string, Promise<number>>();
  /** The estimated tokens of running calls, by budget. The receipts of these calls are not in the sums of usage yet. */
  readonly #running = new Map<string, number>();
  /** The leases of running calls. */
  readonly #leases = new Set<LeaseAsk>();
  #heartbeat: NodeJS.Timeout | undefined;

  constructor(parts: Needs) {
    this.#parts = parts;
  }

  /** Counts a call. Throws ServiceFault RATE_LIMIT_EXCEEDED or RATE_LIMITER_UNAVAILABLE. */
  async enter(caller: Caller): Promise<void> {
    await takeLimits(this.#parts.limiter, this.#limitsOf(caller).calls);
  }

  /**
   * Counts a call against the limits on running calls, on input tokens and on budgets. Throws ServiceFault
   * RATE_LIMIT_EXCEEDED or RATE_LIMITER_UNAVAILABLE.
   */
  async admit({ caller, callId, inputTokens }: AskingCall): Promise<AdmittedCall> {
    const limits = this.#limitsOf(caller);
    const asks: LimitAsk[] = [];
    if (limits.tokens !== undefined) asks.push({ ...limits.tokens, cost: inputTokens });
    if (limits.places !== undefined) asks.push({ ...limits.places, leaseId: callId });
    for (const budget of limits.budgets) asks.push({ ...budget, cost: inputTokens });
    await takeLimits(this.#parts.limiter, asks, (bucket) => {
      return this.#knownOf(caller.key.tenant, limits.budgets, bucket);
    });
    this.#run(asks, 1);
    this.#beatSoon();
    let isSettled = false;
    return {
      settle: (spent) => {
        if (!isSettled) this.#settle(asks, spent);
        isSettled = true;
      },
    };
  }

  #settle(asks: readonly LimitAsk[], spent: SpentTokens | 'unused' | undefined): void {
    this.#run(asks, -1);
    const leases = asks.filter((ask) => ask.kind === 'lease');
    const changes = spent === undefined ? [] : changesOf(asks, spent);
    if (leases.length + changes.length === 0) return;
    this.#tell((signal) => this.#parts.limiter.settle({ leases, changes }, signal));
  }

  /** Sends a message to the limiter without waiting. If it is lost, a lease expires and an estimate stays. */
  #tell(call: (signal: AbortSignal) => Promise<void>): void {
    withinDeadline(SETTLE_MS, call).catch(() => undefined);
  }

  #beatSoon(): void {
    if (this.#heartbeat !== undefined || this.#leases.size === 0) return;
    this.#heartbeat = setTimeout(() => {
      this.#heartbeat = undefined;
      // The limits of two tenants may be counted on two servers, so each message has the leases of one tenant.
      for (const leases of groupBy(this.#leases, ({ tenant }) => tenant).values()) {
        this.#tell((signal) => this.#parts.limiter.renew(leases, signal));
      }
      this.#beatSoon();
    }, HEARTBEAT_MS).unref();
  }

  /** Adds a call's lease and its estimated tokens to those of running calls, or takes them away. */
  #run(asks: readonly LimitAsk[], sign: 1 | -1): void {
    for (const ask of asks) {
      if (ask.kind === 'lease' && sign === 1) this.#leases.add(ask);
      if (ask.kind === 'lease' && sign === -1) this.#leases.delete(ask);
      if (ask.kind !== 'budget') continue;
      const running = (this.#running.get(ask.bucket) ?? 0) + sign * ask.cost;
      if (running > 0) this.#running.set(ask.bucket, running);
      else this.#running.delete(ask.bucket);
    }
  }

  #limitsOf({ key, tenant: { limits } }: Caller): ModelLimits {
    const { clock, settings } = this.#parts;
    const { requestsPerMinute } = settings;
    return limitsOfModelCalls({ key, limits, requestsPerMinute, now: clock.now() });
  }

  /** Returns how much of a budget is spent: the tokens of its receipts, and the estimates of its running calls. */
  async #knownOf(tenant: string, budgets: readonly TokenBudget[], bucket: string): Promise<number> {
    const budget = budgets.find((one) => one.bucket === bucket);
    if (budget === undefined) throw limiterUnavailable();
    const reading = this.#reading.get(bucket) ?? this.#read(tenant, budget);
    this.#reading.set(bucket, reading);
    try {
      return await reading;
    } catch {
      throw limiterUnavailable();
    } finally {
      this.#reading.delete(bucket);
    }
  }

  #read(tenant: string, { bucket, from, to, keyId }: TokenBudget): Promise<number> {
    const { store, receipts } = this.#parts;
    return withinDeadline(STORE_MS, async (signal) => {
      // The receipts of calls that have just ended wait for their batch, and no limiter has counted them.
      if (!(await receipts.flush())) throw limiterUnavailable();
      // A call that ends from here on is in this estimate. Its receipt is usually stored after the query.
      const running = this.#running.get(bucket) ?? 0;
      return (await store.of(tenant).tokensSpent({ from, to, keyId }, signal)) + running;
    });
  }
}

function changesOf(asks: readonly LimitAsk[], spent: SpentTokens | 'unused'): CostChange[] {
  const tokens = spent === 'unused' ? NO_TOKENS : spent;
  const changes: CostChange[] = [];
  for (const ask of asks) {
    const more = costDifference(ask, tokens);
    if (more !== 0) changes.push({ ask, more });
  }
  return changes;
}

const NO_TOKENS: SpentTokens = { input: 0, output: 0 };
