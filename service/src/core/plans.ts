/** A plan limits a tenant. Null means no limit, so svc counts nothing for it. */
export interface PlanLimits {
  readonly requests_per_minute: number | null;
  /** The number of requests that may come at once after a pause. */
  readonly requests_burst: number | null;
  readonly input_tokens_per_minute: number | null;
  readonly concurrent_requests: number | null;
  readonly memory_calls_per_minute: number | null;
  readonly tokens_per_day: number | null;
  readonly tokens_per_month: number | null;
  readonly records: number | null;
  readonly providers: number | null;
  readonly keys: number | null;
  readonly retention_days: number | null;
}

export interface Plan {
  readonly name: string;
  readonly limits: PlanLimits;
  readonly createdAt: number;
}

/** The name of the plan for a service that a user runs for their own use. */
export const SELF_HOSTED = 'self-hosted';

export const NO_LIMITS: PlanLimits = {
  requests_per_minute: null,
  requests_burst: null,
  input_tokens_per_minute: null,
  concurrent_requests: null,
  memory_calls_per_minute: null,
  tokens_per_day: null,
  tokens_per_month: null,
  records: null,
  providers: null,
  keys: null,
  retention_days: null,
};
