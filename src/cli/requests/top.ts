import { cacheShare, short } from '../../core/meter/figures.ts';
import { namesOf } from '../memory/named.ts';
import { withStore } from '../store.ts';
import { groupBy } from '../../core/bytes/batches.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RequestRow } from '../../ports/request-log.ts';
import { limitOf, percent, urlOf } from '../listing.ts';
import type { CommandContext, Call } from '../context.ts';
import { OwnProxies } from '../proxy/own-proxies.ts';
import type { CliStore } from '../compose-store.ts';
import { clientText, type LineStyle, rowLine } from './request-lines.ts';
import { table } from '../text-table.ts';
import { oneLine } from '../terminal.ts';

/**
 * Runs `svc status --watch`: shows what the proxy is doing, and draws it again every --interval seconds until q or
 * Ctrl-C. With --json, or without a terminal, it prints that once.
 */

interface TopOptions {
  readonly json?: boolean;
  readonly interval?: string;
}

const HOUR_MS = 3600 * 1000;
/** Bound on requests that are read. One user rarely makes more in an hour. */
const ROWS_MAX = 1000;
const INTERVAL = { fallback: 1, max: 60, name: '--interval' };
/** The screen size if the terminal does not report one. */
const SIZE = { columns: 120, rows: 40 };

export async function top({ options, context }: Call<TopOptions>): Promise<void> {
  const { environment, terminal } = context;
  const seconds = limitOf(options.interval, INTERVAL);
  const proxies = await OwnProxies.of(environment);
  // Do not open the store as a reader. Without a store a reader gets a temporary one, and never sees the real one.
  const show = async (store: CliStore): Promise<void> => {
    const look = (): Promise<Activity> => activityNow(store, proxies);
    if (options.json === true) terminal.json(await look());
    else if (!terminal.isWatched) {
      for (const line of linesOf(await look(), context)) terminal.out(line);
    } else await watch(look, context, seconds);
  };
  await withStore(context, show, 'log');
}

async function activityNow({ requests }: CliStore, proxies: OwnProxies): Promise<Activity> {
  const [{ own }, newest] = await Promise.all([proxies.find(), requests.list({ limit: ROWS_MAX })]);
  const asked = await Promise.all(own.map((proxy) => proxies.openRequests(proxy)));
  const open = asked.flat();
  const since = Date.now() - HOUR_MS;
  const finished = newest.filter(({ at }) => at >= since);
  return activityOf({ proxies: own.map((proxy) => urlOf(proxy)), open, finished });
}

function linesOf(activity: Activity, context: CommandContext): readonly string[] {
  const { terminal } = context;
  const { open, conversations } = activity;
  const names = namesOf([...open, ...conversations], context);
  const named = <Row extends { readonly space: string }>(rows: readonly Row[]): Row[] =>
    rows.map((row) => ({ ...row, space: names.wordsOf(row.space) }));
  const shown = { ...activity, open: named(open), conversations: named(conversations) };
  const size = { columns: terminal.columns(SIZE.columns), rows: terminal.rows(SIZE.rows) };
  return activityLines(shown, { colors: terminal.colors, ...size, now: Date.now() });
}

async function watch(
  look: () => Promise<Activity>,
  context: CommandContext,
  seconds: number,
): Promise<void> {
  const { terminal } = context;
  const { stdin: keys } = process;
  const left = new AbortController();
  const leave = (): void => left.abort();
  // In raw mode the terminal sends Ctrl-C as a byte and not as a signal.
  const onKey = (bytes: Uint8Array | string): void => {
    const pressed = Buffer.from(bytes).toString('latin1');
    if (LEAVING.some((key) => pressed.includes(key))) leave();
  };
  for (const signal of SIGNALS) process.on(signal, leave);
  keys.on('data', onKey);
  if (keys.isTTY) keys.setRawMode(true);
  keys.resume();
  terminal.enterScreen();
  try {
    while (!left.signal.aborted) {
      // Read again only after the last read, so that slow reads do not pile up.
      const activity = await look();
      if (!left.signal.aborted) terminal.paint(linesOf(activity, context));
      // oxlint-disable-next-line no-await-in-loop -- This is the pause between two drawings.
      await sleep(seconds * 1000, undefined, { signal: left.signal }).catch(() => undefined);
    }
  } finally {
    terminal.leaveScreen();
    keys.off('data', onKey);
    if (keys.isTTY) keys.setRawMode(false);
    keys.pause();
    for (const signal of SIGNALS) process.off(signal, leave);
  }
}

const SIGNALS: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/** The keys that end the view: q, Ctrl-C and Ctrl-D. */
const LEAVING = ['q', 'Q', '\u0003', '\u0004'];

type Activity = ReturnType<typeof activityOf>;

interface Seen {
  /** The addresses of the running proxies, such as 'http://127.0.0.1:8765'. */
  readonly proxies: readonly string[];
  /** Requests that are being answered. */
  readonly open: readonly RequestRow[];
  /** Finished requests, newest first. */
  readonly finished: readonly RequestRow[];
}

/**
 * Sums up the requests of each conversation, and all finished ones. Of the open requests the oldest comes first; of the
 * conversations, the one with the newest request.
 */
export function activityOf({ proxies, open, finished }: Seen) {
  const groups = groupBy([...open, ...finished], ({ conversation, client, space }) => {
    return conversation || `${client} ${space}`;
  });
  const conversations = [...groups].map(([conversation, rows]) => summed(conversation, rows));
  return {
    proxies,
    open: open.toSorted((one, other) => one.at - other.at),
    conversations: conversations.toSorted((one, other) => other.at - one.at),
    total: sumOf(finished),
    latest: finished,
  };
}

/**
 * Sums up the finished requests of a conversation, and counts the open ones. `at`: the time of its newest request.
 * Input tokens are estimates; output tokens are those that the provider reported.
 */
function summed(conversation: string, rows: readonly RequestRow[]) {
  const finished = rows.filter(({ end }) => end !== 'open');
  const newest = rows.reduce((one, other) => (other.at > one.at ? other : one));
  // Side calls use smaller models, so show the model of the conversation's main requests.
  const main = rows.find(({ kind }) => kind === 'main') ?? newest;
  return {
    conversation,
    client: main.client,
    space: main.space,
    model: main.model,
    at: newest.at,
    openRequests: rows.length - finished.length,
    ...sumOf(finished),
  };
}

function sumOf(rows: readonly RequestRow[]) {
  const add = (valueOf: (row: RequestRow) => number): number =>
    rows.reduce((sum, row) => sum + valueOf(row), 0);
  const asked = rows.filter(({ memoryState }) => ['recalled', 'empty'].includes(memoryState));
  return {
    requests: rows.length,
    failed: rows.filter(({ status, end }) => status >= 400 || end !== 'complete').length,
    receivedTokens: add((row) => row.originalInputTokens),
    forwardedTokens: add((row) => row.forwardedInputTokens),
    recalledTokens: add((row) => row.recalledTokens),
    keptTokens: add((row) => row.elidedTokens),
    asked: asked.length,
    recalled: asked.filter(({ memoryState }) => memoryState === 'recalled').length,
    // Null if no provider has reported token counts.
    cacheRate: cacheShare(rows) ?? null,
    outputTokens: add(({ usage }) => usage?.output ?? 0),
  };
}

interface View extends LineStyle {
  readonly rows: number;
  /** Milliseconds since 1970. */
  readonly now: number;
}

/** Returns the lines for a screen of this size. The newest requests get the lines that the other parts leave. */
export function activityLines(activity: Activity, view: View): readonly string[] {
  const { colors, columns, rows } = view;
  const title = (text: string): string => colors.bold(oneLine(text, columns));
  const head = [title(proxiesText(activity)), oneLine(totalText(activity), columns), ''];
  const third = Math.max(2, Math.floor((rows - head.length) / 3));
  const open = activity.open.slice(0, third).map((row) => openLine(row, view));
  const sums = conversationLines(activity.conversations.slice(0, third), view);
  const middle = [
    title(`In flight: ${activity.open.length}`),
    ...open,
    '',
    title(`Conversations: ${activity.conversations.length}`),
    ...sums,
    '',
    title('Latest'),
  ];
  const left = Math.max(0, rows - head.length - middle.length);
  const latest = activity.latest.slice(0, left).map((row) => rowLine(row, view));
  return [...head, ...middle, ...latest].slice(0, rows);
}

function proxiesText({ proxies }: Activity): string {
  return proxies.length === 0
    ? 'svc is not running: svc start'
    : `svc on ${proxies.join(', ')}    q quits`;
}

function totalText({ total }: Activity): string {
  const parts = [
    `${total.requests} requests`,
    ...(total.failed === 0 ? [] : [`${total.failed} failed or stopped`]),
    `${short(total.receivedTokens)} tokens in`,
    `${short(total.forwardedTokens)} sent`,
    `${percent(total.cacheRate)} cached`,
    `recalled ${total.recalled} of ${total.asked}, ${short(total.recalledTokens)} tokens`,
    `${short(total.keptTokens)} kept out`,
  ];
  return `Last hour: ${parts.join(', ')}`;
}

function openLine(row: RequestRow, { columns, now, colors }: View): string {
  const seconds = Math.max(0, (now - row.at) / 1000).toFixed(0);
  const text = [
    `${seconds.padStart(4)} s`,
    row.status === 0 ? 'waits for the provider' : `answers ${row.status}`,
    clientText(row),
    row.model || '(no model)',
    `${short(row.forwardedInputTokens)} tokens`,
    ...(row.recalledTokens > 0 ? [`+${row.recalledTokens} recalled`] : []),
    row.space,
  ].join('  ');
  return colors.cyan(oneLine(text, columns));
}

function conversationLines(
  conversations: Activity['conversations'],
  { columns, colors, now }: View,
): readonly string[] {
  const rows = conversations.map((one) => [
    oneLine(tail(one.space, 28), 28) || '(none)',
    one.client,
    oneLine(one.model, 24),
    `${one.requests}${one.openRequests > 0 ? `+${one.openRequests}` : ''}`,
    short(one.receivedTokens),
    short(one.forwardedTokens),
    percent(one.cacheRate),
    `${one.recalled}/${one.asked}`,
    short(one.keptTokens),
    agoText(now - one.at),
  ]);
  const head = ['project', 'client', 'model', 'requests', 'in', 'sent', 'cached', 'recalled'];
  const all = [[...head, 'kept', 'last'], ...rows];
  const [first = '', ...rest] = table(all, { columns, left: [0, 1, 2] });
  return [colors.dim(first), ...rest];
}

/** Returns the end of a text, because the end of a path says more than its beginning. */
function tail(text: string, charsMax: number): string {
  return text.length <= charsMax ? text : `…${text.slice(-(charsMax - 1))}`;
}

function agoText(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  return seconds < 60 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
}
