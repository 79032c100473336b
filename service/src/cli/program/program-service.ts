import type { Command } from 'commander';
import type { CommandContext } from '../../../../src/cli/context.ts';
import type { Finish } from '../../../../src/cli/program/program.ts';
import { OPERATIONS } from '../../server/console/console.ts';
import type { CommandRow, ConsoleOperation } from '../../server/console/operation.ts';
import type { ConsoleOptions, FolderOption } from '../commands/service-context.ts';
import type {
  BackupOptions,
  MoveOptions,
  RestoreOptions,
  ServiceMigrateOptions,
} from '../commands/service-database.ts';
import type { ServiceDoctorOptions } from '../commands/service-doctor.ts';
import type { ServiceInitOptions, VaultAddOptions } from '../commands/service-init.ts';
import type {
  ArchiveOptions,
  ExportOptions,
  RecoverOptions,
  VerifyOptions,
} from '../commands/service-receipts.ts';
import type { ServiceStartOptions } from '../commands/service-start.ts';
import type { ServiceStatusOptions } from '../commands/service-status.ts';

export function addServiceCommands(
  service: Command,
  context: CommandContext,
  finish: Finish,
): void {
  addInit(service, context);
  addStart(service, context, finish);
  addConsoleCommands(service, context, finish);
  addLooking(service, context, finish);
  addBackup(service, context);
  addMigrate(service, context);
  addMove(service, context);
}

function addInit(service: Command, context: CommandContext): void {
  withSettings(service.command('init'))
    .description('Create the folder, the settings and the database of a service')
    .option(
      '--database-from <source>',
      'where to read the address of a PostgreSQL database: file:, env: or command:',
    )
    .option(
      '--redis-from <source>',
      'where to read the address of a Redis server that counts limits',
    )
    .option('--json', 'print the result as JSON')
    .addHelpText(
      'after',
      `
Examples:
  $ svc-service init
  $ svc-service init --host 0.0.0.0 --tls-cert fullchain.pem --tls-key key.pem --rate 600
  $ svc-service init --host 10.0.0.5 --behind-proxy --public-url https://svc.example.com
  $ svc-service init --database-from file:/etc/svc/database-url

The folder is --folder, else $SVC_SERVICE_HOME, else "service" in svc's data folder. Without TLS the
service listens only on loopback, unless you give --behind-proxy for a proxy that ends TLS.`,
    )
    .action(async (options: ServiceInitOptions) => {
      const { initService } = await import('../commands/service-init.ts');
      await initService(options, context);
    });
}

function addStart(service: Command, context: CommandContext, finish: Finish): void {
  withSettings(service.command('start'))
    .description('Start the service and run until interrupted')
    .option('-q, --quiet', 'print problems only')
    .option(
      '--log <form>',
      'a line for each call: text on stderr (the default), json on stdout, or off',
    )
    .option('--json', 'print the address as a line of JSON on stdout')
    .addHelpText(
      'after',
      `
Examples:
  $ svc-service start
  $ svc-service start --port 9443 --log json

Flags apply to this run; service.json in the folder holds the permanent settings. SIGHUP makes the
service read the certificate again, and SIGTERM lets open calls finish. The log never contains texts or keys.`,
    )
    .action(async (options: ServiceStartOptions) => {
      const { startServiceCommand } = await import('../commands/service-start.ts');
      const { startService } = await import('../compose-service.ts');
      const parts = { startService, signals: process, onReload: onHangUp };
      finish(await startServiceCommand(options, context, parts));
    });
}

function onHangUp(listener: () => void): void {
  process.on('SIGHUP', listener);
}

function addLooking(service: Command, context: CommandContext, finish: Finish): void {
  withFolder(service.command('status'))
    .description(
      'Show whether the service runs, where, and how much it stores; exit 1 when it does not run',
    )
    .option('--url <address>', 'address of a remote service; the token comes from $SVC_ADMIN_TOKEN')
    .option('--json', 'print one JSON object')
    .addHelpText(
      'after',
      `
Examples:
  $ svc-service status --json
  $ svc-service status --url https://svc.example.com      # with the token of an operator`,
    )
    .action(async (options: ServiceStatusOptions) => {
      const { serviceStatus } = await import('../commands/service-status.ts');
      finish(await serviceStatus(options, context));
    });
  withFolder(service.command('stop'))
    .description('Stop the service of this folder once its open calls have finished')
    .addHelpText(
      'after',
      `
Examples:
  $ svc-service stop

The command waits until the process has ended. Stop a service of systemd with systemctl, because
systemd may start it again.`,
    )
    .action(async (options: FolderOption) => {
      const { stopService } = await import('../commands/service-status.ts');
      finish(await stopService(options, context));
    });
  withFolder(service.command('doctor'))
    .description('Check settings, modes, database, keys, certificate, clock, port and disk')
    .option('--json', 'print one JSON object')
    .addHelpText('after', '\nExamples:\n  $ svc-service doctor')
    .action(async (options: ServiceDoctorOptions) => {
      const { serviceDoctor } = await import('../commands/service-doctor.ts');
      finish(await serviceDoctor(options, context));
    });
}

function addMigrate(service: Command, context: CommandContext): void {
  withFolder(service.command('migrate'))
    .description('Bring the tables of a service on PostgreSQL to this version')
    .option('--plan', 'list the migrations and change nothing')
    .option('--new-epoch', 'after a restore: make clients capture again what they still hold')
    .option('--json', 'print the result as JSON')
    .addHelpText(
      'after',
      `
Examples:
  $ svc-service migrate --plan
  $ svc-service migrate

$SVC_DATABASE_URL, or "database" in service.json, gives the address. Run this command once before you
start a new version of svc; nodes of the old version keep running. A start with --auto-migrate does the same.`,
    )
    .action(async (options: ServiceMigrateOptions) => {
      const { migrateService } = await import('../commands/service-database.ts');
      await migrateService(options, context);
    });
}

function addMove(service: Command, context: CommandContext): void {
  withFolder(service.command('move'))
    .description('Copy a service from a file to PostgreSQL and check the copy')
    .requiredOption('--to <address>', 'postgres://… without a password, or file:, env: or command:')
    .option('--json', 'print the result as JSON')
    .addHelpText(
      'after',
      `
Examples:
  $ svc-service move --to file:/etc/svc/database-url

Stop the service first. If the move is interrupted, run it again and it continues. It computes the digest
of every record again in the new database, and checks the signature of every receipt there.`,
    )
    .action(async (options: MoveOptions) => {
      const { moveCommand } = await import('../commands/service-database.ts');
      await moveCommand(options, context);
    });
}

function addBackup(service: Command, context: CommandContext): void {
  withFolder(service.command('backup'))
    .description('Copy the database of a running service to a new private file')
    .argument('<file>', 'the new file')
    .option('--json', 'print the result as JSON')
    .addHelpText('after', '\nExamples:\n  $ svc-service backup memory-2026-05-01.db')
    .action(async (file: string, options: BackupOptions) => {
      const { backUp } = await import('../commands/service-database.ts');
      await backUp(file, options, context);
    });
  withFolder(service.command('restore'))
    .description('Replace the database by a backup; the service must be stopped')
    .argument('<file>', 'a file that svc-service backup made')
    .option('--yes', 'confirm; the present database is kept under another name')
    .option('--json', 'print the result as JSON')
    .addHelpText('after', '\nExamples:\n  $ svc-service restore memory-2026-05-01.db --yes')
    .action(async (file: string, options: RestoreOptions) => {
      const { restore } = await import('../commands/service-database.ts');
      await restore(file, options, context);
    });
}

function withFolder(command: Command): Command {
  return command.option('--folder <path>', "the service's folder");
}

function withSettings(command: Command): Command {
  return withFolder(command)
    .option('--host <address>', 'where to listen (127.0.0.1)')
    .option('--port <number>', 'the port (8766)')
    .option('--tls-cert <path>', 'PEM file of the certificate and its chain')
    .option('--tls-key <path>', 'PEM file of the private key')
    .option('--behind-proxy', 'a proxy in front ends TLS and sets x-forwarded-for')
    .option('--public-url <address>', 'the address that clients use: https://svc.example.com')
    .option('--rate <number>', 'calls of one key in a minute, or off')
    .option('--auto-migrate', 'create the tables in PostgreSQL that this version needs')
    .option('--metrics <address>', 'serve counts of calls as text at http://ADDRESS/metrics');
}

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

/** Commands that do more than call their operation. */
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
