import { existsSync } from 'node:fs';
import { type Connection, loadDriver } from '../store/driver.ts';
import { stateFile } from '../files/database-file.ts';
import type { SessionSum } from '../../ports/request-log.ts';
import type { QuotaReading } from '../../core/meter/quota.ts';

/**
 * Reads the newest rows of the request log on the calling thread, for `svc status` and `svc stop`, while a proxy
 * writes them. It never writes and creates no file.
 */
export interface RecentRequest {
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly client: string;
  readonly space: string;
  readonly conversation: string;
  readonly end: string;
  readonly memoryState: string;
  /** 1 if the conversation has thinking that is bound to its prefix. */
  readonly isBound: number;
  /** 1 if the request carried a block. */
  readonly hasBlock: number;
}

/** How long to wait for a writer, which locks the file for some milliseconds. */
const BUSY_MS = 500;
/** Bound on rows, 10 us each: more than one user's day. */
const ROWS_MAX = 20_000;

const SQL = `
SELECT at, coalesce(row ->> '$.client', '') AS client, coalesce(row ->> '$.space', '') AS space,
  coalesce(row ->> '$.conversation', '') AS conversation, coalesce(row ->> '$.end', '') AS end,
  coalesce(row ->> '$.memoryState', '') AS memoryState, coalesce(row ->> '$.isBound', 0) AS isBound,
  coalesce(instr(row ->> '$.items', '"edit":"block"') > 0, 0) AS hasBlock
FROM requests WHERE at >= ? AND row ->> '$.kind' = 'main' ORDER BY at DESC LIMIT ${ROWS_MAX}`;

/** What svc did for one client since a given time. Tokens are input tokens at full price. */
export interface RunTotals {
  readonly requests: number;
  /** Prompts that got memories. */
  readonly recalled: number;
  /** Requests without memory because it did not answer in time. */
  readonly late: number;
  /** Requests without memory for another reason. */
  readonly failed: number;
  readonly paid: number;
  readonly direct: number;
  readonly misses: number;
  readonly missedTokens: number;
}

// A client has the name of its program, some with a suffix: claude-code.
const RUN_SQL = `
SELECT count(*) AS requests,
  count(DISTINCT CASE WHEN NOT coalesce(row ->> '$.recall.isBrief', 0)
    THEN row ->> '$.conversation' || ' ' || (row ->> '$.recall.exchange') END) AS recalled,
  count(CASE WHEN row ->> '$.memoryState' = 'degraded_timeout' THEN 1 END) AS late,
  count(CASE WHEN row ->> '$.memoryState' LIKE 'degraded_%'
    AND row ->> '$.memoryState' <> 'degraded_timeout' THEN 1 END) AS failed,
  coalesce(sum(row ->> '$.price.paid'), 0) AS paid,
  coalesce(sum(row ->> '$.price.direct'), 0) AS direct,
  count(row ->> '$.miss.tokens') AS misses,
  coalesce(sum(row ->> '$.miss.tokens'), 0) AS missedTokens
FROM (SELECT row FROM requests WHERE at >= ?1 ORDER BY at DESC LIMIT ${ROWS_MAX})
WHERE row ->> '$.kind' NOT IN ('relayed', 'count')
  AND (row ->> '$.client' = ?2 OR row ->> '$.client' LIKE ?2 || '-%')`;

/** Returns the sums; undefined without a readable log. */
export function runTotals(folder: string, since: number, client: string): RunTotals | undefined {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The columns of that very query.
  const [totals] = readRows(folder, RUN_SQL, since, client) as RunTotals[];
  return totals;
}

/** Returns rows, newest first; none without a readable log, so that a command can still report other things. */
export function recentRequests(folder: string, since: number): readonly RecentRequest[] {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The columns of that very query.
  return readRows(folder, SQL, since) as RecentRequest[];
}

function readRows(folder: string, sql: string, ...values: (number | string)[]): unknown[] {
  try {
    return withLog(folder, BUSY_MS, (log) => log.prepare(sql).all(...values)) ?? [];
  } catch {
    return [];
  }
}

/** Reads from the log. Returns undefined if there is none. Throws errors of SQLite. */
function withLog<T>(folder: string, busyMs: number, read: (log: Connection) => T): T | undefined {
  const file = stateFile(folder);
  if (!existsSync(file)) return undefined;
  const log: Connection = loadDriver().open(file);
  try {
    log.exec(`PRAGMA busy_timeout = ${busyMs}; PRAGMA query_only = ON`);
    return read(log);
  } finally {
    log.close();
  }
}

/** How long a status line waits for a writer. */
const LINE_BUSY_MS = 100;

// This expression must equal the index's, or every row is read. A sub-agent's conversation is the session, a slash
// and a name.
const CONVERSATION = `row ->> '$.conversation'`;
const SESSION_SQL = `
SELECT coalesce(row ->> '$.model', '') AS model, coalesce(row ->> '$.isLogin', 0) AS isLogin,
  count(DISTINCT CASE WHEN NOT coalesce(row ->> '$.recall.isBrief', 0)
    THEN row ->> '$.recall.exchange' END) AS prompts,
  coalesce(sum(row ->> '$.price.paid'), 0) AS paid,
  coalesce(sum(row ->> '$.price.direct'), 0) AS direct
FROM requests WHERE ${CONVERSATION} = ?1 OR (${CONVERSATION} > ?1 || '/' AND ${CONVERSATION} < ?1 || '0')
GROUP BY 1, 2`;

/** Searches only the 300 newest readings, because a session that is open has one among them. */
const QUOTA_SQL = `
SELECT row FROM (SELECT n, row FROM quota ORDER BY n DESC LIMIT 300)
WHERE row ->> '$.conversation' = ? ORDER BY n DESC LIMIT 1`;

/** What a status line shows of one session. */
interface SessionFacts {
  readonly sums: readonly SessionSum[];
  /** The used share of the plan, from the newest answer that stated it. */
  readonly quota: QuotaReading | undefined;
}

/**
 * Sums the request log of one session on the calling thread. A status line is drawn several times a second, so
 * starting a worker would cost too much. It never writes and creates no file. Undefined if there is no store yet.
 * Throws errors of SQLite.
 */
export async function sessionFacts(
  folder: string,
  session: string,
): Promise<SessionFacts | undefined> {
  return withLog(folder, LINE_BUSY_MS, (log) => {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The columns of that very query.
    const sums = log.prepare(SESSION_SQL).all(session) as SessionSum[];
    return { sums, quota: quotaIn(log, session) };
  });
}

function quotaIn(connection: Connection, session: string): QuotaReading | undefined {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Only the request log writes these rows.
  const [found] = connection.prepare(QUOTA_SQL).all(session) as { readonly row: string }[];
  if (found === undefined) return undefined;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- As above.
  return (JSON.parse(found.row) as { readonly reading: QuotaReading }).reading;
}
