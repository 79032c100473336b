import { Client } from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Connections } from '../../src/adapters/postgres-store/connections.ts';
import { openPostgresStore } from '../../src/adapters/postgres-store/postgres-service-store.ts';
import { MEMORY } from '../../src/adapters/memory/statements.ts';
import { analyze } from '../../src/adapters/postgres-store/statements/upkeep.ts';
import { keepStatistics } from '../../src/adapters/postgres-store/statistics.ts';
import type { TenantStore } from '../../src/ports/service-store.ts';
import { missingPostgres, urlOf } from '../support/postgres.ts';
import { postgresStores } from '../support/postgres-stores.ts';
import { objectOf } from '../support/service-objects.ts';

/**
 * A database that autovacuum never looked at: a new one in its first minute, or one whose server
 * crashed before. The servers of these tests have no autovacuum at all.
 */

const missing = missingPostgres();
const patience = (): AbortSignal => AbortSignal.timeout(60_000);
const SPACES = 4;
const TEXTS = 480;
const PAGE = 20;

async function fill(store: TenantStore): Promise<void> {
  for (let at = 0; at < SPACES; at += 1) {
    const objects = Array.from({ length: TEXTS }, (_, number) =>
      objectOf(`The marmalade ${number} of room ${at} stands on shelf ${number % 7}.`),
    );
    const batch = { space: `project/room-${at}`, ifGeneration: undefined, objects, now: 5 };
    // oxlint-disable-next-line no-await-in-loop -- One space after the other.
    await store.capture(batch, patience());
  }
}

interface PlanNode {
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly Plans?: readonly PlanNode[];
}

/** The rows that each part of the plan gave or threw away, in all its loops. */
function rowsOf(node: PlanNode): number {
  const own = (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'];
  return (node.Plans ?? []).reduce((sum, child) => sum + rowsOf(child), own);
}

describe.skipIf(missing !== undefined)('statistics of the planner in PostgreSQL', () => {
  const stores = postgresStores();

  async function rowsOfPage(database: string): Promise<number> {
    const client = new Client({ connectionString: urlOf(stores.server().port, database) });
    await client.connect();
    try {
      const none = Array.from({ length: 7 }, () => null);
      const { rows } = await client.query<{ 'QUERY PLAN': readonly { Plan: PlanNode }[] }>(
        `EXPLAIN (ANALYZE, FORMAT JSON) ${MEMORY.listItems}`,
        ['default', [1], ...none, PAGE, 0],
      );
      const [plan] = rows[0]?.['QUERY PLAN'] ?? [];
      if (plan === undefined) throw new Error('There is no plan.');
      return rowsOf(plan.Plan);
    } finally {
      await client.end();
    }
  }

  test('a page of memories never reads the space once for each of its texts', async () => {
    const address = await stores.address();
    const store = await stores.open(address);
    onTestFinished(() => store.close());
    await fill(store.of('default'));
    // Without statistics: the space a few times for each row of the page, not for each text.
    expect(await rowsOfPage(address.database)).toBeLessThan(TEXTS * PAGE * 4);
    const connections = new Connections({ server: address });
    onTestFinished(() => connections.close());
    await keepStatistics(connections.all);
    expect(await rowsOfPage(address.database)).toBeLessThan(TEXTS * 6);
  });

  test('a store gives new statistics to each table and part that outgrew them, and to no other', async () => {
    const address = await stores.address();
    const store = openPostgresStore({ server: address, statementMs: 30_000, statisticsMs: 200 });
    onTestFinished(() => store.close());
    const ask = (sql: string) => stores.server().ask(address.database, sql);
    const learned = (name: string) =>
      ask(`SELECT count(*) FROM pg_stats WHERE tablename ~ '^${name}$' AND attname = 'space_id'`);
    await store.health();
    expect(await learned('(objects|texts)')).toBe('0');
    await fill(store.of('default'));
    await expect.poll(() => learned('(objects|texts)'), { timeout: 20_000 }).toBe('2');
    await expect.poll(() => learned('passages_[0-9]+'), { timeout: 20_000 }).not.toBe('0');
    // Nobody has asked a model yet.
    expect(await learned('usage_days')).toBe('0');
    const connections = new Connections({ server: address });
    onTestFinished(() => connections.close());
    await keepStatistics(connections.all);
    const pages = `SELECT string_agg(relname || ' ' || relpages, ', ' ORDER BY relname)
      FROM pg_class WHERE relname IN ('records', 'texts')`;
    const before = await ask(pages);
    const objects = [objectOf('One jar more.')];
    const more = { space: 'project/room-0', ifGeneration: undefined, objects, now: 6 };
    await store.of('default').capture(more, patience());
    await keepStatistics(connections.all);
    expect(await ask(pages)).toBe(before);
  });

  test('only a name of svc’s own tables becomes part of a statement', () => {
    expect(analyze('passages_7')).toBe('ANALYZE (SKIP_LOCKED) passages_7');
    for (const name of ['', 'a b', 'records; DROP TABLE records', 'Records', '"x"']) {
      expect(() => analyze(name)).toThrow('That is no table of svc.');
    }
  });
});
