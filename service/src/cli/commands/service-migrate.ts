import { serverMigrations } from '../compose-database.ts';
import type { CommandContext } from '../../../../src/cli/context.ts';
import { folderOf, type FolderOption, storeError } from './service-context.ts';

/** `svc-service migrate`: brings the tables of a PostgreSQL service to this version. */

export interface ServiceMigrateOptions extends FolderOption {
  readonly plan?: boolean;
  readonly newEpoch?: boolean;
  readonly json?: boolean;
}

export async function migrateService(
  options: ServiceMigrateOptions,
  context: CommandContext,
): Promise<void> {
  const { terminal, environment } = context;
  const migrations = await serverMigrations({ folder: folderOf(options, context), environment });
  try {
    const isPlan = options.plan === true;
    const numbers = isPlan ? await migrations.missing() : await migrations.apply(Date.now());
    const isNew = options.newEpoch === true && !isPlan;
    if (isNew) await migrations.beginEpoch();
    if (options.json === true) {
      terminal.json({ [isPlan ? 'missing' : 'applied']: numbers, newEpoch: isNew });
    }
    terminal.note(sentenceOf(numbers, isPlan));
    if (isNew) terminal.note('A new epoch began: clients capture again what they still hold.');
  } catch (error) {
    throw storeError(error);
  } finally {
    await migrations.close();
  }
}

function sentenceOf(numbers: readonly number[], isPlan: boolean): string {
  if (numbers.length === 0) return 'The tables are up to date.';
  const list = numbers.join(', ');
  return isPlan ? `Migrations to apply: ${list}.` : `Applied migrations: ${list}.`;
}
