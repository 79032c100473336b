import { createHmac } from 'node:crypto';
import { groupBy } from '../bytes/batches.ts';
import { asRecord, asText, type Fields } from '../bytes/json-fields.ts';
import type { Answer } from '../dialects/dialect-answer.ts';
import type { PlanLimit } from './quota-words.ts';
import { headerOf, type RawHeaders } from '../http/header-rules.ts';

/**
 * Reads how much of a subscription's plan is used, from what the provider states: headers for Claude and Codex, and
 * Codex's event `codex.rate_limits`. Every value is optional and none is trusted: anything but a plain number in its
 * range counts as absent. A window with an unknown name is read like the others. Sources (2026-11): a protocol
 * reference of Claude Code, and the source of Codex.
 */
export interface QuotaReading {
  readonly provider: 'claude' | 'codex';
  readonly windows: readonly QuotaWindow[];
  /** The window by which the provider decided about this request. */
  readonly deciding?: string;
  /** The decision as the provider states it: allowed, allowed_warning, rejected. */
  readonly status?: string;
}

export interface QuotaWindow {
  /** The name of the window: `5h`, `7d`, `7d_oi`, or as the provider names it. */
  readonly name: string;
  /** The used share, from 0 to 1; a provider may state more, which counts as full. */
  readonly share: number;
  /** Milliseconds since 1970. */
  readonly resetAt?: number;
  readonly isRejected?: true;
}

/**
 * Bounds on the windows (Claude states two or three, Codex two per limit), on the characters of a value, and on the
 * headers that are read.
 */
const WINDOWS_MAX = 12;
const VALUE_CHARS_MAX = 64;
const HEADERS_MAX = 200;
const CLAUDE = /^anthropic-ratelimit-unified-([a-z0-9_]{1,24})-(utilization|reset|status)$/;
const CLAUDE_WINDOW = /^\d{1,3}[a-z]{1,3}(?:_[a-z0-9_]{1,16})?$/;
const CODEX = /^x-([a-z0-9-]{1,40})-(primary|secondary)-(used-percent|window-minutes|reset-at)$/;
/** The windows by their names in `representative-claim`, with the names that Claude's other headers have for them. */
const CLAIMS: Readonly<Record<string, string>> = {
  five_hour: '5h',
  seven_day: '7d',
  seven_day_overage_included: '7d_oi',
};
const UNIFIED = 'anthropic-ratelimit-unified-';

/** Reads the headers of an answer. Undefined if they state no window. `now`: milliseconds since 1970. */
export function readQuota(headers: RawHeaders, now: number): QuotaReading | undefined {
  const claude = new WindowSet(now);
  const codex = new WindowSet(now);
  const end = Math.min(headers.length, 2 * HEADERS_MAX);
  for (let at = 0; at + 1 < end; at += 2) {
    const [name = '', value = ''] = [headers[at]?.toLowerCase(), headers[at + 1]];
    if (value.length > VALUE_CHARS_MAX) continue;
    const [, window = '', fact = ''] = CLAUDE.exec(name) ?? [];
    if (CLAUDE_WINDOW.test(window)) claude.note(window, fact, value);
    const [, limit = '', place = '', part = ''] = CODEX.exec(name) ?? [];
    if (place !== '') codex.note(`${limit} ${place}`, part, value);
  }
  const ofClaude = claude.windows();
  if (ofClaude.length > 0) {
    const claim = wordOf(headerOf(headers, `${UNIFIED}representative-claim`));
    const status = wordOf(headerOf(headers, `${UNIFIED}status`));
    return {
      provider: 'claude',
      windows: ofClaude,
      ...(claim === undefined
        ? {}
        : { deciding: CLAIMS[claim] ?? claim.replace(/^seven_day_/, '7d_') }),
      ...(status === undefined ? {} : { status }),
    };
  }
  const windows = codex.windows();
  return windows.length === 0 ? undefined : { provider: 'codex', windows };
}

/** Reads the used part of the plan from an event of a stream. */
export function quotaInEvent(event: Fields, now: number): QuotaReading | undefined {
  if (event['type'] !== 'codex.rate_limits') return undefined;
  const set = new WindowSet(now);
  const limit = wordOf(asText(event['metered_limit_name'])) ?? 'codex';
  const limits = asRecord(event['rate_limits']);
  for (const place of ['primary', 'secondary']) {
    const { used_percent, window_minutes, reset_at } = asRecord(limits[place]);
    const name = `${limit} ${place}`;
    set.note(name, 'used-percent', numberText(used_percent));
    set.note(name, 'window-minutes', numberText(window_minutes));
    set.note(name, 'reset-at', numberText(reset_at));
  }
  const windows = set.windows();
  return windows.length === 0 ? undefined : { provider: 'codex', windows };
}

function numberText(value: unknown): string {
  return typeof value === 'number' ? String(value) : '';
}

function wordOf(value: string | undefined): string | undefined {
  return value !== undefined && /^[a-z0-9_-]{1,40}$/i.test(value) ? value.toLowerCase() : undefined;
}

interface Stated {
  share?: number;
  resetAt?: number;
  minutes?: number;
  isRejected?: boolean;
}

/** Latest plausible reset: a plan's longest window is a month. */
const RESET_MAX_MS = 40 * 24 * 3_600_000;

class WindowSet {
  readonly #now: number;
  readonly #stated = new Map<string, Stated>();

  constructor(now: number) {
    this.#now = now;
  }

  note(window: string, fact: string, value: string): void {
    const stated = this.#stated.get(window) ?? {};
    if (this.#stated.size >= WINDOWS_MAX && !this.#stated.has(window)) return;
    this.#stated.set(window, stated);
    const number = plainNumber(value);
    if (fact === 'status') stated.isRejected = value === 'rejected';
    else if (number === undefined) return;
    else if (fact === 'utilization') stated.share = Math.min(1, number);
    else if (fact === 'used-percent') stated.share = Math.min(1, number / 100);
    else if (fact === 'window-minutes') stated.minutes = number;
    else if (Math.abs(number * 1000 - this.#now) <= RESET_MAX_MS) stated.resetAt = number * 1000;
  }

  windows(): QuotaWindow[] {
    const windows: QuotaWindow[] = [];
    for (const [window, { share, resetAt, minutes, isRejected = false }] of this.#stated) {
      if (share === undefined && !isRejected) continue;
      // For a window that the plan does not have, Codex states 0 percent and nothing else.
      if (share === 0 && resetAt === undefined && minutes === undefined && window.includes(' '))
        continue;
      windows.push({
        name: windowName(window, minutes),
        share: share ?? 1,
        ...(resetAt === undefined ? {} : { resetAt }),
        ...(isRejected ? { isRejected } : {}),
      });
    }
    return windows;
  }
}

/** Reads a number from a header. A number with a sign or an exponent counts as absent. */
function plainNumber(value: string): number | undefined {
  return /^\d{1,12}(?:\.\d{1,24})?$/.test(value) ? Number(value) : undefined;
}

/** Names a window of Codex by its length, because Codex's own names are not reliable. */
function windowName(window: string, minutes: number | undefined): string {
  const [limit = '', place] = window.split(' ');
  if (place === undefined) return window;
  const model = limit === 'codex' ? '' : ` ${limit.replace(/^codex-/, '')}`;
  if (minutes === undefined || minutes === 0) return `${place}${model}`;
  const hours = Math.round(minutes / 60);
  return `${hours >= 48 ? `${Math.round(hours / 24)}d` : `${Math.max(1, hours)}h`}${model}`;
}

export function planLimitOf(
  status: number,
  reading: QuotaReading | undefined,
): PlanLimit | undefined {
  if (status !== 429 || reading === undefined) return undefined;
  const { windows, deciding } = reading;
  const full =
    windows.find(({ isRejected, name }) => isRejected === true && name === deciding) ??
    windows.find(({ isRejected }) => isRejected === true) ??
    windows.find(({ share }) => share >= 1);
  if (full === undefined) return undefined;
  const { name, resetAt } = full;
  return { window: name, ...(resetAt === undefined ? {} : { resetAt }) };
}

/** Returns the id of the account in the headers, which is no credential; '' if they state none. */
function accountIn(asked: RawHeaders, answered: RawHeaders): string {
  const account =
    headerOf(answered, 'anthropic-organization-id') ??
    headerOf(asked, 'chatgpt-account-id') ??
    headerOf(answered, 'openai-organization') ??
    '';
  return account.slice(0, 200);
}

interface AnsweredFacts {
  readonly request: { readonly headers: RawHeaders };
  readonly head: { readonly headers: RawHeaders } | undefined;
  readonly answer: Pick<Answer, 'limits'> | undefined;
  readonly row: Pick<QuotaRow, 'at' | 'client' | 'space' | 'conversation' | 'model'>;
}

/**
 * Makes the row of a reading; undefined if the answer states nothing about a plan. `keyOf`: returns a secret of this
 * machine that outlives the local token, with which the account is hashed. Without a secret the account stays unknown.
 */
export function quotaRowOf(
  facts: AnsweredFacts,
  keyOf: () => string | undefined,
): QuotaRow | undefined {
  const { request, head, answer, row } = facts;
  const answered = head?.headers ?? [];
  const { at, client, space, conversation, model } = row;
  const reading = quotaInEvent(answer?.limits ?? {}, at) ?? readQuota(answered, at);
  if (reading === undefined) return undefined;
  const account = accountIn(request.headers, answered);
  const key = account === '' ? undefined : keyOf();
  const login =
    key === undefined
      ? ''
      : createHmac('sha256', key)
          .update(`quota:${reading.provider}:${account}`)
          .digest('base64url')
          .slice(0, LOGIN_CHARS);
  return { at, login, reading, client, space, conversation, model };
}

/** Characters of the hash in `login`: enough to distinguish the logins of one user. */
const LOGIN_CHARS = 12;

/** A reading, with facts about the request whose answer stated it. */
export interface QuotaRow {
  /** Milliseconds since 1970. */
  readonly at: number;
  /** A keyed hash of the account; '' if unknown. */
  readonly login: string;
  readonly reading: QuotaReading;
  readonly client: string;
  readonly space: string;
  readonly conversation: string;
  readonly model: string;
}

export interface QuotaReport {
  readonly login: string;
  readonly provider: QuotaReading['provider'];
  /** When the newest reading was made, in milliseconds since 1970. */
  readonly at: number;
  readonly deciding: string | undefined;
  readonly windows: readonly WindowReport[];
}

export interface WindowReport extends QuotaWindow {
  /** True if the window has been reset since, so that its present use is unknown. */
  readonly isOver: boolean;
  /**
   * When the window will be full at the pace of the last hour; if it is full already, the time of the newest
   * reading. Undefined if unknown or past; Infinity if the reset comes first.
   */
  readonly fullAt: number | undefined;
  /** True if the newest readings no longer state the window. */
  readonly isGone: boolean;
  readonly movers: Readonly<Record<MoverKind, readonly Mover[]>>;
}

export const MOVER_KINDS = ['space', 'client', 'model', 'conversation'] as const;
export type MoverKind = (typeof MOVER_KINDS)[number];

/**
 * How much of a window one project, client, model or conversation used, as a share. `low`: the rises between two of its
 * own requests. `high`: also the rises between one of its own requests and a request of another.
 */
export interface Mover {
  readonly name: string;
  readonly low: number;
  readonly high: number;
  readonly requests: number;
}

const HOUR_MS = 3_600_000;
/** Least time and least change from which a pace is computed, because the provider rounds shares. */
const PACE_SPAN_MS = 10 * 60_000;
const PACE_SHARE = 0.01;
/** A new window has begun if the share falls by more than SINK, or the reset is more than RESET_SLACK_MS later. */
const SINK = 0.02;
const RESET_SLACK_MS = 10 * 60_000;
const MOVERS_MAX = 8;
/** A window that is missing in so many newest readings counts as gone. */
const GONE_READINGS = 3;

/** Returns one report per provider and login, newest first. `rows`: in the order in which they were written. */
export function reportQuota(rows: readonly QuotaRow[], now: number): readonly QuotaReport[] {
  const series = groupBy(rows, ({ reading, login }) => `${reading.provider} ${login}`);
  const reports = [...series.values()].flatMap((own) => {
    const newest = own.at(-1);
    if (newest === undefined) return [];
    const { at, login, reading } = newest;
    const latest = own.slice(-GONE_READINGS).flatMap((row) => row.reading.windows);
    const names = new Set(own.flatMap((row) => row.reading.windows.map(({ name }) => name)));
    const windows = [...names].map((name) => {
      const isGone = !latest.some((window) => window.name === name);
      return reportWindow(own, name, { now, isGone });
    });
    return [{ login, provider: reading.provider, at, deciding: reading.deciding, windows }];
  });
  return reports.toSorted((one, other) => other.at - one.at);
}

interface Point {
  readonly row: QuotaRow;
  readonly window: QuotaWindow;
}

function reportWindow(
  rows: readonly QuotaRow[],
  name: string,
  { now, isGone }: { readonly now: number; readonly isGone: boolean },
): WindowReport {
  const points: Point[] = [];
  for (const row of rows) {
    const window = row.reading.windows.find((one) => one.name === name);
    if (window === undefined) continue;
    const before = points.at(-1);
    // Answers may arrive out of order, so a small step back is no new window.
    if (before !== undefined && hasReset(before.window, window)) points.length = 0;
    points.push({ row, window });
  }
  const newest = points.at(-1)?.window ?? { name, share: 0 };
  const isOver = newest.resetAt !== undefined && newest.resetAt <= now;
  return {
    ...newest,
    isOver,
    isGone,
    fullAt: isOver ? undefined : fullAt(points, now),
    movers: moversOf(points),
  };
}

function hasReset(before: QuotaWindow, after: QuotaWindow): boolean {
  const [one, other] = [before.resetAt, after.resetAt];
  const isLater = one !== undefined && other !== undefined && other - one > RESET_SLACK_MS;
  return isLater || after.share < before.share - SINK;
}

function fullAt(points: readonly Point[], now: number): number | undefined {
  const last = points.at(-1);
  if (last === undefined) return undefined;
  if (last.window.share >= 1) return last.row.at;
  const recent = points.filter(
    ({ row }) => row.at >= last.row.at - HOUR_MS && row.at <= last.row.at,
  );
  const first = recent[0];
  if (first === undefined) return undefined;
  const spanMs = last.row.at - first.row.at;
  const moved = last.window.share - first.window.share;
  // There is no pace if the clock has jumped, if hardly anything was used, or if the newest reading is too old.
  const isPast = Math.abs(now - last.row.at) > HOUR_MS;
  if (spanMs < PACE_SPAN_MS || moved < PACE_SHARE || isPast) return undefined;
  const full = last.row.at + ((1 - last.window.share) * spanMs) / moved;
  const { resetAt } = last.window;
  if (resetAt !== undefined && full > resetAt) return Infinity;
  return full > now ? full : undefined;
}

function moversOf(points: readonly Point[]): WindowReport['movers'] {
  const of = (kind: MoverKind): readonly Mover[] => {
    const movers = new Map<string, { low: number; high: number; requests: number }>();
    const moverOf = ({ row }: Point): { low: number; high: number; requests: number } => {
      const mover = movers.get(row[kind]) ?? { low: 0, high: 0, requests: 0 };
      movers.set(row[kind], mover);
      return mover;
    };
    for (const [at, point] of points.entries()) {
      const mover = moverOf(point);
      mover.requests += 1;
      const before = points[at - 1];
      const moved = before === undefined ? 0 : point.window.share - before.window.share;
      if (before === undefined || moved <= 0) continue;
      const earlier = moverOf(before);
      mover.high += moved;
      if (earlier === mover) mover.low += moved;
      else earlier.high += moved;
    }
    return [...movers]
      .map(([name, mover]) => ({ name, ...mover }))
      .filter(({ high }) => high > 0)
      .toSorted((one, other) => other.high - one.high)
      .slice(0, MOVERS_MAX);
  };
  return {
    space: of('space'),
    client: of('client'),
    model: of('model'),
    conversation: of('conversation'),
  };
}
