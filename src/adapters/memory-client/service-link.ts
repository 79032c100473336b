import { type Dispatcher, Pool } from 'undici';
import { ANSWER_BYTES_MAX } from '../../core/memory-api/limits.ts';
import { parseShape, type Shape } from '../../core/memory-api/shape.ts';
import { isOwnMachine } from '../../core/settings/own-machine.ts';
import { VERSION } from '../../core/version.ts';
import { type AddressRule, mayResolve } from '../network/addresses.ts';
import type { NetworkProxy } from '../../core/settings/network-proxy.ts';
import { connectorTo, type Trust, proxyFaultText } from '../network/pinned-connector.ts';
import { MemoryError, type MemoryFailure } from '../../core/errors.ts';
import { faultBody, type FaultBody, type FaultCode } from '../../core/memory-api/faults.ts';

/**
 * The connection to a memory service. It sends one request, once, to the configured origin, with the service key in
 * one header. It follows no redirect, decodes nothing, reads no more bytes than an answer may have, and ends at the
 * deadline.
 */

/** Bound on connections: a capture, a recall and a proof for each of a few agents. */
const CONNECTIONS_MAX = 16;
/** How long an idle connection is kept; common network devices drop it after 350 s. */
const KEEP_ALIVE_MS = 120_000;
const HEADER_BYTES_MAX = 16_384;

interface LinkOptions {
  readonly baseUrl: string;
  readonly serviceKey: string;
  /** The service is in the user's own network. Plain http is allowed on this machine only. */
  readonly allowPrivate: boolean;
  readonly proxy?: NetworkProxy;
  readonly trust?: Trust;
}

export interface ServiceCall<Answer> {
  readonly kind: Exclude<keyof typeof ANSWER_BYTES_MAX, 'error'>;
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly query?: URLSearchParams;
  /** An object of a type of the contract, built member by member: nothing else is serialised. */
  readonly body?: object;
  readonly shape: Shape<Answer>;
  /** Deadline of the whole call in milliseconds, connecting included. */
  readonly withinMs: number;
}

/** Time on the network, subtracted from the deadline that the service gets: it counts from the request's head. */
const WAY_MS = 50;
const SERVER_MS_MIN = 10;

export class ServiceLink {
  readonly #pool: Pool;
  readonly #basePath: string;
  readonly #authorization: string;
  readonly #isRefused: boolean;
  #isClosed = false;

  constructor({ baseUrl, serviceKey, allowPrivate, proxy, trust = {} }: LinkOptions) {
    const url = new URL(baseUrl);
    const rule: AddressRule = { allowPrivate, isSecure: url.protocol === 'https:' };
    this.#isRefused =
      !mayResolve(url.hostname, rule) || (!rule.isSecure && !isOwnMachine(url.hostname));
    this.#basePath = url.pathname.replace(/\/+$/, '');
    this.#authorization = `Bearer ${serviceKey}`;
    // A pool of its own, so that a slow service does not affect connections to providers.
    this.#pool = new Pool(url.origin, {
      connect: connectorTo({ rule, proxy }, trust),
      connections: CONNECTIONS_MAX,
      pipelining: 1,
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: KEEP_ALIVE_MS,
      // The deadline of each call is the only clock.
      headersTimeout: 0,
      bodyTimeout: 0,
      maxHeaderSize: HEADER_BYTES_MAX,
      allowH2: false,
    });
  }

  /** Sends a call. Rejects with MemoryError; with ServiceFault if the service itself names the error. */
  async call<Answer>(call: ServiceCall<Answer>, signal: AbortSignal): Promise<Answer> {
    if (signal.aborted) throw late();
    if (this.#isClosed) throw new MemoryError('unavailable', 'The memory is closed.');
    if (this.#isRefused) {
      throw new MemoryError('unavailable', 'The address of the memory service is not allowed.');
    }
    const { status, headers, body } = await this.#send(call, signal);
    if (status !== 200) throw faultIn({ status, headers, body });
    const value = jsonIn(headers, body);
    const { value: answer } = parseShape(call.shape, value);
    if (answer === undefined) throw malformed();
    return answer;
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#pool.destroy();
  }

  #send(call: ServiceCall<unknown>, signal: AbortSignal): Promise<RawAnswer> {
    return new Promise((resolve, reject) => {
      const body = call.body === undefined ? null : JSON.stringify(call.body);
      const query = call.query === undefined ? '' : `?${call.query.toString()}`;
      const path = `${this.#basePath}${call.path}${query}`;
      const headers = [
        'authorization',
        this.#authorization,
        'accept',
        'application/json',
        'accept-encoding',
        'identity',
        'x-svc-client',
        `svc/${VERSION}`,
        'x-svc-deadline-ms',
        String(Math.max(SERVER_MS_MIN, call.withinMs - WAY_MS)),
        ...(body === null ? [] : ['content-type', 'application/json']),
      ];
      const pending = new PendingAnswer(ANSWER_BYTES_MAX[call.kind], { resolve, reject });
      const stop = (): void => pending.stop(late());
      const timer = setTimeout(stop, call.withinMs);
      signal.addEventListener('abort', stop, { once: true });
      pending.onSettled = () => {
        clearTimeout(timer);
        signal.removeEventListener('abort', stop);
      };
      this.#pool.dispatch({ path, method: call.method, headers, body }, pending);
    });
  }
}

interface RawAnswer {
  readonly status: number;
  /** Headers by name in lower case; of repeated ones the last. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Buffer;
}

interface Settle {
  readonly resolve: (answer: RawAnswer) => void;
  readonly reject: (error: MemoryError) => void;
}

/** Collects one answer, up to a bound. */
class PendingAnswer implements Dispatcher.DispatchHandler {
  readonly #bytesMax: number;
  readonly #settle: Settle;
  readonly #chunks: Uint8Array[] = [];
  #status = 0;
  #headers: ReadonlyMap<string, string> = new Map();
  #bytes = 0;
  #controller: Dispatcher.DispatchController | undefined;
  #isSettled = false;
  onSettled: () => void = () => undefined;

  constructor(bytesMax: number, settle: Settle) {
    this.#bytesMax = bytesMax;
    this.#settle = settle;
  }

  stop(error: MemoryError): void {
    if (!this.#end()) return;
    this.#settle.reject(error);
    this.#controller?.abort(error);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // Aborted before a connection was open, so nothing was written.
    if (this.#isSettled) throw late();
    this.#controller = controller;
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number): void {
    if (status < 200) return;
    this.#status = status;
    this.#headers = headerMap(controller.rawHeaders);
    const encoding = this.#headers.get('content-encoding') ?? 'identity';
    const length = Number(this.#headers.get('content-length') ?? 0);
    const isRedirect = status >= 300 && status < 400;
    // svc asked for no encoding, and an encoded answer could be a decompression bomb.
    if (isRedirect || encoding !== 'identity' || length > this.#bytesMax) this.stop(malformed());
  }

  onResponseData(_controller: unknown, chunk: Uint8Array): void {
    if (this.#isSettled) return;
    this.#bytes += chunk.length;
    if (this.#bytes > this.#bytesMax) this.stop(malformed());
    else this.#chunks.push(chunk);
  }

  onResponseEnd(): void {
    if (!this.#end()) return;
    const body = Buffer.concat(this.#chunks);
    this.#settle.resolve({ status: this.#status, headers: this.#headers, body });
  }

  onResponseError(_controller: unknown, cause: Error): void {
    if (!this.#end()) return;
    // Without the parser's error as cause, because it contains received bytes.
    const code = 'code' in cause && typeof cause.code === 'string' ? cause.code : '';
    const detail = SAFE_CODE.test(code) ? ` (${code})` : '';
    const why = proxyFaultText(code) === undefined ? '' : `: ${proxyFaultText(code)}`;
    const message = `The memory service could not be reached${detail}${why}.`;
    this.#settle.reject(new MemoryError('unavailable', message));
  }

  #end(): boolean {
    if (this.#isSettled) return false;
    this.#isSettled = true;
    this.onSettled();
    return true;
  }
}

/** Matches error codes, which say what failed but not what was sent: ECONNREFUSED, CERT_HAS_EXPIRED. */
const SAFE_CODE = /^[A-Z][A-Z0-9_]{2,48}$/;

function headerMap(raw: Dispatcher.DispatchController['rawHeaders']): ReadonlyMap<string, string> {
  const parts = Array.isArray(raw) ? raw.map(String) : [];
  const headers = new Map<string, string>();
  for (let at = 0; at + 1 < parts.length; at += 2) {
    headers.set((parts[at] ?? '').toLowerCase(), (parts[at + 1] ?? '').toLowerCase());
  }
  return headers;
}

function jsonIn(headers: ReadonlyMap<string, string>, body: Buffer): unknown {
  if (!/^application\/json *(?:;|$)/.test(headers.get('content-type') ?? '')) throw malformed();
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    throw malformed();
  }
}

function late(): MemoryError {
  return new MemoryError('timeout', 'The memory service did not answer in time.');
}

export function malformed(): MemoryError {
  return new MemoryError(
    'invalid',
    'The answer of the memory service does not match the contract.',
  );
}

interface Refusal {
  readonly reason: MemoryFailure;
  readonly code: FaultCode;
  readonly details: FaultBody['error']['details'];
  /** How long to send nothing; undefined if the service did not say. */
  readonly retryAfterMs: number | undefined;
}

/** A memory service's refusal of a call. */
export class ServiceFault extends MemoryError {
  readonly code: FaultCode;
  readonly details: Refusal['details'];
  readonly retryAfterMs: number | undefined;

  constructor({ reason, code, details, retryAfterMs }: Refusal) {
    super(reason, `The memory service refused (${code}).`);
    this.code = code;
    this.details = details;
    this.retryAfterMs = retryAfterMs;
  }
}

/** Cap for Retry-After: five minutes. */
const RETRY_AFTER_MS_MAX = 300_000;
/** `x-should-retry: false` with no time given. */
const NO_RETRY_MS = 60_000;

/** The error for an answer that is not 200. */
export function faultIn(answer: {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Buffer;
}): MemoryError {
  const { status, headers, body } = answer;
  const reason = reasonOf(status);
  const { value } = parseShape(faultBody, jsonOrNothing(body));
  if (value === undefined && reason === 'rate_limited') {
    // A gateway in front of the service answers for it, and may ask for a pause too.
    const retryAfterMs = waitIn(headers, undefined);
    return new ServiceFault({
      reason,
      code: 'RATE_LIMIT_EXCEEDED',
      details: undefined,
      retryAfterMs,
    });
  }
  if (value === undefined) return new MemoryError(reason, `The memory service answered ${status}.`);
  const { code, details, retry } = value.error;
  const retryAfterMs = waitIn(headers, retry.after_ms);
  return new ServiceFault({ reason, code, details, retryAfterMs });
}

function reasonOf(status: number): MemoryFailure {
  if (status === 401 || status === 403) return 'denied';
  if (status === 429) return 'rate_limited';
  if (status === 408 || status === 504) return 'timeout';
  return status >= 500 ? 'unavailable' : 'invalid';
}

function waitIn(headers: ReadonlyMap<string, string>, afterMs: number | undefined) {
  const precise = /^\d{1,9}$/.exec(headers.get('retry-after-ms') ?? '')?.[0];
  const seconds = /^\d{1,6}$/.exec(headers.get('retry-after') ?? '')?.[0];
  const waits = [
    precise === undefined ? undefined : Number(precise),
    seconds === undefined ? undefined : Number(seconds) * 1000,
    afterMs,
    headers.get('x-should-retry') === 'false' ? NO_RETRY_MS : undefined,
  ];
  const wait = waits.find((one) => one !== undefined);
  return wait === undefined ? undefined : Math.min(wait, RETRY_AFTER_MS_MAX);
}

function jsonOrNothing(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    return undefined;
  }
}
