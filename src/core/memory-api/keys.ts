import { Buffer } from 'node:buffer';
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Scope } from './contract.ts';
import type { FaultCode } from './faults.ts';

/** The stored form of a key, and what the key may do. */

export interface StoredKey {
  readonly tenant: string;
  /** The public part of the key. */
  readonly keyId: string;
  readonly name: string;
  /** The `hashKey` of the whole key. The key itself is stored nowhere. */
  readonly hash: string;
  /** Hashes of earlier secrets, newest first. */
  readonly retired?: readonly RetiredHash[];
  readonly scopes: readonly Scope[];
  /** Globs of the spaces that the key may use; undefined means all. */
  readonly spaces?: readonly string[];
  /**
   * Models that the key may use, if a provider offers them: whole names, or beginnings of names with a star at the
   * end. Undefined means all models.
   */
  readonly allowedModels?: readonly string[];
  readonly tokensPerDay?: number;
  readonly tokensPerMonth?: number;
  /** Milliseconds since 1970, like all times below. */
  readonly createdAt: number;
  readonly expiresAt?: number;
  readonly revokedAt?: number;
  readonly usedAt?: number;
  readonly rotatedAt?: number;
}

/** A replaced secret, which stays valid until its grace period ends. */
export interface RetiredHash {
  readonly hash: string;
  readonly until: number;
}

/** Bounds of the grace period in seconds: none for a leaked secret, seven days for one on many machines. */
export const GRACE_SECONDS = { max: 604_800, fallback: 86_400 } as const;

/** Bound on stored older secrets. One beyond it is reported as unknown, not as stale. */
const RETIRED_MAX = 16;

export interface Rotation {
  readonly hash: string;
  readonly at: number;
  readonly graceMs: number;
}

/** Returns the key with a new secret. A shorter grace period also applies to the earlier secrets. */
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
 * Returns the base64url HMAC-SHA256 of the whole key. The key has 256 random bits, so no slow hash is needed.
 * Without the pepper, a copy of the database is useless for trying keys.
 */
export function hashKey(pepper: Uint8Array, key: string): string {
  return createHmac('sha256', pepper).update(key).digest('base64url');
}

/** Compares a hash of the same length in any case: an unknown id takes as long as a wrong secret. */
export function isSameHash(storedHash: string | undefined, presentedHash: string): boolean {
  const expected = Buffer.from(storedHash ?? presentedHash, 'base64url');
  const presented = Buffer.from(presentedHash, 'base64url');
  const isSame = expected.length === presented.length && timingSafeEqual(expected, presented);
  return isSame && storedHash !== undefined;
}

/** Returns why the presented key is refused; undefined if it is valid. Takes the same time for every wrong secret. */
export function refuseKey(
  stored: StoredKey | undefined,
  presentedHash: string,
  now: number,
): FaultCode | undefined {
  const isCurrent = isSameHash(stored?.hash, presentedHash);
  const retired = stored?.retired?.find(({ hash }) => isSameHash(hash, presentedHash));
  if (stored === undefined || (!isCurrent && retired === undefined)) return 'AUTH_INVALID';
  if (stored.revokedAt !== undefined) return 'AUTH_REVOKED';
  if (stored.expiresAt !== undefined && stored.expiresAt <= now) return 'AUTH_EXPIRED';
  return isCurrent || (retired !== undefined && now < retired.until) ? undefined : 'AUTH_STALE';
}

export function mayUse(key: Pick<StoredKey, 'spaces'>, space: string): boolean {
  return key.spaces?.some((glob) => fitsGlob(space, glob)) ?? true;
}

/** Says whether a text is a space name in which `*` matches any characters. */
export function isSpaceGlob(glob: string): boolean {
  return /^[a-z0-9*][a-z0-9._/*-]{0,127}$/.test(glob);
}

// Match piece by piece: a regular expression with many stars takes exponential time on a hostile name.
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

/** Returns the memory mode that a key's scopes allow. */
export function modeOf(scopes: readonly Scope[]): 'off' | 'read' | 'write' | 'read-write' {
  const reads = scopes.includes('read');
  const writes = scopes.includes('write');
  if (reads && writes) return 'read-write';
  if (reads) return 'read';
  return writes ? 'write' : 'off';
}
