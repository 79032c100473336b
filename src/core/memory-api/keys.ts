import { createHmac } from 'node:crypto';
import type { Scope } from './contract.ts';
import type { FaultCode } from './faults.ts';

/** The facts that a service stores about a key, and the rights of the key. */

export interface StoredKey {
  readonly tenant: string;
  /** The public part of the key. */
  readonly keyId: string;
  readonly name: string;
  /** `hashKey` of the whole key: the key itself is nowhere. */
  readonly hash: string;
  /** Hashes of the secrets before; newest first. */
  readonly retired?: readonly RetiredHash[];
  readonly scopes: readonly Scope[];
  /** Globs; all spaces when absent. */
  readonly spaces?: readonly string[];
  /** Narrows the lists of the providers: names, or one with a star at its end. All when absent. */
  readonly allowedModels?: readonly string[];
  readonly tokensPerDay?: number;
  readonly tokensPerMonth?: number;
  /** Milliseconds since 1970, all of them. */
  readonly createdAt: number;
  readonly expiresAt?: number;
  readonly revokedAt?: number;
  readonly usedAt?: number;
  readonly rotatedAt?: number;
}

/** A secret that was replaced. It remains valid until its grace period ends. */
export interface RetiredHash {
  readonly hash: string;
  readonly until: number;
}

/** Seconds: none for a secret that leaked, seven days for one that many machines hold. */
export const GRACE_SECONDS = { max: 604_800, fallback: 86_400 } as const;

/** Older secrets are forgotten, and then unknown rather than stale. */
const RETIRED_MAX = 16;

export interface Rotation {
  readonly hash: string;
  readonly at: number;
  readonly graceMs: number;
}

/** The key with a new secret. A shorter grace also ends that of the secrets before. */
export function rotateKey(key: StoredKey, { hash, at, graceMs }: Rotation): StoredKey {
  const until = at + graceMs;
  const earlier = (key.retired ?? []).map((one) => ({
    hash: one.hash,
    until: Math.min(one.until, until),
  }));
  const retired = [{ hash: key.hash, until }, ...earlier].slice(0, RETIRED_MAX);
  return { ...key, hash, retired, rotatedAt: at };
}

/**
 * base64url HMAC-SHA256 of the whole key. The key has 256 random bits, so no slow hash is needed.
 * Without the pepper, a copy of the database is useless for trying keys.
 */
export function hashKey(pepper: Uint8Array, key: string): string {
  return createHmac('sha256', pepper).update(key).digest('base64url');
}

/** Whether the presented key has this hash, in the same time for every other one: `isSameHash`. */
export type HasHash = (storedHash: string | undefined) => boolean;

/** Undefined when the presented key is good now; takes the same time for every wrong secret. */
export function refuseKey(
  stored: StoredKey | undefined,
  hasHash: HasHash,
  now: number,
): FaultCode | undefined {
  const isCurrent = hasHash(stored?.hash);
  const retired = stored?.retired?.find(({ hash }) => hasHash(hash));
  if (stored === undefined || (!isCurrent && retired === undefined)) return 'AUTH_INVALID';
  if (stored.revokedAt !== undefined) return 'AUTH_REVOKED';
  if (stored.expiresAt !== undefined && stored.expiresAt <= now) return 'AUTH_EXPIRED';
  return isCurrent || (retired !== undefined && now < retired.until) ? undefined : 'AUTH_STALE';
}

export function mayUse(key: Pick<StoredKey, 'spaces'>, space: string): boolean {
  return key.spaces?.some((glob) => fitsGlob(space, glob)) ?? true;
}

/** A space's name in which `*` matches any characters, or none. */
export function isSpaceGlob(glob: string): boolean {
  return /^[a-z0-9*][a-z0-9._/*-]{0,127}$/.test(glob);
}

// In steps and not as a pattern: a pattern of many stars takes exponential time on a hostile name.
function fitsGlob(name: string, glob: string): boolean {
  const [first = '', ...others] = glob.split('*');
  if (others.length === 0) return name === glob;
  const last = others.pop() ?? '';
  if (!name.startsWith(first) || name.length < first.length + last.length) return false;
  let at = first.length;
  const end = name.length - last.length;
  for (const part of others) {
    const found = name.indexOf(part, at);
    if (found === -1 || found + part.length > end) return false;
    at = found + part.length;
  }
  return name.endsWith(last);
}

/** The memory mode that a key's scopes allow. */
export function modeOf(scopes: readonly Scope[]): 'off' | 'read' | 'write' | 'read-write' {
  const reads = scopes.includes('read');
  const writes = scopes.includes('write');
  if (reads && writes) return 'read-write';
  if (reads) return 'read';
  return writes ? 'write' : 'off';
}
