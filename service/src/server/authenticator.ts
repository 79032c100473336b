import { createHmac } from 'node:crypto';
import { Recent } from '../../../src/core/bytes/recent.ts';
import type { FaultCode } from '../../../src/core/memory-api/faults.ts';
import { parseServiceKey, type TokenPrefix } from '../../../src/core/memory-api/service-key.ts';
import { refuseAdmin } from '../core/admins.ts';
import { hashKey, refuseKey } from '../../../src/core/memory-api/keys.ts';
import { addressBlock } from '../core/rates.ts';
import type { Caller } from '../ports/control-store.ts';
import { FailureGuard } from './buckets.ts';
import type { ConsoleActor } from './console/operation.ts';
import { ServiceFault } from './fault.ts';
import type { ServiceParts } from './parts.ts';

/**
 * Finds the caller by the key, or the admin by the token. The memory API and the console ask the store at every call,
 * so a revoked key or token stops at once. Model routes cache callers: see Confirmed in change-watch.ts. A key is
 * never accepted as a token, nor a token as a key.
 */

/**
 * How long the stored time of a key's or token's last use is left unchanged. `keys list` and `admins list` show this
 * time. A write for every call would cost too much.
 */
const USE_NOTED_MS = 60_000;
/** Bound on keys whose last stored use is cached: the active keys of a large service. */
const KEYS_MAX = 20_000;

export interface Credentials {
  readonly authorization: string | undefined;
  readonly apiKey: string | undefined;
  readonly address: string;
}

export type FindCaller = (keyId: string) => Promise<Caller | undefined>;

/** A key or token that a caller presents, parsed and hashed, but not checked yet. */
export interface Presented {
  readonly publicId: string;
  /** The HMAC of the whole key. */
  readonly hash: string;
  readonly address: string;
}

export class Authenticator {
  readonly #parts: ServiceParts;
  readonly #failures = new FailureGuard();
  readonly #noted = new Recent<string, number>(KEYS_MAX);

  constructor(parts: ServiceParts) {
    this.#parts = parts;
  }

  /**
   * Finds the caller with `find` and checks the key. Also admits a suspended tenant. Throws ServiceFault AUTH_*, and
   * what `find` throws.
   */
  async admit(presented: Presented, find: FindCaller): Promise<Caller> {
    const { clock, store } = this.#parts;
    const caller = await find(presented.publicId);
    const now = clock.now();
    this.#judge(presented, refuseKey(caller?.key, presented.hash, now));
    if (caller === undefined) throw refusal('AUTH_INVALID');
    const { key, tenant } = caller;
    if (tenant.status === 'deleted') throw refusal('AUTH_REVOKED');
    const name = `${key.tenant}:${key.keyId}`;
    // The caller may be cached, so `usedAt` may be older than the last time that was stored.
    const noted = Math.max(this.#noted.get(name) ?? 0, key.usedAt ?? 0);
    if (now - noted > USE_NOTED_MS) {
      this.#noted.set(name, now);
      // The call does not wait for this, and ignores a failure: the time of use is only shown to users.
      store
        .of(key.tenant)
        .noteKeyUse(key.keyId, now)
        .catch(() => undefined);
    }
    return caller;
  }

  /** Finds the admin of a token. Throws MemoryError, or ServiceFault AUTH_* or RATE_LIMIT_EXCEEDED. */
  async admitAdmin(credentials: Credentials, signal: AbortSignal): Promise<ConsoleActor> {
    const { clock, pepper, store } = this.#parts;
    const presented = this.present(credentials, 'svc_admin');
    const admin = await store.findAdmin(presented.publicId, signal);
    const now = clock.now();
    this.#judge(presented, refuseAdmin(admin, presented.hash, now));
    if (admin === undefined) throw refusal('AUTH_INVALID');
    const facts = admin.tenant === undefined ? undefined : await store.findTenant(admin.tenant);
    if (facts?.status === 'deleted') throw refusal('AUTH_REVOKED');
    if (now - (admin.usedAt ?? 0) > USE_NOTED_MS) {
      store.noteAdminUse(admin.adminId, now).catch(() => undefined);
    }
    const { adminId: id, role, tenant } = admin;
    return { type: 'admin', id, role, tenant, ipHash: hashAddress(pepper, credentials.address) };
  }

  /** Reads the presented key or token. Throws ServiceFault AUTH_MISSING, AUTH_INVALID or RATE_LIMIT_EXCEEDED. */
  present(credentials: Credentials, prefix: TokenPrefix = 'svc_live'): Presented {
    const { clock, pepper } = this.#parts;
    const { address } = credentials;
    const text = presentedKey(credentials);
    const publicId = parseServiceKey(text ?? '', prefix)?.publicId;
    const hash = publicId && hashKey(pepper, text ?? '');
    const wait = this.#failures.waitMs(address, hash, clock.monotonic());
    if (wait > 0) {
      const message = 'Too many wrong keys came from this address.';
      throw new ServiceFault('RATE_LIMIT_EXCEEDED', message, { afterMs: wait });
    }
    if (publicId === undefined || hash === undefined) {
      this.#failures.failed(address, undefined, clock.monotonic());
      throw refusal(text === undefined ? 'AUTH_MISSING' : 'AUTH_INVALID', prefix);
    }
    return { publicId, hash, address };
  }

  #judge({ address, hash: presented }: Presented, code: FaultCode | undefined): void {
    if (code === undefined) {
      this.#failures.passed(presented);
      return;
    }
    this.#failures.failed(address, presented, this.#parts.clock.monotonic());
    throw refusal(code);
  }
}

/**
 * Throws ServiceFault TENANT_SUSPENDED if the tenant is suspended. It is not a part of `admit`, because the key is
 * valid and its model request gets a receipt.
 */
export function refuseSuspended({ tenant }: Pick<Caller, 'tenant'>): void {
  if (tenant.status !== 'suspended') return;
  throw new ServiceFault('TENANT_SUSPENDED', 'The tenant of this key is suspended.');
}

const MESSAGES: Readonly<Partial<Record<FaultCode, string>>> = {
  AUTH_INVALID: 'The key is unknown or mistyped.',
  AUTH_REVOKED: 'The key was revoked.',
  AUTH_EXPIRED: 'The key has expired.',
  AUTH_STALE: 'The key was rotated, and the grace period of the old one has ended.',
};

function refusal(code: FaultCode, prefix: TokenPrefix = 'svc_live'): ServiceFault {
  const missing = `The call has no key. Send Authorization: Bearer ${prefix}_…`;
  return new ServiceFault(code, MESSAGES[code] ?? missing);
}

/** Hashes an address for the audit: it shows that two calls had one sender, but not which sender. */
function hashAddress(pepper: Uint8Array, address: string): string {
  const keyed = createHmac('sha256', pepper).update(`address|${addressBlock(address)}`);
  return keyed.digest('base64url').slice(0, 16);
}

/** Returns the key of either header; undefined if both are missing, and '' if they differ. */
function presentedKey({ authorization, apiKey }: Credentials): string | undefined {
  const bearer = bearerOf(authorization);
  if (bearer !== undefined && apiKey !== undefined && bearer !== apiKey) return '';
  return bearer ?? apiKey;
}

/** Returns the Bearer token; '' for another scheme. Basic counts as no header, because it is for a gateway in front. */
function bearerOf(authorization: string | undefined): string | undefined {
  if (authorization === undefined) return undefined;
  const bearer = /^bearer +(\S+)$/i.exec(authorization)?.[1];
  return bearer ?? (/^basic +\S+$/i.test(authorization) ? undefined : '');
}
