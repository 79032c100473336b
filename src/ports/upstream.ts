import type { RawHeaders } from '../core/http/header-rules.ts';

/**
 * The provider, seen from the proxy: one request out, one answer back, bytes untouched.
 */
export interface Upstream {
  /**
   * Resolves when the response head is in. A 4xx or 5xx of the provider is an answer, not a
   * failure. Throws ProxyError UPSTREAM_UNREACHABLE, UPSTREAM_ADDRESS_REFUSED or UPSTREAM_TIMEOUT,
   * and only before a head was received; INTERNAL for a request that cannot be put on the wire.
   * Never sends twice, never follows a redirect. An abort of `signal` closes the connection at once
   * and rejects with the signal's reason; once `deliver` was called, only `abort` counts.
   */
  send(request: UpstreamRequest, signal: AbortSignal): Promise<UpstreamAnswer>;
  /** Opens a connection ahead of need; failures are ignored. */
  warm(): void;
  /** Lets running answers finish, then closes all connections. */
  close(): Promise<void>;
}

export interface UpstreamRequest {
  readonly method: string;
  /** Path and query as svc sends them, the upstream's own base path and query not yet added. */
  readonly target: string;
  /** Complete but for Host and Content-Length; credential last. */
  readonly headers: RawHeaders;
  /** The body in pieces that are sent one after the other; empty for none. */
  readonly body: readonly Uint8Array[];
}

export interface UpstreamAnswer {
  readonly status: number;
  readonly headers: RawHeaders;
  /** Hands the body over, once. Chunks that came before this call are kept and given first. */
  deliver(sink: AnswerSink): void;
  /** Asks for more after `data` returned false. */
  resume(): void;
  /** Drops the answer and its connection; the sink is not called any more. After the end: nothing. */
  abort(): void;
}

/** Takes the body of an answer. Exactly one of `end` and `cut` is called, last, unless `abort` came first. */
export interface AnswerSink {
  /** False: no more until `resume()`; what the socket already gave may still come. */
  data(chunk: Uint8Array): boolean;
  end(): void;
  /** The provider's connection broke before the end of its body. */
  cut(): void;
}
