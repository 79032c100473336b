import { Recent } from '../core/bytes/recent.ts';
import {
  type BudgetAsk,
  costDifference,
  LEASE_MS,
  type LeaseAsk,
  type LimitAsk,
  limitsOfModelCall,
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
  /** The places of the calls that run, by tenant. */
  readonly #leases = new Map<string, Set<LeaseAsk>>();
  #heartbeat: NodeJS.Timeout | undefined;

  constructor(parts: Needs) {
    this.#parts = parts;
  }

  /** Throws ServiceFault RATE_LIMIT_EXCEEDED or RATE_LIMITER_UNAVAILABLE. */
  async admit({ caller, callId, inputTokens }: AskingCall): Promise<AdmittedCall> {
    const { limiter, clock, settings } = this.#parts;
    const { rates, budgets } = limitsOfModelCall({
      key: caller.key,
      limits: caller.tenant.limits,
      requestsPerMinute: settings.requestsPerMinute,
      inputTokens,
      leaseId: callId,
      now: clock.now(),
    });
    const known = await Promise.all(
      budgets.map((budget) => this.#withKnown(caller.key.tenant, budget)),
    );
    const asks = [...rates, ...known];
    await takeLimits(limiter, asks);
    const leases = asks.filter((ask) => ask.kind === 'lease');
    this.#hold(leases);
    let isSettled = false;
    return {
      settle: (spent) => {
        if (!isSettled) this.#settle(asks, leases, spent);
        isSettled = true;
      },
    };
  }

  #settle(
    asks: readonly LimitAsk[],
    leases: readonly LeaseAsk[],
    spent: SpentTokens | 'unused' | undefined,
  ): void {
    this.#letGo(leases);
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

  #hold(leases: readonly LeaseAsk[]): void {
    for (const lease of leases) {
      const running = this.#leases.get(lease.tenant) ?? new Set();
      this.#leases.set(lease.tenant, running.add(lease));
    }
    if (leases.length > 0) this.#beatSoon();
  }

  #letGo(leases: readonly LeaseAsk[]): void {
    for (const lease of leases) {
      const running = this.#leases.get(lease.tenant);
      running?.delete(lease);
      if (running?.size === 0) this.#leases.delete(lease.tenant);
    }
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

  async #withKnown(tenant: string, budget: TokenBudget): Promise<BudgetAsk> {
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
  return asks
    .map((ask) => ({ ask, more: costDifference(ask, tokens) }))
    .filter(({ more }) => more !== 0);
}

const NO_TOKENS: SpentTokens = { input: 0, output: 0 };
