import { type ErrorCode, ProxyError } from '../errors.ts';
import type { RawHeaders } from './headers.ts';
import { isOneOf, type SplitTarget, splitTarget, TOKEN_HEADER } from './local-token.ts';
import { carriesLogin, checkLogin, type Login } from './logins.ts';
import { explainUnknownPath, findPath, isTelemetry, type PathEntry, type Route } from './routes.ts';
import { COMPRESSION_MODES, MEMORY_MODES } from '../settings/settings.ts';

/**
 * The gate: everything about a request that can be decided from its head, decided before one byte
 * of its body is read. It must never look at the time, the body or the network, and its texts never
 * repeat the client's.
 *
 * The order is part of the design. A web page is refused first (Host, Origin), then a caller
 * without a token; only a caller with the token learns which paths and methods exist.
 */
export interface RequestHead {
  readonly method: string;
  /** The request target as it came. */
  readonly target: string;
  /** '1.1' */
  readonly httpVersion: string;
  readonly headers: RawHeaders;
}

export interface GatePolicy {
  /** The port that svc listens on. */
  readonly port: number;
  /** sha256 of each token that is valid now. */
  readonly tokenDigests: readonly Buffer[];
  /** sha256 of each path token that is valid now. */
  readonly pathTokenDigests?: readonly Buffer[];
  /** The login that the upstream of a route takes; undefined where svc has a key for it. */
  readonly loginOf?: (route: Route) => Login | undefined;
  readonly relayPaths: readonly string[];
  /** Decoded bytes of a body. */
  readonly bodyBytesMax: number;
  /** Bytes of a zstd body on the wire. */
  readonly zstdBytesMax: number;
}

/** A request that may go on. */
export interface Admission {
  readonly route: Route;
  /** The request target without the local token. */
  readonly target: string;
  /** undefined: the request has no body. */
  readonly body: ExpectedBody | undefined;
  /** The client waits for `100 Continue` before it sends the body. */
  readonly awaitsContinue: boolean;
}

export interface ExpectedBody {
  readonly encoding: Encoding;
  /** Bytes as announced; undefined when chunked. */
  readonly length: number | undefined;
  /** Bytes that may arrive. */
  readonly wireBytesMax: number;
  /** The encoded bytes are needed beside the decoded ones: they leave as they are where nothing changes. */
  readonly keepsEncoded?: boolean;
}

const ENCODINGS = ['identity', 'zstd', 'gzip', 'deflate', 'br'] as const;
export type Encoding = (typeof ENCODINGS)[number];

/** Real clients send 20 to 40; the next size up that no honest one reaches. */
export const HEADERS_MAX = 100;

// Two of any of these and the parties on the way may each believe another one.
const ONCE = [
  'host',
  'authorization',
  'x-api-key',
  TOKEN_HEADER,
  'content-type',
  'content-length',
  'expect',
];

const ANY_METHOD = 'GET, HEAD, POST';

/** Throws ProxyError with the answer when the request may not go on. */
export function admit(head: RequestHead, policy: GatePolicy): Admission {
  const headers = indexHeaders(head.headers);
  checkForm(head, headers);
  checkCaller(headers, policy.port);
  const split = splitTarget(head.target);
  const path = pathOf(split.target);
  const entry = findPath({
    path,
    isAnthropic: headers.has('anthropic-version'),
    relayPaths: policy.relayPaths,
  });
  // A preflight carries no token, and no answer to it may help a web page.
  if (head.method === 'OPTIONS') refuse('METHOD_NOT_ALLOWED', 'svc answers no OPTIONS request.');
  const isOpen = entry?.route.kind === 'local' || isTelemetry(path);
  const login = entry === undefined ? undefined : policy.loginOf?.(entry.route);
  if (!isOpen) checkAccess({ headers, split, route: entry?.route, login }, policy);
  if (entry === undefined) {
    refuse('ROUTE_UNKNOWN', explainUnknownPath(path, `http://127.0.0.1:${policy.port}`));
  }
  if (!entry.methods.includes(head.method)) {
    refuse('METHOD_NOT_ALLOWED', 'This path does not have this method.');
  }
  if (entry.route.kind === 'model') checkModes(headers);
  const { body, awaitsContinue } = checkBody(head.method, headers, policy);
  return {
    route: entry.route,
    target: split.target,
    body: body === undefined ? undefined : { ...body, keepsEncoded: login !== undefined },
    awaitsContinue,
  };
}

/**
 * The checks of an upgrade, which is answered without a token: those that pass are told to use
 * plain HTTP.
 */
export function checkUpgrade(head: RequestHead, port: number): void {
  const headers = indexHeaders(head.headers);
  checkForm(head, headers);
  checkCaller(headers, port);
}

/** Undefined for a path that svc does not serve. */
export function routeKind(
  head: RequestHead,
  relayPaths: readonly string[],
): Route['kind'] | undefined {
  return entryOf(head, relayPaths)?.route.kind;
}

/** The Allow header of an answer to a method that a path does not have. */
export function allowedMethods(head: RequestHead, relayPaths: readonly string[]): string {
  return entryOf(head, relayPaths)?.methods.join(', ') ?? ANY_METHOD;
}

function entryOf(head: RequestHead, relayPaths: readonly string[]): PathEntry | undefined {
  const path = pathOf(splitTarget(head.target).target);
  return findPath({ path, isAnthropic: false, relayPaths });
}

export function pathOf(target: string): string {
  const query = target.indexOf('?');
  return query === -1 ? target : target.slice(0, query);
}

export function isAnthropic(headers: RawHeaders): boolean {
  return indexHeaders(headers).has('anthropic-version');
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

/** HTTP itself: what a strict server refuses from anyone. */
export function checkForm(head: RequestHead, headers: HeaderIndex): void {
  if (head.httpVersion !== '1.1') refuse('HTTP_VERSION_UNSUPPORTED', 'svc speaks HTTP/1.1 only.');
  const isPath = head.target.startsWith('/') || (head.target === '*' && head.method === 'OPTIONS');
  if (!isPath || /[#\\]/.test(head.target)) {
    refuse('REQUEST_MALFORMED', 'The request target is not a path.');
  }
  if (head.headers.length > 2 * HEADERS_MAX) {
    refuse('HEADERS_TOO_MANY', 'The request has too many headers.');
  }
  // The parser of Node 20.18 lets a space before the colon pass, and others may drop the header.
  for (const name of headers.keys()) {
    if (name.endsWith(' ')) refuse('REQUEST_MALFORMED', 'A header name ends with a space.');
  }
  if (!headers.has('host')) refuse('REQUEST_MALFORMED', 'The request names no Host.');
  for (const name of ONCE) {
    if ((headers.get(name)?.length ?? 0) > 1) {
      refuse('REQUEST_MALFORMED', `The request repeats the header ${name}.`);
    }
  }
}

/** A program on this machine, not a web page: neither a foreign one nor a rebound name. */
function checkCaller(headers: HeaderIndex, port: number): void {
  const host = headers.get('host')?.[0]?.toLowerCase() ?? '';
  if (!isOwnHost(host, port))
    refuse('ORIGIN_REFUSED', 'The Host header does not name svc on this machine.');
  const sites = headers.get('sec-fetch-site') ?? [];
  if (headers.has('origin') || sites.some((site) => site !== 'none')) {
    refuse('ORIGIN_REFUSED', 'The request comes from a web page.');
  }
}

/** `host` is the Host header in lower case. */
export function isOwnHost(host: string, port: number): boolean {
  return host === `127.0.0.1:${port}` || host === `localhost:${port}` || host === `[::1]:${port}`;
}

interface Access {
  readonly headers: HeaderIndex;
  readonly split: SplitTarget;
  readonly route: Route | undefined;
  /** The login that the upstream of the route takes. */
  readonly login: Login | undefined;
}

/** The local token, in one place, and where the upstream takes a login, that login and nothing else. */
function checkAccess({ headers, split, route, login }: Access, policy: GatePolicy): void {
  const inCredentials = isOneOf(credentialsOf(headers), policy.tokenDigests);
  const [inHeader] = headers.get(TOKEN_HEADER) ?? [];
  if (split.pathToken === undefined && inHeader === undefined) {
    if (inCredentials && login === undefined) return;
    // The client has the settings for a key, and its provider takes a login: this says so.
    if (inCredentials && login !== undefined) checkLogin(headers, login);
    if (carriesLogin(headers)) {
      refuse('LOGIN_REFUSED', 'The request carries a login and no local token.');
    }
    refuse('LOCAL_TOKEN_INVALID', 'The local token is missing or wrong.');
  }
  const isInPath = isOneOf([split.pathToken ?? ''], policy.pathTokenDigests ?? []);
  const isInHeader = isOneOf([inHeader ?? ''], policy.tokenDigests);
  const places = [split.pathToken, inHeader].filter((place) => place !== undefined).length;
  if (places + (inCredentials ? 1 : 0) > 1) {
    refuse('REQUEST_MALFORMED', 'The local token is in two places.');
  }
  // A path shows in process lists and settings files: it opens no route of svc's own.
  const isForModels = route === undefined || route.kind === 'model' || route.kind === 'relay';
  if (!isInHeader && !(isInPath && isForModels)) {
    refuse('LOCAL_TOKEN_INVALID', 'The local token is missing or wrong.');
  }
  if (login !== undefined) return checkLogin(headers, login);
  if (route !== undefined && carriesLogin(headers)) {
    refuse('LOGIN_REFUSED', 'svc has a key for this provider, and the request carries a login.');
  }
}

/** Either credential header is enough: clients that have both settings send two values. */
function credentialsOf(headers: HeaderIndex): readonly string[] {
  const [authorization] = headers.get('authorization') ?? [];
  const bearer = /^bearer +(.+)$/i.exec(authorization ?? '')?.[1];
  const [apiKey] = headers.get('x-api-key') ?? [];
  return [bearer, apiKey].filter((presented) => presented !== undefined);
}

/** A mode that is not understood must not be guessed: 'off' may have been meant. */
function checkModes(headers: HeaderIndex): void {
  const vocabularies: readonly (readonly [string, readonly string[]])[] = [
    ['x-svc-memory-mode', MEMORY_MODES],
    ['x-svc-compression-mode', COMPRESSION_MODES],
  ];
  for (const [name, modes] of vocabularies) {
    const values = headers.get(name) ?? [];
    if (values.length > 1 || values.some((value) => !modes.includes(value))) {
      refuse('MODE_INVALID', `The header ${name} is repeated or has an unknown value.`);
    }
  }
}

function checkBody(
  method: string,
  headers: HeaderIndex,
  policy: GatePolicy,
): Omit<Admission, 'route' | 'target'> {
  const chunked = headers.get('transfer-encoding');
  if (chunked !== undefined && (chunked.length > 1 || chunked[0]?.toLowerCase() !== 'chunked')) {
    refuse('TRANSFER_ENCODING_UNSUPPORTED', 'The transfer encoding is not chunked.');
  }
  const [expectation] = headers.get('expect') ?? [];
  if (expectation !== undefined && expectation.toLowerCase() !== '100-continue') {
    refuse('EXPECTATION_FAILED', 'The Expect header asks for something unknown.');
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
    refuse('CONTENT_TYPE_UNSUPPORTED', 'The body is not declared as JSON.');
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

function refuse(code: ErrorCode, message: string): never {
  throw new ProxyError(code, message);
}
