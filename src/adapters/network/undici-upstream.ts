import { Pool, type Dispatcher } from 'undici';
import { ProxyError } from '../../core/errors.ts';
import { BODYLESS } from '../../core/http/header-rules.ts';
import type { UpstreamSettings } from '../../core/settings/settings.ts';
import {
  joinTarget,
  parseUpstreamBase,
  type TargetBase,
  type UpstreamBase,
} from '../../core/http/upstream-target.ts';
import type {
  AnswerSink,
  Upstream,
  UpstreamAnswer,
  UpstreamRequest,
} from '../../ports/upstream.ts';
import { codeOf } from '../files/file-error.ts';
import { type AddressRule, mayResolve } from './addresses.ts';
import {
  AddressRefusedError,
  type Trust,
  connectorTo,
  type Way,
  NetworkProxyError,
} from './pinned-connector.ts';

/**
 * Sends requests to one provider over undici's keep-alive pool. It moves bytes between sockets: it never reads a
 * body, never follows a redirect, never decodes, and never sends a request twice.
 */

/**
 * How long an idle connection is kept: long enough that a user who reads an answer for some minutes needs no new TLS
 * handshake, and below the 350 s after which common network devices drop an idle connection.
 */
const KEEP_ALIVE_MS = 300_000;

/** Bound on connections, so that a faulty client does not use up all descriptors. One user's agents need fewer. */
const CONNECTIONS_MAX = 512;

/** Bound on an answer's head. Node's default of 16 KiB is too little if gateways add long security policies. */
const HEADER_BYTES_MAX = 65_536;

/** Bytes waiting for `deliver()` at which svc stops reading from the provider: one read of a socket. */
const WAITING_BYTES_MAX = 65_536;

/**
 * Up to this length adjacent pieces of a body are copied into one, because a copy then costs less than a second write.
 * Measured CPU time of a whole request, with the body copied and in pieces: 66 and 133 us at 2 kB, 145 and 143 us at
 * 100 kB, 520 and 360 us at 1 MB, 5,500 and 1,500 us at 4 MB.
 */
const COPIED_BYTES_MAX = 65_536;

interface UpstreamLimits {
  /** Deadline from the last byte of the request to the head of the answer, in milliseconds. */
  readonly headersMs: number;
}

/** Creates the upstream. Throws TypeError if `baseUrl` is not an absolute http or https URL. */
export function createUpstream(
  settings: UpstreamSettings,
  limits: UpstreamLimits,
  trust: Trust = {},
): Upstream {
  const base = parseUpstreamBase(settings);
  const rule = { allowPrivate: settings.allowPrivate, isSecure: base.isSecure };
  const pool = createPool(base.origin, { rule, proxy: settings.proxy }, { ...limits, ...trust });
  return upstreamOver({
    base,
    pool: () => pool,
    isRefused: isRefusedBase(base, rule),
    close: async () => {
      if (!pool.destroyed) await pool.close();
    },
  });
}

/** Creates the pool of connections to one origin, for `upstreamOver`. */
export function createPool(
  origin: string,
  way: Way,
  { headersMs, connectionsMax = CONNECTIONS_MAX, ...trust }: PoolLimits,
): Pool {
  return new Pool(origin, {
    connect: connectorTo(way, trust),
    connections: connectionsMax,
    // With one request at a time per connection undici never repeats a request by itself.
    pipelining: 1,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
    headersTimeout: headersMs,
    // A reasoning model may be silent for minutes between two events.
    bodyTimeout: 0,
    maxHeaderSize: HEADER_BYTES_MAX,
    allowH2: false,
  });
}

interface PoolLimits extends UpstreamLimits, Trust {
  /** Bound on connections, each with one request. A further request waits. */
  readonly connectionsMax?: number;
}

/** Says whether svc must refuse an upstream because of its URL, whatever its addresses are. */
export function isRefusedBase({ hasUserInfo, hostname }: UpstreamBase, rule: AddressRule): boolean {
  return hasUserInfo || (!rule.isSecure && !rule.allowPrivate) || !mayResolve(hostname, rule);
}

export interface UpstreamWay {
  readonly base: TargetBase;
  /** Returns the pool. Called for each request that is not refused, so that a closed pool can be replaced. */
  readonly pool: () => Pool;
  readonly isRefused: boolean;
  readonly close: () => Promise<void>;
}

export function upstreamOver({ base, isRefused, pool, close }: UpstreamWay): Upstream {
  return {
    send: (request, signal) =>
      new Promise((resolve, reject) => {
        signal.throwIfAborted();
        if (isRefused) throw asProxyError(new AddressRefusedError());
        const options = dispatchOptions(request, joinTarget(base, request.target));
        pool().dispatch(options, new PendingAnswer(signal, { resolve, reject }));
      }),
    warm: () => {
      const connections = pool();
      const { free, pending } = connections.stats;
      if (isRefused || connections.closed || free + pending > 0) return;
      connections.dispatch({ path: '/', method: 'GET' }, CONNECT_ONLY);
    },
    close,
  };
}

function dispatchOptions(request: UpstreamRequest, path: string): Dispatcher.DispatchOptions {
  const headers = [...request.headers];
  const options: Dispatcher.DispatchOptions = { path, method: request.method, headers };
  const pieces = mergePieces(request.body);
  // undici itself writes the length of a single buffer.
  if (pieces.length <= 1) return { ...options, body: pieces[0] ?? null };
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  headers.push('content-length', String(length));
  // undici accepts any iterable of bytes, but its types do not say so.
  return Object.assign(options, { body: takePieces(pieces) });
}

/**
 * A handler that opens a connection without sending a request. undici calls onRequestStart() when the connection is
 * open and nothing is written yet. An error there drops the request and keeps the connection.
 */
const CONNECT_ONLY: Dispatcher.DispatchHandler = {
  onRequestStart() {
    throw new Error('Only a connection was wanted.');
  },
  onResponseError() {},
};

interface Settle {
  readonly resolve: (answer: UpstreamAnswer) => void;
  readonly reject: (reason: unknown) => void;
}

/** A running request and, once the head of the answer has arrived, its answer. */
class PendingAnswer implements Dispatcher.DispatchHandler, UpstreamAnswer {
  readonly #settle: Settle;
  readonly #signal: AbortSignal;
  readonly #onSignal = (): void => {
    this.#settle.reject(this.#signal.reason);
    this.abort();
  };

  status = 0;
  headers: readonly string[] = [];
  #controller: Dispatcher.DispatchController | undefined;
  #sink: AnswerSink | undefined;
  #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  #state: 'open' | 'ended' | 'cut' | 'aborted' = 'open';

  constructor(signal: AbortSignal, settle: Settle) {
    this.#settle = settle;
    this.#signal = signal;
    signal.addEventListener('abort', this.#onSignal, { once: true });
  }

  deliver(sink: AnswerSink): void {
    this.#sink = sink;
    this.#signal.removeEventListener('abort', this.#onSignal);
    const waiting = this.#waiting;
    this.#waiting = [];
    let wantsMore = true;
    for (const chunk of waiting) wantsMore = sink.data(chunk);
    if (this.#state === 'ended') sink.end();
    else if (this.#state !== 'open') sink.cut();
    else if (wantsMore) this.#controller?.resume();
    else this.#controller?.pause();
  }

  resume(): void {
    this.#controller?.resume();
  }

  abort(): void {
    this.#signal.removeEventListener('abort', this.#onSignal);
    if (this.#state !== 'open') return;
    this.#state = 'aborted';
    this.#waiting = [];
    // undici closes the connection and opens a new one, which the next request can use.
    this.#controller?.abort(new Error('The answer is not wanted any more.'));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // The request was aborted before there was a connection. An error here drops the request and keeps the connection.
    if (this.#state === 'aborted') throw new Error('The request is not wanted any more.');
    this.#controller = controller;
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number): void {
    // Drop an informational answer (100 to 199): no client has asked for one.
    if (status < 200) return;
    this.status = status;
    this.headers = textOf(controller.rawHeaders);
    // The answer ends here: undici would wait for a body if the head of a 204 or 304 states a length.
    if (BODYLESS.has(status)) this.#state = 'ended';
    this.#settle.resolve(this);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Uint8Array): void {
    if (this.#sink !== undefined) {
      if (!this.#sink.data(chunk)) controller.pause();
      return;
    }
    this.#waiting.push(chunk);
    this.#waitingBytes += chunk.length;
    if (this.#waitingBytes >= WAITING_BYTES_MAX) controller.pause();
  }

  // Trailers are dropped, because the header rules do not check them. No known provider sends any.
  onResponseEnd(): void {
    if (this.#state !== 'open') return;
    this.#state = 'ended';
    this.#sink?.end();
  }

  onResponseError(_controller: unknown, error: Error): void {
    if (this.#state !== 'open') return;
    this.#state = 'cut';
    this.#signal.removeEventListener('abort', this.#onSignal);
    if (this.status === 0) this.#settle.reject(asProxyError(error));
    this.#sink?.cut();
  }
}

function textOf(raw: Dispatcher.DispatchController['rawHeaders']): readonly string[] {
  if (!Array.isArray(raw)) return [];
  return raw.map((part) => (typeof part === 'string' ? part : part.toString('latin1')));
}

/** Merges small adjacent pieces, so that a body with a few edits is sent in fewer writes. */
function mergePieces(pieces: readonly Uint8Array[]): Uint8Array[] {
  if (pieces.length <= 1) return [...pieces];
  const merged: Uint8Array[] = [];
  let run: Uint8Array[] = [];
  let runBytes = 0;
  const endRun = (): void => {
    const [first] = run;
    if (first !== undefined) merged.push(run.length === 1 ? first : Buffer.concat(run));
    run = [];
    runBytes = 0;
  };
  for (const piece of pieces) {
    if (runBytes + piece.length > COPIED_BYTES_MAX) endRun();
    run.push(piece);
    runBytes += piece.length;
  }
  endRun();
  return merged;
}

/**
 * Yields the pieces and removes each from the list, so that a body of megabytes is not kept while its answer arrives.
 */
function* takePieces(pieces: Uint8Array[]): Generator<Uint8Array> {
  for (let piece = pieces.shift(); piece !== undefined; piece = pieces.shift()) yield piece;
}

/** Returns an error's code for a message, such as ' (ECONNREFUSED)'; '' if it has none. */
export function codeDetail(cause: unknown): string {
  const code = codeOf(cause);
  return /^[A-Z][A-Z0-9_]{2,48}$/.test(code) ? ` (${code})` : '';
}

function asProxyError(cause: Error): ProxyError {
  const code = codeOf(cause);
  if (code === 'UND_ERR_HEADERS_TIMEOUT') {
    return new ProxyError('UPSTREAM_TIMEOUT', 'The provider sent no headers in time.', { cause });
  }
  if (cause instanceof NetworkProxyError) {
    const late = cause.code === 'PROXY_TIMEOUT' ? 'UPSTREAM_TIMEOUT' : 'UPSTREAM_UNREACHABLE';
    const message = `The provider could not be reached (${cause.code}): ${cause.message}.`;
    return new ProxyError(late, message, { cause });
  }
  if (cause instanceof AddressRefusedError) {
    return new ProxyError('UPSTREAM_ADDRESS_REFUSED', cause.message, { cause });
  }
  if (code === 'UND_ERR_INVALID_ARG' || code === 'UND_ERR_NOT_SUPPORTED') {
    // The message for the client must not name the header, as undici's message does.
    return new ProxyError('INTERNAL', 'The request could not be sent.', { cause });
  }
  if (cause.name === 'HTTPParserError') {
    // The error is not attached as cause, because it contains received bytes.
    return new ProxyError('UPSTREAM_UNREACHABLE', 'The provider did not answer in HTTP/1.1.');
  }
  const message = `The provider could not be reached${codeDetail(cause)}.`;
  return new ProxyError('UPSTREAM_UNREACHABLE', message, { cause });
}
