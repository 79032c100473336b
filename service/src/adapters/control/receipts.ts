import { isoDay } from '../../../../src/core/memory/times.ts';
import { camelOf } from '../../core/account-settings.ts';
import { firstReceiptIdAt, timeOfReceiptId } from '../../core/ids.ts';
import { USAGE_COUNTS } from '../../core/receipt-rows.ts';
import type {
  ClosedHead,
  ReceiptFilter,
  ReceiptRow,
  StoredReceipt,
  UsageFilter,
  UsageSum,
} from '../../ports/receipt-store.ts';
import type { Rows } from '../../ports/rows.ts';
import { receiptOf, type Row } from './facts.ts';
import { PAGE_CONDITIONS, RECEIPTS, receiptPage, usageSums } from './statements.ts';

/**
 * Stores receipts, their heads (defined in service/src/core/receipts.ts), and the sums of usage for each day, which are
 * kept longer than receipts. Also lists receipts and sums.
 */

/** Stores receipts. Writes heads, and sums, which nodes share, in a fixed order, so that nodes never deadlock. */
export async function storeReceipts(rows: Rows, receipts: readonly ReceiptRow[]): Promise<void> {
  const heads = newestOf(receipts).map(({ tenant, node, seq }) => [tenant, node, seq] as const);
  await rows.each(RECEIPTS.raiseHead, inOrder(heads, 2));
  const added = await rows.each<{ tenant_id: string; id: string }>(
    RECEIPTS.add,
    receipts.map(({ tenant, receiptId, keyId, providerId, model, status, body }) => {
      return [tenant, receiptId, keyId, providerId, model, status, body];
    }),
  );
  const isNew = new Set(added.map(({ tenant_id, id }) => `${tenant_id} ${id}`));
  const counted = receipts.filter((row) => isNew.delete(`${row.tenant} ${row.receiptId}`));
  const sums = usageOf(counted).map(({ names, counts }) => [...names, ...counts]);
  await rows.each(RECEIPTS.addUsage, inOrder(sums, 5));
}

export async function closeHeads(rows: Rows, heads: readonly ClosedHead[]): Promise<void> {
  const lists = heads.map(
    ({ tenant, node, lastSeq, body }) => [tenant, node, lastSeq, body] as const,
  );
  await rows.each(RECEIPTS.closeHead, inOrder(lists, 2));
}

/** Sorts lists of values by their first `keys` values. No two lists agree in all of these values. */
function inOrder<List extends readonly unknown[]>(lists: readonly List[], keys: number): List[] {
  const named = lists.map((list) => ({ list, name: list.slice(0, keys).join('\n') }));
  return named.toSorted((a, b) => (a.name < b.name ? -1 : 1)).map(({ list }) => list);
}

export async function listReceipts(
  rows: Rows,
  tenant: string,
  filter: ReceiptFilter,
): Promise<StoredReceipt[]> {
  const { order, limit, after, before, from, to, status, model, keyId, providerId } = filter;
  const isDown = order === 'desc';
  // A page that ends before a given receipt is read in reverse, so that LIMIT keeps the rows next to that receipt.
  const isBackwards = before !== undefined && after === undefined;
  const values = {
    behind: isDown ? before : after,
    before: isDown ? after : before,
    from: from === undefined ? undefined : firstReceiptIdAt(from),
    to: to === undefined ? undefined : firstReceiptIdAt(to),
    status,
    model,
    keyId,
    providerId,
  };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- It has no other keys.
  const names = Object.keys(PAGE_CONDITIONS) as (keyof typeof PAGE_CONDITIONS)[];
  const asked = names.filter((name) => values[name] !== undefined);
  const statement = receiptPage(asked, isDown === isBackwards ? 'ASC' : 'DESC');
  const given = asked.map((name) => values[name] ?? '');
  const found = (await rows.all<Row>(statement, tenant, ...given, limit)).map(receiptOf);
  return isBackwards ? found.toReversed() : found;
}

export async function listUsage(
  rows: Rows,
  tenant: string,
  { from, to, keyId, groups, limit, after }: UsageFilter,
): Promise<UsageSum[]> {
  const statement = usageSums(groups, after !== undefined);
  const values = [tenant, from, to, keyId ?? null, limit, ...(after ?? [])];
  return (await rows.all<Row>(statement, ...values)).map((row) => ({
    values: groups.map((_, at) => String(row[`group_${at}`])),
    ...sumsOf(row),
  }));
}

/** Returns the receipt with the highest number of each node and tenant. */
function newestOf(receipts: readonly ReceiptRow[]): readonly ReceiptRow[] {
  const newest = new Map<string, ReceiptRow>();
  for (const row of receipts) {
    const key = `${row.tenant} ${row.node}`;
    if (row.seq >= (newest.get(key)?.seq ?? 0)) newest.set(key, row);
  }
  return [...newest.values()];
}

interface UsageRow {
  /** Tenant, day, key, provider and model, in this order. */
  readonly names: readonly string[];
  readonly counts: readonly number[];
}

/** Sums receipts to one row for each tenant, day, key, provider and model. */
function usageOf(receipts: readonly ReceiptRow[]): readonly UsageRow[] {
  const sums = new Map<string, UsageRow>();
  for (const row of receipts) {
    const names = usageKeyOf(row);
    const known = sums.get(names.join('\n'))?.counts;
    const own = new Map(Object.entries<number>({ requests: 1, ...row.counts }));
    const counts = USAGE_COUNTS.map((name, at) => {
      return (own.get(camelOf(name)) ?? 0) + (known?.[at] ?? 0);
    });
    sums.set(names.join('\n'), { names, counts });
  }
  return [...sums.values()];
}

/** Returns the tenant, the day of the request, the key, the provider and the model of a receipt. */
function usageKeyOf({
  tenant,
  receiptId,
  keyId,
  providerId,
  model,
}: ReceiptRow): readonly string[] {
  const day = isoDay(timeOfReceiptId(receiptId) ?? 0);
  // Without a provider the model may be any text that the caller sent, so the sums do not name it.
  return [tenant, day, keyId, providerId, providerId === '' ? '' : model];
}

function sumsOf(row: Row): Omit<UsageSum, 'values'> {
  const members = USAGE_COUNTS.map((name) => [camelOf(name), row[name]]);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Each count is a column of the row.
  return Object.fromEntries(members) as Omit<UsageSum, 'values'>;
}
