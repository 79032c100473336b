import type { RequestFilter, RequestRow } from '../../ports/request-log.ts';
import { Conditions } from './conditions.ts';
import type { Database } from './database.ts';

/** The requests behind a number of the page: by conversation, project, client, model and time. */

const LIMIT_MAX = 1000;
const OFFSET_MAX = 1_000_000;

export function findRequests(database: Database, filter: RequestFilter): RequestRow[] {
  const conditions = new Conditions();
  conditions.require(`coalesce(row ->> '$.kind', '') NOT IN ('relayed', 'count')`);
  // As the index has it: written otherwise, every row would be read.
  conditions.add(`row ->> '$.conversation' = ?`, filter.conversation);
  conditions.add('at >= ?', filter.since);
  conditions.add('at < ?', filter.until);
  conditions.add(`row ->> '$.space' = ?`, filter.space);
  conditions.add(`row ->> '$.client' = ?`, filter.client);
  conditions.add(`row ->> '$.model' = ?`, filter.model);
  const rows = database.all<{ readonly row: string }>(
    `SELECT row FROM requests ${conditions.where} ORDER BY number DESC LIMIT ? OFFSET ?`,
    ...conditions.values,
    Math.max(0, Math.min(filter.limit, LIMIT_MAX)),
    Math.max(0, Math.min(filter.offset ?? 0, OFFSET_MAX)),
  );
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Only RequestTable writes them.
  return rows.map(({ row }) => JSON.parse(row) as RequestRow);
}
