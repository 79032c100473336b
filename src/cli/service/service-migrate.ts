import { serverMigrations } from '../compose-database.ts';
import type { CommandContext } from '../context.ts';
import { storeError } from './service-context.ts';

/** `svc service migrate`: brings the tables of a PostgreSQL service to this version. */

export interface ServiceMigrateOptions {
  readonly plan?: boolean;
  readonly newEpoch?: boolean;
  readonly json?: boolean;
}

export async function migrateService(
  options: ServiceMigrateOptions,
  { terminal, environment }: CommandContext,
): Promise<void> {
  const migrations = await serverMigrations(environment);
  try {
    const isPlan = options.plan === true;
    const numbers = isPlan ? await migrations.missing() : await migrations.apply(Date.now());
    const isNew = options.newEpoch === true && !isPlan;
    if (isNew) await migrations.beginEpoch();
    if (options.json === true) {
      terminal.json({ [isPlan ? 'missing' : 'applied']: numbers, newEpoch: isNew });
    }
    terminal.note(sentenceOf(numbers, isPlan));
    if (isNew) terminal.note('A new epoch began: clients capture anew what they still hold.');
  } catch (error) {
    throw storeError(error);
  } finally {
    await migrations.close();
  }
}

function sentenceOf(numbers: readonly number[], isPlan: boolean): string {
  if (numbers.length === 0) return 'The tables are up to date.';
  const list = numbers.join(', ');
  return isPlan ? `To be applied: migration ${list}.` : `Applied: migration ${list}.`;
}
