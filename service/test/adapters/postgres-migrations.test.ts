import { describe, expect, onTestFinished, test } from 'vitest';
import { Connections } from '../../src/adapters/postgres-store/connections.ts';
import type { Transactions } from '../../src/ports/rows.ts';
import {
  KNOWN,
  migrate,
  type Migration,
  readSchema,
} from '../../src/adapters/postgres-store/migrations.ts';
import { openPostgresStore } from '../../src/adapters/postgres-store/postgres-service-store.ts';
import { missingPostgres } from '../support/postgres.ts';
import { addressOf, postgresStores } from '../support/postgres-stores.ts';

const missing = missingPostgres();

describe.skipIf(missing !== undefined)('the tables in PostgreSQL', () => {
  const stores = postgresStores();

  async function emptyDatabase(): Promise<() => Transactions> {
    const server = addressOf(await stores.server().newDatabase());
    return () => {
      const connections = new Connections({ server, statementMs: 60_000 });
      onTestFinished(() => connections.close());
      return connections.all;
    };
  }

  test('four nodes that start together make them once', async () => {
    const open = await emptyDatabase();
    const applied = await Promise.all(Array.from({ length: 4 }, () => migrate(open(), 1)));
    expect(applied.flat()).toEqual(KNOWN.map(({ number }) => number));
    expect(await readSchema(open())).toMatchObject({ missing: [] });
    expect(await migrate(open(), 2)).toEqual([]);
  }, 120_000);

  test('what a plan names is what is missing, and looking changes nothing', async () => {
    const open = await emptyDatabase();
    const all = { missing: KNOWN.map(({ number }) => number), secret: undefined };
    expect(await readSchema(open())).toEqual(all);
    expect(await readSchema(open())).toEqual(all);
    const server = addressOf(await stores.server().newDatabase());
    const store = openPostgresStore({ server });
    onTestFinished(() => store.close());
    await expect(store.health()).rejects.toThrow('run svc-service migrate');
  }, 120_000);

  test('one that fails leaves nothing behind, and the next start goes on from there', async () => {
    const open = await emptyDatabase();
    const next = KNOWN.length + 1;
    const broken: Migration = {
      number: next,
      checksum: 'x',
      statements: ['CREATE TABLE half (id integer)', 'CREATE TABLE half (id integer)'],
    };
    await expect(migrate(open(), 1, [...KNOWN, broken])).rejects.toThrow('failed with 42P07');
    // All of a start is one transaction.
    expect((await readSchema(open())).missing).toEqual(KNOWN.map(({ number }) => number));
    const mended = { ...broken, statements: ['CREATE TABLE half (id integer)'] };
    expect(await migrate(open(), 1, [...KNOWN, mended])).toHaveLength(next);
    // A binary of the release before refuses what it does not know.
    await expect(readSchema(open())).rejects.toThrow('made by a later version');
    const other = { ...mended, checksum: 'y' };
    await expect(readSchema(open(), [...KNOWN, other])).rejects.toThrow(
      'differs from that of this version',
    );
  }, 120_000);
});
