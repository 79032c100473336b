import { parseServiceKey } from '../core/memory-api/service-key.ts';
import { hashKey, refuseKey, type StoredKey } from '../core/service/keys.ts';
import { FailureGuard } from './buckets.ts';
import { ServiceFault } from './fault.ts';
import type { ServiceParts } from './parts.ts';

/**
 * Finds the caller by the key. The key is looked up at every call, so a revoked one stops at once,
 * also when another process revoked it; that costs one indexed read.
 */

/** People look at the time of use in `keys list`; a write for every call would be wasted. */
const USE_NOTED_MS = 60_000;

export interface Credentials {
  readonly authorization: string | undefined;
  readonly apiKey: string | undefined;
  readonly address: string;
}

export class Authenticator {
  readonly #parts: ServiceParts;
  readonly #failures = new FailureGuard();

  constructor(parts: ServiceParts) {
    this.#parts = parts;
  }

  /** Throws ServiceFault AUTH_* or RATE_LIMIT_EXCEEDED. */
  async admit(credentials: Credentials, signal: AbortSignal): Promise<StoredKey> {
    const { clock, pepper, store } = this.#parts;
    const { address } = credentials;
    const presented = presentedKey(credentials);
    const parsed = presented === undefined ? undefined : parseServiceKey(presented);
    const hash =
      parsed === undefined || presented === undefined ? undefined : hashKey(pepper, presented);
    const wait = this.#failures.waitMs(address, hash, clock.monotonic());
    if (wait > 0) {
      const message = 'Too many wrong keys came from this address.';
      throw new ServiceFault('RATE_LIMIT_EXCEEDED', message, { afterMs: wait });
    }
    if (parsed === undefined || hash === undefined) {
      this.#failures.failed(address, hash, clock.monotonic());
      const code = presented === undefined ? 'AUTH_MISSING' : 'AUTH_INVALID';
      throw new ServiceFault(code, MESSAGES[code]);
    }
    const stored = await store.findKey(parsed.publicId, signal);
    const now = clock.now();
    const refusal = refuseKey(stored, hash, now);
    if (refusal !== undefined || stored === undefined) {
      this.#failures.failed(address, hash, clock.monotonic());
      throw new ServiceFault(refusal ?? 'AUTH_INVALID', messageOf(refusal));
    }
    this.#failures.passed(hash);
    if (now - (stored.usedAt ?? 0) > USE_NOTED_MS) {
      // A hint for people: the call does not wait for it, and does not fail with it.
      store
        .of(stored.tenant)
        .noteKeyUse(stored.keyId, now)
        .catch(() => undefined);
    }
    return stored;
  }
}

const MESSAGES = {
  AUTH_MISSING: 'No key came with the call. Send Authorization: Bearer svc_live_…',
  AUTH_INVALID: 'The key is unknown or mistyped.',
  AUTH_REVOKED: 'The key was revoked.',
  AUTH_EXPIRED: 'The key has expired.',
} as const;

function messageOf(code: string | undefined): string {
  if (code === 'AUTH_REVOKED') return MESSAGES.AUTH_REVOKED;
  return code === 'AUTH_EXPIRED' ? MESSAGES.AUTH_EXPIRED : MESSAGES.AUTH_INVALID;
}

/** Either header will do; two that differ are no key. */
function presentedKey({ authorization, apiKey }: Credentials): string | undefined {
  const bearer = authorization === undefined ? undefined : bearerOf(authorization);
  if (bearer !== undefined && apiKey !== undefined && bearer !== apiKey) return '';
  return bearer ?? apiKey;
}

function bearerOf(authorization: string): string {
  return /^bearer +(\S+)$/i.exec(authorization)?.[1] ?? '';
}
