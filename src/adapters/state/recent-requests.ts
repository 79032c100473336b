import { existsSync } from 'node:fs';
import { type Connection, loadDriver } from '../store/driver.ts';
import { stateFile } from '../files/database-file.ts';

/**
 * The newest rows of the request log, read in this very thread: `svc status` and `svc stop` look at them
 * beside a proxy that writes. This reads and never writes, and makes no file.
 */
export interface RecentRequest {
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly client: string;
  readonly space: string;
  readonly conversation: string;
  readonly end: string;
  readonly memoryState: string;
  /** 1 where its conversation holds thinking that is bound to what was sent before. */
  readonly isBound: number;
  /** 1 where it carried a block. */
  readonly hasBlock: number;
}

/** A writer holds the file for some milliseconds. */
const BUSY_MS = 500;
/** More than a day of one person; each row is read from JSON, 10 us a row. */
const ROWS_MAX = 20_000;

const SQL = `
SELECT at, coalesce(row ->> '$.client', '') AS client, coalesce(row ->> '$.space', '') AS space,
  coalesce(row ->> '$.conversation', '') AS conversation, coalesce(row ->> '$.end', '') AS end,
  coalesce(row ->> '$.memoryState', '') AS memoryState, coalesce(row ->> '$.isBound', 0) AS isBound,
  coalesce(instr(row ->> '$.items', '"edit":"block"') > 0, 0) AS hasBlock
FROM requests WHERE at >= ? AND row ->> '$.kind' = 'main' ORDER BY at DESC LIMIT ${ROWS_MAX}`;

/** Newest first; none where there is no log, or none that can be read: a command says more than nothing then. */
export function recentRequests(folder: string, since: number): readonly RecentRequest[] {
  const file = stateFile(folder);
  if (!existsSync(file)) return [];
  let connection: Connection | undefined;
  try {
    connection = loadDriver().open(file);
    connection.exec(`PRAGMA busy_timeout = ${BUSY_MS}; PRAGMA query_only = ON`);
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The columns of that very query.
    return connection.prepare(SQL).all(since) as RecentRequest[];
  } catch {
    return [];
  } finally {
    connection?.close();
  }
}
