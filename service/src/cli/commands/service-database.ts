import { resolve } from 'node:path';
import { CliError } from '../../../../src/cli/cli-error.ts';
import type { Call } from '../../../../src/cli/context.ts';
import { count } from '../../../../src/cli/listing.ts';
import { readServerUrl } from '../../adapters/postgres-store/server-url.ts';
import { prepareServiceFolder, SETTINGS_FILE } from '../../adapters/service-store/service-files.ts';
import { isMasterKeySource } from '../../core/settings.ts';
import { moveService } from '../compose-move.ts';
import {
  backUpService,
  mustHaveServer,
  refuseForServer,
  restoreService,
  serverOf,
  serviceSettings,
  writeSettings,
} from '../compose-store.ts';
import { type CommonOptions, folderOf, storeError } from './service-context.ts';

/** Runs `svc-service backup`, `restore`, `migrate` and `move`, for a service's whole database. */

export async function backUp({
  args: [file = ''],
  options,
  context,
}: Call<CommonOptions>): Promise<void> {
  const { terminal, environment } = context;
  const folder = folderOf(options, context);
  const dump =
    'Use the backup of PostgreSQL: pg_dump --format=custom --file FILE "$SVC_DATABASE_URL"';
  await refuseForServer({ folder, environment }, dump);
  const facts = await backUpService(folder, file);
  if (options.json === true) terminal.json(facts);
  terminal.note(
    `${facts.file} contains ${facts.records} records (${Math.ceil(facts.bytes / 1024)} KiB) and passed the check. It does not contain the pepper of the keys.`,
  );
}

export async function restore({
  args: [file = ''],
  options,
  context,
}: Call<CommonOptions & { readonly yes?: boolean }>): Promise<void> {
  const { terminal, environment } = context;
  const folder = folderOf(options, context);
  const hint =
    'Use pg_restore with the file of pg_dump; a new epoch begins by itself. After a raw copy, run: svc-service migrate --new-epoch';
  await refuseForServer({ folder, environment }, hint);
  if (options.yes !== true) {
    const message = `The backup replaces the database in ${folder}, which svc keeps under another name.`;
    const yes = `To restore, run: svc-service restore ${resolve(file)} --yes`;
    throw new CliError(message, yes, 2);
  }
  await prepareServiceFolder(folder);
  const facts = await restoreService(folder, file, Date.now());
  if (options.json === true) terminal.json(facts);
  const kept = facts.kept === undefined ? '' : ` The previous database is ${facts.kept}.`;
  terminal.note(
    `${facts.records} records are restored, in a new epoch: clients capture again what they still hold.${kept}`,
  );
  if (facts.carried === undefined) {
    terminal.warn(
      'svc cannot read the previous database, so keys revoked and records purged since the backup are restored too. Revoke and purge them again.',
    );
  } else if (facts.carried.revoked + facts.carried.purged > 0) {
    terminal.note(
      `Revoked or purged after the backup, and therefore again: ${facts.carried.revoked} keys and tokens, ${facts.carried.purged} records.`,
    );
  }
}

interface ServiceMigrateOptions extends CommonOptions {
  readonly plan?: boolean;
  readonly newEpoch?: boolean;
}

/** Runs `svc-service migrate`: updates the tables of a service on PostgreSQL to this version. */
export async function migrateService({
  options,
  context,
}: Call<ServiceMigrateOptions>): Promise<void> {
  const { terminal, environment } = context;
  const server = await mustHaveServer({ folder: folderOf(options, context), environment });
  const { Connections } = await import('../../adapters/postgres-store/connections.ts');
  const { beginEpoch, migrate, readSchema } =
    await import('../../adapters/postgres-store/migrations.ts');
  const connections = new Connections({ server: server.address });
  try {
    const isPlan = options.plan === true;
    const numbers = isPlan
      ? (await readSchema(connections.all)).missing
      : await migrate(connections.all, Date.now());
    const isNew = options.newEpoch === true && !isPlan;
    if (isNew) await beginEpoch(connections.all);
    if (options.json === true) {
      terminal.json({ [isPlan ? 'missing' : 'applied']: numbers, newEpoch: isNew });
    }
    terminal.note(sentenceOf(numbers, isPlan));
    if (isNew) terminal.note('A new epoch began: clients capture again what they still hold.');
  } catch (error) {
    throw storeError(error);
  } finally {
    await connections.close();
  }
}

function sentenceOf(numbers: readonly number[], isPlan: boolean): string {
  if (numbers.length === 0) return 'The tables are up to date.';
  const list = numbers.join(', ');
  return isPlan ? `Migrations to apply: ${list}.` : `Applied migrations: ${list}.`;
}

export interface MoveOptions extends CommonOptions {
  readonly to: string;
}

/** Runs `svc-service move`: copies a service from a file to PostgreSQL, and verifies the copy. */
export async function moveCommand({ options, context }: Call<MoveOptions>): Promise<void> {
  const { terminal } = context;
  const folder = folderOf(options, context);
  const settings = await serviceSettings(folder);
  const database = { ...settings.database, ...whereTo(options.to) };
  const moved = { ...settings, database };
  // $SVC_DATABASE_URL would replace the target, because it has precedence over the settings.
  const environment = { ...context.environment, SVC_DATABASE_URL: '' };
  const server = await serverOf({ folder, environment, settings: moved });
  if (server === undefined) throw new CliError('There is no address to move to.', HINT, 2);
  const tell = (line: string): void => terminal.note(line);
  const facts = await moveService(folder, server.address, tell).catch((error: unknown) => {
    throw storeError(error);
  });
  await writeSettings(folder, moved);
  if (options.json === true) terminal.json(facts);
  const { records, receipts, unsigned } = facts;
  terminal.note(
    `${count(records, 'record')} and ${count(receipts, 'receipt')} are in PostgreSQL, each checked.`,
  );
  if (unsigned > 0) {
    terminal.warn(`${count(unsigned, 'receipt')} had no valid signature in the file either.`);
  }
  terminal.note(
    `${SETTINGS_FILE} names the database now. Next: svc-service start. The file is unchanged; delete service.db when you no longer need it.`,
  );
}

const HINT =
  'Write --to file:/path, env:NAME or command:PROGRAM, or --to postgres://user@host/name without a password.';

function whereTo(to: string): { readonly url: string } | { readonly from: string } {
  if (isMasterKeySource(to)) return { from: to };
  const server = readServerUrl(to);
  if (server === undefined) throw new CliError('--to is not an address of PostgreSQL.', HINT, 2);
  if (server.password === undefined) return { url: to };
  throw new CliError('Every user can see a password on the command line.', HINT, 2);
}
