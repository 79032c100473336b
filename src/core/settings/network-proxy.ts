import { isRecord } from '../bytes/json-fields.ts';
import { type Environment, type Findings, namedVariable } from './config-values.ts';
import { classOfHost, isOwnMachine } from './own-machine.ts';

/**
 * Finds the network's own proxy, as companies have it, through which a host is reached. The setting `proxy` beside a
 * base URL names it, or else the usual environment variables.
 */
export interface NetworkProxy {
  /** The address of the network proxy: `http://proxy.example.com:8080`. */
  readonly origin: string;
  /** The value of Proxy-Authorization; '' if the proxy needs none. */
  readonly authorization: string;
}

/** The part of the configuration that is being read: an upstream, or the memory service. */
export interface Place {
  /** Its path in the file: 'upstreams[0]', 'memory'. */
  readonly path: string;
  readonly item: Readonly<Record<string, unknown>>;
  readonly environment: Environment;
  readonly findings: Findings;
}

const ALLOWED = 'the URL of a proxy such as http://proxy.example.com:8080';
const FORMS = `${ALLOWED}, {"env": "NAME"}, or "none"`;

/** Returns the proxy for a base URL. Undefined if the host is reached directly, as a loopback address always is. */
export function readNetworkProxy(place: Place, baseUrl: string): NetworkProxy | undefined {
  const url = new URL(baseUrl);
  const { path, item, environment, findings } = place;
  const stated = item['proxy'];
  const proxy = stated === undefined ? undefined : readStated(place, stated);
  if (isOwnMachine(url.hostname)) return undefined;
  if (stated !== undefined) return proxy;
  const found = proxyOfEnvironment(url, environment);
  if (found === undefined || 'proxy' in found) return found?.proxy;
  // The variable applies to all programs, so one that svc cannot use must not stop it from starting.
  findings.warnings.push({
    path: `${path}.baseUrl`,
    origin: found.variable,
    found: 'not the URL of a proxy, so svc connects directly',
    allowed: `${ALLOWED} in $${found.variable}`,
  });
  return undefined;
}

function readStated({ path, environment, findings }: Place, stated: unknown) {
  if (stated === 'none') return undefined;
  const at = `${path}.proxy`;
  const variable = namedVariable(stated);
  if (variable === undefined) {
    const proxy = typeof stated === 'string' ? parseProxyUrl(stated) : undefined;
    if (proxy === undefined) findings.problem(at, stated, FORMS);
    else if (proxy.authorization !== '') {
      const allowed = 'a URL without credentials; one with them belongs into {"env": "NAME"}';
      findings.problems.push({ path: at, found: 'a URL with credentials', allowed });
    }
    return proxy;
  }
  if (isRecord(stated)) findings.warnUnknown(at, stated, ['env']);
  const held = environment[variable] ?? '';
  const proxy = parseProxyUrl(held);
  if (proxy === undefined) {
    const isUnset = held === '';
    const found = isUnset ? 'nothing' : 'another text';
    findings.variableProblem(at, variable, { found, allowed: ALLOWED, isUnset });
  }
  return proxy;
}

type Found = { readonly proxy: NetworkProxy } | { readonly variable: string };

/** Returns the proxy for hosts without a setting, such as the catalog's. */
export function environmentProxy(url: URL, environment: Environment): NetworkProxy | undefined {
  const found = proxyOfEnvironment(url, environment);
  return found !== undefined && 'proxy' in found ? found.proxy : undefined;
}

const PLAIN = ['http_proxy', 'HTTP_PROXY'];
const SECURE = ['https_proxy', 'HTTPS_PROXY', ...PLAIN];

/** Returns the proxy from the environment. As in other programs, an empty variable hides those after it. */
function proxyOfEnvironment(url: URL, environment: Environment): Found | undefined {
  if (isOwnMachine(url.hostname) || isSpared(url, environment)) return undefined;
  const names = url.protocol === 'https:' ? SECURE : PLAIN;
  const variable = names.find((name) => environment[name] !== undefined);
  const text = variable === undefined ? '' : (environment[variable] ?? '');
  if (variable === undefined || text === '') return undefined;
  const proxy = parseProxyUrl(text);
  return proxy === undefined ? { variable } : { proxy };
}

/**
 * Parses a proxy's URL; without a scheme it is http. Undefined if the URL has another scheme, a path, or a host to
 * which svc never connects.
 */
function parseProxyUrl(text: string): NetworkProxy | undefined {
  const whole = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`;
  if (!/^https?:\/\/[\u0021-\u007e]{1,2048}$/i.test(whole) || !URL.canParse(whole))
    return undefined;
  const url = new URL(whole);
  if (url.pathname !== '/' || url.search !== '' || url.hash !== '') return undefined;
  if (classOfHost(url.hostname) === 'never') return undefined;
  const { origin, username, password } = url;
  if (username === '' && password === '') return { origin, authorization: '' };
  const pair = `${unescaped(username)}:${unescaped(password)}`;
  return { origin, authorization: `Basic ${Buffer.from(pair).toString('base64')}` };
}

/**
 * Returns the proxy's password in each form in which a text may have it, so that it can be masked: encoded, after the
 * user name, and by itself.
 */
export function proxySecretsOf(proxy: NetworkProxy | undefined): readonly string[] {
  if (proxy === undefined || proxy.authorization === '') return [];
  const encoded = proxy.authorization.slice('Basic '.length);
  const pair = Buffer.from(encoded, 'base64').toString('utf8');
  return [encoded, pair, pair.slice(pair.indexOf(':') + 1)].filter((secret) => secret !== '');
}

/**
 * Returns the origin of a proxy's URL, which has no user name and password, for messages and files; '' if
 * parseProxyUrl() does not accept the text.
 */
export function withoutCredentials(text: string): string {
  return parseProxyUrl(text)?.origin ?? '';
}

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // A single % in a password is not an escape, so keep the text.
    return text;
  }
}

/** Says whether NO_PROXY excludes a host: it lists `*`, or hosts with their subdomains, each with an optional port. */
function isSpared(url: URL, environment: Environment): boolean {
  const list = `${environment['no_proxy'] ?? ''},${environment['NO_PROXY'] ?? ''}`;
  const host = bare(url.hostname);
  const port = url.port || (url.protocol === 'https:' ? '443' : '80');
  return list.split(/[\s,]+/).some((entry) => {
    if (entry === '') return false;
    if (entry === '*') return true;
    // One colon separates a host from its port. Several outside brackets are an IPv6 address.
    const withPort = /^(\[[^\]]*\]|[^:]*):(\d{1,5})$/.exec(entry);
    if (withPort !== null && withPort[2] !== port) return false;
    const name = bare(withPort?.[1] ?? entry).replace(/^\*?\./, '');
    return name !== '' && (host === name || host.endsWith(`.${name}`));
  });
}

function bare(host: string): string {
  return host
    .toLowerCase()
    .replace(/^\[|\]$/g, '')
    .replace(/\.+$/, '');
}
