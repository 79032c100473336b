import { newId } from '../core/ids.ts';
import { HEARTBEAT_MS, LEASE_MS } from '../core/limits.ts';
import type { PlanLimits } from '../core/plans.ts';
import { SERVICE_TENANT } from '../core/tenants.ts';
import type { LeaseStore } from '../ports/control-store.ts';
import type { Limiter } from '../ports/limiter.ts';
import type { ServiceStore } from '../ports/service-store.ts';

export interface Needs {
  readonly store: LeaseStore;
  readonly randomBytes: (count: number) => Uint8Array;
}

/**
 * Runs work under a lease, so that only one process at a time does it, as long as renewals succeed. Returns undefined
 * if the lease is taken.
 */
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
    // If the lease cannot be ended, it expires by itself.
    await store.endLease(lease).catch(() => undefined);
  }
}

/**
 * Calls `renew` every HEARTBEAT_MS until the returned function is called. That function resolves once no renewal is
 * running.
 */
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

/** The names of the leases of nodes begin with this. */
const NODE_START = 'node:';
const OWN_PROCESS = 'its own process';
/**
 * The limits that a limiter counts. Of the others, requests_burst only shapes requests_per_minute, and the rest limit
 * what is stored.
 */
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
  /**
   * The place where this node counts limits: equal for nodes that share their counts. Undefined: in its own process.
   */
  readonly limiterPlace: string | undefined;
  /** The limit of calls of one key per minute, from the settings; null means no limit. */
  readonly requestsPerMinute: number | null;
}

export interface JoinedNode {
  /** The place of a node that counts elsewhere. Undefined if there is none, or if there are no limits. */
  readonly otherPlace: string | undefined;
  /** Returns true if every known node counts in the same place as this one. Heartbeats find new nodes. */
  countsWithAll(): boolean;
  /** Ends the node's lease, so that other nodes no longer take it into account. */
  leave(): Promise<void>;
}

/**
 * Takes the lease of this node, with a note of the place where the node counts limits. If two nodes counted in two
 * places, twice as many calls would pass. So the caller does not start a node with another place if there are limits.
 * If limits are set later, both nodes refuse every call with a limit. The lease ends with `leave`, or half a minute
 * after a crash.
 */
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
  // Take the lease before reading the others: of two nodes that start at once, at least one then sees the other.
  await own.takeLease(lease);
  // A node whose lease expired takes it again.
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

/** Wraps a node's limiter: `take` rejects while another node counts in another place. */
export function limiterOf(node: JoinedNode, limiter: Limiter): Limiter {
  return {
    ping: () => limiter.ping(),
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
