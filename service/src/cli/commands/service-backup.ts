import { resolve } from 'node:path';
import { prepareServiceFolder } from '../../adapters/service-store/service-files.ts';
import { CliError } from '../../../../src/cli/cli-error.ts';
import { refuseForServer } from '../compose-database.ts';
import { serviceBackups } from '../compose-service-store.ts';
import type { CommandContext } from '../../../../src/cli/context.ts';
import { folderOf, type FolderOption } from './service-context.ts';

/** `svc-service backup` and `restore`. */

export interface BackupOptions extends FolderOption {
  readonly json?: boolean;
}

export interface RestoreOptions extends BackupOptions {
  readonly yes?: boolean;
}

export async function backUp(
  file: string,
  options: BackupOptions,
  context: CommandContext,
): Promise<void> {
  const { terminal, environment } = context;
  const folder = folderOf(options, context);
  const dump =
    'Use the backup of PostgreSQL: pg_dump --format=custom --file FILE "$SVC_DATABASE_URL"';
  await refuseForServer({ folder, environment }, dump);
  const facts = await serviceBackups.backUp(folder, file);
  if (options.json === true) terminal.json(facts);
  terminal.note(
    `${facts.file} contains ${facts.records} records (${Math.ceil(facts.bytes / 1024)} KiB) and passed the check. It does not contain the pepper of the keys.`,
  );
}

export async function restore(
  file: string,
  options: RestoreOptions,
  context: CommandContext,
): Promise<void> {
  const { terminal, environment } = context;
  const folder = folderOf(options, context);
  const hint =
    'Use pg_restore with the file of pg_dump; a new epoch begins by itself. After a raw copy, run: svc-service migrate --new-epoch';
  await refuseForServer({ folder, environment }, hint);
  if (options.yes !== true) {
    const yes = `To restore, run: svc-service restore ${resolve(file)} --yes`;
    throw new CliError(
      `The backup replaces the database in ${folder}, which svc keeps under another name.`,
      yes,
      2,
    );
  }
  await prepareServiceFolder(folder);
  const facts = await serviceBackups.restore(folder, file, Date.now());
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
