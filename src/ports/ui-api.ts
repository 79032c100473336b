import type { DeskPage, DeskRecord, RecallLook, Shelf, ShelfDay, Sighting } from './memory-desk.ts';
import type { SpokenRecord } from '../core/memory/record.ts';
import type { RequestRow, RequestSum } from './request-log.ts';

/** The messages between the page of `svc ui` and its server. All are sent as JSON. */

/** Characters of the longest prompt for which the server shows candidates. */
export const PROMPT_CHARS_MAX = 8000;
/** Bound on the records of a forgetting that can be undone; more would need too much memory. */
export const UNDO_MAX = 500;

export interface About {
  readonly version: string;
  /** Milliseconds since 1970. */
  readonly startedAt: number;
}

export interface NowAnswer {
  readonly open: readonly RequestRow[];
  /** The requests of the last day, newest first; those of a longer time if the day has few conversations. */
  readonly recent: readonly RequestRow[];
}

/** What the page shows of today: sums since midnight, and from a longer time `culprits` and `quota`. */
export interface TodayAnswer {
  readonly requests: number;
  /**
   * `asked`: the number of requests that could carry memories. `recalled`: the number of those that carried more than
   * the list of earlier sessions.
   */
  readonly asked: number;
  readonly recalled: number;
  readonly degraded: number;
  /** The price of the input with svc, and the estimated price without it, in input tokens at full price. */
  readonly paid: number;
  readonly direct: number;
  /** Requests whose prefix the provider's cache did not serve, the tokens of these prefixes, and the main cause. */
  readonly misses: {
    readonly times: number;
    readonly tokens: number;
    readonly cause: string | null;
  };
  /** The causes of cache misses in the last seven days that cost most tokens. */
  readonly culprits: readonly {
    readonly cause: string;
    readonly times: number;
    readonly tokens: number;
  }[];
  /** How much of the logins' subscription plans is used, the newest reading first. */
  readonly quota: readonly { readonly windows: readonly TodayWindow[] }[];
}

export interface TodayWindow {
  readonly name: string;
  /** The used part, from 0 to 1. */
  readonly share: number;
  readonly resetAt: number | null;
}

/** A server-sent event. `finished`: the requests that have finished since the previous event. */
export interface NewsEvent {
  readonly open: readonly RequestRow[];
  readonly finished: readonly RequestRow[];
}

/** Beginnings of the first prompts, by conversation. */
export interface TitlesAnswer {
  readonly titles: Readonly<Record<string, string>>;
}

/** The memory that a line of a block quotes. */
export type MemoryOrigin = Pick<
  SpokenRecord,
  'ref' | 'at' | 'client' | 'conversation' | 'space' | 'role'
>;

export interface BlockLine {
  readonly text: string;
  readonly memory?: MemoryOrigin;
}

export interface BlockText {
  /** The fingerprint of the item that contains the block, by which the row's item notes name it. */
  readonly fingerprint: string;
  /** The lines of the block; empty if its texts were forgotten since. */
  readonly lines: readonly BlockLine[];
}

/** The texts of a kept request: the body that the client sent, and the one that svc forwarded, each cut after 2 MiB. */
export interface KeptTexts {
  readonly sent: string;
  readonly went: string;
}

export interface RequestAnswer {
  readonly row: RequestRow;
  /** The request's number in its conversation, if known. */
  readonly place: { readonly number: number; readonly of: number } | null;
  readonly blocks: readonly BlockText[];
  /** Prices of a cached token, relative to an uncached one: for a read, a write, and a write that lasts an hour. */
  readonly rates: { readonly read: number; readonly write: number; readonly writeHour: number };
  readonly kept: KeptTexts | null;
}

export interface TextAnswer {
  readonly text: string;
  readonly isCut: boolean;
  /** The line that replaces a left-out tool output; null for another text. */
  readonly stub: string | null;
}

export interface ShelvesAnswer {
  /** The spaces; null if the memories are in a memory service. */
  readonly shelves: readonly Shelf[] | null;
}

export interface DaysAnswer {
  readonly days: readonly ShelfDay[];
}

export type MemoriesAnswer = DeskPage;

export interface MemoryAnswer {
  readonly record: DeskRecord;
  readonly sightings: readonly Sighting[];
  /** The beginning of the first prompt in its session. */
  readonly session: string;
}

export interface LookAnswer extends RecallLook {
  readonly tokensMax: number;
  readonly ms: number;
}

export interface ForgotAnswer {
  readonly forgotten: number;
  /** The id with which the page can undo the change; null if it cannot be undone. */
  readonly undo: string | null;
  readonly undoMs: number;
}

export interface SavingsAnswer {
  /** The beginning of the first day, in milliseconds since 1970. */
  readonly since: number;
  readonly sums: readonly SavingsSum[];
}

export interface SavingsSum extends RequestSum {
  /** US dollars by list prices; null if unknown, or if a login paid. */
  readonly money: { readonly paid: number; readonly direct: number } | null;
}

export interface HealthCheck {
  readonly level: 'ok' | 'warning' | 'problem';
  readonly subject: string;
  readonly found: string;
  /** What the user can do, as a command if there is one. */
  readonly fix?: string;
}

export interface HealthAnswer {
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly checks: readonly HealthCheck[];
}

export interface StoreAnswer {
  readonly memories: number;
  readonly projects: number;
  readonly passages: number;
  readonly bytes: number;
  readonly engine: string;
  /** The number of captures that the memory has not stored yet. */
  readonly waiting: number;
  readonly service: string;
  readonly svc: string;
  readonly node: string;
}

export interface RowsAnswer {
  readonly rows: readonly RequestRow[];
}
