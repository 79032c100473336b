import { firstReceiptIdAt, timeOfReceiptId } from '../../core/receipt-id.ts';
import type {
  ReceiptFilter,
  ReceiptRow,
  StoredReceipt,
  UsageSum,
} from '../../ports/receipt-store.ts';
import type { ServiceStore, TenantStore } from '../../ports/service-store.ts';
import { headOf, type HeadRow as FileHeadRow } from '../service-store/receipts.ts';
import { countsOf, type CountsRow, newestOf, usageOf } from '../service-store/usage-counts.ts';
import { makeDaysFrom } from './days.ts';
import type { Connections } from './connections.ts';
import type { Rows, SqlValue } from './rows.ts';
import type { OpenDatabase, TenantPlace } from './open-database.ts';
import { RECEIPTS } from './statements/receipts.ts';

/**
 * Signed receipts, the heads of their nodes and the sums of their days. A day of receipts is a part
 * of the table, made a week ahead.
 */

const DAY_MS = 86_400_000;
/** Days that this process knows to be made. */
const DAYS_KNOWN_MAX = 1000;

type HeadRow = Omit<FileHeadRow, 'tenant'> & { readonly tenant_id: string };

export function receiptCalls(database: () => Promise<OpenDatabase>) {
  const days = new Set<number>();
  return {
    async storeReceipts(rows) {
      if (rows.length === 0) return;
      const { connections } = await database();
      await makeDays(connections, days, rows);
      await connections.write((held) => store(held, rows));
    },
    async openHeads({ node, limit }) {
      const { connections } = await database();
      return connections.read(async (rows) => {
        const found = await rows.all<HeadRow>(RECEIPTS.openHeads, node, limit);
        return found.map((row) => ({
          tenant: row.tenant_id,
          node: row.node,
          lastSeq: row.last_seq,
        }));
      });
    },
    async closeHeads(heads) {
      if (heads.length === 0) return;
      const { connections } = await database();
      await connections.write((rows) =>
        rows.run(
          RECEIPTS.closeHeads,
          heads.map(({ tenant }) => tenant),
          heads.map(({ node }) => node),
          heads.map(({ lastSeq }) => lastSeq),
          heads.map(({ body }) => body),
        ),
      );
    },
  } satisfies Partial<ServiceStore>;
}

export function tenantReceipts({ tenant, database }: TenantPlace) {
  return {
    async findReceipt(receiptId, signal) {
      const { connections } = await database();
      return connections.read(async (rows) => {
        const row = await rows.get<PageRow>(RECEIPTS.findReceipt, tenant, receiptId);
        return row === undefined ? undefined : receiptOf(row);
      }, signal);
    },
    async listReceipts(filter, signal) {
      const { connections } = await database();
      return connections.read((rows) => list(rows, tenant, filter), signal);
    },
    async listHeads({ limit, after = '' }) {
      const { connections } = await database();
      return connections.read(async (rows) => {
        const found = await rows.all<HeadRow>(RECEIPTS.listHeads, tenant, after, limit);
        return found.map(({ tenant_id, ...row }) => headOf({ ...row, tenant: tenant_id }));
      });
    },
    async listUsage({ from, to, keyId = null, groups, limit, after = null }) {
      const { connections } = await database();
      return connections.read(async (rows) => {
        const values = [tenant, from, to, keyId, groups, after, limit];
        const found = await rows.all<CountsRow & { names: string[] }>(
          RECEIPTS.listUsage,
          ...values,
        );
        return found.map((row): UsageSum => ({ values: row.names, ...countsOf(row) }));
      });
    },
    async tokensSpent({ from, to, keyId = null }, signal) {
      const { connections } = await database();
      return connections.read(async (rows) => {
        const values = [tenant, from, to, keyId];
        const row = await rows.get<{ spent: number }>(RECEIPTS.tokensSpent, ...values);
        return row?.spent ?? 0;
      }, signal);
    },
    async dropReceipts({ before, limit }) {
      const { connections } = await database();
      const values = [tenant, firstReceiptIdAt(before), limit] as const;
      return connections.job((rows) => rows.run(RECEIPTS.dropReceipts, ...values));
    },
  } satisfies Partial<TenantStore>;
}

interface PageRow {
  readonly id: string;
  readonly body: string;
}

function receiptOf({ id: receiptId, body }: PageRow): StoredReceipt {
  return { receiptId, body };
}

async function list(rows: Rows, tenant: string, filter: ReceiptFilter): Promise<StoredReceipt[]> {
  const { order, limit, after = null, before = null, from, to } = filter;
  const isDown = order === 'desc';
  // The page in front of an element is read backwards from it.
  const isBackwards = before !== null && after === null;
  const statement = isDown === isBackwards ? RECEIPTS.listUp : RECEIPTS.listDown;
  const values: SqlValue[] = [
    isDown ? before : after,
    isDown ? after : before,
    from === undefined ? null : firstReceiptIdAt(from),
    to === undefined ? null : firstReceiptIdAt(to),
    filter.status ?? null,
    filter.model ?? null,
    filter.keyId ?? null,
    filter.providerId ?? null,
    limit,
  ];
  const found = (await rows.all<PageRow>(statement, tenant, ...values)).map(receiptOf);
  return isBackwards ? found.toReversed() : found;
}

async function store(rows: Rows, receipts: readonly ReceiptRow[]): Promise<void> {
  const highest = newestOf(receipts);
  const raised = rows.run(
    RECEIPTS.raiseHeads,
    highest.map(({ tenant }) => tenant),
    highest.map(({ node }) => node),
    highest.map(({ seq }) => seq),
  );
  const adding = rows.all<{ tenant_id: string; id: string }>(
    RECEIPTS.addReceipts,
    receipts.map(({ tenant }) => tenant),
    receipts.map(({ receiptId }) => receiptId),
    receipts.map(({ keyId }) => keyId),
    receipts.map(({ providerId }) => providerId),
    receipts.map(({ model }) => model),
    receipts.map(({ status }) => status),
    receipts.map(({ body }) => body),
  );
  const [added] = await Promise.all([adding, raised]);
  const isNew = new Set(added.map(({ tenant_id, id }) => `${tenant_id} ${id}`));
  const counted = receipts.filter((row) => isNew.delete(`${row.tenant} ${row.receiptId}`));
  if (counted.length > 0) await addUsage(rows, counted);
}

async function addUsage(rows: Rows, receipts: readonly ReceiptRow[]): Promise<void> {
  const all = usageOf(receipts);
  await rows.run(
    RECEIPTS.addUsage,
    ...columns(all.map(({ names }) => names)),
    ...columns(all.map(({ counts }) => counts)),
  );
}

/** Rows of values as columns of values. */
function columns<T>(lists: readonly (readonly T[])[]): T[][] {
  return (lists[0] ?? []).map((_, at) => lists.flatMap((one) => one.slice(at, at + 1)));
}

/** The days of these receipts and of the week after them. */
async function makeDays(
  connections: Connections,
  known: Set<number>,
  rows: readonly ReceiptRow[],
): Promise<void> {
  if (known.size > DAYS_KNOWN_MAX) known.clear();
  const times = rows.map(({ receiptId }) => timeOfReceiptId(receiptId) ?? 0);
  for (const at of times) {
    const day = Math.floor(at / DAY_MS);
    if (known.has(day)) continue;
    // oxlint-disable-next-line no-await-in-loop -- Most often all are of one day.
    await makeDaysFrom(connections, at);
    known.add(day);
  }
}
