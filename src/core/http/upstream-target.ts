import type { Dialect } from '../conversation/view.ts';
import { apiOf } from '../dialects/apis.ts';

/**
 * Joins an upstream's base URL and a client's target. Users paste a base URL from the provider's page, and pages
 * differ: with `/v1`, with another version, with none. The rules:
 * - If the base path ends with a version (`/v1`, `/api/paas/v4`), the base path replaces the target's `/v1`.
 * - Otherwise the target's `/v1` stays: `https://api.anthropic.com`, `http://gateway/prefix`.
 * - But if an upstream of OpenAI's dialects has a base path without a version, the path replaces the target's `/v1`, as
 *   in OpenAI's own SDKs: `…/v1beta/openai`, `…/inference`, `…/openai/deployments/x`.
 * - A target outside `/v1` is appended to the base path without its version.
 */
export interface UpstreamBase {
  readonly isSecure: boolean;
  /** Scheme, host and port: `https://api.openai.com`. */
  readonly origin: string;
  /** The host as the URL standard writes it: lower case, an IPv4 address in four decimals, IPv6 in brackets. */
  readonly hostname: string;
  /** True if the URL has a user name or a password. */
  readonly hasUserInfo: boolean;
  /** `versioned`: the path that replaces a target's `/v1`. `root`: the path in front of every other target. */
  readonly versioned: string;
  readonly root: string;
  /** The query of the base URL and of the settings, encoded; '' for none. */
  readonly query: string;
  /** The decoded names in `query`. Pairs with these names in the client's query are dropped. */
  readonly queryNames: ReadonlySet<string>;
}

interface BaseSettings {
  readonly baseUrl: string;
  readonly apiStyle: Dialect;
  readonly query: Readonly<Record<string, string>>;
}

const VERSION_SEGMENT = /^v\d+(?:(?:alpha|beta)\d*)?$/;
const CLIENT_VERSION = '/v1';

/** Parses a base URL. Throws TypeError if it is not an absolute http or https URL. */
export function parseUpstreamBase(settings: BaseSettings): UpstreamBase {
  const url = new URL(settings.baseUrl);
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    throw new TypeError('The base URL of an upstream must be http or https.');
  }
  const path = url.pathname.replace(/\/+$/, '');
  const lastSegmentAt = path.lastIndexOf('/');
  const endsInVersion = VERSION_SEGMENT.test(path.slice(lastSegmentAt + 1));
  const root = endsInVersion ? path.slice(0, lastSegmentAt) : path;
  const isWholeRoot = apiOf(settings.apiStyle).baseUrlHasVersion && root !== '';
  const query = new URLSearchParams(url.searchParams);
  for (const [name, value] of Object.entries(settings.query)) query.set(name, value);
  return {
    isSecure: url.protocol === 'https:',
    origin: url.origin,
    hostname: url.hostname,
    hasUserInfo: url.username !== '' || url.password !== '',
    versioned: endsInVersion || isWholeRoot ? path : `${path}${CLIENT_VERSION}`,
    root,
    query: [...query].map((pair) => pair.map(encodeURIComponent).join('=')).join('&'),
    queryNames: new Set(query.keys()),
  };
}

export type TargetBase = Pick<UpstreamBase, 'root' | 'versioned' | 'query' | 'queryNames'>;

/**
 * Returns path and query of the request. The client's query stays as written, without the pairs in `queryNames`, and
 * the upstream's follows.
 */
export function joinTarget(base: TargetBase, target: string): string {
  const [path = ''] = target.split('?', 1);
  const joined = joinPath(base, path);
  if (base.query === '') return joined + target.slice(path.length);
  const kept = target
    .slice(path.length + 1)
    .split('&')
    .filter((pair) => pair !== '' && !base.queryNames.has(nameOf(pair)));
  return `${joined}?${[...kept, base.query].join('&')}`;
}

function joinPath(base: TargetBase, path: string): string {
  const isVersioned = path === CLIENT_VERSION || path.startsWith(`${CLIENT_VERSION}/`);
  const joined = isVersioned
    ? base.versioned + path.slice(CLIENT_VERSION.length)
    : base.root + path;
  return joined === '' ? '/' : joined;
}

// Returns the name of a pair as the server decodes it, because it may have escapes.
function nameOf(pair: string): string {
  const [name] = new URLSearchParams(pair).keys();
  return name ?? '';
}
