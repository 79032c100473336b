import { describe, expect, onTestFinished, test } from 'vitest';
import { missingPostgres } from '../support/postgres.ts';
import { postgresStores } from '../support/postgres-stores.ts';
import { objectOf, questionTo, SPACE } from '../support/service-objects.ts';

const missing = missingPostgres();
const patience = (): AbortSignal => AbortSignal.timeout(60_000);
const WORDS = 1000;
/** With the fifteenth the node puts them in. The one behind it waits alone, in about three pages. */
const RECORDS = 16;

/** How many pages of waiting passages the index of the tenant's part has, as its first page tells. */
const WAITING = `SELECT get_byte(m.page, 36) + 256 * get_byte(m.page, 37)
  FROM (SELECT tableoid AS part FROM passages LIMIT 1) p
  JOIN pg_index i ON i.indrelid = p.part
  JOIN pg_class c ON c.oid = i.indexrelid AND c.relname LIKE '%keys%'
  CROSS JOIN LATERAL (SELECT pg_read_binary_file(pg_relation_filepath(c.oid), 0, 8192) AS page) m`;

describe.skipIf(missing !== undefined)('passages that wait for their index in PostgreSQL', () => {
  const stores = postgresStores();

  test('go into it beside the captures, before a capture has to put them in', async () => {
    const address = await stores.address();
    const store = await stores.open(address);
    onTestFinished(() => store.close());
    const own = store.of('default');
    const waiting = async () => {
      // Then the file has what the server has in memory.
      await stores.server().run(address.database, 'CHECKPOINT');
      return Number(await stores.server().ask(address.database, WAITING));
    };
    const keep = async (at: number): Promise<void> => {
      const text = Array.from({ length: WORDS }, (_, word) => `word${at * WORDS + word}x`).join(
        ' ',
      );
      const batch = { space: SPACE, ifGeneration: undefined, objects: [objectOf(text)], now: 5 };
      await own.capture(batch, patience());
    };
    for (let at = 0; at < 5; at += 1) {
      // oxlint-disable-next-line no-await-in-loop -- One capture follows the other.
      await keep(at);
    }
    expect(await waiting()).toBeGreaterThan(5);
    for (let at = 5; at < RECORDS; at += 1) {
      // oxlint-disable-next-line no-await-in-loop
      await keep(at);
    }
    await expect.poll(waiting, { timeout: 30_000 }).toBeLessThan(6);
    const asked = questionTo({ text: `What is word${3 * WORDS + 7}x?` });
    expect((await own.recall(asked, patience())).items).not.toEqual([]);
  }, 120_000);
});
