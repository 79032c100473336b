import type { RawHeaders } from '../core/http/header-rules.ts';

/** Sends requests to a provider: one request out, one answer back, bytes unchanged. */
export interface Upstream {
  /**
   * Sends a request. It resolves when the head of the answer has arrived; a provider's 4xx or 5xx is an answer, not a
   * failure. Rejects with ProxyError UPSTREAM_UNREACHABLE, UPSTREAM_ADDRESS_REFUSED or UPSTREAM_TIMEOUT, only before
   * the head has arrived, and with INTERNAL for a request that cannot be sent. Never sends twice, never follows a
   * redirect. An abort of `signal` closes the connection at once and rejects with the signal's reason. After
   * `deliver()` the signal has no effect; then call `abort()`.
   */
  send(request: UpstreamRequest, signal: AbortSignal): Promise<UpstreamAnswer>;
  /** Opens a connection in advance; failures are ignored. */
  warm(): void;
  /** Lets running answers finish, then closes all connections. */
  close(): Promise<void>;
}

export interface UpstreamRequest {
  readonly method: string;
  /** Path and query from svc, without the upstream's own base path and query. */
  readonly target: string;
  /** All headers, with the credential, except Host and Content-Length. */
  readonly headers: RawHeaders;
  /** The pieces of the body in order; an empty list if there is no body. */
  readonly body: readonly Uint8Array[];
}

export interface UpstreamAnswer {
  readonly status: number;
  readonly headers: RawHeaders;
  /** Passes the body to `sink`, beginning with the chunks that have arrived already. Call it once. */
  deliver(sink: AnswerSink): void;
  /** Continues after `data` returned false. */
  resume(): void;
  /** Drops the answer and its connection; the sink is not called any more. Does nothing after the end. */
  abort(): void;
}

/** Receives the body of an answer. Exactly one of `end` and `cut` is called, last, unless `abort` came first. */
export interface AnswerSink {
  /** Receives a chunk. Returns false to pause until `resume()`; chunks that svc has already read still follow. */
  data(chunk: Uint8Array): boolean;
  end(): void;
  /** Called if the provider's connection broke before the end of the body. */
  cut(): void;
}
