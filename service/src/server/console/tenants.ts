import type { AuditKind } from '../../core/audit.ts';
import { asRecord } from '../../../../src/core/bytes/json-fields.ts';
import { closed, type Infer, oneOf, text } from '../../../../src/core/memory-api/shape.ts';
import { isoTime } from '../../../../src/core/memory/times.ts';
import { NO_LIMITS, type Plan, PLAN_LIMITS, SELF_HOSTED } from '../../core/plans.ts';
import { isTenantId, SERVICE_TENANT, type Tenant, TENANT_ID } from '../../core/tenants.ts';
import { ServiceFault } from '../fault.ts';
import {
  apply,
  type ArgumentRow,
  command,
  commandName,
  type CommandRow,
  type ConsoleCall,
  type ConsoleOperation,
  type ConsoleReply,
  listReply,
  mustBeDone,
  noteOf,
  option,
  type OptionRow,
  pageOf,
  personName,
  reads,
  writes,
} from './operation.ts';

/** Operations on tenants and their plans, for operators. */

export const tenantCreate = closed(
  { tenant_id: text({ pattern: TENANT_ID }) },
  { name: personName, plan: commandName },
);

export const tenantUpdate = closed(
  {},
  { name: personName, plan: commandName, status: oneOf('active', 'suspended', 'deleted') },
);

/** The limits of a plan in a body. A limit that is left out becomes null: see PlanLimits. */
const limitsShape = closed({}, PLAN_LIMITS);

export const planCreate = closed({ name: commandName, limits: limitsShape });
export const planUpdate = closed({ limits: limitsShape });

const TENANT: ArgumentRow = {
  flags: '<id>',
  about: 'the id of the tenant',
  // The id becomes a part of the call's path.
  pattern: /^[\w-]{1,63}$/,
  problem: ['This is not the id of a tenant.', 'See: svc-service tenants list'],
};

const TENANT_OPTIONS: readonly OptionRow[] = [
  option('--name <name>', 'a display name', 'name'),
  option('--plan <plan>', 'a name from svc-service plans list', 'plan'),
];

const PLAN: ArgumentRow = {
  flags: '<name>',
  about: '1 to 63 of a-z 0-9 and -',
  pattern: /^[\w-]{1,63}$/,
  problem: ['This is not the name of a plan.', 'Use a to z, 0 to 9 and -.'],
};

export const tenantOperations: readonly ConsoleOperation[] = [
  reads({ name: 'listTenants', route: 'GET tenants', role: 'operator' }, listTenants, [
    command('tenants list', 'List tenants with their plans', {
      list: {
        isWhole: true,
        columns: ['tenant_id', 'name:32', 'status', 'plan'],
      },
    }),
  ]),
  writes(
    { name: 'createTenant', route: 'POST tenants', role: 'operator' },
    tenantCreate,
    createTenant,
    [
      command('tenants create', 'Create a tenant', {
        argument: option('<id>', '1 to 63 of a-z 0-9 and -', 'tenant_id'),
        options: TENANT_OPTIONS,
        examples: ['tenants create acme --plan team'],
        shows: ({ plan }, { line }, { argument: id }) => ({
          note: `The tenant ${id} has the plan ${line(plan)}. Next: svc-service keys create --tenant ${id}`,
        }),
      }),
    ],
  ),
  writes(
    { name: 'updateTenant', route: 'PATCH tenants/*', role: 'operator' },
    tenantUpdate,
    updateTenant,
    [
      {
        ...tenantCommand('update', 'Change the name or plan of a tenant'),
        options: TENANT_OPTIONS,
        examples: ['tenants update acme --plan large'],
        nothing: ['There is nothing to change.', 'Give --name or --plan.'],
      },
      {
        ...tenantCommand('suspend', 'Refuse every call of the tenant until it is resumed'),
        ask: () => ({ status: 'suspended' }),
      },
      {
        ...tenantCommand('resume', 'Accept calls of a suspended tenant again'),
        ask: () => ({ status: 'active' }),
      },
      {
        ...tenantCommand(
          'delete',
          'Refuse the keys of a tenant permanently; its records stay until purged',
        ),
        ask: () => ({ status: 'deleted' }),
      },
    ],
  ),
  reads({ name: 'listPlans', route: 'GET plans', role: 'operator' }, listPlans, [
    command('plans list', 'List plans with their limits', {
      list: {
        isWhole: true,
        isLoose: true,
        columns: ['name', ({ limits: of }) => limitsText(of)],
      },
    }),
  ]),
  writes({ name: 'createPlan', route: 'POST plans', role: 'operator' }, planCreate, createPlan, [
    planCommand('create', 'Create a plan', { ...PLAN, to: 'name' }),
  ]),
  writes({ name: 'updatePlan', route: 'PUT plans/*', role: 'operator' }, planUpdate, updatePlan, [
    planCommand('update', 'Replace the limits of a plan, for all of its tenants', PLAN),
  ]),
];

function tenantCommand(name: string, about: string): CommandRow {
  return {
    name: `tenants ${name}`,
    about,
    argument: TENANT,
    examples: [`tenants ${name} acme`],
    shows: ({ status, plan }, { line }, { argument: id }) => ({
      note: `The tenant ${id} is ${line(status)}, with the plan ${line(plan)}.`,
    }),
  };
}

function planCommand(name: string, about: string, argument: ArgumentRow): CommandRow {
  return {
    name: `plans ${name}`,
    about,
    argument,
    options: [
      option(
        '--limit <name=number...>',
        'a limit, such as keys=50; limits that you do not name are off',
        'limits',
        {
          as: {
            read: limitsIn,
            expected: 'expected NAME=NUMBER or NAME=off.',
            hint: 'Try --limit requests_per_minute=600 --limit keys=50',
          },
          otherwise: {},
        },
      ),
    ],
    examples: [`plans ${name} team --limit memory_calls_per_minute=600 --limit keys=50`],
    more: `Limits: requests_per_minute, requests_burst, input_tokens_per_minute, concurrent_requests,
memory_calls_per_minute, tokens_per_day, tokens_per_month, records, providers, keys, retention_days`,
    shows: (_answer, _say, { argument: plan }) => ({
      note: `The plan ${plan} applies to its tenants from now on.`,
    }),
  };
}

/** Reads limits such as `keys=50` and `keys=off`. Undefined if one of the texts is not of this form. */
function limitsIn(given: unknown): Readonly<Record<string, number | null>> | undefined {
  const found = (Array.isArray(given) ? given : []).map((pair) =>
    /^([a-z_]{1,40})=(\d{1,13}|off)$/.exec(String(pair)),
  );
  if (found.includes(null)) return undefined;
  return Object.fromEntries(
    found.map((parts) => [parts?.[1] ?? '', parts?.[2] === 'off' ? null : Number(parts?.[2])]),
  );
}

function limitsText(of: unknown): string {
  const set = Object.entries(asRecord(of)).filter(([, limit]) => limit !== null);
  return set.map(([limit, value]) => `${limit}=${String(value)}`).join(' ') || 'no limits';
}

async function listTenants(call: ConsoleCall): Promise<ConsoleReply> {
  const page = pageOf(call.query);
  const tenants = await call.parts.store.listTenants(page);
  return listReply(tenants, page, { idOf: ({ tenantId }) => tenantId, wireOf: tenantWire });
}

async function createTenant(
  call: ConsoleCall,
  { tenant_id: tenantId, name = tenantId, plan = SELF_HOSTED }: Infer<typeof tenantCreate>,
): Promise<ConsoleReply> {
  if (tenantId === SERVICE_TENANT) mustBeDone('exists', 'tenant');
  const tenant: Tenant = { tenantId, name, plan, status: 'active', createdAt: call.now };
  const note = noteOf(call, 'tenant.created', {
    target: { type: 'tenant', id: tenantId },
    details: { name, plan },
  });
  const outcome = await call.parts.store.apply({ what: 'tenant.add', tenant }, note);
  mustBeDone(outcome, outcome === 'missing' ? 'plan' : 'tenant');
  return { status: 201, body: tenantWire(tenant) };
}

async function updateTenant(
  call: ConsoleCall,
  asked: Infer<typeof tenantUpdate>,
): Promise<ConsoleReply> {
  const { store } = call.parts;
  const tenantId = call.parameter;
  const before = isTenantId(tenantId) ? await store.findTenant(tenantId) : undefined;
  if (before === undefined) throw new ServiceFault('NOT_FOUND', 'There is no such tenant.');
  if (before.status === 'deleted') {
    throw new ServiceFault('CONFLICT', 'The tenant was deleted, so it cannot change any more.');
  }
  await apply(
    call,
    store,
    { what: 'tenant.set', tenantId, ...asked },
    { kind: kindOf(asked), id: tenantId, what: 'tenant or plan', details: { ...asked } },
  );
  return { status: 200, body: tenantWire({ ...before, ...asked }) };
}

function kindOf({ status }: Infer<typeof tenantUpdate>): AuditKind {
  if (status === undefined) return 'tenant.updated';
  if (status === 'active') return 'tenant.resumed';
  return status === 'deleted' ? 'tenant.deleted' : 'tenant.suspended';
}

async function listPlans(call: ConsoleCall): Promise<ConsoleReply> {
  const page = pageOf(call.query);
  const plans = await call.parts.store.listPlans(page);
  return listReply(plans, page, { idOf: ({ name }) => name, wireOf: planWire });
}

async function createPlan(
  call: ConsoleCall,
  { name, limits: given }: Infer<typeof planCreate>,
): Promise<ConsoleReply> {
  return putPlan(call, { name, limits: { ...NO_LIMITS, ...given }, createdAt: call.now }, true);
}

/** Replaces all limits of a plan. A limit that the call does not name is removed. */
async function updatePlan(
  call: ConsoleCall,
  { limits: given }: Infer<typeof planUpdate>,
): Promise<ConsoleReply> {
  const plan = { name: call.parameter, limits: { ...NO_LIMITS, ...given }, createdAt: call.now };
  return putPlan(call, plan, false);
}

async function putPlan(call: ConsoleCall, plan: Plan, isNew: boolean): Promise<ConsoleReply> {
  await apply(
    call,
    call.parts.store,
    { what: 'plan.put', plan, isNew },
    { kind: isNew ? 'plan.created' : 'plan.updated', id: plan.name, details: { ...plan.limits } },
  );
  return { status: isNew ? 201 : 200, body: planWire(plan) };
}

function tenantWire({ tenantId, name, plan, status, createdAt }: Tenant): object {
  return { tenant_id: tenantId, name, plan, status, created_at: isoTime(createdAt) };
}

function planWire({ name, limits }: Plan): object {
  return { name, limits };
}
