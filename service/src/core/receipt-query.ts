import {
  type Infer,
  integer,
  members,
  oneOf,
  text,
  time,
} from '../../../src/core/memory-api/shape.ts';
import { RECEIPT_ID } from './receipt-id.ts';
import { RECEIPT_STATUSES } from './receipts.ts';

/** The questions for receipts, as service/docs/hosted-api.yaml has them. A filter that is not known is refused. */

const CLOSED = { closed: true } as const;
const receiptId = text({ pattern: RECEIPT_ID });

export const receiptsQuery = members(
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
  CLOSED,
);
export type ReceiptsQuery = Infer<typeof receiptsQuery>;

export const headsQuery = members(
  {},
  { limit: integer(1, 100), after: text({ pattern: /^node_[0-9a-f]{1,64}$/ }) },
  CLOSED,
);

const day = text({ pattern: /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])$/ });

export const usageQuery = members(
  {},
  {
    limit: integer(1, 100),
    /** The cursor of the page before. */
    after: text({ max: 2048, pattern: /^[\w-]*$/ }),
    from: day,
    to: day,
    api_key_id: text({ max: 64 }),
    /** Some of day, key, provider and model, with commas between them. */
    group_by: text({ pattern: /^(?:day|key|provider|model)(?:,(?:day|key|provider|model)){0,3}$/ }),
  },
  CLOSED,
);

/** Every parameter comes once; a limit is a number. */
export function queryFields(query: URLSearchParams): Readonly<Record<string, unknown>> {
  const fields = new Map<string, unknown>();
  for (const [name, value] of query) {
    const isNumber = name === 'limit' && /^\d{1,3}$/.test(value);
    fields.set(fields.has(name) ? `${name} twice` : name, isNumber ? Number(value) : value);
  }
  return Object.fromEntries(fields);
}
