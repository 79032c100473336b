import type { PlanLimits } from './plans.ts';
import type { Rate } from './rates.ts';

/** The limits that a call of the memory API meets. A call without one never reaches the limiter. */

export interface CallLimit {
  readonly name: string;
  readonly bucket: string;
  readonly rate: Rate;
}

/** A twelfth of a minute's calls may come at once: an agent that starts sends some together. */
const BURST_SHARE = 12;

export interface LimitedCall {
  readonly tenant: string;
  readonly keyId: string;
  readonly limits: Pick<PlanLimits, 'memory_calls_per_minute'>;
  /** A limit for each key, by the service's settings; null: none. */
  readonly requestsPerMinute: number | null;
  /** False for a call that only asks who it is. */
  readonly usesMemory: boolean;
}

export function limitsOfCall(call: LimitedCall): readonly CallLimit[] {
  const { tenant, keyId, limits, requestsPerMinute, usesMemory } = call;
  const perTenant = usesMemory ? limits.memory_calls_per_minute : null;
  return [
    ...limit('key_calls_per_minute', `key:${keyId}`, requestsPerMinute),
    ...limit('memory_calls_per_minute', `memory:${tenant}`, perTenant),
  ];
}

function limit(name: string, bucket: string, perMinute: number | null): readonly CallLimit[] {
  if (perMinute === null) return [];
  const burst = Math.max(1, Math.ceil(perMinute / BURST_SHARE));
  return [{ name, bucket, rate: { perMinute, burst } }];
}
