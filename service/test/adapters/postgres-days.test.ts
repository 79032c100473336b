import { describe, expect, onTestFinished, test } from 'vitest';
import { dropDay, makeDay } from '../../src/adapters/postgres-store/statements/upkeep.ts';
import { missingPostgres } from '../support/postgres.ts';
import { postgresStores } from '../support/postgres-stores.ts';
import { RECEIVED_AT, rowOfReceipt } from '../support/receipt-facts.ts';

const missing = missingPostgres();
const DAY = 86_400_000;
const patience = (): AbortSignal => AbortSignal.timeout(60_000);

test.each([['x'], ['20261120; DROP TABLE audit'], ['2026112']])('%s is no day', (day) => {
  const bounds = { first: '1', next: '2' };
  expect(() => makeDay('audit', day, bounds)).toThrow('That is no day.');
  expect(() => dropDay('audit', day)).toThrow('That is no day.');
  expect(() => makeDay('receipts', '20261120', { ...bounds, first: "'" })).toThrow('no day');
});

describe.skipIf(missing !== undefined)('days of receipts and events in PostgreSQL', () => {
  const stores = postgresStores();

  test('they are made a week ahead, and dropped whole when nobody keeps them', async () => {
    const address = await stores.address();
    const [one, other] = await Promise.all([stores.open(address), stores.open(address)]);
    onTestFinished(async () => {
      await Promise.all([one.close(), other.close()]);
    });
    const tables = (like: string) =>
      stores.server().ask(
        address.database,
        `SELECT coalesce(string_agg(relname, ' ' ORDER BY relname), '') FROM pg_class
            WHERE relname LIKE '${like}' AND relkind = 'r'`,
      );
    const now = RECEIVED_AT;
    // Both nodes look at the same moment.
    await Promise.all([one, other].map((store) => store.keepDays({ now })));
    const made = [20, 21, 22, 23, 24, 25, 26, 27];
    for (const table of ['receipts', 'audit']) {
      // oxlint-disable-next-line no-await-in-loop
      expect(await tables(`${table}\\_2%`)).toBe(
        made.map((day) => `${table}_202611${day}`).join(' '),
      );
    }
    const rows = [0, 1, 2].map((days, at) => rowOfReceipt({ seq: at + 1, at: now + days * DAY }));
    await one.storeReceipts(rows);
    const receiptsFrom = now + DAY;
    await one.keepDays({ now: now + 2 * DAY, receiptsFrom, auditFrom: receiptsFrom });
    expect(await tables('%\\_20261120')).toBe('');
    expect(await tables('%\\_20261129')).toBe('audit_20261129 receipts_20261129');
    const left = await other.of('default').listReceipts({ limit: 9, order: 'asc' }, patience());
    expect(left.map(({ receiptId }) => receiptId)).toEqual(
      rows.slice(1).map(({ receiptId }) => receiptId),
    );
  }, 120_000);
});
