import type { Command } from 'commander';
import type { CommandContext } from '../../../../src/cli/context.ts';
import type { Finish } from '../../../../src/cli/program/program.ts';
import { OPERATIONS } from '../../server/console/console.ts';
import type { CommandRow, ConsoleOperation } from '../../server/console/operation.ts';
import type { ConsoleOptions } from '../commands/service-context.ts';
import type { VaultAddOptions } from '../commands/service-init.ts';
import type {
  ArchiveOptions,
  ExportOptions,
  RecoverOptions,
  VerifyOptions,
} from '../commands/service-receipts.ts';

/** Declares the commands that manage a service, from the table of the console's operations. */
export function addConsoleCommands(
  service: Command,
  context: CommandContext,
  finish: Finish,
): void {
  for (const operation of OPERATIONS) {
    for (const row of operation.commands) addCommand(service, operation, row, { context, finish });
  }
  const receipts = groupOf(service, 'receipts');
  addVerify(receipts, context, finish);
  addKeeping(receipts, context);
}

const GROUPS: Readonly<Record<string, string>> = {
  keys: 'Create, list, rotate and revoke keys',
  providers: 'Manage providers of a tenant: address, credential and models',
  tenants: 'Manage tenants, which share a service but see nothing of each other',
  plans: 'Manage plans, which limit tenants',
  admins: 'Manage admin tokens, which only open the console operations',
  vault: 'Manage the master keys that encrypt the secrets of a service',
  signing: 'Manage the keys that sign receipts',
  settings: 'Account defaults of a tenant; headers of a request override them',
  items: 'List and delete records of a tenant',
  receipts: 'List, export and verify signed receipts of requests',
};

function groupOf(service: Command, name: string): Command {
  const known = service.commands.find((command) => command.name() === name);
  return known ?? service.command(name).description(GROUPS[name] ?? '');
}

type Special = (
  argument: string,
  options: ConsoleOptions,
  context: CommandContext,
) => Promise<unknown>;

/** Commands that do more than to call their operation. */
const SPECIAL: Readonly<Record<string, Special>> = {
  'vault add': async (_, options: VaultAddOptions, context) => {
    const { addMasterKey } = await import('../commands/service-init.ts');
    return addMasterKey(options, context);
  },
  'receipts export': async (folder, options: ExportOptions, context) => {
    const { exportReceipts } = await import('../commands/service-receipts.ts');
    return exportReceipts(folder, options, context);
  },
};

interface Ends {
  readonly context: CommandContext;
  readonly finish: Finish;
}

function addCommand(
  service: Command,
  operation: ConsoleOperation,
  row: CommandRow,
  { context, finish }: Ends,
): void {
  const { name, about, argument, options = [], examples, more } = row;
  const words = name.split(' ');
  const group = words.length === 1 ? service : groupOf(service, words[0] ?? '');
  const command = withConsoleOptions(group.command(words.at(-1) ?? '')).description(about);
  if (argument !== undefined) command.argument(argument.flags, argument.about);
  for (const { flags, about: text, shown, isRequired = false } of options) {
    if (isRequired) command.requiredOption(flags, text);
    else command.option(flags, text, shown);
  }
  const lines = examples.map((example) => `  $ svc-service ${example}`).join('\n');
  command.addHelpText('after', `\nExamples:\n${lines}${more === undefined ? '' : `\n\n${more}`}`);
  command.action(async () => {
    const [text = ''] = command.args;
    const given: ConsoleOptions = command.opts();
    const special = SPECIAL[name];
    if (special !== undefined) return void (await special(text, given, context));
    const { runCommand } = await import('../commands/run-command.ts');
    finish(await runCommand({ operation, row, argument: text, options: given }, context));
  });
}

/** Options of every command that manages a service. */
function withConsoleOptions(command: Command): Command {
  return command
    .option('--folder <path>', "the service's folder")
    .option('--url <address>', 'address of a remote service; the token comes from $SVC_ADMIN_TOKEN')
    .option('--tenant <id>', 'the tenant (default: default)')
    .option('--json', 'print JSON');
}

function addVerify(receipts: Command, context: CommandContext, finish: Finish): void {
  receipts
    .command('verify')
    .description('Verify receipts without the service; exit 1 if one is altered or missing')
    .argument('<path>', 'a file of receipts, or a folder of an export or archive')
    .option('--keys <file>', 'the public keys (keys.json of the folder)')
    .option('--partial', 'the receipts are only a part: accept missing numbers before and after')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
Examples:
  $ svc-service receipts verify ./all
  $ svc-service receipts verify ./november --partial
  $ curl -s https://HOST/.well-known/svc/receipt-keys.json > keys.json
  $ svc-service receipts verify purges.json --keys keys.json

Every node numbers the receipts of a tenant 1, 2, 3 … and signs its last number, the head.`,
    )
    .action(async (path: string, options: VerifyOptions) => {
      const { verifyReceipts } = await import('../commands/service-receipts.ts');
      finish(await verifyReceipts(path, options, context));
    });
}

function addKeeping(receipts: Command, context: CommandContext): void {
  receipts
    .command('recover')
    .description('Store the receipts that a dead process left; the service must be stopped')
    .option('--folder <path>', "the service's folder")
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExamples:\n  $ svc-service receipts recover')
    .action(async (options: RecoverOptions) => {
      const { recoverCommand } = await import('../commands/service-receipts.ts');
      await recoverCommand(options, context);
    });
  withConsoleOptions(receipts.command('archive'))
    .description('Move old receipts from the database to files, one file for each day')
    .argument('<folder>', 'the target folder')
    .option('--older-than <days>', 'age from which receipts are moved (90d)')
    .addHelpText(
      'after',
      '\nExamples:\n  $ svc-service receipts archive /backup/receipts --older-than 30d',
    )
    .action(async (folder: string, options: ArchiveOptions) => {
      const { archiveReceipts } = await import('../commands/service-receipts.ts');
      await archiveReceipts(folder, options, context);
    });
}
