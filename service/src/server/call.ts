import { headerOf, type RawHeaders } from '../../../src/core/http/header-rules.ts';
import {
  type ExpectedBody,
  formProblem,
  indexHeaders,
  ONCE,
} from '../../../src/core/http/http-form.ts';
import { mayUse, type StoredKey } from '../../../src/core/memory-api/keys.ts';
import { DEADLINE_MS } from '../../../src/core/memory-api/limits.ts';
import { parseShape, type Shape } from '../../../src/core/memory-api/shape.ts';
import type { AuditActor } from '../core/audit.ts';
import { healthPath } from './routes.ts';
import type { SpaceChoice, SpaceState, TenantStore } from '../ports/service-store.ts';
import { invalid, ServiceFault } from './fault.ts';
import type { ServiceLimits, ServingParts } from './parts.ts';

export interface Call {
  readonly requestId: string;
  readonly key: StoredKey;
  /** The actor of a call through the console; undefined if a key calls. */
  readonly actor?: AuditActor;
  /** The store of the key's tenant. An operation has no access to any other tenant. */
  readonly store: TenantStore;
  readonly head: CallHead;
  /** The part of the path that matches the star of the route; '' if the route has no star. */
  readonly parameter: string;
  readonly body: Buffer | undefined;
  /** Aborts at the deadline of the call. */
  readonly signal: AbortSignal;
  /** The deadline, in milliseconds since 1970. */
  readonly deadlineAt: number;
  /** The arrival of the call, in milliseconds since 1970. */
  readonly now: number;
}

export interface Reply {
  /** The HTTP status; undefined means 200. */
  readonly status?: number;
  readonly body: string;
  /** The content type; undefined means JSON. */
  readonly contentType?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export type Operation = (call: Call, parts: OperationParts) => Promise<Reply>;

export interface OperationParts extends Pick<ServingParts, 'clock' | 'randomBytes' | 'signer'> {
  readonly settings: Pick<ServiceLimits, 'requestsPerMinute'>;
}

/**
 * Holds the state of a space for the answer to a call that reaches its deadline. A cached state would be wrong, because
 * another node may have purged the space. Most calls end long before their deadline, so the state is read only when
 * half of the time has passed.
 */
export class StateOfCall {
  #last: SpaceState | undefined;
  readonly #timer: NodeJS.Timeout;

  constructor(
    { store, signal, now, deadlineAt }: Pick<Call, 'store' | 'signal' | 'now' | 'deadlineAt'>,
    space: string,
  ) {
    const ask = (): void => {
      if (this.#last !== undefined) return;
      store.spaceState(space, signal).then(
        (state) => (this.#last ??= state),
        () => undefined,
      );
    };
    this.#timer = setTimeout(ask, Math.max(0, (deadlineAt - now) / 2));
  }

  /** Keeps the state that the store has returned to this call, and returns it. */
  note(state: SpaceState): SpaceState {
    this.#last = state;
    return state;
  }

  get last(): SpaceState | undefined {
    return this.#last;
  }

  /** Cancels the read if it has not begun. Call it when the call has its answer. */
  end(): void {
    clearTimeout(this.#timer);
  }
}

export function replyJson(value: unknown): Reply {
  return { body: JSON.stringify(value) };
}

/** Makes the body of an answer that is a page of a list. */
export function listBody({ data, ids, hasMore, cursor = ids.at(-1) }: ListFacts) {
  return {
    object: 'list',
    data,
    first_id: ids[0] ?? null,
    last_id: ids.at(-1) ?? null,
    has_more: hasMore,
    next_cursor: hasMore ? (cursor ?? null) : null,
  } as const;
}

interface ListFacts {
  readonly data: readonly unknown[];
  /** The ids of the elements in `data`, in their order. */
  readonly ids: readonly string[];
  readonly hasMore: boolean;
  /** The cursor of the next page. Undefined means the id of the last element; null means no cursor. */
  readonly cursor?: string | null;
}

/** Reads the body of a call. Throws ServiceFault INVALID_JSON or INVALID_REQUEST. */
export function readBody<Value>({ body }: Call, shape: Shape<Value>): Value {
  return readValue(parseBody(body), shape);
}

/** Parses a body. Throws ServiceFault INVALID_JSON. */
export function parseBody(body: Buffer | undefined): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    throw new ServiceFault('INVALID_JSON', 'The body is not JSON in UTF-8.');
  }
}

export function readValue<Value>(value: unknown, shape: Shape<Value>): Value {
  const parsed = parseShape(shape, value);
  if (parsed.problems === undefined) return parsed.value;
  // Problems name members, never their values.
  const message = `The call does not match the contract: ${parsed.problems.join('; ')}.`;
  throw invalid(message.slice(0, MESSAGE_CHARS_MAX));
}

/** Bound on an error message, from the memory contract. */
const MESSAGE_CHARS_MAX = 1000;

/** Checks that the key may use the spaces. Throws ServiceFault SPACE_DENIED. */
export function checkSpaces(key: StoredKey, spaces: readonly string[]): void {
  if (spaces.every((space) => mayUse(key, space))) return;
  throw new ServiceFault('SPACE_DENIED', 'The key may not use this space.', { param: 'space' });
}

export function chooseSpaces(key: StoredKey, space: string | undefined): SpaceChoice {
  if (space === undefined) return { globs: key.spaces };
  checkSpaces(key, [space]);
  return { space };
}

export interface CallHead {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: RawHeaders;
}

/** Headers that may come only once in a call of the memory API or the console. */
const CALL_ONCE = [
  ...ONCE,
  'content-encoding',
  'transfer-encoding',
  'idempotency-key',
  'x-svc-deadline-ms',
  'x-svc-tenant',
  'if-match',
];

/** Checks the head of a call, before a byte of the body is read. Throws ServiceFault INVALID_REQUEST. */
export function readHead(given: {
  readonly method: string;
  readonly target: string;
  readonly headers: RawHeaders;
}): CallHead {
  const { method, target, headers } = given;
  const problem = formProblem(given, indexHeaders(headers), CALL_ONCE);
  if (problem !== undefined) throw invalid(problem.message, problem.header);
  const mark = target.indexOf('?');
  const path = mark === -1 ? target : target.slice(0, mark);
  // Health checks of some load balancers use HTTP/1.0 and send no Host.
  if (headerOf(headers, 'host') === undefined && healthPath(path) === undefined) {
    throw invalid('The call has no Host header.', 'host');
  }
  return {
    method,
    path,
    headers,
    query: new URLSearchParams(mark === -1 ? '' : target.slice(mark)),
  };
}

/** Returns the deadline of a call, which the caller may state, in milliseconds from the arrival of the head. */
export function deadlineOf(headers: RawHeaders): number {
  const stated = headerOf(headers, 'x-svc-deadline-ms');
  if (stated === undefined) return DEADLINE_MS.fallback;
  const ms = /^\d{1,5}$/.test(stated) ? Number(stated) : 0;
  if (ms >= DEADLINE_MS.min && ms <= DEADLINE_MS.max) return ms;
  const range = `${DEADLINE_MS.min} to ${DEADLINE_MS.max}`;
  throw invalid(`x-svc-deadline-ms is not a whole number from ${range}.`, 'x-svc-deadline-ms');
}

export function idempotencyKeyOf(headers: RawHeaders): string | undefined {
  const key = headerOf(headers, 'idempotency-key');
  if (key === undefined || /^[\x21-\x7e]{8,128}$/.test(key)) return key;
  throw invalid('Idempotency-Key is not 8 to 128 visible ASCII characters.', 'Idempotency-Key');
}

/** Returns the version that a change may replace: the number in If-Match (an earlier answer's ETag), if stated. */
export function ifVersionOf(headers: RawHeaders): number | undefined {
  const stated = headerOf(headers, 'if-match');
  if (stated === undefined) return undefined;
  const [, version] = /^"?(\d{1,12})"?$/.exec(stated) ?? [];
  if (version !== undefined) return Number(version);
  throw invalid('If-Match is not the ETag of an answer.', 'If-Match');
}

/**
 * Checks the headers that describe the body. `bytesMax`: undefined for an operation without a body; the result is then
 * undefined too. Throws ServiceFault.
 */
export function expectBody(
  headers: RawHeaders,
  bytesMax: number | undefined,
): ExpectedBody | undefined {
  const chunked = headerOf(headers, 'transfer-encoding');
  if (chunked !== undefined && chunked.toLowerCase() !== 'chunked') {
    throw invalid('The transfer encoding is not chunked.');
  }
  const length =
    chunked === undefined ? Number(headerOf(headers, 'content-length') ?? 0) : undefined;
  if (bytesMax === undefined) {
    if (length === 0) return undefined;
    throw invalid('This call has no body.');
  }
  const encoding = headerOf(headers, 'content-encoding');
  const type = headerOf(headers, 'content-type') ?? '';
  const isPlain = encoding === undefined || encoding.trim().toLowerCase() === 'identity';
  if (!isPlain || !/^application\/json *(?:;|$)/i.test(type)) {
    throw new ServiceFault('UNSUPPORTED_ENCODING', 'Send application/json without an encoding.');
  }
  if (length !== undefined && length > bytesMax) throw tooLarge(bytesMax);
  return { encoding: 'identity', length, wireBytesMax: bytesMax };
}

/** `message`: what is too large, a constant. */
export function tooLarge(bytesMax: number, message = 'The body is over the limit.'): ServiceFault {
  return new ServiceFault('PAYLOAD_TOO_LARGE', `${message} A body has at most ${bytesMax} bytes.`);
}
