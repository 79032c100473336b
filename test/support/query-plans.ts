import { onTestFinished } from 'vitest';
import { type Database, openDatabase } from '../../src/adapters/store/database.ts';
import { Descriptors } from '../../src/adapters/store/descriptors.ts';
import { loadDriver } from '../../src/adapters/store/driver.ts';
import { tempFolder } from './temp-folder.ts';

export function openEmptyMemory(): Database {
  const database = openDatabase({
    folder: tempFolder(),
    driver: loadDriver(),
    descriptors: new Descriptors(),
    now: 0,
    report: () => {},
  });
  onTestFinished(() => database.close());
  return database;
}

/** How SQLite looks up each of the questions: all steps of one, in lines. */
export function plansOf(database: Database, ask: (seen: Database) => void): string[] {
  const plans: string[] = [];
  const seen: Pick<Database, 'all'> = {
    all: (sql, ...values) => {
      const steps = database.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`, ...values);
      plans.push(steps.map(({ detail }) => detail).join('\n'));
      return [];
    },
  };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- What is asked reads all rows and does nothing else.
  ask(seen as Database);
  return plans;
}
