import { loadDriver } from '../store/driver.ts';
import { STORE_TARGET } from './outbox.ts';
import { StateFile } from './state-file.ts';

/** The captures in a data folder's outbox that one kind of memory has not confirmed yet. */
export interface WaitingCaptures {
  readonly target: 'store' | 'service';
  readonly records: number;
  /** The bytes of their texts. */
  readonly bytes: number;
  /** The time of the oldest capture, in milliseconds since 1970. */
  readonly since: number;
}

interface WaitingRow extends Omit<WaitingCaptures, 'target'> {
  readonly name: string;
}

/** How long to wait for a lock, which a proxy holds for less than a millisecond. */
const BUSY_MS = 500;
const CACHE_KIB = 64;

const SQL = `SELECT target AS name, count(*) AS records, min(record ->> '$.at') AS since,
    sum(octet_length(record ->> '$.text')) AS bytes
  FROM outbox GROUP BY target ORDER BY target`;

/** Returns one entry for each outbox with waiting captures; none if the file cannot be read. */
export function findWaiting(folder: string): readonly WaitingCaptures[] {
  const file = new StateFile({
    folder,
    driver: loadDriver,
    busyMs: BUSY_MS,
    cacheKib: CACHE_KIB,
    creates: false,
    report: () => undefined,
  });
  if (!file.isThere) return [];
  try {
    return file
      .use((rows) => rows.all<WaitingRow>(SQL))
      .map(({ name, ...sums }) => ({
        target: name === STORE_TARGET ? ('store' as const) : ('service' as const),
        ...sums,
      }));
  } catch {
    return [];
  } finally {
    file.close();
  }
}
