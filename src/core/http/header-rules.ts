/**
 * Decides which headers are forwarded, in both directions. Every header is forwarded unchanged, with its order, case
 * and repeats, even one with an unknown vendor name, unless this file, a Connection header or the upstream's settings
 * name it. Values are latin1 text, one character per byte.
 */

/** How a provider gets its credential. 'client': svc forwards the official client's own login, and never stores it. */
export type UpstreamAuth = 'x-api-key' | 'bearer' | 'none' | 'client';

interface CredentialRules {
  readonly auth: UpstreamAuth;
  readonly providerKey: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Headers about one connection, or about the framing of one message. svc writes its own for its connection. */
const HOP_BY_HOP = namesIn(`
  connection http2-settings keep-alive proxy-authenticate proxy-authentication-info proxy-authorization
  proxy-connection te trailer trailers transfer-encoding upgrade
`);

/** Headers that svc replaces, because it decodes the body, changes its length, and asks for an uncompressed answer. */
const REWRITTEN = ['accept-encoding', 'content-encoding', 'content-length', 'expect', 'host'];

/**
 * Headers in which clients, gateways and browsers send keys. They are not forwarded: the client's credential is svc's
 * local token, and svc adds the provider's key itself. The exception is the Authorization of a login (auth `client`).
 */
const CALLER_CREDENTIALS = namesIn(`
  anthropic-api-key api-key apikey authentication authorization cf-access-client-id cf-access-client-secret
  cf-access-jwt-assertion cf-access-token cf-aig-authorization cookie cookie2 helicone-auth ocp-apim-subscription-key
  openai-api-key private-token set-cookie x-access-token x-amz-security-token x-anthropic-api-key x-api-key x-apikey
  x-auth x-auth-key x-auth-token x-authorization x-csrf-token x-functions-key x-goog-api-key
  x-goog-iam-authorization-token x-litellm-api-key x-openai-api-key x-portkey-api-key x-xsrf-token
`);

/** Headers that say where a request came from, which the provider need not know. */
const ORIGINS_AND_ROUTES = namesIn(`
  ali-cdn-real-ip cdn-loop cf-connecting-ip cf-connecting-ipv6 cf-connecting-o2o cf-ew-via cf-ipcountry cf-pseudo-ipv4
  cf-ray cf-visitor cf-worker client-ip do-connecting-ip fastly-client-ip fastly-ff fastly-ssl fly-client-ip forwarded
  forwarded-for incap-client-ip origin proxy-client-ip referer remote-addr true-client-ip via wl-proxy-client-ip
  x-appengine-remote-addr x-appengine-user-ip x-arr-log-id x-arr-ssl x-azure-clientip x-azure-fdid x-azure-ref
  x-azure-socketip x-client-ip x-cluster-client-ip x-envoy-external-address x-forwarded x-forwarder-for x-host
  x-nf-client-connection-ip x-original-forwarded-for x-original-host x-original-remote-addr x-original-uri
  x-original-url x-originating-ip x-proxyuser-ip x-real-ip x-remote-addr x-remote-ip x-rewrite-url x-sucuri-clientip
  x-vercel-forwarded-for
`);

/** Headers with which some servers and gateways replace the method, path or host of the request line. */
const OVERRIDES = namesIn(`
  base-url destination front-end-https http-url proxy-host request-uri x-backend-host x-dest-ip x-forward-for
  x-host-override x-http-destinationurl x-http-host-override x-http-method x-http-method-override x-http-path-override
  x-method x-method-override x-override-url x-proxy-url x-request-uri x-scheme x-server-name x-url-scheme
`);

/**
 * Headers of a load balancer or a tracing agent between client and svc. They say where the request came from, and a
 * gateway at the provider may trust them. The standard `traceparent` is forwarded.
 */
const TRACES = ['b3', 'uber-trace-id', 'x-cloud-trace-context', 'x-request-start'];

const NEVER_FORWARDED: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  ...REWRITTEN,
  ...CALLER_CREDENTIALS,
  ...ORIGINS_AND_ROUTES,
  ...OVERRIDES,
  ...TRACES,
]);

/** Prefixes of names that are not forwarded. KEPT_PREFIX is the exception: Bedrock's own clients send such headers. */
const PRIVATE_PREFIXES = namesIn(`
  cf-ip cloudfront- fly-forwarded- x-akamai- x-amz-cf- x-amzn- x-appengine- x-azure- x-b3- x-client-geo- x-datadog-
  x-envoy- x-forwarded- x-original- x-rewrite- x-svc- x-vercel-ip-
`);
const KEPT_PREFIX = 'x-amzn-bedrock-';

/** Names that a header from the settings may not have: it would break the framing, or send the key to another host. */
const NEVER_CUSTOM: ReadonlySet<string> = new Set([...HOP_BY_HOP, ...REWRITTEN]);

const CREDENTIAL_NAMES: Readonly<Record<UpstreamAuth, string>> = {
  'x-api-key': 'x-api-key',
  bearer: 'authorization',
  none: '',
  client: 'authorization',
};

/**
 * Headers of an answer that are not forwarded: those about one connection, and those that tell browsers about the
 * provider's own host. svc sets `x-content-type-options` itself.
 */
const NEVER_ANSWERED: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  'alt-svc',
  'set-cookie',
  'set-cookie2',
  'strict-transport-security',
  'x-content-type-options',
]);

/** Returns the first value of a header; undefined if it is missing. `name`: in lower case. */
export function headerOf(headers: RawHeaders, name: string): string | undefined {
  for (let at = 0; at < headers.length; at += 2) {
    if (isNamed(headers[at], name)) return headers[at + 1];
  }
  return undefined;
}

/** Counts how often a header was sent. `name`: in lower case. */
export function headerCount(headers: RawHeaders, name: string): number {
  return headers.filter((header, at) => at % 2 === 0 && isNamed(header, name)).length;
}

/**
 * Returns the client's headers that the provider may see, then `accept-encoding`, the upstream's custom headers, and
 * last the provider's credential, once. With the auth `client`, the client's own Authorization stays in its place
 * instead. The transport adds Host and Content-Length.
 */
export function forwardHeaders(client: RawHeaders, upstream: CredentialRules): string[] {
  const custom = Object.entries(upstream.headers).filter(
    ([name]) => !NEVER_CUSTOM.has(plainName(name)),
  );
  const replaced = new Set(custom.map(([name]) => plainName(name)));
  const nominated = nominatedNames(client);
  const forwarded: string[] = [];
  for (let at = 0; at < client.length; at += 2) {
    const name = client[at] ?? '';
    const plain = plainName(name);
    // The gate has checked that this is the login for this provider, and the only credential.
    if (upstream.auth === 'client' && isNamed(name, 'authorization')) {
      forwarded.push(name, client[at + 1] ?? '');
      continue;
    }
    if (NEVER_FORWARDED.has(plain) || hasPrivatePrefix(plain)) continue;
    if (nominated.has(plain) || replaced.has(plain)) continue;
    forwarded.push(name, client[at + 1] ?? '');
  }
  // Asks for no compression: Codex cannot read a compressed answer, and svc reads only plain ones.
  forwarded.push('accept-encoding', 'identity');
  for (const [name, value] of custom) {
    if (plainName(name) !== CREDENTIAL_NAMES[upstream.auth]) forwarded.push(name, value);
  }
  if (upstream.auth === 'x-api-key') forwarded.push('x-api-key', upstream.providerKey);
  if (upstream.auth === 'bearer') forwarded.push('authorization', `Bearer ${upstream.providerKey}`);
  return forwarded;
}

/** Adds a value to the list in `anthropic-beta`, unless one of these headers already has it. */
export function withBeta(headers: RawHeaders, beta: string): RawHeaders {
  const places = [...headers.keys()].filter(
    (at) => at % 2 === 1 && isNamed(headers[at - 1], 'anthropic-beta'),
  );
  const [first] = places;
  if (first === undefined) return [...headers, 'anthropic-beta', beta];
  const values = places.flatMap((at) => (headers[at] ?? '').split(','));
  if (values.some((value) => value.trim() === beta)) return headers;
  const list = headers[first] ?? '';
  return headers.with(first, list.trim() === '' ? beta : `${list},${beta}`);
}

/** Statuses of answers without a body. With a Content-Length, a client might take the next answer for this body. */
export const BODYLESS: ReadonlySet<number> = new Set([204, 304]);

/** Returns the headers of the provider's answer that the client gets, such as request ids, limits and retry hints. */
export function answerHeaders(provider: RawHeaders, status = 200): string[] {
  const nominated = nominatedNames(provider);
  const answered: string[] = [];
  for (let at = 0; at < provider.length; at += 2) {
    const name = provider[at] ?? '';
    const plain = plainName(name);
    if (NEVER_ANSWERED.has(plain) || nominated.has(plain)) continue;
    if (plain.startsWith('x-svc-') || plain.startsWith('access-control-')) continue;
    if (plain === 'content-length' && BODYLESS.has(status)) continue;
    answered.push(name, provider[at + 1] ?? '');
  }
  answered.push('x-content-type-options', 'nosniff');
  return answered;
}

/** Says whether a status is a redirect. A client that follows it may send its key and its prompt to another host. */
export function isRedirect(status: number): boolean {
  return status >= 300 && status < 400 && status !== 304;
}

/**
 * Tells the client not to retry, because the provider refused svc's own key. Otherwise clients repeat the request for
 * minutes, and then ask the user for a login that does not help.
 */
export function withoutRetry(answered: readonly string[]): string[] {
  return [...withoutHeader(answered, 'x-should-retry'), 'x-should-retry', 'false'];
}

/** Returns the headers without those of one name. `name`: in lower case. */
export function withoutHeader(headers: RawHeaders, name: string): string[] {
  return headers.filter((_, at) => !isNamed(headers[at - (at % 2)], name));
}

function isNamed(header: string | undefined, name: string): boolean {
  return header?.length === name.length && header.toLowerCase() === name;
}

// Many servers read `x_api_key` as `x-api-key`, so a name must be dropped in every spelling (CVE-2025-64484).
function plainName(name: string): string {
  const lower = name.toLowerCase();
  return lower.includes('_') ? lower.replaceAll('_', '-') : lower;
}

function hasPrivatePrefix(plain: string): boolean {
  return (
    PRIVATE_PREFIXES.some((prefix) => plain.startsWith(prefix)) && !plain.startsWith(KEPT_PREFIX)
  );
}

/** Returns the headers that a Connection header names, so that they must not be forwarded (RFC 9110, 7.6.1). */
function nominatedNames(headers: RawHeaders): ReadonlySet<string> {
  const names = new Set<string>();
  for (let at = 0; at < headers.length; at += 2) {
    if (!isNamed(headers[at], 'connection')) continue;
    for (const name of (headers[at + 1] ?? '').split(',')) names.add(plainName(name.trim()));
  }
  return names;
}

/** Headers as they came: name, value, name, value. So order, case and repeats are kept. */
export type RawHeaders = readonly string[];

function namesIn(list: string): readonly string[] {
  return list.trim().split(/\s+/);
}
