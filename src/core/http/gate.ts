import { requestedModes } from './modes.ts';
import { type ProxyError, refuse } from '../errors.ts';
import { withoutHeader, type RawHeaders } from './header-rules.ts';
import {
  type BodyForm,
  type BodyPolicy,
  checkBody,
  checkForm,
  type HeaderIndex,
  indexHeaders,
  type RequestHead,
} from './http-form.ts';
import { isOneOf, type SplitTarget, splitTarget, TOKEN_HEADER } from './local-token.ts';
import { CLIENT_HEADER } from '../request/clients.ts';
import { carriesLogin, checkLogin, type Login } from './logins.ts';
import {
  explainUnknownPath,
  findPath,
  isTelemetry,
  type PathEntry,
  pathOf,
  type Route,
} from './routes.ts';
import type { Dialect } from '../conversation/view.ts';
import { apiOf, type DialectApi } from '../dialects/apis.ts';

/**
 * The gate of the proxy's listener. It checks a request's head before svc reads any byte of the body. Its error texts
 * never repeat what the client sent.
 * The order matters: it checks the form of the head, refuses a web page (by Host and Origin), then a caller without a
 * token. So apart from the paths that need no token, only a caller with the token learns which paths and methods
 * exist.
 */
export interface GatePolicy extends BodyPolicy {
  readonly port: number;
  /** sha256 of each token that is valid now. */
  readonly tokenDigests: readonly Buffer[];
  /** sha256 of each path token that is valid now. */
  readonly pathTokenDigests?: readonly Buffer[];
  /** The login that the upstream of a route takes; undefined if it takes none. */
  readonly loginOf?: (route: Route) => Login | undefined;
  readonly relayPaths: readonly string[];
}

/** A request that may proceed. */
export interface Admission extends BodyForm {
  readonly route: Route;
  /** The request target without the local token and the client's name. */
  readonly target: string;
  /**
   * The client's headers without Content-Length, because the decoded body has its own length. If the path names the
   * client, CLIENT_HEADER is added.
   */
  readonly headers: RawHeaders;
}

const ANY_METHOD = 'GET, HEAD, POST';

/** Checks a request's head. Throws ProxyError with the answer if the request may not proceed. */
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
  // A browser's preflight has no token. svc answers none, so no web page may send the request that follows.
  if (head.method === 'OPTIONS')
    refuse('METHOD_NOT_ALLOWED', 'svc does not answer OPTIONS requests.');
  const isOpen = entry?.route.kind === 'local' || isTelemetry(path);
  const login = entry === undefined ? undefined : policy.loginOf?.(entry.route);
  if (!isOpen) checkAccess({ headers, split, route: entry?.route, login }, policy);
  if (entry === undefined) {
    refuse('ROUTE_UNKNOWN', explainUnknownPath(path, `http://127.0.0.1:${policy.port}`));
  }
  if (!entry.methods.includes(head.method)) {
    refuse('METHOD_NOT_ALLOWED', 'This path does not support this method.');
  }
  if (entry.route.kind === 'model') requestedModes(head.headers);
  const { body, awaitsContinue } = checkBody(head.method, headers, policy);
  return {
    route: entry.route,
    target: split.target,
    headers: [
      ...withoutHeader(head.headers, 'content-length'),
      ...(split.client === undefined ? [] : [CLIENT_HEADER, split.client]),
    ],
    body: body === undefined ? undefined : { ...body, keepsEncoded: login !== undefined },
    awaitsContinue,
  };
}

/** Checks an upgrade request. It needs no token, because the answer only says to use plain HTTP. */
export function checkUpgrade(head: RequestHead, port: number): void {
  const headers = indexHeaders(head.headers);
  checkForm(head, headers);
  checkCaller(headers, port);
}

/** Returns the kind of a path; undefined for a path that svc does not serve. */
export function routeKind(
  head: RequestHead,
  relayPaths: readonly string[],
): Route['kind'] | undefined {
  return entryOf(head, relayPaths)?.route.kind;
}

export function allowedMethods(head: RequestHead, relayPaths: readonly string[]): string {
  return entryOf(head, relayPaths)?.methods.join(', ') ?? ANY_METHOD;
}

function entryOf(head: RequestHead, relayPaths: readonly string[]): PathEntry | undefined {
  const path = pathOf(splitTarget(head.target).target);
  return findPath({ path, isAnthropic: false, relayPaths });
}

export function isAnthropic(headers: RawHeaders): boolean {
  return indexHeaders(headers).has('anthropic-version');
}

/** Refuses web pages: by Origin, and by a Host that is not svc's, as after DNS rebinding. */
function checkCaller(headers: HeaderIndex, port: number): void {
  const host = headers.get('host')?.[0]?.toLowerCase() ?? '';
  if (!isOwnHost(host, port))
    refuse('ORIGIN_REFUSED', 'The Host header does not name svc on this machine.');
  const sites = headers.get('sec-fetch-site') ?? [];
  if (headers.has('origin') || sites.some((site) => site !== 'none')) {
    refuse('ORIGIN_REFUSED', 'The request comes from a web page.');
  }
}

/** Says whether a Host header names svc. `host` is the header in lower case. */
export function isOwnHost(host: string, port: number): boolean {
  return host === `127.0.0.1:${port}` || host === `localhost:${port}` || host === `[::1]:${port}`;
}

interface Access {
  readonly headers: HeaderIndex;
  readonly split: SplitTarget;
  readonly route: Route | undefined;
  readonly login: Login | undefined;
}

/**
 * Checks the local token, which the client sends as its key, in TOKEN_HEADER or in the path. A request may have a token
 * in TOKEN_HEADER and one in the path, because `svc run` sets the header and `svc connect` the path; if it has both,
 * both must be right. If the upstream takes a login, the request must have that login and no other credential.
 */
function checkAccess({ headers, split, route, login }: Access, policy: GatePolicy): void {
  const inCredentials = isOneOf(credentialsOf(headers), policy.tokenDigests);
  const [inHeader] = headers.get(TOKEN_HEADER) ?? [];
  if (split.pathToken === undefined && inHeader === undefined) {
    if (inCredentials && login === undefined) return;
    // If the client sends the token as its key although the provider takes a login, this throws.
    if (inCredentials && login !== undefined) checkLogin(headers, login);
    if (carriesLogin(headers)) {
      refuse('LOGIN_REFUSED', 'The request has a login and no local token.');
    }
    refuse('LOCAL_TOKEN_INVALID', 'The local token is missing or wrong.');
  }
  const isInPath = isOneOf([split.pathToken ?? ''], policy.pathTokenDigests ?? []);
  const isInHeader = isOneOf([inHeader ?? ''], policy.tokenDigests);
  const isInBoth = split.pathToken !== undefined && inHeader !== undefined;
  if (inCredentials || (isInBoth && !(isInPath && isInHeader))) {
    refuse('REQUEST_MALFORMED', 'The local token is in two places.');
  }
  // A path is visible in process lists and settings files, so its token does not open svc's own routes.
  const isForModels = route === undefined || route.kind === 'model' || route.kind === 'relay';
  if (!isInHeader && !(isInPath && isForModels)) {
    refuse('LOCAL_TOKEN_INVALID', 'The local token is missing or wrong.');
  }
  if (login !== undefined) return checkLogin(headers, login);
  if (route !== undefined && carriesLogin(headers)) {
    refuse('LOGIN_REFUSED', 'svc has a key for this provider, but the request has a login.');
  }
}

/** Returns the values of both credential headers. A client with two settings sends both, and one must match. */
function credentialsOf(headers: HeaderIndex): readonly string[] {
  const [authorization] = headers.get('authorization') ?? [];
  const bearer = /^bearer +(.+)$/i.exec(authorization ?? '')?.[1];
  const [apiKey] = headers.get('x-api-key') ?? [];
  return [bearer, apiKey].filter((presented) => presented !== undefined);
}

/** Writes the error in the form that the client's own SDK expects. `dialect`: undefined for a path that has none. */
export function errorBody(
  error: ProxyError,
  dialect: Dialect | undefined,
  requestId: string,
): string {
  const { status, code } = error;
  const message = `svc: ${error.message} ${error.hint}`;
  const provider = errorProviderOf(dialect);
  const type = errorTypeOf(provider, status);
  return JSON.stringify(
    provider === 'anthropic'
      ? { type: 'error', error: { type, message, code }, request_id: requestId }
      : { error: { message, type, param: null, code } },
  );
}

/** Returns the provider in whose form an error is written. Without a dialect, most programs expect OpenAI's form. */
export function errorProviderOf(dialect: Dialect | undefined): DialectApi['provider'] {
  return dialect === undefined ? 'openai' : apiOf(dialect).provider;
}

/** Returns the name that the provider gives to errors with this status. Clients show it. */
export function errorTypeOf(provider: DialectApi['provider'], status: number): string {
  if (status === 401) return 'authentication_error';
  if (status === 403) return 'permission_error';
  if (provider === 'openai') return status >= 500 ? 'server_error' : 'invalid_request_error';
  if (status === 404) return 'not_found_error';
  if (status === 413) return 'request_too_large';
  if (status === 503) return 'overloaded_error';
  if (status === 504) return 'timeout_error';
  return status >= 500 ? 'api_error' : 'invalid_request_error';
}
