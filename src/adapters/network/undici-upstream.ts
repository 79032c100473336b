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
 * How long an idle connection is kept. With less, a user who reads an answer for a minute pays a TLS handshake for
 * the next request. Five minutes are below the 350 s after which common network devices drop an idle connection.
 */
const KEEP_ALIVE_MS = 300_000;

/** Bound on connections: more than one user's agents need, so that a runaway client does not use up all descriptors. */
const CONNECTIONS_MAX = 512;

/** Bound on an answer's head. Node's 16 KiB is too little behind two gateways that add security policies. */
const HEADER_BYTES_MAX = 65_536;

/** Bound on bytes that wait for `deliver()`: one read of a socket. Beyond it svc makes the provider wait. */
const WAITING_BYTES_MAX = 65_536;

/**
 * Longest piece that is copied into another, because a copy costs less than a second write. Measured, CPU of a whole
 * request, copied against in pieces: 66 and 133 us at 2 kB, 145 and 143 at 100 kB, 520 and 360 at 1 MB, 5,500 and
 * 1,500 at 4 MB.
 */
const COPIED_BYTES_MAX = 65_536;

interface UpstreamLimits {
  /** Deadline from the last byte of the request to the head of the answer, in milliseconds. */
  readonly headersMs: number;
}

/** Makes the upstream. Throws TypeError if `baseUrl` is not an absolute http or https URL. */
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

/** Makes the connections to one origin, for `upstreamOver`. */
export function createPool(
  origin: string,
  way: Way,
  { headersMs, connectionsMax = CONNECTIONS_MAX, ...trust }: PoolLimits,
): Pool {
  return new Pool(origin, {
    connect: connectorTo(way, trust),
    connections: connectionsMax,
    // One request at a time per connection, so that undici never sends a request again by itself.
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
  /** Bound on concurrent requests; a further one waits for a connection. */
  readonly connectionsMax?: number;
}

/** Says whether an upstream may not be dialled at all, whatever its addresses are. */
export function isRefusedBase({ hasUserInfo, hostname }: UpstreamBase, rule: AddressRule): boolean {
  return hasUserInfo || (!rule.isSecure && !rule.allowPrivate) || !mayResolve(hostname, rule);
}

export interface UpstreamWay {
  readonly base: TargetBase;
  /** Called for each request, so that closed connections are opened again. */
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
 * Opens a connection without a request. undici calls the handler when a connection is open, before it writes.
 * Throwing here drops the request and keeps the connection.
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

/** A running request and, once its head has arrived, its answer. */
class PendingAnswer implements Dispatcher.DispatchHandler, UpstreamAnswer {
  readonly #settle: Settle;
  readonly #signal: AbortSignal;
  readonly #onSignal = (): void => this.#stop();

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
    // undici replaces the closed connection by a new one and writes nothing to it, so the next request finds it
    // ready.
    this.#controller?.abort(new Error('The answer is not wanted any more.'));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // The request was aborted before there was a connection. Nothing was written, and the connection stays usable.
    if (this.#state === 'aborted') throw new Error('The request is not wanted any more.');
    this.#controller = controller;
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number): void {
    // 100 to 199 announce an answer. No client asked for them, and node:http clients ignore them.
    if (status < 200) return;
    this.status = status;
    this.headers = textOf(controller.rawHeaders);
    // undici waits for the body whose length a 204 or 304 states, and breaks the connection without it.
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

  // Trailers are dropped: no model provider sends any, no client asks for them (TE: trailers), and they would bypass
  // the header rules.
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

  #stop(): void {
    this.#settle.reject(this.#signal.reason);
    this.abort();
  }
}

function textOf(raw: Dispatcher.DispatchController['rawHeaders']): readonly string[] {
  if (!Array.isArray(raw)) return [];
  return raw.map((part) => (typeof part === 'string' ? part : part.toString('latin1')));
}

/** Merges small adjacent pieces, so that a body with a few edits is sent in one or two writes. */
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

/** Frees each piece after it was sent: an answer may take minutes, and its request may have megabytes. */
function* takePieces(pieces: Uint8Array[]): Generator<Uint8Array> {
  for (let piece = pieces.shift(); piece !== undefined; piece = pieces.shift()) yield piece;
}

/** Returns the error code for a message: ' (ECONNREFUSED)'. A code says what failed but not what was sent. */
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
    // undici's message names the header; that is safe, but not for the client.
    return new ProxyError('INTERNAL', 'The request could not be sent.', { cause });
  }
  if (cause.name === 'HTTPParserError') {
    // The error is not attached as cause, because it contains received bytes.
    return new ProxyError('UPSTREAM_UNREACHABLE', 'The provider did not answer in HTTP/1.1.');
  }
  const message = `The provider could not be reached${codeDetail(cause)}.`;
  return new ProxyError('UPSTREAM_UNREACHABLE', message, { cause });
}
