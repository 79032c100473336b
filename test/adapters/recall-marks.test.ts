import { expect, onTestFinished, test } from 'vitest';
import { Descriptors } from '../../src/adapters/store/descriptors.ts';
import { type Database, openDatabase } from '../../src/adapters/store/database.ts';
import { loadDriver } from '../../src/adapters/store/driver.ts';
import { marksOf } from '../../src/adapters/store/recall-marks.ts';
import { tempFolder } from '../support/temp-folder.ts';

async function openEmpty(): Promise<Database> {
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

const SPACE = { id: 1, name: 'project', passages: 1, terms: 1, next: 2 };

/** How SQLite looks up what it was asked. */
function plansOf(database: Database, ask: (seen: Pick<Database, 'all'>) => void): string[] {
  const plans: string[] = [];
  ask({
    all: (sql, ...values) => {
      const steps = database.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`, ...values);
      plans.push(steps[0]?.detail ?? '');
      return [];
    },
  });
  return plans;
}

test('a recall looks for pinned records among the pins, and not among all records of the space', async () => {
  const database = await openEmpty();
  const plans = plansOf(database, (seen) => {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- It reads all rows of a query and does nothing else.
    const marks = marksOf(seen as Database);
    marks.never([SPACE]);
    marks.always([SPACE], []);
  });
  expect(plans).toHaveLength(2);
  for (const plan of plans) expect(plan).toContain('marks_by_pin');
});
