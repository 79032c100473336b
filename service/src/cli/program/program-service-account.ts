import type { Command } from 'commander';
import type { CommandContext } from '../../../../src/cli/context.ts';
import type { ConsoleOptions } from '../commands/console-access.ts';
import type { ItemsOptions } from '../commands/service-items.ts';
import type {
  PurgeOptions,
  SettingsOptions,
  SpaceOptions,
  UsageOptions,
} from '../commands/service-account.ts';
import { withConsoleOptions } from './console-options.ts';

/** Declares the commands about what belongs to one tenant. */
export function addAccountCommands(service: Command, context: CommandContext): void {
  addSettings(service, context);
  withConsoleOptions(service.command('usage'))
    .description('Sum requests and tokens by day, key, provider or model')
    .option('--by <list>', 'some of day,key,provider,model', 'day')
    .option('--from <day>', 'first day, UTC (30 days ago)')
    .option('--to <day>', 'last day, UTC (today)')
    .option('--key <id>', 'only this key')
    .option('--limit <number>', 'how many rows (100)')
    .addHelpText('after', '\nExamples:\n  $ svc-service usage --by day,model --from 2026-11-01')
    .action(async (options: UsageOptions) => {
      const { showUsage } = await import('../commands/service-account.ts');
      await showUsage(options, context);
    });
  withConsoleOptions(service.command('sources'))
    .description('List the origins of the records of a space')
    .requiredOption('--space <name>', 'the space')
    .option('--limit <number>', 'how many (20)')
    .addHelpText('after', '\nExamples:\n  $ svc-service sources --space project/api-0123456789')
    .action(async (options: SpaceOptions) => {
      const { listSources } = await import('../commands/service-account.ts');
      await listSources(options, context);
    });
  addItems(service, context);
  addPurge(service, context);
}

function addSettings(service: Command, context: CommandContext): void {
  const settings = service
    .command('settings')
    .description('Account defaults of a tenant; headers of a request override them');
  withConsoleOptions(settings.command('show'))
    .description('Print the account defaults')
    .addHelpText('after', '\nExamples:\n  $ svc-service settings show --json')
    .action(async (options: ConsoleOptions) => {
      const { showSettings } = await import('../commands/service-account.ts');
      await showSettings(options, context);
    });
  withConsoleOptions(settings.command('set'))
    .description('Change account defaults; defaults that you do not name stay')
    .option('--compression-mode <mode>', 'passthrough, shadow or deterministic')
    .option('--input-budget <tokens>', 'input tokens above which svc shortens (8192)')
    .option('--recalled-tokens <tokens>', 'limit for recalled tokens (512)')
    .option('--elision <state>', 'on or off')
    .option('--keep-rounds <number>', 'number of newest rounds whose outputs stay (4)')
    .option('--capture-limit <number>', 'limit for outputs stored in one request (8)')
    .addHelpText(
      'after',
      '\nExamples:\n  $ svc-service settings set --input-budget 16000 --elision off',
    )
    .action(async (options: SettingsOptions) => {
      const { setSettings } = await import('../commands/service-account.ts');
      await setSettings(options, context);
    });
}

function addItems(service: Command, context: CommandContext): void {
  const items = service.command('items').description('List and delete records of a tenant');
  withConsoleOptions(items.command('list'))
    .description('List records, newest first, or best first with --search')
    .option('--space <name>', 'the space (default: all)')
    .option('--search <words>', 'words to search for')
    .option('--role <role>', 'user, assistant or tool')
    .option('--session <id>', 'only this session')
    .option('--source <id>', 'only this source, from svc-service sources')
    .option('--from <when>', 'a day or a time, UTC')
    .option('--to <when>', 'up to this time, which is excluded')
    .option('--limit <number>', 'how many (20)')
    .addHelpText(
      'after',
      `
Examples:
  $ svc-service items list --space project/api-0123456789 --limit 50
  $ svc-service items list --search 'undici version' --json`,
    )
    .action(async (options: ItemsOptions) => {
      const { listItems } = await import('../commands/service-items.ts');
      await listItems(options, context);
    });
  withConsoleOptions(items.command('delete'))
    .description('Delete a record permanently, with a signed receipt')
    .argument('<id>', 'from the list')
    .requiredOption('--space <name>', 'the space of the record')
    .addHelpText('after', '\nExamples:\n  $ svc-service items delete it_12 --space default')
    .action(async (id: string, options: SpaceOptions) => {
      const { deleteItem } = await import('../commands/service-items.ts');
      await deleteItem(id, options, context);
    });
}

function addPurge(service: Command, context: CommandContext): void {
  withConsoleOptions(service.command('purge'))
    .description('Purge records of a space; without --yes it only counts them')
    .requiredOption('--space <name>', 'the space')
    .option('--all', 'all of its records')
    .option('--session <id>', 'only this session')
    .option('--source <id>', 'only this source, from svc-service sources')
    .option('--before <when>', 'records from before this day or time')
    .option('--digest <digest...>', 'records with these digests')
    .option('--yes', 'confirm; a purge cannot be undone')
    .addHelpText(
      'after',
      '\nExamples:\n  $ svc-service purge --space project/api-0123456789 --before 2026-01-01 --yes',
    )
    .action(async (options: PurgeOptions) => {
      const { purgeMemory } = await import('../commands/service-account.ts');
      await purgeMemory(options, context);
    });
  withConsoleOptions(service.command('purges'))
    .description('List receipts of purges, newest first')
    .option('--limit <number>', 'how many (20)')
    .addHelpText(
      'after',
      `
Examples:
  $ svc-service purges
  $ svc-service purges --json > purges.json      # for: svc-service receipts verify purges.json`,
    )
    .action(async (options: ConsoleOptions & { readonly limit?: string }) => {
      const { listPurges } = await import('../commands/service-items.ts');
      await listPurges(options, context);
    });
}
