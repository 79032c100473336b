import * as fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { receiptRow } from '../../src/core/receipt-rows.ts';
import { RECEIPT_STATUSES, receiptOf, receiptText } from '../../src/core/receipts.ts';
import type { ReceiptFilter, ReceiptRow } from '../../src/ports/receipt-store.ts';
import type { ServiceStore, TenantStore } from '../../src/ports/service-store.ts';
import { closingOf, openingOf, RECEIVED_AT, rowOfReceipt } from '../support/receipt-facts.ts';

const patience = (): AbortSignal => AbortSignal.timeout(30_000);
const DAY = 86_400_000;

/** What every database owes the receipts of a service. */
export function receiptSuite(open: () => ServiceStore | Promise<ServiceStore>): void {
  describe('receipts', () => {
    let whole: ServiceStore;
    beforeEach(async () => {
      whole = await open();
    });
    afterEach(() => whole.close());

    test('a receipt is found by its id in its own tenant, and the first one of an id stays', async () => {
      const row = rowOfReceipt({ tenant: 'acme' });
      await whole.storeReceipts([row]);
      await whole.storeReceipts([{ ...row, body: '{}' }, rowOfReceipt({ tenant: 'acme', seq: 2 })]);
      const { receiptId, body } = row;
      expect(await whole.of('acme').findReceipt(receiptId, patience())).toEqual({
        receiptId,
        body,
      });
      expect(await whole.of('globex').findReceipt(receiptId, patience())).toBe(undefined);
      const [sum] = await whole.of('acme').listUsage(everyDay(['day']));
      expect(sum).toMatchObject({ values: ['2026-11-20'], requests: 2, spentTokens: 200 });
    });

    test('counts that no model has neither keep back other receipts nor leave sums that cannot be read', async () => {
      const most = Number.MAX_SAFE_INTEGER;
      const usage = { input: most, cacheRead: most, cacheWrite: most, output: most };
      const rows = Array.from({ length: 300 }, (_, at) => {
        const [opening, closing] = [openingOf({ tenant: 'acme' }), closingOf({ usage })];
        const issuer = { version: '0.1.2', node: 'node_a', seq: at + 1 };
        const receipt = receiptOf(opening, closing, issuer);
        return receiptRow({ opening, closing, receipt }, receiptText(receipt));
      });
      const other = rowOfReceipt({ tenant: 'globex' });
      await whole.storeReceipts([...rows, other]);
      const { receiptId } = other;
      expect(await whole.of('globex').findReceipt(receiptId, patience())).toBeDefined();
      const [sum] = await whole.of('acme').listUsage(everyDay(['day']));
      expect(sum).toMatchObject({ requests: 300, outputTokens: 300e9 });
      const asked = { from: '2026-11-20', to: '2026-11-20' };
      expect(await whole.of('acme').tokensSpent(asked, patience())).toBe(1_200e9);
    });

    test('a list has what fits its filter, in order, page by page from either end', async () => {
      const rows = manyRows();
      await whole.storeReceipts(rows);
      const acme = whole.of('acme');
      await fc.assert(
        fc.asyncProperty(filters, async (filter) => {
          const expected = rows.filter((row) => row.tenant === 'acme' && fits(row, filter));
          const ids = expected
            .map(({ receiptId }) => receiptId)
            .toSorted((a, b) => (a < b ? -1 : 1));
          if (filter.order === 'desc') ids.reverse();
          expect(await forwards(acme, filter)).toEqual(ids);
          expect(await backwards(acme, filter, ids.at(-1))).toEqual(ids.slice(0, -1));
        }),
        { numRuns: 40 },
      );
    });

    test('usage is summed by day, key, provider and model, in any choice of them, page by page', async () => {
      const rows = manyRows();
      await whole.storeReceipts(rows);
      const acme = whole.of('acme');
      const groups = ['provider', 'model'] as const;
      const sums = await acme.listUsage(everyDay(groups));
      const own = rows.filter((row) => row.tenant === 'acme');
      const names = new Set(
        own.map((row) => `${row.providerId} ${row.providerId === '' ? '' : row.model}`),
      );
      expect(sums.map(({ values }) => values.join(' '))).toEqual(
        [...names].toSorted((a, b) => (a < b ? -1 : 1)),
      );
      expect(sums.reduce((sum, { requests }) => sum + requests, 0)).toBe(own.length);
      const first = await acme.listUsage({ ...everyDay(groups), limit: 1 });
      const rest = await acme.listUsage({ ...everyDay(groups), after: first[0]?.values ?? [] });
      expect([...first, ...rest]).toEqual(sums);
      const asked = { from: '2026-11-21', to: '2026-11-21', keyId: 'k1' };
      const some = own.filter((row) => row.keyId === 'k1' && dayOf(row) === '2026-11-21');
      expect(await acme.listUsage({ ...asked, groups: ['day'], limit: 9 })).toMatchObject([
        { requests: some.length },
      ]);
      expect(await acme.tokensSpent(asked, patience())).toBe(some.length * 100);
      expect(await acme.tokensSpent({ from: '2026-11-21', to: '2026-11-21' }, patience())).toBe(
        own.filter((row) => dayOf(row) === '2026-11-21').length * 100,
      );
      expect(await whole.of('nobody').tokensSpent(asked, patience())).toBe(0);
    });

    test('a head rises with its receipts until it is closed, by node and tenant', async () => {
      await whole.storeReceipts([
        rowOfReceipt({ tenant: 'acme', node: 'node_b', seq: 2 }),
        rowOfReceipt({ tenant: 'acme', node: 'node_b', seq: 1 }),
        rowOfReceipt({ tenant: 'globex', node: 'node_b', seq: 7 }),
        rowOfReceipt({ tenant: 'acme', node: 'node_a', seq: 3 }),
      ]);
      expect(await whole.openHeads({ node: 'node_b', limit: 9 })).toEqual([
        { tenant: 'acme', node: 'node_b', lastSeq: 2 },
        { tenant: 'globex', node: 'node_b', lastSeq: 7 },
      ]);
      const head = { tenant: 'acme', node: 'node_b', lastSeq: 4, body: '{"n":4}' };
      await whole.closeHeads([head]);
      await whole.closeHeads([{ ...head, lastSeq: 9, body: '{}' }]);
      await whole.storeReceipts([rowOfReceipt({ tenant: 'acme', node: 'node_b', seq: 9 })]);
      expect(await whole.openHeads({ node: 'node_b', limit: 9 })).toHaveLength(1);
      const acme = whole.of('acme');
      expect(await acme.listHeads({ limit: 9, after: undefined })).toEqual([
        { tenant: 'acme', node: 'node_a', lastSeq: 3 },
        head,
      ]);
      expect(await acme.listHeads({ limit: 9, after: 'node_a' })).toEqual([head]);
      // A node that stored nothing for a tenant may still close its head.
      await whole.closeHeads([{ ...head, tenant: 'other' }]);
      expect(await whole.of('other').listHeads({ limit: 9, after: undefined })).toHaveLength(1);
    });

    test('old receipts are dropped in bounded parts, the oldest first; their sums stay', async () => {
      const rows = manyRows();
      await whole.storeReceipts(rows);
      const acme = whole.of('acme');
      const before = RECEIVED_AT + DAY;
      const old = rows.filter((row) => row.tenant === 'acme' && atOf(row) < before).length;
      const usage = await acme.listUsage(everyDay(['day']));
      expect(await acme.dropReceipts({ before, limit: 2 })).toBe(2);
      expect(await acme.dropReceipts({ before, limit: 100 })).toBe(old - 2);
      expect(await acme.dropReceipts({ before, limit: 100 })).toBe(0);
      expect(await acme.listReceipts({ limit: 100, order: 'asc', to: before }, patience())).toEqual(
        [],
      );
      expect(await acme.listUsage(everyDay(['day']))).toEqual(usage);
      const others = rows.filter((row) => row.tenant === 'globex').length;
      expect(await forwards(whole.of('globex'), { order: 'asc' })).toHaveLength(others);
    });
  });
}

type Choice = Omit<ReceiptFilter, 'limit'>;

const KEYS = ['k1', 'k2'];
const PROVIDERS = ['', 'prov_a', 'prov_b'];
const MODELS = ['', 'gpt-5', 'claude'];

const maybe = <Value>(...values: readonly Value[]) =>
  fc.option(fc.constantFrom(...values), { nil: undefined });
const time = fc.option(
  fc.integer({ min: -1, max: 4 }).map((days) => RECEIVED_AT + days * DAY),
  {
    nil: undefined,
  },
);

const filters: fc.Arbitrary<Choice> = fc
  .record({
    order: fc.constantFrom('asc' as const, 'desc' as const),
    from: time,
    to: time,
    status: maybe(...RECEIPT_STATUSES),
    model: maybe(...MODELS),
    keyId: maybe(...KEYS),
    providerId: maybe(...PROVIDERS),
  })
  .map(
    (given) =>
      Object.fromEntries(
        Object.entries(given).filter(([, value]) => value !== undefined),
      ) as unknown as Choice,
  );

function manyRows(): readonly ReceiptRow[] {
  return Array.from({ length: 60 }, (_, at) =>
    rowOfReceipt({
      tenant: at % 5 === 0 ? 'globex' : 'acme',
      seq: at + 1,
      at: RECEIVED_AT + (at % 3) * DAY + (at % 7) * 1000,
      keyId: KEYS[at % 2] ?? '',
      providerId: PROVIDERS[at % 3] ?? '',
      model: MODELS[(at >> 1) % 3] ?? '',
      status: RECEIPT_STATUSES[(at >> 2) % RECEIPT_STATUSES.length] ?? 'completed',
    }),
  );
}

const atOf = ({ body }: ReceiptRow): number => JSON.parse(body).at as number;
const dayOf = (row: ReceiptRow): string => new Date(atOf(row)).toISOString().slice(0, 10);

function fits(row: ReceiptRow, { from, to, status, model, keyId, providerId }: Choice): boolean {
  return (
    (from === undefined || atOf(row) >= from) &&
    (to === undefined || atOf(row) < to) &&
    (status === undefined || row.status === status) &&
    (model === undefined || row.model === model) &&
    (keyId === undefined || row.keyId === keyId) &&
    (providerId === undefined || row.providerId === providerId)
  );
}

async function forwards(store: TenantStore, filter: Choice): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let after: string | undefined; ;) {
    const more = after === undefined ? {} : { after };
    // oxlint-disable-next-line no-await-in-loop -- Pages come one after the other.
    const page = await store.listReceipts({ ...filter, ...more, limit: 7 }, patience());
    if (page.length === 0) return ids;
    ids.push(...page.map(({ receiptId }) => receiptId));
    after = ids.at(-1);
  }
}

/** From an element back to the first. */
async function backwards(
  store: TenantStore,
  filter: Choice,
  from: string | undefined,
): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let before = from; before !== undefined;) {
    // oxlint-disable-next-line no-await-in-loop -- Pages come one after the other.
    const page = await store.listReceipts({ ...filter, before, limit: 7 }, patience());
    ids.unshift(...page.map(({ receiptId }) => receiptId));
    before = page[0]?.receiptId;
  }
  return ids;
}

function everyDay<const Groups extends readonly ('day' | 'key' | 'provider' | 'model')[]>(
  groups: Groups,
) {
  return { from: '2000-01-01', to: '2999-12-31', groups, limit: 100 };
}
