import { describe, expect, onTestFinished, test } from 'vitest';
import { Connections } from '../../src/adapters/postgres-store/connections.ts';
import type { SqlValue } from '../../src/ports/rows.ts';
import { bytesArray } from '../../src/adapters/postgres-store/wire-values.ts';
import { missingPostgres } from '../support/postgres.ts';
import { addressOf, postgresStores } from '../support/postgres-stores.ts';

const missing = missingPostgres();
const TEXTS = ['', 'plain', 'a "quoted" {one}, two', 'back\\slash\\', 'NULL', 'null', ' ', 'é𝒳\n'];

describe.skipIf(missing !== undefined)('values that are sent to PostgreSQL', () => {
  const stores = postgresStores();

  async function sent(type: string, value: SqlValue): Promise<unknown> {
    const server = addressOf(`postgres://svc@127.0.0.1:${stores.server().port}/postgres`);
    const connections = new Connections({ server });
    onTestFinished(() => connections.close());
    const asked = { statement: `SELECT to_json($1::${type})::text AS value`, values: [value] };
    const [row] = await connections.all.look<{ value: string }>(asked);
    return JSON.parse(row?.value ?? 'null');
  }

  test.each([
    ['text[]', TEXTS, TEXTS],
    ['text[]', [null, 'a', null], [null, 'a', null]],
    ['text[]', [], []],
    ['text[]', ['\0a\0', 'b'], ['\ufffda\ufffd', 'b']],
    ['text', 'a "quoted" \\ one', 'a "quoted" \\ one'],
    ['text', 'a\0b', 'a\ufffdb'],
    ['bigint[]', [1, -2, 9_007_199_254_740_991, null], [1, -2, 9_007_199_254_740_991, null]],
    ['float8', 1.5, 1.5],
    ['text', null, null],
    ['bytea', new Uint8Array([0, 92, 255]), '\\x005cff'],
    ['bytea[]', [new Uint8Array([0, 92, 255]), new Uint8Array()], ['\\x005cff', '\\x']],
    ['bytea[]', bytesArray([new Uint8Array([0, 92, 255]), new Uint8Array()]), ['\\x005cff', '\\x']],
    ['bytea[]', bytesArray([]), []],
  ])('arrive as they are: %s %j', async (type, value, arrived) => {
    expect(await sent(type, value)).toEqual(arrived);
  });
});
