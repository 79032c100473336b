import { spaceNames } from '../../adapters/projects/registry.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import { dataFolder } from '../../adapters/files/data-folder.ts';
import { askOpenRequests } from '../../adapters/processes/open-requests.ts';
import type { Access } from '../../core/settings/config-schema.ts';
import type { RequestRow } from '../../ports/request-log.ts';
import { urlOf } from '../addresses.ts';
import type { CommandContext } from '../context.ts';
import { limitOf } from '../listing.ts';
import { loadAccess } from '../setup/load-config.ts';
import { findProxies } from '../proxy/own-proxies.ts';
import type { CliStore, OpenStore } from '../compose-store.ts';
import { type Activity, activityLines, activityOf } from './top-view.ts';

/** `svc status --watch`: what the proxy does now, drawn again every second until q or Ctrl-C. */

export interface TopOptions {
  readonly json?: boolean;
  readonly interval?: string;
}

/** The keyboard; process.stdin is one. */
export interface Keys {
  readonly isTTY?: boolean;
  setRawMode?(isRaw: boolean): unknown;
  on(event: 'data', listener: (bytes: Uint8Array | string) => void): unknown;
  off(event: 'data', listener: (bytes: Uint8Array | string) => void): unknown;
  resume(): unknown;
  pause(): unknown;
}

export interface TopParts {
  readonly openStore: OpenStore;
  /** Asked for only when the view is live: a command that prints once does not touch stdin. */
  readonly keys: () => Keys;
}

const HOUR_MS = 3600 * 1000;
/** Most that the view sums: more than a busy hour of one person has. */
const ROWS_MAX = 1000;
const INTERVAL = { fallback: 1, max: 60, name: '--interval' };
/** The size where the terminal does not report one. */
const SIZE = { columns: 120, rows: 40 };

export async function top(
  options: TopOptions,
  context: CommandContext,
  { openStore, keys }: TopParts,
): Promise<void> {
  const { environment, terminal } = context;
  const seconds = limitOf(options.interval, INTERVAL);
  const access = await loadAccess(environment);
  const folder = dataFolder(environment);
  const store = await openStore(folder, { report: (line) => terminal.warn(line) });
  try {
    const look = (): Promise<Activity> => activityNow(store, folder, access);
    if (options.json === true) terminal.json(await look());
    else if (!terminal.isWatched) {
      for (const line of linesOf(await look(), context)) terminal.out(line);
    } else await watch(look, context, { keys: keys(), seconds });
  } finally {
    await store.close();
  }
}

async function activityNow(store: CliStore, folder: string, access: Access): Promise<Activity> {
  const [{ own }, newest] = await Promise.all([
    findProxies(folder, access),
    store.requests.list({ limit: ROWS_MAX }),
  ]);
  const asked = own.map((proxy) => askOpenRequests(proxy, access.localToken));
  const open: RequestRow[] = (await Promise.all(asked)).flat();
  const since = Date.now() - HOUR_MS;
  const finished = newest.filter(({ at }) => at >= since);
  return activityOf({ proxies: own.map((proxy) => urlOf(proxy)), open, finished });
}

function linesOf(activity: Activity, { terminal, environment }: CommandContext): readonly string[] {
  const { open, conversations } = activity;
  const spaces = [...open, ...conversations].map(({ space }) => space);
  const names = spaceNames(dataFolder(environment), spaces);
  const named = <Row extends { readonly space: string }>(rows: readonly Row[]): readonly Row[] =>
    rows.map((row) => ({ ...row, space: names.of(row.space) }));
  const shown = { ...activity, open: named(open), conversations: named(conversations) };
  const size = { columns: terminal.columns(SIZE.columns), rows: terminal.rows(SIZE.rows) };
  return activityLines(shown, { colors: terminal.colors, ...size, now: Date.now() });
}

interface Watch {
  readonly keys: Keys;
  readonly seconds: number;
}

async function watch(
  look: () => Promise<Activity>,
  context: CommandContext,
  { keys, seconds }: Watch,
): Promise<void> {
  const { terminal } = context;
  const left = new AbortController();
  const leave = (): void => left.abort();
  // In raw mode Ctrl-C is a byte like any other.
  const onKey = (bytes: Uint8Array | string): void => {
    const pressed = Buffer.from(bytes).toString('latin1');
    if (LEAVING.some((key) => pressed.includes(key))) leave();
  };
  for (const signal of SIGNALS) process.on(signal, leave);
  keys.on('data', onKey);
  keys.setRawMode?.(true);
  keys.resume();
  terminal.enterScreen();
  try {
    while (!left.signal.aborted) {
      // One look after the other: a slow one delays the next.
      // oxlint-disable-next-line no-await-in-loop
      const activity = await look();
      if (!left.signal.aborted) terminal.paint(linesOf(activity, context));
      // oxlint-disable-next-line no-await-in-loop
      await sleep(seconds * 1000, undefined, { signal: left.signal }).catch(() => undefined);
    }
  } finally {
    // However it ended, the person gets the screen, the cursor and the keys back.
    terminal.leaveScreen();
    keys.off('data', onKey);
    keys.setRawMode?.(false);
    keys.pause();
    for (const signal of SIGNALS) process.off(signal, leave);
  }
}

const SIGNALS: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/** The letter, Ctrl-C and Ctrl-D. */
const LEAVING = ['q', 'Q', '\u0003', '\u0004'];
