import { Recent } from '../core/bytes/recent.ts';
import {
  type BudgetAsk,
  costDifference,
  LEASE_MS,
  type LeaseAsk,
  type LimitAsk,
  limitsOfModelCalls,
  type ModelLimits,
  type SpentTokens,
  type TokenBudget,
} from '../core/service/limits.ts';
import type { Caller } from '../ports/control-store.ts';
import type { Clock } from '../ports/clock.ts';
import type { CostChange, Limiter } from '../ports/limiter.ts';
import type { SpentQuestion } from '../ports/receipt-store.ts';
import type { ServiceStore } from '../ports/service-store.ts';
import { askWithin, limiterUnavailable, takeLimits } from './admission.ts';

/**
 * Lets a model call in when all of its limits allow it, and books at its end what it came to. The
 * tokens of a request are an estimate until the provider has counted them.
 */

export interface AdmittedCall {
  /**
   * Call once at the end of the call. It never throws and does not wait. 'unused': no provider was
   * reached, so the tokens are returned. Undefined: there is no count, and the estimate stays.
   */
  settle(spent: SpentTokens | 'unused' | undefined): void;
}

export interface AskingCall {
  readonly caller: Caller;
  /** Names this call among all that ever were. */
  readonly callId: string;
  /** The estimate of the tokens that are sent to the provider. */
  readonly inputTokens: number;
}

/** Three heartbeats fit into a lease: one that is late ends no place. */
const HEARTBEAT_MS = LEASE_MS / 3;
/** A budget's sum is read once in a period; each takes 100 bytes. */
const KNOWN_MAX = 100_000;
const STORE_MS = 1000;
/** The end of a call does not wait, and a limiter that does not answer must not hold memory. */
const SETTLE_MS = 5000;

type KnownBudget = Omit<BudgetAsk, 'cost'>;

/** With the tokens that were spent before this process counted. */
interface CallerLimits extends Omit<ModelLimits, 'budgets'> {
  readonly budgets: readonly KnownBudget[];
}

interface Needs {
  readonly limiter: Limiter;
  readonly store: ServiceStore;
  readonly clock: Clock;
  /** Calls of one key a minute; null: not limited. */
  readonly settings: { readonly requestsPerMinute: number | null };
}

export class ModelAdmission {
  readonly #parts: Needs;
  readonly #known = new Recent<string, Promise<number>>(KNOWN_MAX);
  /** A caller whose plan or key has changed is another object. */
  readonly #limits = new WeakMap<Caller, CallerLimits>();
  /** The places of the calls that run, by tenant. */
  readonly #leases = new Map<string, Set<LeaseAsk>>();
  #heartbeat: NodeJS.Timeout | undefined;

  constructor(parts: Needs) {
    this.#parts = parts;
  }

  /** Throws ServiceFault RATE_LIMIT_EXCEEDED or RATE_LIMITER_UNAVAILABLE. */
  async admit({ caller, callId, inputTokens }: AskingCall): Promise<AdmittedCall> {
    const limits = await this.#limitsOf(caller);
    const asks: LimitAsk[] = [...limits.calls];
    if (limits.tokens !== undefined) asks.push({ ...limits.tokens, cost: inputTokens });
    const { places } = limits;
    const lease = places === undefined ? undefined : { ...places, leaseId: callId };
    if (lease !== undefined) asks.push(lease);
    for (const known of limits.budgets) asks.push({ ...known, cost: inputTokens });
    await takeLimits(this.#parts.limiter, asks);
    if (lease !== undefined) this.#hold(lease);
    let isSettled = false;
    return {
      settle: (spent) => {
        if (!isSettled) this.#settle(asks, lease, spent);
        isSettled = true;
      },
    };
  }

  #settle(
    asks: readonly LimitAsk[],
    lease: LeaseAsk | undefined,
    spent: SpentTokens | 'unused' | undefined,
  ): void {
    if (lease !== undefined) this.#letGo(lease);
    const leases = lease === undefined ? [] : [lease];
    const changes = spent === undefined ? [] : changesOf(asks, spent);
    const count = leases.length + changes.length;
    this.#tell((signal) => this.#parts.limiter.settle({ leases, changes }, signal), count);
  }

  /**
   * No call waits for this: a lease that is not returned expires, and an estimate stays an
   * estimate.
   */
  #tell(call: (signal: AbortSignal) => Promise<void>, count: number): void {
    if (count === 0) return;
    const { limiter } = this.#parts;
    askWithin(limiter, SETTLE_MS, call).catch(() => undefined);
  }

  #hold(lease: LeaseAsk): void {
    const running = this.#leases.get(lease.tenant) ?? new Set();
    this.#leases.set(lease.tenant, running.add(lease));
    this.#beatSoon();
  }

  #letGo(lease: LeaseAsk): void {
    const running = this.#leases.get(lease.tenant);
    running?.delete(lease);
    if (running?.size === 0) this.#leases.delete(lease.tenant);
  }

  #beatSoon(): void {
    if (this.#heartbeat !== undefined) return;
    this.#heartbeat = setTimeout(() => {
      this.#heartbeat = undefined;
      if (this.#leases.size === 0) return;
      for (const running of this.#leases.values()) {
        const leases = [...running];
        this.#tell((signal) => this.#parts.limiter.renew(leases, signal), leases.length);
      }
      this.#beatSoon();
    }, HEARTBEAT_MS).unref();
  }

  /** They are kept until the end of a day, because the budgets are those of the calendar. */
  async #limitsOf(caller: Caller): Promise<CallerLimits> {
    const { clock, settings } = this.#parts;
    const now = clock.now();
    const before = this.#limits.get(caller);
    if (before !== undefined && now >= before.from && now < before.until) return before;
    const { key, tenant } = caller;
    const { requestsPerMinute } = settings;
    const limits = limitsOfModelCalls({ key, limits: tenant.limits, requestsPerMinute, now });
    const asking = limits.budgets.map((budget) => this.#withKnown(key.tenant, budget));
    const found = { ...limits, budgets: await Promise.all(asking) };
    this.#limits.set(caller, found);
    return found;
  }

  async #withKnown(tenant: string, budget: TokenBudget): Promise<KnownBudget> {
    const { from, to, keyId, ...ask } = budget;
    const asked = { from, to, ...(keyId === undefined ? {} : { keyId }) };
    const before = this.#known.get(ask.bucket);
    const known = before ?? this.#ask(tenant, asked);
    if (before === undefined) this.#keep(ask.bucket, known);
    return { ...ask, known: await known };
  }

  async #ask(tenant: string, asked: SpentQuestion): Promise<number> {
    const signal = AbortSignal.timeout(STORE_MS);
    return this.#parts.store
      .of(tenant)
      .tokensSpent(asked, signal)
      .catch(() => {
        throw limiterUnavailable();
      });
  }

  /** A failure is not kept: the next call asks again. */
  #keep(bucket: string, known: Promise<number>): void {
    this.#known.set(bucket, known);
    known.catch(() => this.#known.delete(bucket));
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
