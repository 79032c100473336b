import { newId } from '../core/ids.ts';
import type { LeaseStore } from '../ports/leases.ts';

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
