import { includesRole, type StoredAdmin } from '../../core/admins.ts';
import { adminCreate } from '../../core/console-contract.ts';
import {
  formatServiceKey,
  parseServiceKey,
  PUBLIC_BYTES,
  SECRET_BYTES,
} from '../../../../src/core/memory-api/service-key.ts';
import { isoTime } from '../../../../src/core/memory/times.ts';
import { hashKey } from '../../../../src/core/memory-api/keys.ts';
import { readValue } from '../call.ts';
import { ServiceFault } from '../fault.ts';
import {
  type ConsoleCall,
  type ConsoleReply,
  listReply,
  mustBeDone,
  noteOf,
  pageOf,
} from './console-call.ts';
import { expiryOf, given, timeOrNull } from './keys.ts';

/** Admins of tenants, and operators of the service. A token is in one answer, and never stored. */

export async function getSession({ actor, tenantId }: ConsoleCall): Promise<ConsoleReply> {
  const { type, id, role, tenant } = actor;
  return {
    status: 200,
    body: { actor: { type, id, role, tenant_id: tenant ?? null }, tenant_id: tenantId },
  };
}

export async function listAdmins(call: ConsoleCall): Promise<ConsoleReply> {
  const page = pageOf(call.query);
  const admins = await call.parts.store.listAdmins(scopeOf(call), page);
  const wireOf = (admin: StoredAdmin): object => adminWire(admin, call.now);
  return listReply(admins, page, { idOf: ({ adminId }) => adminId, wireOf });
}

export async function createAdmin(call: ConsoleCall): Promise<ConsoleReply> {
  const asked = readValue(call.body, adminCreate);
  const { role, name } = asked;
  if (!includesRole(call.actor.role, role)) {
    throw new ServiceFault('SCOPE_DENIED', 'You cannot give a role above your own.');
  }
  const { randomBytes, pepper } = call.parts;
  const token = formatServiceKey(randomBytes(PUBLIC_BYTES), randomBytes(SECRET_BYTES), 'svc_admin');
  const adminId = parseServiceKey(token, 'svc_admin')?.publicId ?? '';
  const admin: StoredAdmin = {
    adminId,
    name,
    role,
    hash: hashKey(pepper, token),
    createdAt: call.now,
    ...given('tenant', role === 'operator' ? undefined : call.tenantId),
    ...given('expiresAt', expiryOf(asked.expires_at, call.now)),
  };
  const details = { name, role, tenant: admin.tenant ?? null };
  const target = { type: 'admin', id: adminId };
  const note = noteOf(call, 'admin.created', { target, details });
  mustBeDone(await call.parts.store.apply({ what: 'admin.add', admin }, note), 'tenant');
  return { status: 201, body: { ...adminWire(admin, call.now), token } };
}

export async function revokeAdmin(call: ConsoleCall): Promise<ConsoleReply> {
  const adminId = call.parameter;
  const target = { type: 'admin', id: adminId };
  const note = noteOf(call, 'admin.revoked', { target, details: {} });
  const change = { what: 'admin.revoke', adminId, tenant: scopeOf(call), at: call.now } as const;
  mustBeDone(await call.parts.store.apply(change, note), 'admin');
  return { status: 204 };
}

/** An operator who names no tenant sees all of them. */
function scopeOf({ actor, tenant }: ConsoleCall): string | undefined {
  return actor.tenant ?? tenant;
}

function adminWire(admin: StoredAdmin, now: number): object {
  const { revokedAt, expiresAt } = admin;
  const isExpired = expiresAt !== undefined && expiresAt <= now;
  return {
    admin_id: admin.adminId,
    tenant_id: admin.tenant ?? null,
    name: admin.name,
    role: admin.role,
    status: revokedAt === undefined ? (isExpired ? 'expired' : 'active') : 'revoked',
    created_at: isoTime(admin.createdAt),
    expires_at: timeOrNull(expiresAt),
    last_used_at: timeOrNull(admin.usedAt),
    revoked_at: timeOrNull(revokedAt),
  };
}
