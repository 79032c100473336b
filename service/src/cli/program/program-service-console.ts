import type { Command } from 'commander';
import type { CommandContext } from '../../../../src/cli/context.ts';
import type { ConsoleOptions } from '../commands/console-access.ts';
import type { AdminOptions, AuditOptions } from '../commands/service-admins.ts';
import type {
  KeyCreateOptions,
  KeyListOptions,
  KeyRotateOptions,
} from '../commands/service-keys.ts';
import type { PlanOptions, TenantOptions } from '../commands/service-tenants.ts';
import { withConsoleOptions } from './console-options.ts';
import type { Finish } from '../../../../src/cli/program/program.ts';
import { addAccountCommands } from './program-service-account.ts';
import { addProviderCommands } from './program-service-providers.ts';
import { addReceiptCommands } from './program-service-receipts.ts';
import { addVaultCommands } from './program-service-vault.ts';

/** Declares the commands that manage a service: clients of its console operations. */
export function addConsoleCommands(
  service: Command,
  context: CommandContext,
  finish: Finish,
): void {
  addKeys(service, context);
  addProviderCommands(service, context, finish);
  addTenants(service, context);
  addPlans(service, context);
  addAdmins(service, context);
  addAudit(service, context);
  addVaultCommands(service, context, finish);
  addAccountCommands(service, context);
  addReceiptCommands(service, context, finish);
}

function addKeys(service: Command, context: CommandContext): void {
  const keys = service.command('keys').description('Create, list, rotate and revoke keys');
  withConsoleOptions(keys.command('create'))
    .description('Create a key and print it once')
    .option('--name <name>', 'a name for the key, such as its owner')
    .option('--scopes <list>', 'some of read, write, receipt:read, or none', 'read,write')
    .option('--space <glob...>', 'only these spaces; * matches any characters')
    .option('--model <name...>', 'only these models; the last character may be *')
    .option('--expires <when>', 'days from now (90d) or a date')
    .option(
      '--tokens-per-day <number>',
      'limit for input and output tokens of model requests in a UTC day',
    )
    .option('--tokens-per-month <number>', 'the same limit for a month')
    .addHelpText(
      'after',
      `
Examples:
  $ svc-service keys create --name laptop
  $ svc-service keys create --name intern --tokens-per-day 2000000
  $ svc-service keys create --name models-only --scopes none
  $ svc-service keys create --name ci --scopes read --space 'project/*' --expires 90d`,
    )
    .action(async (options: KeyCreateOptions) => {
      const { createKey } = await import('../commands/service-keys.ts');
      await createKey(options, context);
    });
  withConsoleOptions(keys.command('list'))
    .description('List keys with their permissions and last use; never the keys themselves')
    .option('--revoked', 'also list keys that are revoked')
    .addHelpText('after', '\nExamples:\n  $ svc-service keys list')
    .action(async (options: KeyListOptions) => {
      const { listKeys } = await import('../commands/service-keys.ts');
      await listKeys(options, context);
    });
  withConsoleOptions(keys.command('rotate'))
    .description('Give a key a new secret; the old one works during a grace period')
    .argument('<id>', 'the 12 characters that the list shows')
    .option('--grace <time>', 'how long the old secret works: 0 to 7d', '1d')
    .addHelpText(
      'after',
      `
Examples:
  $ svc-service keys rotate 4kPzQ0aB71Xc --grace 12h
  $ svc-service keys rotate 4kPzQ0aB71Xc --grace 0      # the secret leaked`,
    )
    .action(async (id: string, options: KeyRotateOptions) => {
      const { rotateKey } = await import('../commands/service-keys.ts');
      await rotateKey(id, options, context);
    });
  withConsoleOptions(keys.command('revoke'))
    .description('Revoke a key; running services refuse it within 2 seconds')
    .argument('<id>', 'the 12 characters that the list shows')
    .addHelpText('after', '\nExamples:\n  $ svc-service keys revoke 4kPzQ0aB71Xc')
    .action(async (id: string, options: ConsoleOptions) => {
      const { revokeKey } = await import('../commands/service-keys.ts');
      await revokeKey(id, options, context);
    });
}

function addTenants(service: Command, context: CommandContext): void {
  const tenants = service
    .command('tenants')
    .description('Manage tenants, which share a service but see nothing of each other');
  withConsoleOptions(tenants.command('list'))
    .description('List tenants with their plans')
    .addHelpText('after', '\nExamples:\n  $ svc-service tenants list')
    .action(async (options: ConsoleOptions) => {
      const { listTenants } = await import('../commands/service-tenants.ts');
      await listTenants(options, context);
    });
  withTenantOptions(tenants.command('create'))
    .description('Create a tenant')
    .argument('<id>', '1 to 63 of a-z 0-9 and -')
    .addHelpText('after', '\nExamples:\n  $ svc-service tenants create acme --plan team')
    .action(async (id: string, options: TenantOptions) => {
      const { createTenant } = await import('../commands/service-tenants.ts');
      await createTenant(id, options, context);
    });
  withTenantOptions(tenants.command('update'))
    .description('Change the name or plan of a tenant')
    .argument('<id>', 'the id of the tenant')
    .addHelpText('after', '\nExamples:\n  $ svc-service tenants update acme --plan large')
    .action((id: string, options: TenantOptions) => set(id, { options }));
  for (const { name, status, what } of STATUSES) {
    withConsoleOptions(tenants.command(name))
      .description(what)
      .argument('<id>', 'the id of the tenant')
      .addHelpText('after', `\nExamples:\n  $ svc-service tenants ${name} acme`)
      .action((id: string, options: TenantOptions) => set(id, { status, options }));
  }
  const set = async (
    id: string,
    change: { status?: 'active' | 'suspended' | 'deleted'; options: TenantOptions },
  ): Promise<void> => {
    const { setTenant } = await import('../commands/service-tenants.ts');
    await setTenant(id, change, context);
  };
}

const STATUSES = [
  {
    name: 'suspend',
    status: 'suspended',
    what: 'Refuse every call of the tenant until it is resumed',
  },
  { name: 'resume', status: 'active', what: 'Accept calls of a suspended tenant again' },
  {
    name: 'delete',
    status: 'deleted',
    what: 'Refuse the keys of a tenant permanently; its records stay until purged',
  },
] as const;

function addPlans(service: Command, context: CommandContext): void {
  const plans = service.command('plans').description('Manage plans, which limit tenants');
  withConsoleOptions(plans.command('list'))
    .description('List plans with their limits')
    .addHelpText('after', '\nExamples:\n  $ svc-service plans list')
    .action(async (options: ConsoleOptions) => {
      const { listPlans } = await import('../commands/service-tenants.ts');
      await listPlans(options, context);
    });
  for (const { name, isNew, what } of PLAN_COMMANDS) {
    withConsoleOptions(plans.command(name))
      .description(what)
      .argument('<name>', '1 to 63 of a-z 0-9 and -')
      .option(
        '--limit <name=number...>',
        'a limit, such as keys=50; limits that you do not name are off',
      )
      .addHelpText(
        'after',
        `
Examples:
  $ svc-service plans ${name} team --limit memory_calls_per_minute=600 --limit keys=50

Limits: requests_per_minute, requests_burst, input_tokens_per_minute, concurrent_requests,
memory_calls_per_minute, tokens_per_day, tokens_per_month, records, providers, keys, retention_days`,
      )
      .action(async (plan: string, options: PlanOptions) => {
        const { putPlan } = await import('../commands/service-tenants.ts');
        await putPlan(plan, { isNew, options }, context);
      });
  }
}

const PLAN_COMMANDS = [
  { name: 'create', isNew: true, what: 'Create a plan' },
  { name: 'update', isNew: false, what: 'Replace the limits of a plan, for all of its tenants' },
] as const;

function addAdmins(service: Command, context: CommandContext): void {
  const admins = service
    .command('admins')
    .description('Manage admin tokens, which only open the console operations');
  withConsoleOptions(admins.command('create'))
    .description('Create a token and print it once')
    .option('--name <name>', 'a name for the token, such as its owner')
    .requiredOption('--role <role>', 'operator (the service), admin or viewer (one tenant)')
    .option('--expires <when>', 'days from now (90d) or a date')
    .addHelpText(
      'after',
      '\nExamples:\n  $ svc-service admins create --name ann --role admin --tenant acme',
    )
    .action(async (options: AdminOptions) => {
      const { createAdmin } = await import('../commands/service-admins.ts');
      await createAdmin(options, context);
    });
  withConsoleOptions(admins.command('list'))
    .description('List tokens with role, tenant and last use; never the tokens themselves')
    .addHelpText('after', '\nExamples:\n  $ svc-service admins list')
    .action(async (options: ConsoleOptions) => {
      const { listAdmins } = await import('../commands/service-admins.ts');
      await listAdmins(options, context);
    });
  withConsoleOptions(admins.command('revoke'))
    .description('Revoke a token; a running service refuses it at once')
    .argument('<id>', 'the 12 characters that the list shows')
    .addHelpText('after', '\nExamples:\n  $ svc-service admins revoke 4kPzQ0aB71Xc')
    .action(async (id: string, options: ConsoleOptions) => {
      const { revokeAdmin } = await import('../commands/service-admins.ts');
      await revokeAdmin(id, options, context);
    });
}

function addAudit(service: Command, context: CommandContext): void {
  withConsoleOptions(service.command('audit'))
    .description('List who changed what, newest first')
    .option('--limit <number>', 'how many (50)')
    .addHelpText(
      'after',
      `
Examples:
  $ svc-service audit --limit 20
  $ svc-service audit --tenant service      # tenants, plans and admins`,
    )
    .action(async (options: AuditOptions) => {
      const { listAudit } = await import('../commands/service-admins.ts');
      await listAudit(options, context);
    });
}

function withTenantOptions(command: Command): Command {
  return withConsoleOptions(command)
    .option('--name <name>', 'a display name')
    .option('--plan <plan>', 'a name from svc-service plans list');
}
