import type { Dialect } from '../core/dialect.ts';
import type { Usage } from '../core/answer.ts';

/** One row a request: no text, no key. It is what a hosted receipt would be. */
export interface RequestLog {
  /** Returns at once; rows are written in batches and may be lost by a kill. */
  add(row: RequestRow): void;
  list(filter: { readonly limit: number; readonly id?: string }): Promise<readonly RequestRow[]>;
  /** Sums over the rows since then: one for each day, client and space, newest day first. */
  sum(filter: SumFilter): Promise<readonly RequestSum[]>;
}

export interface SumFilter {
  /** Milliseconds since 1970. */
  readonly since: number;
}

/** Sums over requests of one day, client and space. Tokens are svc's estimates, but for `usage`. */
export interface RequestSum {
  /** In local time: 2026-11-20. */
  readonly day: string;
  readonly client: string;
  readonly space: string;
  readonly requests: number;
  /** Answered with an error, cut, or given up by the client. */
  readonly failed: number;
  readonly originalInputTokens: number;
  readonly forwardedInputTokens: number;
  readonly recalledTokens: number;
  readonly elidedTokens: number;
  /** Requests where memory looked, and where it found something. */
  readonly asked: number;
  readonly recalled: number;
  /** Requests for which memory could not answer. */
  readonly degraded: number;
  /** The provider's own counts, of the requests that carry them. */
  readonly usage: Usage;
}

export interface RequestRow {
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly client: string;
  readonly kind: string;
  readonly dialect: Dialect;
  readonly model: string;
  readonly space: string;
  readonly conversation: string;
  readonly status: number;
  /** 'complete', 'client-gone', 'upstream-cut', or the code of svc's own error. */
  readonly end: string;
  readonly memoryMode: string;
  readonly memoryState: string;
  readonly compressionMode: string;
  readonly continuityState: string;
  readonly originalInputTokens: number;
  readonly forwardedInputTokens: number;
  readonly recalledTokens: number;
  readonly elidedItems: number;
  readonly elidedTokens: number;
  /** The provider's own count, where it reported one. */
  readonly usage?: Usage;
  /** Milliseconds of each step, by name. */
  readonly ms: Readonly<Record<string, number>>;
}
