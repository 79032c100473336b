import type { RequestFilter, RequestRow } from '../../ports/request-log.ts';
import type { Database } from './database.ts';

/** The requests behind a number of the page: by conversation, project, client, model and time. */

const LIMIT_MAX = 1000;
const OFFSET_MAX = 1_000_000;

export function findRequests(database: Database, filter: RequestFilter): RequestRow[] {
  const conditions = [`coalesce(row ->> '$.kind', '') NOT IN ('relayed', 'count')`];
  const values: (string | number)[] = [];
  const add = (condition: string, value: string | number | undefined): void => {
    if (value === undefined) return;
    conditions.push(condition);
    values.push(value);
  };
  // As the index has it: written otherwise, every row would be read.
  add(`row ->> '$.conversation' = ?`, filter.conversation);
  add('at >= ?', filter.since);
  add('at < ?', filter.until);
  add(`row ->> '$.space' = ?`, filter.space);
  add(`row ->> '$.client' = ?`, filter.client);
  add(`row ->> '$.model' = ?`, filter.model);
  const rows = database.all<{ readonly row: string }>(
    `SELECT row FROM requests WHERE ${conditions.join(' AND ')} ORDER BY number DESC LIMIT ? OFFSET ?`,
    ...values,
    Math.max(0, Math.min(filter.limit, LIMIT_MAX)),
    Math.max(0, Math.min(filter.offset ?? 0, OFFSET_MAX)),
  );
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Only RequestTable writes them.
  return rows.map(({ row }) => JSON.parse(row) as RequestRow);
}
