import { ADMIN_ROLES, includesRole, type StoredAdmin } from '../../core/admins.ts';
import type { AuditEvent } from '../../core/audit.ts';
import {
  formatServiceKey,
  parseServiceKey,
  PUBLIC_BYTES,
  SECRET_BYTES,
} from '../../../../src/core/memory-api/service-key.ts';
import { asRecord } from '../../../../src/core/bytes/json-fields.ts';
import { hashKey } from '../../../../src/core/memory-api/keys.ts';
import { closed, type Infer, oneOf, orNull, time } from '../../../../src/core/memory-api/shape.ts';
import { isoTime } from '../../../../src/core/memory/times.ts';
import { VERSION } from '../../../../src/core/version.ts';
import { invalid, ServiceFault } from '../fault.ts';
import {
  apply,
  command,
  type ConsoleCall,
  type ConsoleOperation,
  type ConsoleReply,
  EXPIRES,
  expiryOf,
  present,
  idArgument,
  limitOption,
  listReply,
  option,
  pageOf,
  personName,
  reads,
  storeOf,
  timeOrNull,
  USED,
  writes,
} from './operation.ts';

/**
 * Operations on admin tokens, on audit events, and on the state of the service. A token is shown only in the answer
 * that makes it, and only its hash is stored.
 */

export const adminCreate = closed(
  { name: personName, role: oneOf('operator', 'admin', 'viewer') },
  { expires_at: orNull(time) },
);

export const adminOperations: readonly ConsoleOperation[] = [
  writes({ name: 'createAdmin', route: 'POST admins', role: 'admin' }, adminCreate, createAdmin, [
    command('admins create', 'Create a token and print it once', {
      options: [
        option('--name <name>', 'a name for the token, such as its owner', 'name', {
          otherwise: 'unnamed',
        }),
        option('--role <role>', 'operator (the service), admin or viewer (one tenant)', 'role', {
          as: {
            read: (role) => ADMIN_ROLES.find((known) => known === role),
            expected: `expected ${ADMIN_ROLES.join(', ')}.`,
            hint: 'Try --role admin',
          },
          isRequired: true,
        }),
        EXPIRES,
      ],
      examples: ['admins create --name ann --role admin --tenant acme'],
      prints: 'token',
      note: 'svc shows the token only once. It opens the console operations, never models.',
    }),
  ]),
  reads({ name: 'listAdmins', route: 'GET admins', role: 'admin' }, listAdmins, [
    command(
      'admins list',
      'List tokens with role, tenant and last use; never the tokens themselves',
      {
        list: {
          isWhole: true,
          columns: [
            'admin_id',
            'name:24',
            'role',
            ({ tenant_id: tenant }, { line }) => line(tenant) || 'all tenants',
            'status',
            USED,
          ],
        },
      },
    ),
  ]),
  reads({ name: 'revokeAdmin', route: 'DELETE admins/*', role: 'admin' }, revokeAdmin, [
    command('admins revoke', 'Revoke a token; a running service refuses it at once', {
      argument: idArgument('svc-service admins list'),
      examples: ['admins revoke 4kPzQ0aB71Xc'],
      note: 'The token is revoked: a running service refuses it from now on.',
    }),
  ]),
  reads({ name: 'listAudit', route: 'GET audit', role: 'viewer' }, listAudit, [
    command('audit', 'List who changed what, newest first', {
      options: [limitOption('how many', 50)],
      examples: ['audit --limit 20', 'audit --tenant service      # tenants, plans and admins'],
      list: {
        columns: [
          ({ at }, { time: timeText }) => timeText(at),
          'kind',
          ({ target }, { line }) =>
            `${line(asRecord(target)['type'])} ${line(asRecord(target)['id'], 40)}`,
          ({ actor }, { line }) =>
            `by ${line(asRecord(actor)['type'])} ${line(asRecord(actor)['id'])}`,
        ],
      },
    }),
  ]),
  // Has no command: a program calls it to learn the rights of its token.
  reads({ name: 'getSession', route: 'GET session', role: 'viewer' }, getSession, []),
  // Has no row of a command, because `svc-service status` also works without a running service.
  reads({ name: 'getStatus', route: 'GET status', role: 'operator' }, getStatus, []),
];

async function getSession({ actor, tenantId }: ConsoleCall): Promise<ConsoleReply> {
  const { type, id, role, tenant } = actor;
  return {
    status: 200,
    body: { actor: { type, id, role, tenant_id: tenant ?? null }, tenant_id: tenantId },
  };
}

async function listAdmins(call: ConsoleCall): Promise<ConsoleReply> {
  const page = pageOf(call.query);
  const admins = await call.parts.store.listAdmins(scopeOf(call), page);
  const wireOf = (admin: StoredAdmin): object => adminWire(admin, call.now);
  return listReply(admins, page, { idOf: ({ adminId }) => adminId, wireOf });
}

async function createAdmin(
  call: ConsoleCall,
  { role, name, expires_at: expires }: Infer<typeof adminCreate>,
): Promise<ConsoleReply> {
  if (!includesRole(call.actor.role, role)) {
    throw new ServiceFault('SCOPE_DENIED', 'You cannot give a role above your own.');
  }
  const { randomBytes, pepper, store } = call.parts;
  const token = formatServiceKey(randomBytes(PUBLIC_BYTES), randomBytes(SECRET_BYTES), 'svc_admin');
  const adminId = parseServiceKey(token, 'svc_admin')?.publicId ?? '';
  const admin: StoredAdmin = {
    adminId,
    name,
    role,
    hash: hashKey(pepper, token),
    createdAt: call.now,
    ...present('tenant', role === 'operator' ? undefined : call.tenantId),
    ...present('expiresAt', expiryOf(expires, call.now)),
  };
  await apply(
    call,
    store,
    { what: 'admin.add', admin },
    {
      kind: 'admin.created',
      id: adminId,
      what: 'tenant',
      details: { name, role, tenant: admin.tenant ?? null },
    },
  );
  return { status: 201, body: { ...adminWire(admin, call.now), token } };
}

async function revokeAdmin(call: ConsoleCall): Promise<ConsoleReply> {
  const { parameter: adminId, now: at, parts } = call;
  const change = { what: 'admin.revoke', adminId, tenant: scopeOf(call), at } as const;
  await apply(call, parts.store, change, { kind: 'admin.revoked', id: adminId });
  return { status: 204 };
}

/** Returns the tenant whose tokens the actor manages. Undefined means all, for an operator who names no tenant. */
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

/**
 * Lists audit events, newest first. The events of the service itself, such as changes of tenants, plans and admins,
 * belong to the id `service`, which only an operator can name.
 */
async function listAudit(call: ConsoleCall): Promise<ConsoleReply> {
  const page = pageOf(call.query, 50);
  // The cursor is the number of an event.
  if (!/^\d{1,15}$/.test(page.after ?? '1')) throw invalid('after is not a valid cursor.', 'after');
  const events = await storeOf(call).listAudit(page);
  return listReply(events, page, { idOf: ({ number }) => String(number), wireOf: eventWire });
}

function eventWire({ at, ...event }: AuditEvent): object {
  return { ...event, at: isoTime(at) };
}

/** Returns the problems of the service's parts, and how much data the store holds. Calls no provider. */
async function getStatus({ parts }: ConsoleCall): Promise<ConsoleReply> {
  const { store, vault, signer, receipts } = parts;
  const [health, vaultProblem, signerProblem] = await Promise.all([
    store.health(),
    vault.problem(),
    signer.problem(),
  ]);
  const journal = receipts === undefined ? null : (receipts.problem() ?? null);
  const { engine: _, newestAt, ...held } = health;
  return {
    status: 200,
    body: {
      version: VERSION,
      problems: { vault: vaultProblem ?? null, signer: signerProblem ?? null, journal },
      ...held,
      newest_at: newestAt === 0 ? null : new Date(newestAt).toISOString(),
    },
  };
}
