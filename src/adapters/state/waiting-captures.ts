import { STORE_TARGET } from './outbox.ts';
import { readState } from './recent-requests.ts';

/** The captures that wait in one outbox of a data folder. Each memory service has an outbox of its own. */
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

const SQL = `SELECT target AS name, count(*) AS records, min(record ->> '$.at') AS since,
    sum(octet_length(record ->> '$.text')) AS bytes
  FROM outbox GROUP BY target ORDER BY target`;

/** Returns one entry for each outbox with waiting captures; none if the file cannot be read. */
export function findWaiting(folder: string): readonly WaitingCaptures[] {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The columns of that very query.
  const rows = readState(folder, SQL) as WaitingRow[];
  return rows.map(({ name, ...sums }) => ({
    target: name === STORE_TARGET ? ('store' as const) : ('service' as const),
    ...sums,
  }));
}
