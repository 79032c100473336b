import { integer, orNull } from '../../../src/core/memory-api/shape.ts';

const rate = orNull(integer(1, 1_000_000_000));
export const count = orNull(integer(0, 2 ** 40));

/** The limits that a plan may set for a tenant, with the shapes of their values. */
export const PLAN_LIMITS = {
  requests_per_minute: rate,
  /** The number of requests that may come at once after a pause. Null means the default: BURST_SHARE in limits.ts. */
  requests_burst: rate,
  input_tokens_per_minute: rate,
  concurrent_requests: rate,
  memory_calls_per_minute: rate,
  tokens_per_day: count,
  tokens_per_month: count,
  records: count,
  providers: count,
  keys: count,
  retention_days: rate,
} as const;

/**
 * The limits of a plan. Null means no limit, with two exceptions: `requests_burst` then has its default, and a tenant
 * never has more than PROVIDERS_MAX providers.
 */
export type PlanLimits = { readonly [Name in keyof typeof PLAN_LIMITS]: number | null };

export interface Plan {
  readonly name: string;
  readonly limits: PlanLimits;
  readonly createdAt: number;
}

/** The plan without limits that every new service has, and that a new tenant gets unless the call names another. */
export const SELF_HOSTED = 'self-hosted';

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The keys are those of PLAN_LIMITS.
export const NO_LIMITS = Object.fromEntries(
  Object.keys(PLAN_LIMITS).map((name) => [name, null]),
) as PlanLimits;
