import type { FaultCode } from '../../../src/core/memory-api/faults.ts';
import { isSameHash } from '../../../src/core/memory-api/keys.ts';

/** Admin tokens. They allow the operations of the console and nothing else; a service key allows none of these. */

/**
 * An operator runs the service; an admin manages one tenant; a viewer reads one tenant's data, but no texts of its
 * memory.
 */
export type AdminRole = 'operator' | 'admin' | 'viewer';

export const ADMIN_ROLES: readonly AdminRole[] = ['operator', 'admin', 'viewer'];

export interface StoredAdmin {
  /** The public part of the token. */
  readonly adminId: string;
  /** Undefined for an operator, who may act for every tenant. */
  readonly tenant?: string;
  readonly name: string;
  readonly role: AdminRole;
  /** Hash of the whole token, made by `hashKey` of src/core/memory-api/keys.ts. */
  readonly hash: string;
  readonly createdAt: number;
  readonly expiresAt?: number;
  readonly revokedAt?: number;
  readonly usedAt?: number;
}

const RANK: Readonly<Record<AdminRole, number>> = { viewer: 0, admin: 1, operator: 2 };

/** Says whether a role may do everything that another role may. */
export function includesRole(role: AdminRole, needed: AdminRole): boolean {
  return RANK[role] >= RANK[needed];
}

/** Returns why the token is refused; undefined if it is valid. Takes the same time for every wrong secret. */
export function refuseAdmin(
  stored: StoredAdmin | undefined,
  presentedHash: string,
  now: number,
): FaultCode | undefined {
  if (!isSameHash(stored?.hash, presentedHash) || stored === undefined) return 'AUTH_INVALID';
  if (stored.revokedAt !== undefined) return 'AUTH_REVOKED';
  if (stored.expiresAt !== undefined && stored.expiresAt <= now) return 'AUTH_EXPIRED';
  return undefined;
}
