import type { Call, CommandContext } from '../../../../src/cli/context.ts';
import type { CliCommand } from '../../../../src/cli/program/program.ts';
import { OPERATIONS } from '../../server/console/console.ts';
import type { CommandRow, ConsoleOperation } from '../../server/console/operation.ts';
import type { ConsoleOptions } from '../commands/service-context.ts';
import type { MoveOptions } from '../commands/service-database.ts';
import type { VaultAddOptions } from '../commands/service-init.ts';
import type { ExportOptions } from '../commands/service-receipts.ts';
import type { ServiceStartOptions } from '../commands/service-start.ts';

/** The commands of svc-service. Each loads its code when it runs. */

const FOLDER = { '--folder <path>': "the service's folder" };

const SETTINGS = {
  ...FOLDER,
  '--host <address>': 'where to listen (127.0.0.1)',
  '--port <number>': 'the port (8766)',
  '--tls-cert <path>': 'PEM file of the certificate and its chain',
  '--tls-key <path>': 'PEM file of the private key',
  '--behind-proxy': 'a proxy in front ends TLS and sets x-forwarded-for',
  '--public-url <address>': 'the address that clients use: https://svc.example.com',
  '--rate <number>': 'calls of one key in a minute, or off',
  '--auto-migrate': 'create the tables in PostgreSQL that this version needs',
  '--metrics <address>': 'serve counts of calls as text at http://ADDRESS/metrics',
};

const REMOTE = {
  '--url <address>': 'address of a remote service; the token comes from $SVC_ADMIN_TOKEN',
};

const CONSOLE = {
  ...FOLDER,
  ...REMOTE,
  '--tenant <id>': 'the tenant (default: default)',
  '--json': 'print JSON',
};

const INIT: CliCommand = {
  name: 'init',
  description: 'Create the folder, the settings and the database of a service',
  options: {
    ...SETTINGS,
    '--database-from <source>':
      'where to read the address of a PostgreSQL database: file:, env: or command:',
    '--redis-from <source>': 'where to read the address of a Redis server that counts limits',
    '--json': 'print the result as JSON',
  },
  examples: [
    'svc-service init',
    'svc-service init --host 0.0.0.0 --tls-cert fullchain.pem --tls-key key.pem --rate 600',
    'svc-service init --host 10.0.0.5 --behind-proxy --public-url https://svc.example.com',
    'svc-service init --database-from file:/etc/svc/database-url',
  ],
  more: `The folder is --folder, else $SVC_SERVICE_HOME, else "service" in svc's data folder. Without TLS the
service listens only on loopback, unless you give --behind-proxy for a proxy that ends TLS.`,
  run: async (call) => (await import('../commands/service-init.ts')).initService(call),
};

const START: CliCommand = {
  name: 'start',
  description: 'Start the service and run until interrupted',
  options: {
    ...SETTINGS,
    '-q, --quiet': 'print problems only',
    '--log <form>': 'a line for each call: text on stderr (the default), json on stdout, or off',
    '--json': 'print the address as a line of JSON on stdout',
  },
  examples: ['svc-service start', 'svc-service start --port 9443 --log json'],
  more: `Flags apply to this run; service.json in the folder holds the permanent settings. SIGHUP makes the
service read the certificate again, and SIGTERM lets open calls finish. The log never contains texts or keys.`,
  run: async (call: Call<ServiceStartOptions>) =>
    (await import('../commands/service-start.ts')).startServiceCommand(call),
};

const STATUS: CliCommand = {
  name: 'status',
  description:
    'Show whether the service runs, where, and how much it stores; exit 1 when it does not run',
  options: { ...FOLDER, ...REMOTE, '--json': 'print one JSON object' },
  examples: [
    'svc-service status --json',
    'svc-service status --url https://svc.example.com      # with the token of an operator',
  ],
  run: async (call) => (await import('../commands/service-status.ts')).serviceStatus(call),
};

const STOP: CliCommand = {
  name: 'stop',
  description: 'Stop the service of this folder once its open calls have finished',
  options: FOLDER,
  examples: ['svc-service stop'],
  more: `The command waits until the process has ended. Stop a service of systemd with systemctl, because
systemd may start it again.`,
  run: async (call) => (await import('../commands/service-status.ts')).stopService(call),
};

const DOCTOR: CliCommand = {
  name: 'doctor',
  description: 'Check settings, modes, database, keys, certificate, clock, port and disk',
  options: { ...FOLDER, '--json': 'print one JSON object' },
  examples: ['svc-service doctor'],
  run: async (call) => (await import('../commands/service-doctor.ts')).serviceDoctor(call),
};

const BACKUP: CliCommand = {
  name: 'backup',
  description: 'Copy the database of a running service to a new private file',
  args: { '<file>': 'the new file' },
  options: { ...FOLDER, '--json': 'print the result as JSON' },
  examples: ['svc-service backup memory-2026-05-01.db'],
  run: async (call) => (await import('../commands/service-database.ts')).backUp(call),
};

const RESTORE: CliCommand = {
  name: 'restore',
  description: 'Replace the database by a backup; the service must be stopped',
  args: { '<file>': 'a file that svc-service backup made' },
  options: {
    ...FOLDER,
    '--yes': 'confirm; the present database is kept under another name',
    '--json': 'print the result as JSON',
  },
  examples: ['svc-service restore memory-2026-05-01.db --yes'],
  run: async (call) => (await import('../commands/service-database.ts')).restore(call),
};

const MIGRATE: CliCommand = {
  name: 'migrate',
  description: 'Bring the tables of a service on PostgreSQL to this version',
  options: {
    ...FOLDER,
    '--plan': 'list the migrations and change nothing',
    '--new-epoch': 'after a restore: make clients capture again what they still hold',
    '--json': 'print the result as JSON',
  },
  examples: ['svc-service migrate --plan', 'svc-service migrate'],
  more: `$SVC_DATABASE_URL, or "database" in service.json, gives the address. Run this command once before you
start a new version of svc; nodes of the old version keep running. A start with --auto-migrate does the same.`,
  run: async (call) => (await import('../commands/service-database.ts')).migrateService(call),
};

const MOVE: CliCommand = {
  name: 'move',
  description: 'Copy a service from a file to PostgreSQL and check the copy',
  options: {
    ...FOLDER,
    '--to <address>': { required: 'postgres://… without a password, or file:, env: or command:' },
    '--json': 'print the result as JSON',
  },
  examples: ['svc-service move --to file:/etc/svc/database-url'],
  more: `Stop the service first. If the move is interrupted, run it again and it continues. It computes the digest
of every record again in the new database, and checks the signature of every receipt there.`,
  run: async (call: Call<MoveOptions>) =>
    (await import('../commands/service-database.ts')).moveCommand(call),
};

const VERIFY: CliCommand = {
  name: 'receipts verify',
  description: 'Verify receipts without the service; exit 1 if one is altered or missing',
  args: { '<path>': 'a file of receipts, or a folder of an export or archive' },
  options: {
    '--keys <file>': 'the public keys (keys.json of the folder)',
    '--partial': 'the receipts are only a part: accept missing numbers before and after',
    '--json': 'print JSON',
  },
  examples: [
    'svc-service receipts verify ./all',
    'svc-service receipts verify ./november --partial',
    'curl -s https://HOST/.well-known/svc/receipt-keys.json > keys.json',
    'svc-service receipts verify purges.json --keys keys.json',
  ],
  more: 'Every node numbers the receipts of a tenant 1, 2, 3 … and signs its last number, the head.',
  run: async (call) => (await import('../commands/service-receipts.ts')).verifyReceipts(call),
};

const RECOVER: CliCommand = {
  name: 'receipts recover',
  description: 'Store the receipts that a dead process left; the service must be stopped',
  options: { ...FOLDER, '--json': 'print JSON' },
  examples: ['svc-service receipts recover'],
  run: async (call) => (await import('../commands/service-receipts.ts')).recoverCommand(call),
};

const ARCHIVE: CliCommand = {
  name: 'receipts archive',
  description: 'Move old receipts from the database to files, one file for each day',
  args: { '<folder>': 'the target folder' },
  options: { ...CONSOLE, '--older-than <days>': 'age from which receipts are moved (90d)' },
  examples: ['svc-service receipts archive /backup/receipts --older-than 30d'],
  run: async (call) => (await import('../commands/service-receipts.ts')).archiveReceipts(call),
};

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

/**
 * Returns the commands that call the operations of the console. The description of a group comes before its commands.
 */
function consoleCommands(): readonly CliCommand[] {
  const groups = new Map(Object.entries(GROUPS));
  return OPERATIONS.flatMap((operation) =>
    operation.commands.flatMap((row) => {
      const [name = ''] = row.name.split(' ');
      const description = groups.get(name);
      groups.delete(name);
      const group = description === undefined ? [] : [{ name, description }];
      return [...group, commandOf(operation, row)];
    }),
  );
}

type Special = (
  argument: string,
  options: ConsoleOptions,
  context: CommandContext,
) => Promise<unknown>;

/** The commands that do more than one call of their operation, and so have code of their own. */
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

function commandOf(operation: ConsoleOperation, row: CommandRow): CliCommand {
  const { name, about, argument, options = [], examples, more } = row;
  return {
    name,
    description: about,
    ...(argument !== undefined && { args: { [argument.flags]: argument.about } }),
    options: {
      ...CONSOLE,
      ...Object.fromEntries(
        options.map(({ flags, about: text, shown, isRequired = false }) => [
          flags,
          isRequired ? { required: text } : shown === undefined ? text : ([text, shown] as const),
        ]),
      ),
    },
    examples: examples.map((example) => `svc-service ${example}`),
    ...(more !== undefined && { more }),
    async run({ args: [text = ''], options: given, context }: Call<ConsoleOptions>) {
      const special = SPECIAL[name];
      if (special !== undefined) return void (await special(text, given, context));
      const { runCommand } = await import('../commands/run-command.ts');
      return runCommand({ operation, row, argument: text, options: given }, context);
    },
  };
}

export const SERVICE_COMMANDS: readonly CliCommand[] = [
  INIT,
  START,
  ...consoleCommands(),
  VERIFY,
  RECOVER,
  ARCHIVE,
  STATUS,
  STOP,
  DOCTOR,
  BACKUP,
  RESTORE,
  MIGRATE,
  MOVE,
];
