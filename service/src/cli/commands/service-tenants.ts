import { CliError } from '../../../../src/cli/cli-error.ts';
import type { CommandContext } from '../../../../src/cli/context.ts';
import { oneLine } from '../../../../src/cli/terminal.ts';
import { table } from '../../../../src/cli/text-table.ts';
import { type ConsoleOptions, listAll, withConsole } from './console-access.ts';
import { textOf } from './console-fields.ts';

/** `svc-service tenants` and `plans`: who shares a service, and how much each may take of it. */

export interface TenantOptions extends ConsoleOptions {
  readonly name?: string;
  readonly plan?: string;
}

export interface PlanOptions extends ConsoleOptions {
  /** `requests_per_minute=600`, or `keys=off`. */
  readonly limit?: readonly string[];
}

export async function createTenant(
  tenantId: string,
  options: TenantOptions,
  context: CommandContext,
): Promise<void> {
  const { name, plan, json } = options;
  const made = await withConsole(options, context, (console) =>
    console.call({
      method: 'POST',
      path: 'tenants',
      body: {
        tenant_id: tenantId,
        ...(name === undefined ? {} : { name }),
        ...(plan === undefined ? {} : { plan }),
      },
    }),
  );
  if (json === true) context.terminal.json(made);
  context.terminal.note(
    `The tenant ${tenantId} has the plan ${textOf(made['plan'])}. Next: svc-service keys create --tenant ${tenantId}`,
  );
}

export async function listTenants(options: ConsoleOptions, context: CommandContext): Promise<void> {
  const { terminal } = context;
  const tenants = await withConsole(options, context, (console) => listAll(console, 'tenants'));
  if (options.json === true) {
    terminal.json(tenants);
    return;
  }
  const rows = tenants.map((tenant) => [
    textOf(tenant['tenant_id']),
    oneLine(textOf(tenant['name']), 32),
    textOf(tenant['status']),
    textOf(tenant['plan']),
  ]);
  const shape = { columns: terminal.columns(160), left: [0, 1, 2, 3] };
  for (const line of table(rows, shape)) terminal.out(line);
}

export async function setTenant(
  tenantId: string,
  change: { readonly status?: 'active' | 'suspended' | 'deleted'; readonly options: TenantOptions },
  context: CommandContext,
): Promise<void> {
  const { status, options } = change;
  const { name, plan, json } = options;
  const body = {
    ...(name === undefined ? {} : { name }),
    ...(plan === undefined ? {} : { plan }),
    ...(status === undefined ? {} : { status }),
  };
  if (Object.keys(body).length === 0) {
    throw new CliError('There is nothing to change.', 'Give --name or --plan.', 2);
  }
  // The path contains the id, so only a valid id may be put there.
  if (!/^[\w-]{1,63}$/.test(tenantId)) {
    throw new CliError('This is not the id of a tenant.', 'See: svc-service tenants list', 2);
  }
  const changed = await withConsole(options, context, (console) =>
    console.call({ method: 'PATCH', path: `tenants/${tenantId}`, body }),
  );
  if (json === true) context.terminal.json(changed);
  context.terminal.note(
    `The tenant ${tenantId} is ${textOf(changed['status'])}, with the plan ${textOf(changed['plan'])}.`,
  );
}

export async function putPlan(
  name: string,
  change: { readonly isNew: boolean; readonly options: PlanOptions },
  context: CommandContext,
): Promise<void> {
  const { isNew, options } = change;
  const limits = limitsOf(options.limit ?? []);
  if (!/^[\w-]{1,63}$/.test(name)) {
    throw new CliError('This is not the name of a plan.', 'Use a to z, 0 to 9 and -.', 2);
  }
  const made = await withConsole(options, context, (console) =>
    console.call(
      isNew
        ? { method: 'POST', path: 'plans', body: { name, limits } }
        : { method: 'PUT', path: `plans/${name}`, body: { limits } },
    ),
  );
  if (options.json === true) context.terminal.json(made);
  context.terminal.note(`The plan ${name} applies to its tenants from now on.`);
}

export async function listPlans(options: ConsoleOptions, context: CommandContext): Promise<void> {
  const { terminal } = context;
  const plans = await withConsole(options, context, (console) => listAll(console, 'plans'));
  if (options.json === true) {
    terminal.json(plans);
    return;
  }
  for (const plan of plans) {
    const limits = Object.entries(plan['limits'] ?? {}).filter(([, limit]) => limit !== null);
    const words = limits.map(([limit, value]) => `${limit}=${String(value)}`).join(' ');
    terminal.out(`${textOf(plan['name'])}  ${words === '' ? 'no limits' : words}`);
  }
}

function limitsOf(given: readonly string[]): Readonly<Record<string, number | null>> {
  return Object.fromEntries(
    given.map((text) => {
      const [, name = '', value = ''] = /^([a-z_]{1,40})=(\d{1,13}|off)$/.exec(text) ?? [];
      if (name !== '') return [name, value === 'off' ? null : Number(value)];
      const hint = 'Try --limit requests_per_minute=600 --limit keys=50';
      throw new CliError('--limit: expected NAME=NUMBER or NAME=off.', hint, 2);
    }),
  );
}
