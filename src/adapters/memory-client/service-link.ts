import type { NetworkProxy } from '../../core/settings/network-proxy.ts';
import type { Upstream, UpstreamRequest } from '../../ports/upstream.ts';
import { parseJson } from '../../core/bytes/json-fields.ts';
import { MemoryError, type MemoryFailure } from '../../core/errors.ts';
import { headerOf, isRedirect, type RawHeaders } from '../../core/http/header-rules.ts';
import { faultBody, type FaultBody, type FaultCode } from '../../core/memory-api/faults.ts';
import { ANSWER_BYTES_MAX } from '../../core/memory-api/limits.ts';
import { parseShape, type Shape } from '../../core/memory-api/shape.ts';
import { isOwnMachine } from '../../core/settings/own-machine.ts';
import { VERSION } from '../../core/version.ts';
import { codeOf } from '../files/file-error.ts';
import { withDeadline } from '../within.ts';
import { type AddressRule, mayResolve } from '../network/addresses.ts';
import { type Trust, proxyFaultText } from '../network/pinned-connector.ts';
import { codeDetail, createPool, upstreamOver } from '../network/undici-upstream.ts';
import { wholeBody } from '../network/whole-answer.ts';

/**
 * The connection to a memory service. A call sends one request, once, to the configured origin, with the service key in
 * one header. It follows no redirect, decodes nothing, reads a bounded answer, and ends at its deadline.
 */

/** Bound on connections: a few agents, each with a capture, a recall and a proof at the same time. */
const CONNECTIONS_MAX = 16;

interface LinkOptions {
  readonly baseUrl: string;
  readonly serviceKey: string;
  /** True if the service may be in a private network. Even then plain http is only allowed on this machine. */
  readonly allowPrivate: boolean;
  readonly proxy?: NetworkProxy;
  readonly trust?: Trust;
}

export interface ServiceCall<Answer> {
  readonly kind: Exclude<keyof typeof ANSWER_BYTES_MAX, 'error'>;
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly query?: URLSearchParams;
  /** The body, which is sent as JSON. */
  readonly body?: object;
  readonly shape: Shape<Answer>;
  /** Deadline of the whole call in milliseconds, including the connection. */
  readonly withinMs: number;
}

/**
 * svc sends the service a deadline that is this many milliseconds shorter than the call's own, for the way there and
 * back.
 */
const WAY_MS = 50;
const SERVER_MS_MIN = 10;

export class ServiceLink {
  readonly #upstream: Upstream;
  readonly #authorization: string;
  readonly #isRefused: boolean;
  #isClosed = false;

  constructor({ baseUrl, serviceKey, allowPrivate, proxy, trust = {} }: LinkOptions) {
    const { origin, hostname, protocol, pathname } = new URL(baseUrl);
    const isSecure = protocol === 'https:';
    const rule: AddressRule = { allowPrivate, isSecure };
    this.#isRefused = !mayResolve(hostname, rule) || (!isSecure && !isOwnMachine(hostname));
    this.#authorization = `Bearer ${serviceKey}`;
    // No deadline for headers: each call has its own deadline.
    const limits = { headersMs: 0, connectionsMax: CONNECTIONS_MAX, ...trust };
    const pool = createPool(origin, { rule, proxy }, limits);
    const root = pathname.replace(/\/+$/, '');
    this.#upstream = upstreamOver({
      base: { root, versioned: `${root}/v1`, query: '', queryNames: new Set() },
      pool: () => pool,
      isRefused: this.#isRefused,
      close: () => pool.destroy(),
    });
  }

  /**
   * Sends a call. Rejects with MemoryError, which is a ServiceFault if the answer states an error code or a rate limit,
   * or that the service is unavailable for a stated time.
   */
  async call<Answer>(call: ServiceCall<Answer>, signal: AbortSignal): Promise<Answer> {
    if (signal.aborted) throw late();
    if (this.#isClosed) throw new MemoryError('unavailable', 'The memory is closed.');
    if (this.#isRefused) {
      throw new MemoryError('unavailable', 'The address of the memory service is not allowed.');
    }
    const { status, headers, body } = await withDeadline(call.withinMs, signal, (deadline) =>
      this.#send(call, deadline),
    );
    if (status !== 200) throw faultIn({ status, headers, body });
    const { value: answer } = parseShape(call.shape, jsonIn(headers, body));
    if (answer === undefined) throw malformed();
    return answer;
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#upstream.close();
  }

  async #send(call: ServiceCall<unknown>, deadline: AbortSignal): Promise<RawAnswer> {
    const answer = await this.#upstream.send(this.#requestFor(call), deadline).catch((error) => {
      throw deadline.aborted ? late() : unreachable(error);
    });
    const { status, headers } = answer;
    const bytesMax = ANSWER_BYTES_MAX[call.kind];
    const encoding = headerOf(headers, 'content-encoding') ?? 'identity';
    const length = Number(headerOf(headers, 'content-length') ?? 0);
    // Refuse an encoded answer, which svc has not asked for and which may be a decompression bomb.
    if (isRedirect(status) || encoding.toLowerCase() !== 'identity' || length > bytesMax) {
      answer.abort();
      throw malformed();
    }
    const body = await wholeBody(answer, { bytesMax, signal: deadline });
    if (body === 'late') throw late();
    if (body === 'too_long') throw malformed();
    if (body === 'cut') throw unreachable(undefined);
    return { status, headers, body };
  }

  #requestFor({ method, path, query, body, withinMs }: ServiceCall<unknown>): UpstreamRequest {
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
      String(Math.max(SERVER_MS_MIN, withinMs - WAY_MS)),
      ...(body === undefined ? [] : ['content-type', 'application/json']),
    ];
    return {
      method,
      target: query === undefined ? path : `${path}?${query.toString()}`,
      headers,
      body: body === undefined ? [] : [Buffer.from(JSON.stringify(body))],
    };
  }
}

interface RawAnswer {
  readonly status: number;
  readonly headers: RawHeaders;
  readonly body: Buffer;
}

function jsonIn(headers: RawHeaders, body: Buffer): unknown {
  const type = headerOf(headers, 'content-type') ?? '';
  if (!/^application\/json *(?:;|$)/i.test(type)) throw malformed();
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    throw malformed();
  }
}

/** Returns the error for a failed connection. `error` is not attached as the cause: it may contain received bytes. */
function unreachable(error: unknown): MemoryError {
  const cause = error instanceof Error ? error.cause : undefined;
  const fault = proxyFaultText(codeOf(cause));
  const why = fault === undefined ? '' : `: ${fault}`;
  const message = `The memory service could not be reached${codeDetail(cause)}${why}.`;
  return new MemoryError('unavailable', message);
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
  /** Milliseconds for which the service wants no further call; undefined if it did not say. */
  readonly retryAfterMs: number | undefined;
}

/** Thrown when a memory service refuses a call. */
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
/** Pause after an answer with `x-should-retry: false` that states no time. */
const NO_RETRY_MS = 60_000;

/** Returns the error for an answer whose status is not 200. */
export function faultIn({ status, headers, body }: RawAnswer): MemoryError {
  const reason = reasonOf(status);
  const { value } = parseShape(faultBody, parseJson(body.toString('utf8')));
  if (value === undefined) {
    // A gateway in front of the service has answered. It may state a pause too.
    const refusal = { reason, details: undefined, retryAfterMs: waitIn(headers, undefined) };
    if (reason === 'rate_limited')
      return new ServiceFault({ ...refusal, code: 'RATE_LIMIT_EXCEEDED' });
    if (reason === 'unavailable' && refusal.retryAfterMs !== undefined)
      return new ServiceFault({ ...refusal, code: 'STORE_UNAVAILABLE' });
    return new MemoryError(reason, `The memory service answered ${status}.`);
  }
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

/**
 * Returns the pause that an answer asks for: in its headers, else in its body (`afterMs`), else by forbidding a retry.
 */
function waitIn(headers: RawHeaders, afterMs: number | undefined) {
  const precise = /^\d{1,9}$/.exec(headerOf(headers, 'retry-after-ms') ?? '')?.[0];
  const seconds = /^\d{1,6}$/.exec(headerOf(headers, 'retry-after') ?? '')?.[0];
  const waits = [
    precise === undefined ? undefined : Number(precise),
    seconds === undefined ? undefined : Number(seconds) * 1000,
    afterMs,
    headerOf(headers, 'x-should-retry') === 'false' ? NO_RETRY_MS : undefined,
  ];
  const wait = waits.find((one) => one !== undefined);
  return wait === undefined ? undefined : Math.min(wait, RETRY_AFTER_MS_MAX);
}
