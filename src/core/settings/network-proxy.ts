import { isRecord } from '../bytes/json-fields.ts';
import { type Environment, type Findings, namedVariable } from './config-values.ts';
import { classOfHost, isOwnMachine } from './own-machine.ts';

/**
 * Finds the proxy of the network, as companies have them, through which a host is reached. The
 * setting `proxy` beside its base URL names it, else the variables that other programs read too.
 */
export interface NetworkProxy {
  /** `http://proxy.example.com:8080` */
  readonly origin: string;
  /** The value of Proxy-Authorization; '' where the proxy asks for none. */
  readonly authorization: string;
}

/** One upstream of the configuration, as it is read. */
export interface Place {
  /** Where in the file: 'upstreams[0]'. */
  readonly path: string;
  readonly item: Readonly<Record<string, unknown>>;
  readonly environment: Environment;
  readonly findings: Findings;
}

const ALLOWED = 'the URL of a proxy such as http://proxy.example.com:8080';
const FORMS = `${ALLOWED}, {"env": "NAME"}, or "none"`;

/** Undefined: the host is reached directly. A loopback address always is. */
export function readNetworkProxy(place: Place, baseUrl: string): NetworkProxy | undefined {
  const url = new URL(baseUrl);
  const { path, item, environment, findings } = place;
  const stated = item['proxy'];
  const proxy = stated === undefined ? undefined : readStated(place, stated);
  if (isOwnMachine(url.hostname)) return undefined;
  if (stated !== undefined) return proxy;
  const found = proxyOfEnvironment(url, environment);
  if (found === undefined || 'proxy' in found) return found?.proxy;
  // The variable is for all programs: one that svc cannot use must not keep it from starting.
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

/** For hosts that no setting speaks of, such as the catalog's. */
export function environmentProxy(url: URL, environment: Environment): NetworkProxy | undefined {
  const found = proxyOfEnvironment(url, environment);
  return found !== undefined && 'proxy' in found ? found.proxy : undefined;
}

const PLAIN = ['http_proxy', 'HTTP_PROXY'];
const SECURE = ['https_proxy', 'HTTPS_PROXY', ...PLAIN];

/** An empty variable switches off those that come after it, as in other programs. */
function proxyOfEnvironment(url: URL, environment: Environment): Found | undefined {
  if (isOwnMachine(url.hostname) || isSpared(url, environment)) return undefined;
  const names = url.protocol === 'https:' ? SECURE : PLAIN;
  const variable = names.find((name) => environment[name] !== undefined);
  const text = variable === undefined ? '' : (environment[variable] ?? '');
  if (variable === undefined || text === '') return undefined;
  const proxy = parseProxyUrl(text);
  return proxy === undefined ? { variable } : { proxy };
}

/** Undefined for what is no http or https proxy. A host without a scheme is one of http. */
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

/** The user's name and password of the proxy, for what masks secrets. */
export function proxySecretsOf(proxy: NetworkProxy | undefined): readonly string[] {
  if (proxy === undefined || proxy.authorization === '') return [];
  const encoded = proxy.authorization.slice('Basic '.length);
  const pair = Buffer.from(encoded, 'base64').toString('utf8');
  return [encoded, pair, pair.slice(pair.indexOf(':') + 1)].filter((secret) => secret !== '');
}

/** A URL for messages and files, without its user name and password; '' if it is not a URL. */
export function withoutCredentials(text: string): string {
  return parseProxyUrl(text)?.origin ?? '';
}

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // A bare % in a password is not an escape.
    return text;
  }
}

/** NO_PROXY: hosts with all that end in them, each with a port if it likes, or `*`. */
function isSpared(url: URL, environment: Environment): boolean {
  const list = `${environment['no_proxy'] ?? ''},${environment['NO_PROXY'] ?? ''}`;
  const host = bare(url.hostname);
  const port = url.port || (url.protocol === 'https:' ? '443' : '80');
  return list.split(/[\s,]+/).some((entry) => {
    if (entry === '') return false;
    if (entry === '*') return true;
    // One colon: a host and its port. More of them, outside brackets: an IPv6 address.
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
