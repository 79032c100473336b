import { existsSync } from 'node:fs';
import { type Connection, loadDriver } from '../store/driver.ts';
import { stateFile } from '../files/database-file.ts';
import type { RequestRow, SessionSum } from '../../ports/request-log.ts';
import type { QuotaReading } from '../../core/meter/quota.ts';

/**
 * A request of the log as `svc status`, `svc stop` and `svc doctor` need it. The functions in this module read the log
 * on the calling thread while a proxy writes it. They change no row, and create no database.
 */
export interface RecentRequest extends Pick<
  RequestRow,
  'at' | 'client' | 'space' | 'conversation' | 'end' | 'memoryState'
> {
  /** 1 if the conversation has thinking that is bound to its prefix. */
  readonly isBound: number;
  /** 1 if the request contained a recalled block. */
  readonly hasBlock: number;
}

/** How long a command waits for a lock, which a writer holds for some milliseconds. */
const BUSY_MS = 500;
/** Bound on the rows that a query reads, some 10 us for each. One user makes fewer requests in a day. */
const ROWS_MAX = 20_000;

const SQL = `
SELECT at, coalesce(row ->> '$.client', '') AS client, coalesce(row ->> '$.space', '') AS space,
  coalesce(row ->> '$.conversation', '') AS conversation, coalesce(row ->> '$.end', '') AS end,
  coalesce(row ->> '$.memoryState', '') AS memoryState, coalesce(row ->> '$.isBound', 0) AS isBound,
  coalesce(instr(row ->> '$.items', '"edit":"block"') > 0, 0) AS hasBlock
FROM requests WHERE at >= ? AND row ->> '$.kind' = 'main' ORDER BY at DESC LIMIT ${ROWS_MAX}`;

/** Sums over the requests of one client since a given time. Prices are in input tokens at full price. */
export interface RunTotals {
  readonly requests: number;
  /** The number of prompts that got a block with more than the list of earlier sessions. */
  readonly recalled: number;
  /** The number of requests that got no new memories because the memory did not answer in time. */
  readonly late: number;
  /** The number of requests that got no new memories because the memory failed otherwise. */
  readonly failed: number;
  readonly paid: number;
  readonly direct: number;
  readonly misses: number;
  readonly missedTokens: number;
}

// ?2 is the name of a program. The client's name in the log may have a suffix: `claude` starts `claude-code`.
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

/** Returns the sums; undefined if the log cannot be read. */
export function runTotals(folder: string, since: number, client: string): RunTotals | undefined {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The columns of that very query.
  const [totals] = readState(folder, RUN_SQL, since, client) as RunTotals[];
  return totals;
}

/** Returns rows, newest first; none if the log cannot be read. */
export function recentRequests(folder: string, since: number): readonly RecentRequest[] {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The columns of that very query.
  return readState(folder, SQL, since) as RecentRequest[];
}

const CUT_SQL = `
SELECT count(*) AS cut FROM requests
WHERE id IN (SELECT value FROM json_each(?)) AND row ->> '$.end' = 'client-gone'`;

/**
 * Counts the requests with these ids whose connection to the client closed before the end of the answer; 0 if the log
 * cannot be read.
 */
export function countCut(folder: string, ids: readonly string[]): number {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The columns of that very query.
  const [found] = readState(folder, CUT_SQL, JSON.stringify(ids)) as { readonly cut: number }[];
  return found?.cut ?? 0;
}

/** Runs a query on `state.db`. Returns no rows if the file cannot be read, so that a command can report other facts. */
export function readState(folder: string, sql: string, ...values: (number | string)[]): unknown[] {
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

/** How long a status line waits for a lock. */
const LINE_BUSY_MS = 100;

// The index `requests_by_conversation` has exactly this expression; with another one SQLite would read every row. The
// conversation of a sub-agent is named by the session, a slash and a name; '0' is the character after the slash.
const CONVERSATION = `row ->> '$.conversation'`;
const SESSION_SQL = `
SELECT coalesce(row ->> '$.model', '') AS model, coalesce(row ->> '$.isLogin', 0) AS isLogin,
  count(DISTINCT CASE WHEN NOT coalesce(row ->> '$.recall.isBrief', 0)
    THEN row ->> '$.recall.exchange' END) AS prompts,
  coalesce(sum(row ->> '$.price.paid'), 0) AS paid,
  coalesce(sum(row ->> '$.price.direct'), 0) AS direct
FROM requests WHERE ${CONVERSATION} = ?1 OR (${CONVERSATION} > ?1 || '/' AND ${CONVERSATION} < ?1 || '0')
GROUP BY 1, 2`;

/**
 * Searches only the 300 newest readings of all sessions. Each session in use has nearly always one of these.
 */
const QUOTA_SQL = `
SELECT row FROM (SELECT n, row FROM quota ORDER BY n DESC LIMIT 300)
WHERE row ->> '$.conversation' = ? ORDER BY n DESC LIMIT 1`;

/** The facts about one session that a status line shows. */
interface SessionFacts {
  readonly sums: readonly SessionSum[];
  /** How much of the subscription plan is used, from the session's newest answer that stated it. */
  readonly quota: QuotaReading | undefined;
}

/**
 * Sums the request log of one session on the calling thread: a client draws its status line several times a second, so
 * starting a worker would cost too much. Undefined if there is no log yet. Throws errors of SQLite.
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
