import { refuse } from '../errors.ts';
import type { RawHeaders } from './header-rules.ts';
import { TOKEN_HEADER } from './local-token.ts';

/**
 * Checks the form of a request's head, before svc reads any byte of the body. The listeners of the proxy and of a
 * service refuse a head in another form from any caller. The error texts never repeat a value that the client sent.
 */
export interface RequestHead {
  readonly method: string;
  /** The request target as it came. */
  readonly target: string;
  readonly httpVersion: string;
  readonly headers: RawHeaders;
}

export interface ExpectedBody {
  readonly encoding: Encoding;
  /** The announced number of bytes; undefined if the body is chunked. */
  readonly length: number | undefined;
  /** Bound on the bytes that may arrive. */
  readonly wireBytesMax: number;
  /** True if svc also keeps the encoded bytes, as far as the budget allows: it forwards them if it changes nothing. */
  readonly keepsEncoded?: boolean;
}

const ENCODINGS = ['identity', 'zstd', 'gzip', 'deflate', 'br'] as const;
export type Encoding = (typeof ENCODINGS)[number];

/** Bound on headers. Real clients send 20 to 40. */
export const HEADERS_MAX = 100;

// Headers that may occur only once. If one is repeated, different servers may use different values.
export const ONCE: readonly string[] = [
  'host',
  'authorization',
  'x-api-key',
  TOKEN_HEADER,
  'content-type',
  'content-length',
  'expect',
];

export interface BodyPolicy {
  /** Bound on a decoded body, in bytes. */
  readonly bodyBytesMax: number;
  /** Bound on a zstd body before decoding, in bytes. */
  readonly zstdBytesMax: number;
}

export interface BodyForm {
  /** The body to expect; undefined if the request has none. */
  readonly body: ExpectedBody | undefined;
  /** True if the client waits for `100 Continue` before it sends the body. */
  readonly awaitsContinue: boolean;
}

export type HeaderIndex = ReadonlyMap<string, readonly string[]>;

export function indexHeaders(raw: RawHeaders): HeaderIndex {
  const index = new Map<string, string[]>();
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = (raw[at] ?? '').toLowerCase();
    const value = raw[at + 1] ?? '';
    const values = index.get(name);
    if (values === undefined) index.set(name, [value]);
    else values.push(value);
  }
  return index;
}

/** Checks the version, the number of headers, the Host, and what formProblem() checks. */
export function checkForm(head: RequestHead, headers: HeaderIndex): void {
  if (head.httpVersion !== '1.1') refuse('HTTP_VERSION_UNSUPPORTED', 'svc supports only HTTP/1.1.');
  if (head.headers.length > 2 * HEADERS_MAX) {
    refuse('HEADERS_TOO_MANY', 'The request has too many headers.');
  }
  const problem = formProblem(head, headers, ONCE);
  if (problem !== undefined) refuse('REQUEST_MALFORMED', problem.message);
  if (!headers.has('host')) refuse('REQUEST_MALFORMED', 'The request has no Host header.');
}

interface FormProblem {
  readonly message: string;
  /** The header that occurred more than once. */
  readonly header?: string;
}

/** Returns the problem of a request's head: a target that is no path, or headers that servers read differently. */
export function formProblem(
  { target, method }: Pick<RequestHead, 'target' | 'method'>,
  headers: HeaderIndex,
  once: readonly string[],
): FormProblem | undefined {
  const isPath = target.startsWith('/') || (target === '*' && method === 'OPTIONS');
  if (!isPath || /[#\\]/.test(target)) return { message: 'The request target is not a path.' };
  // The parser of Node 20.18 accepts a space before the colon. Other servers may drop such a header.
  if ([...headers.keys()].some((name) => name.endsWith(' '))) {
    return { message: 'A header name ends with a space.' };
  }
  const header = once.find((name) => (headers.get(name)?.length ?? 0) > 1);
  if (header === undefined) return undefined;
  return { message: `The request repeats the header ${header}.`, header };
}

/** Checks what the head says about the body. `policy`: the limits on its size. */
export function checkBody(method: string, headers: HeaderIndex, policy: BodyPolicy): BodyForm {
  const chunked = headers.get('transfer-encoding');
  if (chunked !== undefined && (chunked.length > 1 || chunked[0]?.toLowerCase() !== 'chunked')) {
    refuse('TRANSFER_ENCODING_UNSUPPORTED', 'The transfer encoding is not chunked.');
  }
  const [expectation] = headers.get('expect') ?? [];
  if (expectation !== undefined && expectation.toLowerCase() !== '100-continue') {
    refuse('EXPECTATION_FAILED', 'The Expect header has an unknown value.');
  }
  const awaitsContinue = expectation !== undefined;
  const announced = headers.get('content-length')?.[0];
  const length = chunked === undefined ? Number(announced ?? 0) : undefined;
  const encoding = encodingOf(headers);
  if (length === 0) {
    if (encoding !== 'identity') refuse('BODY_UNREADABLE', 'The body is empty but encoded.');
    return { body: undefined, awaitsContinue };
  }
  if (method !== 'POST') refuse('REQUEST_MALFORMED', 'Only a POST request may have a body.');
  if (!/^application\/json *(?:;|$)/i.test(headers.get('content-type')?.[0] ?? '')) {
    refuse('CONTENT_TYPE_UNSUPPORTED', 'The Content-Type is not application/json.');
  }
  const wireBytesMax = encoding === 'zstd' ? policy.zstdBytesMax : policy.bodyBytesMax;
  if (length !== undefined && length > wireBytesMax) {
    refuse('BODY_TOO_LARGE', 'The body is over the limit.');
  }
  return { body: { encoding, length, wireBytesMax }, awaitsContinue };
}

function encodingOf(headers: HeaderIndex): Encoding {
  const values = headers.get('content-encoding') ?? ['identity'];
  const named = values.length === 1 ? values[0]?.trim().toLowerCase() : undefined;
  const encoding = ENCODINGS.find((known) => known === named);
  if (encoding === undefined) refuse('ENCODING_UNSUPPORTED', 'The content encoding is unknown.');
  return encoding;
}
