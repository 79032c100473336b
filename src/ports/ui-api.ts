import type { RequestRow } from './request-log.ts';

/** The messages between the page's server and the page. Everything here crosses as JSON. */

export interface About {
  readonly version: string;
  /** Milliseconds since 1970. */
  readonly startedAt: number;
  readonly memory: 'embedded' | 'hosted' | 'fake';
  /** proxy.keepRequests. */
  readonly keepRequests: number;
}

export interface NowAnswer {
  readonly open: readonly RequestRow[];
  /** The last hour, newest first. */
  readonly recent: readonly RequestRow[];
}

/** Server-sent; `finished` since the last one. */
export interface NewsEvent {
  readonly open: readonly RequestRow[];
  readonly finished: readonly RequestRow[];
}

/** Beginnings of first prompts, by conversation. */
export interface TitlesAnswer {
  readonly titles: Readonly<Record<string, string>>;
}

export interface RowsAnswer {
  readonly rows: readonly RequestRow[];
}
