import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { RECALL } from '../../src/adapters/postgres-store/statements/recall.ts';
import { missingPostgres, urlOf } from '../support/postgres.ts';
import { postgresStores } from '../support/postgres-stores.ts';

const missing = missingPostgres();

/** 30,000 passages in three spaces of one tenant; of 400 words each has 8 in a row. */
const FILL = `INSERT INTO passages (tenant_id, space_id, n, text_n, conversation_id, position, start_at,
    end_at, keys)
  SELECT 'default', 1 + n % 3, n, n / 6, n / 200, n, 0, 400,
    (SELECT array_agg((n * 7 + word) % 400 + 1) FROM generate_series(1, 8) AS w(word))
  FROM generate_series(1, 30000) AS p(n)`;
const WORDS = [3, 34, 233];

describe.skipIf(missing !== undefined)('how PostgreSQL reads the index of words', () => {
  const stores = postgresStores();
  let client: Client | undefined;

  beforeAll(async () => {
    const { database } = await stores.address();
    client = new Client({ connectionString: urlOf(stores.server().port, database) });
    await client.connect();
    await client.query(FILL);
    await client.query('ANALYZE');
  }, 180_000);
  afterAll(() => client?.end());

  test.each([
    ['countTerms', [6001, 6666]],
    ['placesOf', [0]],
    ['holders', [200, 1000]],
    ['saidWith', [48]],
  ] as const)('%s reads no other index of all passages of a space', async (name, values) => {
    // With its values, as a statement without a name is planned.
    const asked = { text: `EXPLAIN ${RECALL[name]}`, values: ['default', 1, WORDS, ...values] };
    const found = await client?.query<{ 'QUERY PLAN': string }>(asked);
    const plan = found?.rows.map((row) => row['QUERY PLAN']).join('\n');
    expect(plan).toMatch(/Bitmap Index Scan on passages_\d+_keys_idx/);
    expect(plan).not.toMatch(
      /BitmapAnd|Scan (?:Backward )?(?:using|on) passages_\d+_(?:pkey|tenant)/,
    );
  });
});
