import { newId } from '../core/ids.ts';
import type { PlanLimits } from '../core/plans.ts';
import { SERVICE_TENANT } from '../core/tenants.ts';
import type { ServiceStore } from '../ports/service-store.ts';
import { keepLease, LEASE_MS } from './leases.ts';

/**
 * The nodes of a service know of each other by a lease each, which says where the node counts limits.
 * Two nodes that count in two places would let twice as much pass, so the second one does not start.
 */

const NODE_START = 'node:';
/** Limits that are counted; the others are rows. */
const COUNTED: readonly (keyof PlanLimits)[] = [
  'requests_per_minute',
  'input_tokens_per_minute',
  'concurrent_requests',
  'memory_calls_per_minute',
  'tokens_per_day',
  'tokens_per_month',
];
const PLANS_AT_ONCE = 100;

export interface NodeFacts {
  readonly store: ServiceStore;
  readonly randomBytes: (count: number) => Uint8Array;
  /** Where this node counts: equal for nodes that count together. */
  readonly limiterPlace: string;
  /** Calls of one key a minute, by the settings; null: not limited. */
  readonly requestsPerMinute: number | null;
}

export interface JoinedNode {
  /** The place of a node that counts elsewhere, where there is one and something is limited. */
  readonly otherPlace: string | undefined;
  /** From now on the others count it no more. */
  leave(): Promise<void>;
}

/** The lease remains valid until `leave`, or for half a minute after this process died. */
export async function joinNodes(facts: NodeFacts): Promise<JoinedNode> {
  const { store, randomBytes, limiterPlace: note } = facts;
  if (!store.isShared) return { otherPlace: undefined, leave: async () => undefined };
  const own = store.of(SERVICE_TENANT);
  const id = newId('node', randomBytes);
  const lease = { name: `${NODE_START}${id}`, holder: id, note, ms: LEASE_MS };
  // First it is there, then it looks: of two that start at once one at least sees the other.
  await own.takeLease(lease);
  // A node that was away for longer than its lease takes it again.
  const stop = keepLease(() => own.takeLease(lease));
  const leave = async (): Promise<void> => {
    await stop();
    await own.endLease(lease).catch(() => undefined);
  };
  try {
    const others = await own.listLeases(NODE_START);
    const other = others.find((one) => one.note !== note);
    const isLimited = other !== undefined && (await hasLimits(facts));
    return { otherPlace: isLimited ? other.note : undefined, leave };
  } catch (error) {
    await leave();
    throw error;
  }
}

async function hasLimits({ store, requestsPerMinute }: NodeFacts): Promise<boolean> {
  if (requestsPerMinute !== null) return true;
  let after: string | undefined;
  for (;;) {
    // oxlint-disable-next-line no-await-in-loop -- Page by page.
    const plans = await store.listPlans({ limit: PLANS_AT_ONCE, after });
    if (plans.some(({ limits }) => COUNTED.some((name) => limits[name] !== null))) return true;
    if (plans.length < PLANS_AT_ONCE) return false;
    after = plans.at(-1)?.name;
  }
}
