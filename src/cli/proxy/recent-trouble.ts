import { statfsSync } from 'node:fs';
import { type RecentRequest, recentRequests } from '../../adapters/state/recent-requests.ts';
import { count, timeText } from '../listing.ts';
import { oneLine, type Terminal } from '../terminal.ts';

/** Finds bad news in the request log: a person must know it before the next session. */

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
/** Names of conversations take a line each. */
const NAMED_MAX = 5;
/** SQLite needs room for its log before it stores anything; svc stores nothing on a full disk. */
const FREE_BYTES_MIN = 32 << 20;

/** Ends of requests that never reached the provider. */
const UNREACHED = new Set(['UPSTREAM_UNREACHABLE', 'UPSTREAM_TIMEOUT', 'UPSTREAM_ADDRESS_REFUSED']);

/** Lines for `svc status`: the newest requests failed, or memory did. */
export function recentTrouble(folder: string, now: number): readonly string[] {
  const rows = recentRequests(folder, now - HOUR_MS);
  return [
    ...runOf(rows, ({ end }) => UNREACHED.has(end)).map(
      ({ last, number }) =>
        `The last ${requests(number)} did not reach the provider (${last.end}, ${timeText(last.at)}). Check: svc doctor`,
    ),
    ...runOf(rows, ({ memoryState }) => memoryState.startsWith('degraded_')).map(
      ({ last, number }) =>
        `Memory could not help in the last ${requests(number)} (${last.memoryState}, ${timeText(last.at)}). Check: svc doctor`,
    ),
    ...fullDisk(folder),
  ];
}

function requests(number: number): string {
  return number === 1 ? 'request' : `${number} requests`;
}

/** The newest rows that all are of this kind; none where the newest is not. */
function runOf(
  rows: readonly RecentRequest[],
  isMeant: (row: RecentRequest) => boolean,
): readonly { readonly last: RecentRequest; readonly number: number }[] {
  const end = rows.findIndex((row) => !isMeant(row));
  const [last] = rows;
  return last === undefined || end === 0 ? [] : [{ last, number: end === -1 ? rows.length : end }];
}

function fullDisk(folder: string): readonly string[] {
  try {
    const { bavail, bsize } = statfsSync(folder);
    const free = bavail * bsize;
    if (free >= FREE_BYTES_MIN) return [];
    return [
      `The disk of ${folder} has ${Math.floor(free / 1_000_000)} MB left, and svc stores nothing when it is full. Free some space.`,
    ];
  } catch {
    return [];
  }
}

/**
 * Names the conversations of the last day that cannot continue without svc: the model's thinking in them is
 * bound to a block that svc placed. True where there are any.
 */
export function nameBound(folder: string, now: number, terminal: Terminal): boolean {
  const bound = boundConversations(recentRequests(folder, now - DAY_MS));
  const [first] = bound;
  if (first === undefined) return false;
  terminal.warn(
    `${count(bound.length, 'conversation')} of the last day cannot continue without svc: the model's thinking in ` +
      'them is bound to memories that svc added. Claude Code repairs itself once, without that thinking; another client gets an error.',
  );
  for (const { at, client, space, conversation } of bound.slice(0, NAMED_MAX)) {
    terminal.note(`  ${timeText(at)}  ${oneLine(`${client}  ${space}  ${conversation}`, 120)}`);
  }
  if (bound.length > NAMED_MAX) terminal.note(`  … and ${bound.length - NAMED_MAX} more`);
  terminal.note('  To leave svc, finish or compact them first, or begin new sessions.');
  return true;
}

/** The newest request of each. After a compaction nothing is bound any more. */
function boundConversations(rows: readonly RecentRequest[]): readonly RecentRequest[] {
  const newest = new Map<string, RecentRequest>();
  for (const row of rows) if (!newest.has(row.conversation)) newest.set(row.conversation, row);
  return [...newest.values()].filter(({ isBound, hasBlock }) => isBound === 1 && hasBlock === 1);
}
