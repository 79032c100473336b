import { isoDay } from '../../../src/core/memory/times.ts';
import type { StoredKey } from '../../../src/core/memory-api/keys.ts';
import type { PlanLimits } from './plans.ts';
import type { Rate } from './rates.ts';

/** Derives the limits of a call from its tenant's plan, its key and the settings. The limiter counts against them. */

export type LimitAsk = RateAsk | BudgetAsk | LeaseAsk;

interface Limit {
  /** The limit's name, as the refused caller reads it. */
  readonly name: string;
  /** The tenant of the call: a limiter keeps all counts of a tenant in one place. */
  readonly tenant: string;
  /** Names the counter within the tenant. Limits with equal buckets share one count. */
  readonly bucket: string;
}

export interface RateAsk extends Limit {
  readonly kind: 'rate';
  readonly rate: Rate;
  /** What the call takes from the limit: one call, or the call's input tokens. */
  readonly cost: number;
}

/** A limit on the tokens of a period. At the end of the period the count starts again. */
export interface BudgetAsk extends Limit {
  readonly kind: 'budget';
  readonly max: number;
  readonly cost: number;
  /**
   * The tokens that are spent: those of stored receipts, and the estimates of this process's running calls. Only set if
   * the limiter has no count of this bucket: at the first call of a period, and after a limiter lost its counts.
   */
  readonly known?: number;
  /** The end of the period, in milliseconds since 1970. */
  readonly until: number;
}

export interface LeaseAsk extends Limit {
  readonly kind: 'lease';
  readonly max: number;
  /** The id of one call. Its place is free again after `ttlMs` without a heartbeat. */
  readonly leaseId: string;
  readonly ttlMs: number;
}

/**
 * The default burst, the number of calls that may come at once, is the limit per minute divided by this number, and at
 * least 1. A starting agent sends several calls at once.
 */
const BURST_SHARE = 12;

/** Returns the limits of a key's call that is no model request. `usesMemory`: false for whoami and for receipts. */
export function limitsOfCall(
  { key: { tenant, keyId }, limits, requestsPerMinute }: Omit<ModelCaller, 'now'>,
  usesMemory: boolean,
): readonly RateAsk[] {
  const perMinute = usesMemory ? limits.memory_calls_per_minute : null;
  const memory = { name: 'memory_calls_per_minute', tenant, bucket: `memory:${tenant}` };
  return [...keyRate(tenant, keyId, requestsPerMinute), ...callRate(memory, { perMinute })];
}

export interface ModelCaller {
  readonly key: Pick<StoredKey, 'tenant' | 'keyId' | 'tokensPerDay' | 'tokensPerMonth'>;
  readonly limits: PlanLimits;
  /** The limit for each key from the service's settings; null means no limit. */
  readonly requestsPerMinute: number | null;
  readonly now: number;
}

/** Default bound on the canonical bytes of a space: a busy team's records of ten years. */
export const SPACE_BYTES_MAX = 16 * 1024 ** 3;

/** How long a call, a job or a node counts as running without a heartbeat. After that, its process counts as dead. */
export const LEASE_MS = 30_000;
/** The interval of heartbeats, so short that a lease does not expire if one heartbeat is lost. */
export const HEARTBEAT_MS = LEASE_MS / 3;

export interface ModelLimits {
  readonly calls: readonly RateAsk[];
  /** The limit on input tokens; the `cost` is the number of tokens of one call. */
  readonly tokens: Omit<RateAsk, 'cost'> | undefined;
  /** The limit on running calls; each call adds its `leaseId`. */
  readonly places: Omit<LeaseAsk, 'leaseId'> | undefined;
  readonly budgets: readonly TokenBudget[];
}

/** A budget of tokens, without the cost of a call. */
export interface TokenBudget extends Omit<BudgetAsk, 'cost' | 'known'> {
  /** The first and the last day of the period, UTC. */
  readonly from: string;
  readonly to: string;
  /** The key that this budget limits. Undefined if it limits all keys of the tenant together. */
  readonly keyId: string | undefined;
}

export function limitsOfModelCalls(caller: ModelCaller): ModelLimits {
  const { key, limits, requestsPerMinute } = caller;
  const { tenant, keyId } = key;
  const { input_tokens_per_minute: perMinute, concurrent_requests: max } = limits;
  const requests = { name: 'requests_per_minute', tenant, bucket: `requests:${tenant}` };
  const input = { name: 'input_tokens_per_minute', tenant, bucket: `input:${tenant}` };
  const running = { name: 'concurrent_requests', tenant, bucket: `running:${tenant}` };
  const requestRate = { perMinute: limits.requests_per_minute, burst: limits.requests_burst };
  return {
    calls: [...keyRate(tenant, keyId, requestsPerMinute), ...callRate(requests, requestRate)],
    tokens:
      perMinute === null
        ? undefined
        : { kind: 'rate', ...input, rate: { perMinute, burst: perMinute } },
    places: max === null ? undefined : { kind: 'lease', ...running, max, ttlMs: LEASE_MS },
    budgets: [
      ...budget(caller, { name: 'tokens_per_day', max: limits.tokens_per_day }),
      ...budget(caller, { name: 'tokens_per_month', max: limits.tokens_per_month }),
      ...budget(caller, { name: 'key_tokens_per_day', max: key.tokensPerDay, keyId }),
      ...budget(caller, { name: 'key_tokens_per_month', max: key.tokensPerMonth, keyId }),
    ],
  };
}

interface NamedBudget {
  readonly name: string;
  readonly max: number | null | undefined;
  readonly keyId?: string;
}

/** Returns the budget of the caller's day or month, by the calendar in UTC; empty if there is no maximum. */
function budget(caller: ModelCaller, { name, max, keyId }: NamedBudget): readonly TokenBudget[] {
  if (max === null || max === undefined) return [];
  const { tenant } = caller.key;
  const period = name.endsWith('_month') ? monthOf(caller.now) : dayOf(caller.now);
  const owner = keyId === undefined ? `tenant:${tenant}` : `key:${keyId}`;
  const bucket = `tokens:${owner}:${name}:${period.from}`;
  return [{ kind: 'budget', name, tenant, bucket, max, keyId, ...period }];
}

interface Period {
  readonly from: string;
  readonly to: string;
  readonly until: number;
}

const DAY_MS = 86_400_000;

function dayOf(now: number): Period {
  const from = Math.floor(now / DAY_MS) * DAY_MS;
  return { from: isoDay(from), to: isoDay(from), until: from + DAY_MS };
}

function monthOf(now: number): Period {
  const at = new Date(now);
  const from = Date.UTC(at.getUTCFullYear(), at.getUTCMonth());
  const until = Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + 1);
  return { from: isoDay(from), to: isoDay(until - DAY_MS), until };
}

function keyRate(tenant: string, keyId: string, perMinute: number | null): readonly RateAsk[] {
  return callRate({ name: 'key_calls_per_minute', tenant, bucket: `key:${keyId}` }, { perMinute });
}

interface CallRate {
  readonly perMinute: number | null;
  readonly burst?: number | null;
}

function callRate(limit: Limit, rate: CallRate): readonly RateAsk[] {
  const { perMinute } = rate;
  if (perMinute === null) return [];
  const burst = rate.burst ?? Math.max(1, Math.ceil(perMinute / BURST_SHARE));
  return [{ kind: 'rate', ...limit, rate: { perMinute, burst }, cost: 1 }];
}

/** Tokens as the provider counted them, or estimates. `input` includes tokens read from and written to its cache. */
export interface SpentTokens {
  readonly input: number;
  readonly output: number;
}

/**
 * Returns the tokens that a call used minus the estimate that was booked for this limit, which may be negative; 0 for a
 * limit that counts no tokens.
 */
export function costDifference(ask: LimitAsk, { input, output }: SpentTokens): number {
  if (ask.kind === 'budget') return input + output - ask.cost;
  return ask.kind === 'rate' && ask.name === 'input_tokens_per_minute' ? input - ask.cost : 0;
}
