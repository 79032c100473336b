import { parseServiceKey } from '../../../src/core/memory-api/service-key.ts';
import { hashKey } from '../../../src/core/memory-api/keys.ts';
import { isSameHash } from '../core/admins.ts';
import type { ServiceParts } from './parts.ts';

/**
 * Recognises the service itself behind a provider of any name, also where a balancer ends the TLS: only a
 * key of this service opens its model routes, so a provider whose credential is one leads back here. The
 * credential is thus the mark of a loop, and no provider sees a header for it.
 */

const KEYS = /svc_live_[0-9A-Za-z_]+/g;

type Needs = Pick<ServiceParts, 'store' | 'pepper'>;

/** Whether a text holds a key of this service, of any tenant. */
export async function holdsOwnKey({ store, pepper }: Needs, text: string): Promise<boolean> {
  for (const [key] of text.matchAll(KEYS)) {
    const { publicId } = parseServiceKey(key) ?? {};
    if (publicId === undefined) continue;
    // oxlint-disable-next-line no-await-in-loop -- A credential holds one key.
    const caller = await store.findCaller(publicId, AbortSignal.timeout(STORE_MS));
    if (caller === undefined) continue;
    const hash = hashKey(pepper, key);
    const hashes = [caller.key.hash, ...(caller.key.retired ?? []).map((one) => one.hash)];
    if (hashes.some((one) => isSameHash(one, hash))) return true;
  }
  return false;
}

const STORE_MS = 2_000;
