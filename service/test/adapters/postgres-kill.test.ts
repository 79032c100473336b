import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { openPostgresStore } from '../../src/adapters/postgres-store/postgres-service-store.ts';
import { missingPostgres, type PostgresServer, startPostgres } from '../support/postgres.ts';
import { addressOf } from '../support/postgres-stores.ts';
import { itemsOf, objectOf, SPACE } from '../support/service-objects.ts';

const missing = missingPostgres();
const patience = (): AbortSignal => AbortSignal.timeout(60_000);
/** As a person's server has them: an acknowledged commit is on disk. */
const DURABLE = ['fsync=on', 'synchronous_commit=on', 'full_page_writes=on'];
const ROUNDS = 3;
const WRITERS = 4;

describe.skipIf(missing !== undefined)('a PostgreSQL that is killed', () => {
  let server: PostgresServer | undefined;
  beforeAll(async () => {
    server = await startPostgres({ settings: DURABLE });
  }, 120_000);
  afterAll(() => server?.stop(), 120_000);

  test('loses nothing that was acknowledged, keeps nothing twice, and is found again', async () => {
    const address = addressOf((await server?.newDatabase()) ?? '');
    const options = { server: address, migrates: true, statementMs: 20_000 };
    const store = openPostgresStore(options);
    onTestFinished(() => store.close());
    const tenant = store.of('default');
    const acknowledged: string[] = [];
    const over = new AbortController();
    /** A batch that failed is sent again, as a client does: it may be there already. */
    const keep = async (texts: readonly string[]): Promise<void> => {
      const objects = texts.map((text) => objectOf(text));
      const batch = { space: SPACE, ifGeneration: undefined, objects, now: 5 };
      let isKept = false;
      while (!isKept && !over.signal.aborted) {
        // oxlint-disable-next-line no-await-in-loop -- The next try follows a failed one.
        isKept = await tenant.capture(batch, patience()).then(
          () => true,
          () => false,
        );
      }
      if (isKept) acknowledged.push(...texts);
    };
    const write = async (writer: number): Promise<void> => {
      for (let at = 0; !over.signal.aborted; at += 1) {
        // oxlint-disable-next-line no-await-in-loop -- One after the other.
        await keep([0, 1, 2].map((one) => `writer ${writer} said ${at} and ${one}`));
      }
    };
    await store.health();
    const writers = Array.from({ length: WRITERS }, (_, writer) => write(writer));
    for (let round = 0; round < ROUNDS; round += 1) {
      const before = acknowledged.length;
      // oxlint-disable-next-line no-await-in-loop
      await expect
        .poll(() => acknowledged.length - before, { timeout: 60_000 })
        .toBeGreaterThan(20);
      // oxlint-disable-next-line no-await-in-loop
      await server?.crash();
    }
    const before = acknowledged.length;
    await expect.poll(() => acknowledged.length - before, { timeout: 60_000 }).toBeGreaterThan(5);
    over.abort();
    await Promise.all(writers);
    const listed = await tenant.listItems(itemsOf({ limit: 100_000 }), patience());
    const texts = listed.map(({ text }) => text);
    expect(new Set(texts).size).toBe(texts.length);
    const held = new Set(texts);
    expect(acknowledged.filter((text) => !held.has(text))).toEqual([]);
    const state = await tenant.spaceState(SPACE, patience());
    expect([state.records, state.commit_seq]).toEqual([texts.length, texts.length]);
  }, 300_000);
});
