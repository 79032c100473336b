import { spaceNames } from '../../adapters/projects/registry.ts';
import { statfsSync } from 'node:fs';
import { groupBy } from '../../core/bytes/batches.ts';
import { type RecentRequest, recentRequests } from '../../adapters/state/recent-requests.ts';
import type { Ledger } from '../../ports/ledger.ts';
import type { RequestLog, RequestRow } from '../../ports/request-log.ts';
import { count, timeText } from '../listing.ts';
import { oneLine, type Terminal } from '../terminal.ts';
import { blockedFiles } from '../../adapters/files/database-file.ts';
import { replacedAt } from '../../adapters/files/marks.ts';
import type { Settings } from '../../core/settings/settings.ts';

/**
 * Finds what a user should know before the next session: failures of recent requests, a disk that is nearly full, files
 * that svc cannot use or that were replaced, conversations that cannot continue without svc, and refused keys.
 */

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
/** Bound on the conversations that are listed, one on each line. */
const NAMED_MAX = 5;
/** Free space on the disk below which svc warns, in bytes. SQLite needs some for its log before it stores anything. */
const FREE_BYTES_MIN = 32 << 20;

/** The error codes of requests that did not reach the provider. */
const UNREACHED = new Set(['UPSTREAM_UNREACHABLE', 'UPSTREAM_TIMEOUT', 'UPSTREAM_ADDRESS_REFUSED']);

/**
 * Returns warnings for `svc status` if the newest requests of the last hour did not reach the provider or had no
 * memory, or if the disk or something at a file's path may keep svc from storing.
 */
export function recentTrouble(folder: string, now: number): readonly string[] {
  const rows = recentRequests(folder, now - HOUR_MS);
  return [
    ...runOf(rows, ({ end }) => UNREACHED.has(end)).map(
      ({ last, number }) =>
        `The last ${requestsOf(number)} did not reach the provider (${last.end}, ${timeText(last.at)}). Check: svc doctor`,
    ),
    ...memoryTrouble(rows).map(({ found }) => `${found}. Check: svc doctor`),
    ...blockedFiles(folder).map(blockedText),
    ...fullDisk(folder),
  ];
}

/** Returns a warning about something at the path of a database that is no plain file. */
export function blockedText(path: string): string {
  return `${path} is a folder, a link or a device. svc uses only a plain file, so it stores nothing. Move it away, then restart svc`;
}

export interface Trouble {
  readonly found: string;
  readonly fix: string;
}

/** Returns a problem if the newest requests got no memory because it failed or was late. */
function memoryTrouble(rows: readonly RecentRequest[]): readonly Trouble[] {
  return runOf(rows, ({ memoryState }) => memoryState.startsWith('degraded_')).map(
    ({ last, number }) => {
      const requests = `the last ${requestsOf(number)} (${last.memoryState}, ${timeText(last.at)})`;
      return last.memoryState === 'degraded_timeout'
        ? {
            found: `Memory was too late for ${requests}`,
            fix: 'A busy machine does that now and then. If it lasts, give memory more time: set "recallMs" under "proxy" in the configuration.',
          }
        : {
            found: `Memory could not help in ${requests}`,
            fix: 'See what each state means: svc help states',
          };
    },
  );
}

/**
 * Returns problems of the memory in the last hour, for `svc doctor`, most of whose other checks see only the present.
 */
export function recentMemoryTrouble(folder: string, now: number): readonly Trouble[] {
  return memoryTrouble(recentRequests(folder, now - HOUR_MS));
}

function requestsOf(number: number): string {
  return number === 1 ? 'request' : `${number} requests`;
}

/**
 * Counts the rows at the beginning of `rows`, which are the newest, up to the first for which `isMeant` is false.
 * Returns the newest row and that number; an empty list if the number is 0.
 */
function runOf(
  rows: readonly RecentRequest[],
  isMeant: (row: RecentRequest) => boolean,
): readonly { readonly last: RecentRequest; readonly number: number }[] {
  const end = rows.findIndex((row) => !isMeant(row));
  const [last] = rows;
  return last === undefined || end === 0 ? [] : [{ last, number: end === -1 ? rows.length : end }];
}

/** Returns a warning if the disk is nearly full. On a full disk a running svc keeps captures in RAM, up to a bound. */
export function fullDisk(folder: string): readonly string[] {
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

/** Lists the conversations of the last day that cannot continue without svc: their thinking is bound to its blocks. */
export function nameBound(folder: string, now: number, terminal: Terminal): void {
  const bound = boundConversations(folder, now);
  if (bound.length === 0) return;
  terminal.warn(
    `${count(bound.length, 'conversation')} of the last day cannot continue without svc: the model's thinking in ` +
      'them is bound to memories that svc added. Claude Code repairs itself once, without that thinking; another client gets an error.',
  );
  nameAll(bound, folder, terminal);
  terminal.note('  To leave svc, finish or compact them first, or begin new sessions.');
}

/**
 * Lists the conversations whose thinking is bound to svc's blocks, when the mode `shadow` begins: it forwards them
 * without these blocks.
 */
export function nameBoundInShadow(folder: string, now: number, terminal: Terminal): void {
  const bound = boundConversations(folder, now);
  if (bound.length === 0) return;
  terminal.warn(
    `The mode shadow sends ${count(bound.length, 'running conversation')} without the memories in them, so the model's ` +
      'thinking behind these memories is lost.',
  );
  nameAll(bound, folder, terminal);
}

/** Returns the newest request of each conversation whose thinking is bound to a block. A compaction ends that bond. */
function boundConversations(folder: string, now: number): readonly RecentRequest[] {
  const newest = newestOfEach(recentRequests(folder, now - DAY_MS));
  return newest.filter(({ isBound, hasBlock }) => isBound === 1 && hasBlock === 1);
}

/** Lists the conversations of the last day whose thinking is lost, because it was bound to a forgotten memory. */
export async function nameForgotten(
  { requests, ledger }: { readonly requests: RequestLog; readonly ledger: Ledger },
  folder: string,
  terminal: Terminal,
): Promise<void> {
  // Load this code only here, because nothing else in this file needs it.
  const { carriedBlocks } = await import('../../local/ui/request-page.ts');
  const now = Date.now();
  const rows = await requests.list({ limit: ROWS_MAX, since: now - DAY_MS });
  const lost: RequestRow[] = [];
  for (const row of newestOfEach(rows).filter(({ isBound }) => isBound === true)) {
    // oxlint-disable-next-line no-await-in-loop -- A handful of conversations.
    const blocks = await carriedBlocks(ledger, row);
    if (blocks.some(({ block }) => block === '')) lost.push(row);
  }
  if (lost.length === 0) return;
  terminal.warn(
    `${count(lost.length, 'running conversation')} held what was forgotten. The model's thinking behind it is lost.`,
  );
  nameAll(lost, folder, terminal);
}

/** Bound on the requests that are read, the newest first. Few users make more in a day. */
const ROWS_MAX = 2_000;

/** Returns the newest request of each conversation. `rows`: newest first. */
function newestOfEach<Row extends Pick<RequestRow, 'conversation'>>(
  rows: readonly Row[],
): readonly Row[] {
  const conversations = groupBy(rows, ({ conversation }) => conversation);
  return [...conversations.values()].flatMap((group) => group.slice(0, 1));
}

function nameAll(
  conversations: readonly Pick<RequestRow, 'at' | 'client' | 'space' | 'conversation'>[],
  folder: string,
  terminal: Terminal,
): void {
  const spaces = conversations.map(({ space }) => space);
  const names = spaceNames(folder, spaces);
  for (const { at, client, space, conversation } of conversations.slice(0, NAMED_MAX)) {
    terminal.note(
      `  ${timeText(at)}  ${oneLine(`${client}  ${names.of(space)}  ${conversation}`, 120)}`,
    );
  }
  const more = conversations.length - NAMED_MAX;
  if (more > 0) terminal.note(`  … and ${more} more`);
}

/** Age up to which svc reports a replaced database, in milliseconds. After a week the user knows, or misses nothing. */
const TOLD_MS = 7 * 24 * 3600 * 1000;

/** Returns a warning if the database was replaced in the last week while svc ran. */
export function replacedText(dataFolder: string, now: number): string | undefined {
  const at = replacedAt(dataFolder);
  if (at === 0 || now - at > TOLD_MS) return undefined;
  return `The memory's file was deleted or replaced while svc ran (${timeText(at)}): it does not contain the earlier memories.`;
}

/**
 * Remembers which providers refuse svc's key. A client shows only the status 401, so its user would log in again in
 * vain. svc names the command that helps: on its terminal, in its log and in `svc status`.
 */
export class RefusedKeys {
  #settings: Settings;
  readonly #names = new Set<string>();

  constructor(settings: Settings) {
    this.#settings = settings;
  }

  /** Takes a changed configuration, and forgets the refusals, because it may have other keys. */
  use(settings: Settings): void {
    this.#settings = settings;
    this.#names.clear();
  }

  get names(): readonly string[] {
    return [...this.#names];
  }

  /** Takes the status of a request. Returns true if `names` has changed. */
  note({ status, dialect }: Pick<RequestRow, 'status' | 'dialect'>): boolean {
    const upstream = this.#settings.upstreams.find(({ apiStyle }) => apiStyle === dialect);
    if (upstream === undefined || upstream.auth === 'client' || upstream.auth === 'none') {
      return false;
    }
    const { name } = upstream;
    if (status === UNAUTHORIZED && !this.#names.has(name)) {
      this.#names.add(name);
      return true;
    }
    return status < FIRST_ERROR && this.#names.delete(name);
  }
}

const UNAUTHORIZED = 401;
const FIRST_ERROR = 400;

export function refusedKeyText(name: string): string {
  return `${name} refuses the key that svc has for it (401). Set a valid key: svc setup --yes --upstream ${name} --key-stdin`;
}
