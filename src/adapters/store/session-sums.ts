import { existsSync } from 'node:fs';
import type { SessionSum } from '../../ports/request-log.ts';
import type { QuotaReading } from '../../core/meter/quota.ts';
import { stateFile } from '../files/database-file.ts';
import { type Connection, loadDriver } from './driver.ts';

/**
 * Sums the request log of one session, in this very thread. A status line is drawn several times a
 * second, and must not pay for a worker. It reads and never writes, and makes no file.
 */

/** A writer holds the file for some milliseconds; a status line cannot wait for longer. */
const BUSY_MS = 100;

// As the index has the expression: written otherwise, every row would be read. Sub-agents are named
// behind the session and a slash.
const CONVERSATION = `row ->> '$.conversation'`;
const SQL = `
SELECT coalesce(row ->> '$.model', '') AS model, coalesce(row ->> '$.isLogin', 0) AS isLogin,
  count(DISTINCT CASE WHEN NOT coalesce(row ->> '$.recall.isBrief', 0)
    THEN row ->> '$.recall.exchange' END) AS prompts,
  coalesce(sum(row ->> '$.price.paid'), 0) AS paid,
  coalesce(sum(row ->> '$.price.direct'), 0) AS direct
FROM requests WHERE ${CONVERSATION} = ?1 OR (${CONVERSATION} > ?1 || '/' AND ${CONVERSATION} < ?1 || '0')
GROUP BY 1, 2`;

/** A session's newest reading of its plan is among the newest of all sessions. */
const QUOTA_SQL = `
SELECT row FROM (SELECT n, row FROM quota ORDER BY n DESC LIMIT 300)
WHERE row ->> '$.conversation' = ? ORDER BY n DESC LIMIT 1`;

/** What a status line shows of one session. */
export interface SessionFacts {
  readonly sums: readonly SessionSum[];
  /** How much of the plan was used by its newest answer that stated it. */
  readonly quota: QuotaReading | undefined;
}

/** Undefined where there is no store yet. Throws what SQLite throws. */
export async function sessionFacts(
  folder: string,
  session: string,
): Promise<SessionFacts | undefined> {
  const file = stateFile(folder);
  if (!existsSync(file)) return undefined;
  const connection: Connection = loadDriver().open(file);
  try {
    connection.exec(`PRAGMA busy_timeout = ${BUSY_MS}; PRAGMA query_only = ON`);
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The columns of that very query.
    const sums = connection.prepare(SQL).all(session) as SessionSum[];
    return { sums, quota: quotaIn(connection, session) };
  } finally {
    connection.close();
  }
}

function quotaIn(connection: Connection, session: string): QuotaReading | undefined {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Only the request log writes these rows.
  const [found] = connection.prepare(QUOTA_SQL).all(session) as { readonly row: string }[];
  if (found === undefined) return undefined;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- As above.
  return (JSON.parse(found.row) as { readonly reading: QuotaReading }).reading;
}
