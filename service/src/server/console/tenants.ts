import type { AuditKind } from '../../core/audit.ts';
import {
  planCreate,
  planUpdate,
  tenantCreate,
  type TenantUpdate,
  tenantUpdate,
} from '../../core/console-contract.ts';
import { isoTime } from '../../../../src/core/memory/times.ts';
import { NO_LIMITS, type Plan, SELF_HOSTED } from '../../core/plans.ts';
import { isTenantId, SERVICE_TENANT, type Tenant } from '../../core/tenants.ts';
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

/** Tenants and their plans, for operators. */

export async function listTenants(call: ConsoleCall): Promise<ConsoleReply> {
  const page = pageOf(call.query);
  const tenants = await call.parts.store.listTenants(page);
  return listReply(tenants, page, { idOf: ({ tenantId }) => tenantId, wireOf: tenantWire });
}

export async function createTenant(call: ConsoleCall): Promise<ConsoleReply> {
  const asked = readValue(call.body, tenantCreate);
  const { tenant_id: tenantId, name = tenantId, plan = SELF_HOSTED } = asked;
  if (tenantId === SERVICE_TENANT) {
    throw new ServiceFault('CONFLICT', 'There is a tenant of this name already.');
  }
  const tenant: Tenant = { tenantId, name, plan, status: 'active', createdAt: call.now };
  const note = noteOf(call, 'tenant.created', {
    target: { type: 'tenant', id: tenantId },
    details: { name, plan },
  });
  const outcome = await call.parts.store.apply({ what: 'tenant.add', tenant }, note);
  mustBeDone(outcome, outcome === 'missing' ? 'plan' : 'tenant');
  return { status: 201, body: tenantWire(tenant) };
}

export async function updateTenant(call: ConsoleCall): Promise<ConsoleReply> {
  const { store } = call.parts;
  const tenantId = call.parameter;
  const asked = readValue(call.body, tenantUpdate);
  const before = isTenantId(tenantId) ? await store.findTenant(tenantId) : undefined;
  if (before === undefined) throw new ServiceFault('NOT_FOUND', 'There is no such tenant.');
  if (before.status === 'deleted') {
    throw new ServiceFault('CONFLICT', 'The tenant was deleted, so it cannot change any more.');
  }
  const note = noteOf(call, kindOf(asked), {
    target: { type: 'tenant', id: tenantId },
    details: { ...asked },
  });
  const outcome = await store.apply({ what: 'tenant.set', tenantId, ...asked }, note);
  mustBeDone(outcome, 'plan');
  return { status: 200, body: tenantWire({ ...before, ...asked }) };
}

function kindOf({ status }: TenantUpdate): AuditKind {
  if (status === undefined) return 'tenant.updated';
  if (status === 'active') return 'tenant.resumed';
  return status === 'deleted' ? 'tenant.deleted' : 'tenant.suspended';
}

export async function listPlans(call: ConsoleCall): Promise<ConsoleReply> {
  const page = pageOf(call.query);
  const plans = await call.parts.store.listPlans(page);
  return listReply(plans, page, { idOf: ({ name }) => name, wireOf: planWire });
}

export async function createPlan(call: ConsoleCall): Promise<ConsoleReply> {
  const { name, limits } = readValue(call.body, planCreate);
  return putPlan(call, { name, limits: { ...NO_LIMITS, ...limits }, createdAt: call.now }, true);
}

/** Takes the whole of the limits: one that is left out does not hold any more. */
export async function updatePlan(call: ConsoleCall): Promise<ConsoleReply> {
  const { limits } = readValue(call.body, planUpdate);
  const plan = { name: call.parameter, limits: { ...NO_LIMITS, ...limits }, createdAt: call.now };
  return putPlan(call, plan, false);
}

async function putPlan(call: ConsoleCall, plan: Plan, isNew: boolean): Promise<ConsoleReply> {
  const note = noteOf(call, isNew ? 'plan.created' : 'plan.updated', {
    target: { type: 'plan', id: plan.name },
    details: { ...plan.limits },
  });
  mustBeDone(await call.parts.store.apply({ what: 'plan.put', plan, isNew }, note), 'plan');
  return { status: isNew ? 201 : 200, body: planWire(plan) };
}

function tenantWire({ tenantId, name, plan, status, createdAt }: Tenant): object {
  return { tenant_id: tenantId, name, plan, status, created_at: isoTime(createdAt) };
}

function planWire({ name, limits }: Plan): object {
  return { name, limits };
}
