import { newId } from '../core/ids.ts';
import type { PlanLimits } from '../core/plans.ts';
import { SERVICE_TENANT } from '../core/tenants.ts';
import type { LeaseStore } from '../ports/control-store.ts';
import type { Limiter } from '../ports/limiter.ts';
import type { ServiceStore } from '../ports/service-store.ts';

/** Work under a lease: one process does it, and another one may when that one died. */

/** A node that died leaves its work to the others after this. */
export const LEASE_MS = 30_000;
/** Two heartbeats may be late before a lease ends. */
const HEARTBEAT_MS = LEASE_MS / 3;

export interface Needs {
  readonly store: LeaseStore;
  readonly randomBytes: (count: number) => Uint8Array;
}

/** Undefined: another process does it now. */
export async function underLease<Result>(
  { store, randomBytes }: Needs,
  name: string,
  work: () => Promise<Result>,
): Promise<{ readonly result: Result } | undefined> {
  const lease = { name, holder: newId('lease', randomBytes), note: '', ms: LEASE_MS };
  if ((await store.takeLease(lease)) !== undefined) return undefined;
  const stop = keepLease(() => store.renewLease(lease));
  try {
    return { result: await work() };
  } finally {
    await stop();
    // A lease that is not given back ends by itself.
    await store.endLease(lease).catch(() => undefined);
  }
}

/** Renews it until the function that it returns is called. That resolves when no renewal is under way. */
export function keepLease(renew: () => Promise<unknown>): () => Promise<void> {
  let renewing: Promise<unknown> = Promise.resolve();
  const timer = setInterval(() => {
    renewing = renew().catch(() => undefined);
  }, HEARTBEAT_MS).unref();
  return async () => {
    clearInterval(timer);
    await renewing;
  };
}

/**
 * Each node of a service has a lease, which says where the node counts limits. Two nodes that count
 * in two places would let twice as much pass, so the second one does not start. If limits are set
 * later, both refuse every call that has one.
 */

const NODE_START = 'node:';
const OWN_PROCESS = 'its own process';
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
  /** Where this node counts: equal for nodes that count together. Undefined: in its process. */
  readonly limiterPlace: string | undefined;
  /** Calls of one key a minute, by the settings; null: not limited. */
  readonly requestsPerMinute: number | null;
}

export interface JoinedNode {
  /** The place of a node that counts elsewhere, where there is one and something is limited. */
  readonly otherPlace: string | undefined;
  /** Every node that is known now counts where this one does. A heartbeat finds new nodes. */
  countsWithAll(): boolean;
  /** From now on the others count it no more. */
  leave(): Promise<void>;
}

/** The lease remains valid until `leave`, or for half a minute after this process died. */
export async function joinNodes(facts: NodeFacts): Promise<JoinedNode> {
  const { store, randomBytes, limiterPlace } = facts;
  if (!store.isShared) {
    return { otherPlace: undefined, countsWithAll: () => true, leave: async () => undefined };
  }
  const own = store.of(SERVICE_TENANT);
  const id = newId('node', randomBytes);
  const note = limiterPlace ?? OWN_PROCESS;
  const lease = { name: `${NODE_START}${id}`, holder: id, note, ms: LEASE_MS };
  let other: string | undefined;
  const findOther = async (): Promise<void> => {
    const nodes = await own.listLeases(NODE_START);
    const others = nodes.filter(({ holder }) => holder !== id);
    other = others.find((one) => limiterPlace === undefined || one.note !== note)?.note;
  };
  // First it is there, then it looks: of two that start at once one at least sees the other.
  await own.takeLease(lease);
  // A node that was away for longer than its lease takes it again.
  const stop = keepLease(async () => {
    await own.takeLease(lease);
    await findOther();
  });
  const leave = async (): Promise<void> => {
    await stop();
    await own.endLease(lease).catch(() => undefined);
  };
  try {
    await findOther();
    const isLimited = other !== undefined && (await hasLimits(facts));
    const otherPlace = isLimited ? other : undefined;
    return { otherPlace, countsWithAll: () => other === undefined, leave };
  } catch (error) {
    await leave();
    throw error;
  }
}

/** The limiter of a node. It does not answer while another node counts in another place. */
export function limiterOf(node: JoinedNode, limiter: Limiter): Limiter {
  return {
    ...(limiter.isOwn === true ? { isOwn: true } : {}),
    ...(limiter.ping === undefined ? {} : { ping: () => limiter.ping?.() ?? Promise.resolve() }),
    take: async (asks, signal) => {
      if (!node.countsWithAll()) throw new Error('Another node counts limits in another place.');
      return limiter.take(asks, signal);
    },
    renew: (leases, signal) => limiter.renew(leases, signal),
    settle: (end, signal) => limiter.settle(end, signal),
  };
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
