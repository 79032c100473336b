import type { Command } from 'commander';
import type { CommandContext } from '../context.ts';
import type { Finish } from './program.ts';
import type { BackupOptions, RestoreOptions } from '../service/service-backup.ts';
import type { ServiceDoctorOptions } from '../service/service-doctor.ts';
import type { ServiceMigrateOptions } from '../service/service-migrate.ts';
import type { MoveOptions } from '../service/service-move.ts';
import type { ServiceInitOptions } from '../service/service-init.ts';
import type { ServiceStartOptions } from '../service/service-start.ts';
import type { ServiceStatusOptions } from '../service/service-status.ts';
import { addConsoleCommands } from './program-service-console.ts';

/** Declares the commands of the memory service. */
export function addServiceCommands(
  program: Command,
  context: CommandContext,
  finish: Finish,
): void {
  const service = program
    .command('service')
    .description('A memory that several machines share: a service of your own');
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
    .description('Make the folder, the settings and the database of a service')
    .option(
      '--database-from <source>',
      'where the address of a PostgreSQL is: file:, env: or command:',
    )
    .option('--redis-from <source>', 'where the address of a Redis is, to count limits there')
    .option('--json', 'print what was made as JSON')
    .addHelpText(
      'after',
      `
Examples:
  $ svc service init
  $ svc service init --host 0.0.0.0 --tls-cert fullchain.pem --tls-key key.pem --rate 600
  $ svc service init --host 10.0.0.5 --behind-proxy
  $ svc service init --database-from file:/etc/svc/database-url

The folder is --folder, else $SVC_SERVICE_HOME, else "service" in svc's data folder. Without TLS the
service listens on loopback only, unless --behind-proxy says that a proxy in front ends TLS.`,
    )
    .action(async (options: ServiceInitOptions) => {
      const { initService } = await import('../service/service-init.ts');
      await initService(options, context);
    });
}

function addStart(service: Command, context: CommandContext, finish: Finish): void {
  withSettings(service.command('start'))
    .description('Start the service; it runs until it is interrupted')
    .option('-q, --quiet', 'print problems only')
    .option('--log <form>', 'a line for each call: text on stderr, json on stdout, or off')
    .option('--json', 'print the address as a line of JSON on stdout')
    .addHelpText(
      'after',
      `
Examples:
  $ svc service start
  $ svc service start --port 9443 --log json

Flags count for this run; service.json in the folder holds what stays. SIGHUP reads the certificate
again, SIGTERM lets open calls finish. No line ever holds a text or a key.`,
    )
    .action(async (options: ServiceStartOptions) => {
      const { startServiceCommand } = await import('../service/service-start.ts');
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
    .description('Say whether the service runs, where, and what it holds; exit 1 when it does not')
    .option('--url <address>', 'a service elsewhere; its token comes from $SVC_ADMIN_TOKEN')
    .option('--json', 'print one JSON object')
    .addHelpText(
      'after',
      `
Examples:
  $ svc service status --json
  $ svc service status --url https://svc.example.com      # with the token of an operator`,
    )
    .action(async (options: ServiceStatusOptions) => {
      const { serviceStatus } = await import('../service/service-status.ts');
      finish(await serviceStatus(options, context));
    });
  withFolder(service.command('doctor'))
    .description('Check settings, modes, database, keys, certificate, clock, port and disk')
    .option('--json', 'print one JSON object')
    .addHelpText('after', '\nExamples:\n  $ svc service doctor')
    .action(async (options: ServiceDoctorOptions) => {
      const { serviceDoctor } = await import('../service/service-doctor.ts');
      finish(await serviceDoctor(options, context));
    });
}

function addMigrate(service: Command, context: CommandContext): void {
  withFolder(service.command('migrate'))
    .description('Bring the tables of a service on PostgreSQL to this version')
    .option('--plan', 'say what would be applied, and change nothing')
    .option('--new-epoch', 'after a restore: clients capture anew what they still hold')
    .option('--json', 'print what was done as JSON')
    .addHelpText(
      'after',
      `
Examples:
  $ svc service migrate --plan
  $ svc service migrate

$SVC_DATABASE_URL, or "database" in service.json, says where the database is. Run it once before a new
version of svc starts; nodes of the version before go on. A start with --auto-migrate does it too.`,
    )
    .action(async (options: ServiceMigrateOptions) => {
      const { migrateService } = await import('../service/service-migrate.ts');
      await migrateService(options, context);
    });
}

function addMove(service: Command, context: CommandContext): void {
  withFolder(service.command('move'))
    .description('Copy a service in a file to PostgreSQL, and check what arrived')
    .requiredOption('--to <address>', 'postgres://… without a password, or file:, env: or command:')
    .option('--json', 'print what was moved as JSON')
    .addHelpText(
      'after',
      `
Examples:
  $ svc service move --to file:/etc/svc/database-url

Stop the service first. A move that was interrupted goes on when it is run again. Every record's digest
is made anew from the bytes on the other side, and every receipt's signature is checked there.`,
    )
    .action(async (options: MoveOptions) => {
      const { moveCommand } = await import('../service/service-move.ts');
      await moveCommand(options, context);
    });
}

function addBackup(service: Command, context: CommandContext): void {
  withFolder(service.command('backup'))
    .description('Copy the database, while the service runs, to a new private file')
    .argument('<file>', 'where to')
    .option('--json', 'print what was written as JSON')
    .addHelpText('after', '\nExamples:\n  $ svc service backup memory-2026-05-01.db')
    .action(async (file: string, options: BackupOptions) => {
      const { backUp } = await import('../service/service-backup.ts');
      await backUp(file, options, context);
    });
  withFolder(service.command('restore'))
    .description('Put a backup in the place of the database; the service must be stopped')
    .argument('<file>', 'a file that svc service backup made')
    .option('--yes', 'do it; what is there now is set aside')
    .option('--json', 'print what was done as JSON')
    .addHelpText('after', '\nExamples:\n  $ svc service restore memory-2026-05-01.db --yes')
    .action(async (file: string, options: RestoreOptions) => {
      const { restore } = await import('../service/service-backup.ts');
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
    .option('--tls-key <path>', 'PEM file of its key')
    .option('--behind-proxy', 'a proxy in front ends TLS and sets x-forwarded-for')
    .option('--rate <number>', 'calls of one key a minute, or off')
    .option('--auto-migrate', 'make the tables in PostgreSQL that this version needs')
    .option('--metrics <address>', 'counts of calls as text, at http://ADDRESS/metrics');
}
