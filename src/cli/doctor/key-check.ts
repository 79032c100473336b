import { proxyFaultText } from '../../adapters/network/pinned-connector.ts';
import { wholeBody } from '../../adapters/network/whole-answer.ts';
import { asRecord, asText, parseJson } from '../../core/bytes/json-fields.ts';
import { apiOf } from '../../core/dialects/apis.ts';
import { forwardHeaders, headerOf } from '../../core/http/header-rules.ts';
import type { UpstreamSettings } from '../../core/settings/settings.ts';
import { ProxyError } from '../../core/errors.ts';
import type { Upstream } from '../../ports/upstream.ts';
import { count } from '../listing.ts';

/** Whether a provider or a memory service can be reached and accepts its key. */
export interface KeyCheck {
  /** 'not_allowed': its address is private, and the user has not allowed that. */
  readonly state: 'accepted' | 'refused' | 'unknown' | 'unreachable' | 'not_allowed';
  /** The result in words for users, without a full stop. */
  readonly found: string;
  /** Ids of the provider's models, if it lists them. */
  readonly models?: readonly string[];
  /**
   * How far the provider's clock is ahead of this machine's, in milliseconds; too low by the answer's delay, and by up
   * to a second.
   */
  readonly clockAheadMs?: number;
}

/** Opens a connection to a provider. The check of the key closes it. */
export type OpenUpstream = (
  settings: UpstreamSettings,
  limits: { readonly headersMs: number },
) => Upstream;

/** Deadline of an answer, in milliseconds. A list of models takes a second; a provider that needs ten is unusable. */
const ANSWER_MS = 10_000;
/** Bound on an answer, in bytes; a longer one counts as empty. The longest list of models that was seen has 2 MB. */
const BODY_BYTES_MAX = 8 * 1024 * 1024;

/**
 * Checks a provider and its key with calls that cost nothing: GET /v1/models, and an empty model request if there is no
 * list. Sends nothing if the provider takes the client's own login. `open` connects as for other requests.
 */
export async function checkKey(settings: UpstreamSettings, open: OpenUpstream): Promise<KeyCheck> {
  // Only the client has the login, so svc cannot test it.
  if (settings.auth === 'client') {
    const found = 'it uses the login of your client, which svc does not have';
    return { state: 'accepted', found };
  }
  try {
    const answer = await exchange({ settings, method: 'GET', target: '/v1/models' }, open);
    const sent = Date.parse(headerOf(answer.headers, 'date') ?? '');
    const clock = Number.isNaN(sent) ? {} : { clockAheadMs: sent - Date.now() };
    const isListed = answer.status !== 404 && answer.status !== 405;
    const read = isListed
      ? readAnswer(answer.status, answer.body, settings)
      : await askWithoutList(settings, open);
    return { ...read, ...clock };
  } catch (error) {
    return failureOf(error);
  }
}

/**
 * Tests a key by sending an empty object to the path of model calls. A provider first refuses a wrong key. With a valid
 * key it refuses the empty object, before a model runs.
 */
async function askWithoutList(settings: UpstreamSettings, open: OpenUpstream): Promise<KeyCheck> {
  const target = apiOf(settings.apiStyle).modelPath;
  const { status, body } = await exchange({ settings, method: 'POST', target, body: '{}' }, open);
  if (status !== 400 && status !== 422) return readAnswer(status, body, settings);
  const key = settings.auth === 'none' ? 'it answers' : 'the key is accepted';
  return { state: 'accepted', found: `${key}, but the provider lists no models` };
}

export interface Question {
  readonly settings: UpstreamSettings;
  readonly method: 'GET' | 'POST';
  readonly target: string;
  readonly body?: string;
}

/**
 * Sends a request to the provider with its key, as the proxy does. In the result, the body is '' if it was cut, late or
 * too long. Throws the errors of Upstream.send().
 */
export async function exchange({ settings, method, target, body }: Question, open: OpenUpstream) {
  const upstream = open(settings, { headersMs: ANSWER_MS });
  try {
    const signal = AbortSignal.timeout(ANSWER_MS);
    const content = body === undefined ? [] : ['content-type', 'application/json'];
    const headers = forwardHeaders([...clientHeaders(settings), ...content], settings);
    const pieces = body === undefined ? [] : [Buffer.from(body)];
    const answer = await upstream.send({ method, target, headers, body: pieces }, signal);
    const read = await wholeBody(answer, { bytesMax: BODY_BYTES_MAX, signal });
    return {
      status: answer.status,
      headers: answer.headers,
      body: typeof read === 'string' ? '' : read.toString('utf8'),
    };
  } finally {
    await upstream.close();
  }
}

function clientHeaders({ apiStyle }: UpstreamSettings): string[] {
  const { callHeaders } = apiOf(apiStyle);
  return ['accept', 'application/json', ...Object.entries(callHeaders).flat()];
}

function readAnswer(status: number, body: string, { auth }: UpstreamSettings): KeyCheck {
  if (status === 200) {
    const models = modelsIn(body);
    const key = auth === 'none' ? '' : 'the key is accepted, ';
    if (models === undefined) return { state: 'accepted', found: `${key}it answers` };
    return { state: 'accepted', found: `${key}it lists ${count(models.length, 'model')}`, models };
  }
  if (status === 401) return { state: 'refused', found: 'the provider refuses the key (401)' };
  if (status === 403) {
    const found = 'the key is blocked, or may not list models (403)';
    return { state: 'refused', found };
  }
  if (status === 402) return { state: 'unknown', found: 'the account has no credit (402)' };
  if (status === 404 || status === 405) {
    const found = `the provider answers, but has no model list to test the key with (${status})`;
    return { state: 'unknown', found };
  }
  if (status === 429) {
    return { state: 'unknown', found: 'the provider answers, but limits this key now (429)' };
  }
  if (status >= 300 && status < 400) {
    const found = `the provider redirects (${status}), which svc does not follow: is the URL right?`;
    return { state: 'unknown', found };
  }
  const trouble = status >= 500 ? 'has a fault' : 'sent an unexpected answer';
  return { state: 'unknown', found: `the provider ${trouble} (${status})` };
}

function modelsIn(body: string): readonly string[] | undefined {
  const { data } = asRecord(parseJson(body));
  // A model without an id becomes '', so that the count is right.
  return Array.isArray(data) ? data.map((one) => asText(asRecord(one)['id'])) : undefined;
}

const LATE: KeyCheck = { state: 'unreachable', found: 'the provider does not answer in time' };

/** Returns why the provider did not answer, in words for users. */
export function failureOf(error: unknown): KeyCheck {
  if (!(error instanceof ProxyError)) return LATE;
  if (error.code === 'UPSTREAM_ADDRESS_REFUSED') {
    const found = 'its address is private, which svc uses only if you allow it';
    return { state: 'not_allowed', found };
  }
  const code = /\(([A-Z][A-Z0-9_]+)\)/.exec(error.message)?.[1];
  if (error.code === 'UPSTREAM_TIMEOUT' && code === undefined) return LATE;
  return { state: 'unreachable', found: code === undefined ? error.message : meaningOf(code) };
}

const MEANINGS: Readonly<Record<string, string>> = {
  ETIMEOUT: 'it does not answer in time',
  UND_ERR_CONNECT_TIMEOUT: 'it does not answer in time',
  ENOTFOUND:
    'its name is not known: there is no network, the network needs a proxy (HTTPS_PROXY), or the host is misspelt',
  EAI_AGAIN: 'its name cannot be looked up now: no network?',
  ECONNREFUSED: 'nothing listens at that address',
  ECONNRESET: 'the connection was cut',
  ENETUNREACH: 'there is no network',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate is self-signed: see NODE_EXTRA_CA_CERTS',
  SELF_SIGNED_CERT_IN_CHAIN:
    'the issuer of its certificate is unknown, as in many company networks: see NODE_EXTRA_CA_CERTS',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'its certificate cannot be verified: see NODE_EXTRA_CA_CERTS',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'its certificate cannot be verified: see NODE_EXTRA_CA_CERTS',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another host name',
};

export function meaningOf(code: string): string {
  const meaning =
    proxyFaultText(code) ?? (Object.hasOwn(MEANINGS, code) ? MEANINGS[code] : undefined);
  return meaning === undefined ? `it cannot be reached (${code})` : `${meaning} (${code})`;
}
