import type { Dialect } from '../conversation/view.ts';
import { apiOf, type DialectApi, DIALECTS } from '../dialects/apis.ts';
import { type Login, LOGINS } from '../http/logins.ts';
import { classOfHost, isOwnMachineUrl } from './own-machine.ts';
import { type Place, readNetworkProxy } from './network-proxy.ts';
import type { UpstreamSettings } from './settings.ts';
import type { UpstreamAuth } from '../http/header-rules.ts';
import { COMPRESSION_MODES, type CompressionMode } from '../http/modes.ts';
import {
  type Environment,
  type Findings,
  isHeaderValue,
  memberPath,
  readCredential,
} from './config-values.ts';
import { asRecord, isRecord } from '../bytes/json-fields.ts';

/**
 * Validates the configured providers when the file is read, so that an error, such as a header that cannot be sent,
 * does not wait for the first request.
 */

/** How svc can send its key to a provider. `none`: it sends no key. */
export const AUTHS = ['x-api-key', 'bearer', 'none'] as const satisfies readonly UpstreamAuth[];
const ALL_AUTHS = [...AUTHS, 'client'] as const;

const KEYS =
  'name apiStyle baseUrl providerKey auth headers query allowPrivate proxy compressionMode'.split(
    ' ',
  );

export const UPSTREAM_NAME = /^[a-z0-9][a-z0-9_-]{0,39}$/;

/** Matches the name of a header, a token of RFC 9110. */
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/;

// Headers that the file must not set, because the proxy sets them itself: for framing, for a single connection, for an
// encoding that every client can read, and svc's own.
const RESERVED_HEADER =
  /^(?:host|content-length|content-encoding|content-type|transfer-encoding|accept-encoding|connection|keep-alive|proxy-.*|te|trailer|upgrade|expect|x-svc-.*)$/i;

export function readUpstreams(
  value: unknown,
  environment: Environment,
  findings: Findings,
): readonly UpstreamSettings[] {
  if (!Array.isArray(value)) {
    findings.problem('upstreams', value, 'a list of upstreams');
    return [];
  }
  const list: readonly unknown[] = value;
  noteTakenStyles(list, findings);
  if (list.length === 0) {
    const allowed = 'at least one upstream: svc setup --yes --upstream anthropic';
    findings.warnings.push({ path: 'upstreams', found: 'none', allowed });
  }
  return list.flatMap((item, index) => {
    const path = `upstreams[${index}]`;
    if (!isRecord(item)) {
      findings.problem(path, item, 'an object');
      return [];
    }
    findings.warnUnknown(path, item, KEYS);
    const upstream = readUpstream({ path, item, environment, findings });
    return upstream === undefined ? [] : [upstream];
  });
}

/** Returns the login that an upstream takes; undefined if it takes none. */
export function loginOf({ auth, apiStyle }: Pick<UpstreamSettings, 'auth' | 'apiStyle'>) {
  return auth === 'client' ? loginOfStyle(apiStyle) : undefined;
}

export const LOGIN_STYLES: Readonly<Record<Login, Dialect>> = {
  claude: 'anthropic_messages',
  codex: 'openai_responses',
};

function loginOfStyle(apiStyle: unknown): Login | undefined {
  return Object.values(LOGINS).find(({ login }) => LOGIN_STYLES[login] === apiStyle)?.login;
}

/** Returns how a provider of this style takes its key unless the file says otherwise. */
export function defaultAuth(apiStyle: Dialect): DialectApi['defaultAuth'] {
  return apiOf(apiStyle).defaultAuth;
}

function readUpstream(place: Place): UpstreamSettings | undefined {
  const name = readName(place);
  const apiStyle = readChoice(place, { key: 'apiStyle', values: DIALECTS });
  const { path, item, findings } = place;
  const allowPrivate = findings.flag(`${path}.allowPrivate`, item['allowPrivate'], false);
  const baseUrl = readBaseUrl(place, allowPrivate);
  const auth = readAuth(place, apiStyle);
  const providerKey = readProviderKey(place, auth);
  const headers = readValues(place, 'headers', providerKey);
  const query = readValues(place, 'query', providerKey);
  const compressionMode = readCompressionMode(place, auth);
  if (name === undefined || apiStyle === undefined || baseUrl === undefined) return undefined;
  if (auth === undefined || providerKey === undefined) return undefined;
  const own = { name, apiStyle, baseUrl, providerKey, auth, headers, query, allowPrivate };
  if (auth === 'client' && !isLoginUpstream(place, own)) return undefined;
  const proxy = readNetworkProxy(place, baseUrl);
  return { ...own, ...(proxy && { proxy }), ...(compressionMode && { compressionMode }) };
}

/** Checks that a login goes only to its provider, or to a listener on this machine that the user allows. */
function isLoginUpstream({ path, item, findings }: Place, upstream: UpstreamSettings): boolean {
  const login = loginOf(upstream);
  const { problems } = findings;
  const before = problems.length;
  if (login === undefined) {
    const allowed = 'x-api-key, bearer or none: no client sends a login in this style';
    findings.problem(`${path}.auth`, 'client', allowed);
    return false;
  }
  const { baseUrl } = LOGINS[login];
  const isStandIn = upstream.allowPrivate && isOwnMachineUrl(upstream.baseUrl);
  if (upstream.baseUrl !== baseUrl && !isStandIn) {
    findings.problem(`${path}.baseUrl`, upstream.baseUrl, `${baseUrl}, where the login belongs`);
  }
  for (const member of ['providerKey', 'headers', 'query']) {
    if (item[member] === undefined) continue;
    const allowed =
      'nothing: with "auth": "client" svc does not change the headers and query of the client';
    problems.push({ path: `${path}.${member}`, found: 'a value', allowed });
  }
  return problems.length === before;
}

/**
 * Reads the mode. With a login shortening is off by default: a plan is not billed by tokens, and its cache lives for
 * an hour.
 */
function readCompressionMode(
  place: Place,
  auth: UpstreamAuth | undefined,
): CompressionMode | undefined {
  if (place.item['compressionMode'] === undefined) {
    return auth === 'client' ? 'passthrough' : undefined;
  }
  return readChoice(place, { key: 'compressionMode', values: COMPRESSION_MODES });
}

function noteTakenStyles(list: readonly unknown[], findings: Findings): void {
  const taken = new Map<unknown, number>();
  for (const [index, item] of list.entries()) {
    const style = asRecord(item)['apiStyle'];
    if (!DIALECTS.some((dialect) => dialect === style)) continue;
    const first = taken.get(style);
    if (first === undefined) taken.set(style, index);
    else {
      const allowed = `one upstream for each API style (upstreams[${first}] already has this one)`;
      findings.problem(`upstreams[${index}].apiStyle`, style, allowed);
    }
  }
}

function readName({ path, item, findings }: Place): string | undefined {
  const name = item['name'];
  if (typeof name === 'string' && UPSTREAM_NAME.test(name)) return name;
  findings.problem(`${path}.name`, name, 'up to 40 lower-case letters, digits, - and _');
  return undefined;
}

function readChoice<T extends string>(
  { path, item, findings }: Place,
  { key, values }: { readonly key: string; readonly values: readonly T[] },
): T | undefined {
  const chosen = values.find((value) => value === item[key]);
  if (chosen === undefined) {
    findings.problem(`${path}.${key}`, item[key], `one of ${values.join(', ')}`);
  }
  return chosen;
}

function readAuth(place: Place, apiStyle: Dialect | undefined): UpstreamAuth | undefined {
  if (place.item['auth'] !== undefined)
    return readChoice(place, { key: 'auth', values: ALL_AUTHS });
  return apiStyle === undefined ? undefined : defaultAuth(apiStyle);
}

function readProviderKey(
  { path, item, environment, findings }: Place,
  auth: UpstreamAuth | undefined,
): string | undefined {
  const value = item['providerKey'];
  if (auth === 'client') return '';
  if (auth === 'none' && (value === undefined || value === '')) return '';
  return readCredential(value, { path: `${path}.providerKey`, environment }, findings);
}

function readBaseUrl({ path, item, findings }: Place, allowPrivate: boolean): string | undefined {
  const login = item['auth'] === 'client' ? loginOfStyle(item['apiStyle']) : undefined;
  if (login !== undefined && item['baseUrl'] === undefined) return LOGINS[login].baseUrl;
  const parsed = parseBaseUrl(item['baseUrl'], allowPrivate);
  if ('url' in parsed) return parsed.url;
  findings.problem(`${path}.baseUrl`, item['baseUrl'], parsed.allowed);
  return undefined;
}

/**
 * Returns the base URL without a trailing slash and without a path that is only `/v1`, or a text that describes the
 * allowed values. A version after other parts of the path stays, as in `/openai/v1`: `core/http/upstream-target.ts`
 * reads it.
 */
export function parseBaseUrl(
  value: unknown,
  allowPrivate: boolean,
): { readonly url: string } | { readonly allowed: string } {
  const text = typeof value === 'string' ? value : '';
  // URL parsers correct spaces, backslashes and missing slashes. Refuse such a URL: it is a typing mistake, and the
  // corrected URL would differ from what the user sees.
  const isPlain = /^https?:\/\/[^/\\\s]+[\u0021-\u007e]*$/.test(text) && !text.includes('\\');
  const url = isPlain && URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) return { allowed: 'a URL such as https://api.example.com' };
  if (url.username !== '' || url.password !== '') return { allowed: 'a URL without credentials' };
  if (/[?#]/.test(text)) return { allowed: 'a URL without ? or #; query values go to "query"' };
  if (/%2f|%5c|%23|%3f/i.test(url.pathname))
    return { allowed: 'a URL without escaped / \\ # or ?' };
  if (!allowPrivate && url.protocol !== 'https:') {
    return { allowed: 'https://, or "allowPrivate": true beside it' };
  }
  const place = classOfHost(url.hostname);
  if (place === 'never') return { allowed: 'a host that svc may connect to: this one is reserved' };
  if (!allowPrivate && place === 'own') {
    return { allowed: 'a public host, or "allowPrivate": true beside it' };
  }
  // Clients ask for /v1/…, and users write a host's base with or without it.
  const path = url.pathname.replace(/\/+$/, '');
  return { url: url.origin + (path === '/v1' ? '' : path) };
}

/**
 * Returns the base URL of a hosted memory. Only on this machine may it be without TLS, for trying it out. Everywhere
 * else keys and memories need TLS, even in the user's own network.
 */
export function parseServiceUrl(
  value: unknown,
  allowPrivate = false,
): ReturnType<typeof parseBaseUrl> {
  const isOwn = typeof value === 'string' && isOwnMachineUrl(value);
  const isOpen = typeof value === 'string' && value.startsWith('http:') && !isOwn;
  if (isOpen) return { allowed: 'https://, or http:// on this machine' };
  const parsed = parseBaseUrl(value, allowPrivate || isOwn);
  // A service's paths already begin with /v1.
  return 'url' in parsed ? { url: parsed.url.replace(/\/v1$/, '') } : parsed;
}

function readValues(
  { path, item, findings }: Place,
  member: 'headers' | 'query',
  providerKey: string | undefined,
): Readonly<Record<string, string>> {
  const values = item[member];
  if (values === undefined) return {};
  if (!isRecord(values)) {
    findings.problem(`${path}.${member}`, values, 'an object with text values');
    return {};
  }
  const seen = new Set<string>();
  const entries = Object.entries(values).map(([name, value], index): [string, string] => {
    const at = memberPath(`${path}.${member}`, name, index);
    const allowed = customNameProblem(member, name, seen);
    if (allowed !== undefined) findings.problem(at, name, allowed);
    if (isHeaderValue(value)) {
      // Replace by a function, because a key may contain patterns of replaceAll ($&).
      return [name, value.replaceAll('$API_KEY', () => providerKey ?? '')];
    }
    findings.problems.push({
      path: at,
      found: typeof value === 'string' ? 'a text that cannot be sent' : 'no text',
      allowed: 'a text of latin1 characters without line ends or NUL',
    });
    return [name, ''];
  });
  return Object.fromEntries(entries);
}

/**
 * Checks the name of a header or of a query value. Returns undefined if the name is valid, and otherwise what is
 * allowed. `seen`: the names of earlier headers in lower case; the name is added to them.
 */
export function customNameProblem(
  member: string,
  name: string,
  seen: Set<string>,
): string | undefined {
  if (member === 'query') {
    return name !== '' && isHeaderValue(name) ? undefined : 'the name of a query value';
  }
  if (!HEADER_NAME.test(name)) return 'the name of a header';
  if (RESERVED_HEADER.test(name)) return 'a header that svc does not set itself';
  if (seen.has(name.toLowerCase())) return 'each header once';
  seen.add(name.toLowerCase());
  return undefined;
}
