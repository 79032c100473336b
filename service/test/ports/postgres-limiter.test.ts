import { afterEach, describe, expect, test } from 'vitest';
import { PostgresLimiter } from '../../src/adapters/limiter/postgres-limiter.ts';
import type { ServerAddress } from '../../src/adapters/postgres-store/server-url.ts';
import type { Clock } from '../../../src/ports/clock.ts';
import type { Limiter } from '../../src/ports/limiter.ts';
import { budgetAsk, leaseAsk, rateAsk } from '../support/limits.ts';
import { missingPostgres } from '../support/postgres.ts';
import { postgresStores } from '../support/postgres-stores.ts';
import { limiterSuite } from './limiter-suite.ts';

const missing = missingPostgres();
const patience = (): AbortSignal => AbortSignal.timeout(60_000);

describe.skipIf(missing !== undefined)('a limiter on PostgreSQL', () => {
  const stores = postgresStores();
  let opened: PostgresLimiter[] = [];
  let database: Promise<ServerAddress> | undefined;
  let count = 0;
  afterEach(async () => {
    await Promise.all(opened.map((one) => one.close()));
    opened = [];
  });

  async function open(clock?: Clock): Promise<PostgresLimiter> {
    database ??= stores.address();
    const server = await database;
    const limiter = new PostgresLimiter({
      server,
      statementMs: 30_000,
      ...(clock === undefined ? {} : { clock }),
    });
    opened.push(limiter);
    return limiter;
  }

  /** Each of the suite's limiters counts for tenants of its own. */
  function alone(clock: Clock): Limiter {
    const tenant = `t${(count += 1)}`;
    const limiter = open(clock);
    const own = <Ask extends object>(asks: readonly Ask[]): Ask[] =>
      asks.map((ask) => ({ ...ask, tenant }));
    return {
      take: async (asks, signal) => (await limiter).take(own(asks), signal),
      renew: async (leases, signal) => (await limiter).renew(own(leases), signal),
      settle: async ({ leases, changes }, signal) => {
        const booked = changes.map(({ ask, more }) => ({ ask: { ...ask, tenant }, more }));
        await (await limiter).settle({ leases: own(leases), changes: booked }, signal);
      },
    };
  }

  limiterSuite('by the clock of the test', alone);

  test('two nodes let in no more than the burst together, by the clock of the server', async () => {
    const [one, other] = [await open(), await open()];
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, at) =>
        (at % 2 === 0 ? one : other).take([rateAsk('shared', 1, 5)], patience()),
      ),
    );
    expect(answers.filter(({ refusedBy }) => refusedBy === undefined)).toHaveLength(5);
  }, 60_000);

  test('counts of budgets whose day is long over leave the table', async () => {
    const limiter = await open();
    const [tenant, day] = ['budgets', 86_400_000];
    for (let at = 0; at < 60; at += 1) {
      const start = Date.UTC(2026, 0, 1) + at * day;
      const date = new Date(start).toISOString().slice(0, 10);
      const asks = ['k1', 'k2'].map((key) =>
        budgetAsk(`tokens:key:${key}:key_tokens_per_day:${date}`, { tenant, until: start + day }),
      );
      // oxlint-disable-next-line no-await-in-loop
      await limiter.take(asks, patience());
    }
    const { database: name } = await (database ?? stores.address());
    const sql = `SELECT concat_ws(' ', count(*), min(bucket), max(bucket)) FROM limits
      WHERE tenant_id = '${tenant}'`;
    expect((await stores.server().ask(name, sql)).split(' ')).toEqual([
      '80',
      'tokens:key:k1:key_tokens_per_day:2026-01-21',
      'tokens:key:k2:key_tokens_per_day:2026-03-01',
    ]);
  }, 60_000);

  test('two nodes take no place twice', async () => {
    const [one, other] = [await open(), await open()];
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, at) =>
        (at % 2 === 0 ? one : other).take([leaseAsk(`l${at}`, { max: 4 })], patience()),
      ),
    );
    expect(answers.filter(({ refusedBy }) => refusedBy === undefined)).toHaveLength(4);
  }, 60_000);
});
