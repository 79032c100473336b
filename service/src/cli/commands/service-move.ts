import { readServerUrl } from '../../adapters/postgres-store/server-url.ts';
import { SETTINGS_FILE } from '../../adapters/service-store/service-files.ts';
import { isMasterKeySource } from '../../core/settings.ts';
import { CliError } from '../../../../src/cli/cli-error.ts';
import { serverOf } from '../compose-database.ts';
import { moveService } from '../compose-move.ts';
import { serviceVaultFiles } from '../compose-service-store.ts';
import type { CommandContext } from '../../../../src/cli/context.ts';
import { count } from '../../../../src/cli/listing.ts';
import { folderOf, type FolderOption, storeError } from './service-context.ts';
import { serviceSettings } from './service-settings.ts';

/** `svc-service move`: copies a service in a file to PostgreSQL, and checks what arrived. */

export interface MoveOptions extends FolderOption {
  readonly to: string;
  readonly json?: boolean;
}

export async function moveCommand(options: MoveOptions, context: CommandContext): Promise<void> {
  const { terminal } = context;
  const folder = folderOf(options, context);
  const settings = await serviceSettings(folder);
  const database = { ...settings.database, ...whereTo(options.to) };
  const moved = { ...settings, database };
  // The variable says where the service is now, and not where it goes.
  const environment = { ...context.environment, SVC_DATABASE_URL: '' };
  const server = await serverOf({ folder, environment, settings: moved });
  if (server === undefined) throw new CliError('There is no address to move to.', HINT, 2);
  const tell = (line: string): void => terminal.note(line);
  const facts = await moveService(folder, server.address, tell).catch((error: unknown) => {
    throw storeError(error);
  });
  await serviceVaultFiles.writeSettings(folder, moved);
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
