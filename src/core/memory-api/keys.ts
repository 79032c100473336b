import { Buffer } from 'node:buffer';
import { createHmac, timingSafeEqual } from 'node:crypto';
import { type MemoryMode, memoryModeOf } from '../http/modes.ts';
import type { Scope } from './contract.ts';
import type { FaultCode } from './faults.ts';

/** The stored form of a key, and what the key may do. */

export interface StoredKey {
  readonly tenant: string;
  /** The public part of the key. */
  readonly keyId: string;
  readonly name: string;
  /** The hash of the whole key; see hashKey. The key itself is stored nowhere. */
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

/** The longest and the default grace period in seconds: seven days and one day. After a leak it may be 0. */
export const GRACE_SECONDS = { max: 604_800, fallback: 86_400 } as const;

/** Bound on the hashes of earlier secrets. An older secret gets the error AUTH_INVALID instead of AUTH_STALE. */
const RETIRED_MAX = 16;

export interface Rotation {
  readonly hash: string;
  readonly at: number;
  readonly graceMs: number;
}

/** Returns the key with a new secret. A shorter grace period also applies to the earlier secrets. */
export function rotateKey(key: StoredKey, { hash, at, graceMs }: Rotation): StoredKey {
  const until = at + graceMs;
  const earlier = (key.retired ?? []).map((one) => {
    return { ...one, until: Math.min(one.until, until) };
  });
  const retired = [{ hash: key.hash, until }, ...earlier].slice(0, RETIRED_MAX);
  return { ...key, hash, retired, rotatedAt: at };
}

/**
 * Returns the base64url HMAC-SHA256 of the whole key. The key has 256 random bits, so no slow hash is needed. `pepper`:
 * a secret outside the database, without which nobody can try keys against a copy of the database.
 */
export function hashKey(pepper: Uint8Array, key: string): string {
  return createHmac('sha256', pepper).update(key).digest('base64url');
}

/** Compares two hashes in constant time. Without a stored hash it takes the same time, and returns false. */
export function isSameHash(storedHash: string | undefined, presentedHash: string): boolean {
  const expected = Buffer.from(storedHash ?? presentedHash, 'base64url');
  const presented = Buffer.from(presentedHash, 'base64url');
  const isSame = expected.length === presented.length && timingSafeEqual(expected, presented);
  return isSame && storedHash !== undefined;
}

/** Returns why a key is refused; undefined if it is valid. */
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

// Matches piece by piece, because a regular expression with many stars may take exponential time.
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
export function modeOf(scopes: readonly Scope[]): MemoryMode {
  return memoryModeOf(scopes.includes('read'), scopes.includes('write'));
}
