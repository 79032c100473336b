import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { type CatalogEntries, parseEntries } from '../../core/settings/catalog-entries.ts';
import { isOwnMachineUrl } from '../../core/settings/own-machine.ts';
import { headerOf } from '../../core/http/header-rules.ts';
import { environmentProxy } from '../../core/settings/network-proxy.ts';
import type { Environment } from '../../core/settings/config-values.ts';
import type { UpstreamSettings } from '../../core/settings/settings.ts';
import type { Upstream } from '../../ports/upstream.ts';
import { withDeadline } from '../within.ts';
import { wholeBody } from '../network/whole-answer.ts';

/**
 * Downloads the public catalog of providers and models. The connection has the same rules as those to providers: https,
 * public addresses, no redirect. Only a URL on this machine may have neither https nor a public address. The request
 * says nothing about this machine.
 */

/** The address of the catalog. Its data have the MIT license; see https://github.com/anomalyco/models.dev . */
export const CATALOG_URL = 'https://models.dev/api.json';

/** Bounds on the bytes that are sent, and on those after gunzip. In 2026 the catalog has 254 kB and 3 MB. */
const PACKED_BYTES_MAX = 8 * 1024 * 1024;
const BYTES_MAX = 32 * 1024 * 1024;
/** Deadline of the download. No command waits for it: the wizard shows the older catalog meanwhile. */
const ANSWER_MS = 15_000;

/** Matches an entity tag (RFC 9110). svc sends it back in a header, so it may contain nothing else. */
const ETAG = /^(?:W\/)?"[\u0021\u0023-\u007e]{0,200}"$/;

/** Opens an upstream, which the caller must close. */
export type OpenUpstream = (
  settings: UpstreamSettings,
  limits: { readonly headersMs: number },
) => Upstream;

export type Fetched =
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'new'; readonly entries: CatalogEntries; readonly etag: string };

export interface FeedRequest {
  readonly url: string;
  /** The entity tag of the present copy; '' if there is none. */
  readonly etag: string;
  readonly environment: Environment;
  readonly signal: AbortSignal;
}

const unpack = promisify(gunzip);

/** Downloads the catalog. Returns undefined if that fails: no network, an error status, another format. */
export async function fetchCatalog(
  { url, etag, environment, signal }: FeedRequest,
  open: OpenUpstream,
): Promise<Fetched | undefined> {
  const { origin, pathname, search } = new URL(url);
  const upstream = open(settingsOf(origin, environment), { headersMs: ANSWER_MS });
  try {
    const condition = etag === '' ? [] : ['if-none-match', etag];
    const headers = ['accept', 'application/json', 'accept-encoding', 'gzip', ...condition];
    const target = pathname + search;
    const request = { method: 'GET', target, headers, body: [] };
    const [answer, body] = await withDeadline(ANSWER_MS, signal, async (deadline) => {
      const head = await upstream.send(request, deadline);
      return [head, await wholeBody(head, { bytesMax: PACKED_BYTES_MAX, signal: deadline })];
    });
    if (answer.status === 304 && etag !== '') return { kind: 'unchanged' };
    if (answer.status !== 200 || typeof body === 'string') return undefined;
    const isPacked = headerOf(answer.headers, 'content-encoding') === 'gzip';
    const text = isPacked ? await unpack(body, { maxOutputLength: BYTES_MAX }) : body;
    const entries = parseEntries(JSON.parse(text.toString('utf8')));
    if (entries === undefined) return undefined;
    return { kind: 'new', entries, etag: readEtag(headerOf(answer.headers, 'etag')) };
  } catch {
    // After an error the earlier catalog stays in use.
    return undefined;
  } finally {
    await upstream.close();
  }
}

export function readEtag(value: unknown): string {
  return typeof value === 'string' && ETAG.test(value) ? value : '';
}

function settingsOf(origin: string, environment: Environment): UpstreamSettings {
  const proxy = environmentProxy(new URL(origin), environment);
  return {
    ...(proxy === undefined ? {} : { proxy }),
    name: 'catalog',
    apiStyle: 'openai_chat_completions',
    baseUrl: origin,
    providerKey: '',
    auth: 'none',
    headers: {},
    query: {},
    allowPrivate: isOwnMachineUrl(origin),
  };
}
