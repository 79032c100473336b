import { describe, expect, onTestFinished, test } from 'vitest';
import { Connections } from '../../src/adapters/postgres-store/connections.ts';
import { KNOWN, migrate, type Migration } from '../../src/adapters/postgres-store/migrations.ts';
import { openPostgresStore } from '../../src/adapters/postgres-store/postgres-service-store.ts';
import { MIGRATIONS } from '../../src/adapters/postgres-store/statements/schema.ts';
import { missingPostgres } from '../support/postgres.ts';
import { addressOf, postgresStores } from '../support/postgres-stores.ts';
import { objectOf, questionTo, SPACE } from '../support/service-objects.ts';

/** Two releases serve one database while the nodes of a service are replaced one by one. */

const patience = (): AbortSignal => AbortSignal.timeout(60_000);

/** Everything that a node of the release before would stumble over. */
const BREAKS = /\b(?:DROP|RENAME|ALTER\s+COLUMN|TRUNCATE|SET\s+NOT\s+NULL|ADD\s+CONSTRAINT)\b/i;
/** A new column of an old table must be one that an old INSERT may leave out. */
const BARE_COLUMN =
  /ADD\s+COLUMN\s+(?![^,]*\b(?:DEFAULT|NULL)\b)|ADD\s+COLUMN[^,]*NOT\s+NULL(?![^,]*DEFAULT)/i;

test('a migration only adds, so the release before goes on beside it', () => {
  const later = MIGRATIONS.slice(1).flat();
  expect(later.filter((sql) => BREAKS.test(sql))).toEqual([]);
  expect(later.filter((sql) => BARE_COLUMN.test(sql))).toEqual([]);
  expect(BREAKS.test('ALTER TABLE records DROP COLUMN ref')).toBe(true);
  expect(BARE_COLUMN.test('ALTER TABLE records ADD COLUMN x text NOT NULL')).toBe(true);
  expect(BARE_COLUMN.test("ALTER TABLE records ADD COLUMN x text NOT NULL DEFAULT ''")).toBe(false);
});

const missing = missingPostgres();

describe.skipIf(missing !== undefined)('a database that a later release has migrated', () => {
  const stores = postgresStores();

  test('serves the nodes that run, and refuses one of the release before that starts', async () => {
    const server = await stores.address();
    const running = openPostgresStore({ server, statementMs: 30_000 });
    onTestFinished(() => running.close());
    const keep = (text: string) => {
      const batch = { space: SPACE, ifGeneration: undefined, objects: [objectOf(text)], now: 5 };
      return running.of('default').capture(batch, patience());
    };
    await keep('The port is 6543.');
    const later: Migration = {
      number: KNOWN.length + 1,
      checksum: 'later',
      statements: [
        `ALTER TABLE objects ADD COLUMN mood text NOT NULL DEFAULT ''`,
        'CREATE TABLE moods (tenant_id text PRIMARY KEY)',
      ],
    };
    const connections = new Connections({
      server: addressOf(`postgres://svc@127.0.0.1:${stores.server().port}/${server.database}`),
      statementMs: 30_000,
    });
    onTestFinished(() => connections.close());
    // Writes go on while it is applied.
    const writes = Array.from({ length: 20 }, (_, at) => keep(`The fact ${at} is marmalade.`));
    expect(await migrate(connections.all, 1, [...KNOWN, later])).toEqual([later.number]);
    expect((await Promise.all(writes)).map(({ results }) => results)).toEqual(
      writes.map(() => ['durable']),
    );
    const { items } = await running
      .of('default')
      .recall(questionTo({ humanText: 'which port?' }), patience());
    expect(items[0]?.text).toBe('The port is 6543.');
    const started = openPostgresStore({ server, migrates: true });
    onTestFinished(() => started.close());
    await expect(started.health()).rejects.toThrow('made by a later version of svc');
  }, 120_000);
});
