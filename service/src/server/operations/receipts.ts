import { parseJson } from '../../../../src/core/bytes/json-fields.ts';
import {
  closed,
  type Infer,
  integer,
  oneOf,
  text,
  time,
} from '../../../../src/core/memory-api/shape.ts';
import { isoTime } from '../../../../src/core/memory/times.ts';
import { RECEIPT_ID, timeOfReceiptId } from '../../core/ids.ts';
import { headOf, RECEIPT_STATUSES, totalOf } from '../../core/receipts.ts';
import type { ReceiptFilter } from '../../ports/receipt-store.ts';
import type { TenantStore } from '../../ports/service-store.ts';
import { listBody, type Operation, readValue, replyJson } from '../call.ts';
import { invalid, ServiceFault } from '../fault.ts';

const PAGE = 20;

export const listReceipts: Operation = async ({ store, head, signal }) => {
  const query = readValue(queryFields(head.query), receiptsQuery);
  if (query.after !== undefined && query.before !== undefined) {
    throw invalid('Give after or before, not both.', 'before');
  }
  const limit = query.limit ?? PAGE;
  // One receipt more than asked for shows whether there is another page.
  const found = await store.listReceipts(filterOf(query, limit + 1), signal);
  const hasMore = found.length > limit;
  // With `before`, the receipt that is too many is the first one.
  const shown = query.before === undefined ? found.slice(0, limit) : found.slice(-limit);
  const data = shown.map(({ body }) => parseJson(body));
  const ids = shown.map(({ receiptId: id }) => id);
  const cursor = query.before === undefined ? {} : { cursor: null };
  return replyJson(listBody({ data, ids, hasMore, ...cursor }));
};

function filterOf(query: Infer<typeof receiptsQuery>, limit: number): ReceiptFilter {
  const { after, before, order = 'desc', from, to, status, model } = query;
  return {
    limit,
    order,
    after,
    before,
    from: from === undefined ? undefined : Date.parse(from),
    to: to === undefined ? undefined : Date.parse(to),
    status,
    model,
    keyId: query.api_key_id,
    providerId: query.provider_id,
  };
}

/** The age in milliseconds below which a receipt that is not found may still be in the journal of its node. */
const YOUNG_MS = 600_000;
const RETRY_MS = 1000;

export const getReceipt: Operation = async ({ store, parameter: receiptId, signal, now }) => {
  const at = timeOfReceiptId(receiptId);
  const found = at === undefined ? undefined : await store.findReceipt(receiptId, signal);
  if (found !== undefined) return replyJson(parseJson(found.body));
  const isYoung = at !== undefined && Math.abs(now - at) < YOUNG_MS;
  const more = isYoung ? { afterMs: RETRY_MS } : {};
  throw new ServiceFault('NOT_FOUND', 'There is no such receipt.', more);
};

/**
 * Returns a page of a tenant's heads and its total (both defined in service/src/core/receipts.ts). Closed heads are
 * stored with their signature; the others and the total are signed now. Without a signing key nothing is signed.
 */
export const listReceiptHeads: Operation = async ({ key, store, head: call, now }, { signer }) => {
  const { limit = 100, after } = readValue(queryFields(call.query), headsQuery);
  // Count before the heads are read: a receipt that is stored in between is then in a head and not in the total. The
  // other way round, an audit would report it as missing.
  const receipts = await countReceipts(store);
  const found = await store.listHeads({ limit: limit + 1, after });
  const shown = found.slice(0, limit);
  const at = isoTime(now);
  const open = await signer.signAll(shown.map((head) => headOf(head, { at, isClosed: false })));
  const [total] = await signer.signAll([totalOf({ tenant: key.tenant, receipts, at })]);
  const data = shown.map(({ body }, place) => (body === undefined ? open[place] : parseJson(body)));
  const ids = shown.map(({ node }) => node);
  return replyJson({ ...listBody({ data, ids, hasMore: found.length > limit }), total });
};

/** Bound on days of a query: 270 years. */
const DAYS_MAX = 100_000;

/** Counts all receipts that were ever stored, by the usage of all days. */
async function countReceipts(store: TenantStore): Promise<number> {
  const days = await store.listUsage({
    from: '0000-01-01',
    to: '9999-12-31',
    groups: ['day'],
    limit: DAYS_MAX,
  });
  return days.reduce((sum, { requests }) => sum + requests, 0);
}

const receiptId = text({ pattern: RECEIPT_ID });

export const receiptsQuery = closed(
  {},
  {
    limit: integer(1, 100),
    after: receiptId,
    before: receiptId,
    order: oneOf('asc', 'desc'),
    from: time,
    to: time,
    status: oneOf(...RECEIPT_STATUSES),
    model: text({ max: 256 }),
    api_key_id: text({ max: 64 }),
    provider_id: text({ max: 64 }),
  },
);

export const headsQuery = closed(
  {},
  { limit: integer(1, 100), after: text({ pattern: /^node_[0-9a-f]{1,64}$/ }) },
);

const day = text({ pattern: /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])$/ });

export const usageQuery = closed(
  {},
  {
    limit: integer(1, 100),
    after: text({ max: 2048, pattern: /^[\w-]*$/ }),
    from: day,
    to: day,
    api_key_id: text({ max: 64 }),
    /** Any of day, key, provider and model, separated by commas. */
    group_by: text({ pattern: /^(?:day|key|provider|model)(?:,(?:day|key|provider|model)){0,3}$/ }),
  },
);

/**
 * Returns the parameters, to be checked by a shape. A repeated parameter gets the name `… twice`, which every shape
 * refuses. A limit becomes a number.
 */
export function queryFields(query: URLSearchParams): Readonly<Record<string, unknown>> {
  const fields = new Map<string, unknown>();
  for (const [name, value] of query) {
    const isNumber = name === 'limit' && /^\d{1,3}$/.test(value);
    fields.set(fields.has(name) ? `${name} twice` : name, isNumber ? Number(value) : value);
  }
  return Object.fromEntries(fields);
}
