import { forwardHeaders } from '../core/header-rules.ts';
import type { UpstreamSettings } from '../core/settings.ts';
import { ProxyError } from '../core/errors.ts';
import type { Upstream, UpstreamAnswer } from '../ports/upstream.ts';

/**
 * Whether a provider can be reached and takes its key: GET /v1/models, which costs nothing, over
 * the same pinned connection that requests take. Nothing the provider says is repeated.
 */
type KeyState = 'accepted' | 'refused' | 'unknown' | 'unreachable' | 'not_allowed';

export interface KeyCheck {
  readonly state: KeyState;
  /** What was found, for people: a clause without a full stop. */
  readonly found: string;
}

/** Opens an upstream; closed by the check. */
export type OpenUpstream = (
  settings: UpstreamSettings,
  limits: { readonly headersMs: number },
) => Upstream;

// A model list takes a second; a provider that needs ten is not one to start with.
const ANSWER_MS = 10_000;
/** The longest list seen, of an aggregator with thousands of models, is 2 MB. */
const BODY_BYTES_MAX = 8 * 1024 * 1024;

export async function checkKey(settings: UpstreamSettings, open: OpenUpstream): Promise<KeyCheck> {
  const upstream = open(settings, { headersMs: ANSWER_MS });
  try {
    const deadline = AbortSignal.timeout(ANSWER_MS);
    const answer = await upstream.send(
      {
        method: 'GET',
        target: '/v1/models',
        headers: forwardHeaders(clientHeaders(settings), settings),
        body: [],
      },
      deadline,
    );
    const body = await bodyOf(answer, deadline);
    return readAnswer(answer.status, body, settings);
  } catch (error) {
    return readFailure(error);
  } finally {
    await upstream.close();
  }
}

function clientHeaders({ apiStyle }: UpstreamSettings): string[] {
  const accept = ['accept', 'application/json'];
  return apiStyle === 'anthropic_messages'
    ? [...accept, 'anthropic-version', '2023-06-01']
    : accept;
}

/** '' for a body that is cut, late or too long. */
function bodyOf(answer: UpstreamAnswer, deadline: AbortSignal): Promise<string> {
  return new Promise((resolve) => {
    const chunks: Uint8Array[] = [];
    let length = 0;
    const giveUp = (): void => {
      answer.abort();
      resolve('');
    };
    deadline.addEventListener('abort', giveUp, { once: true });
    answer.deliver({
      data: (chunk) => {
        chunks.push(chunk);
        length += chunk.length;
        if (length > BODY_BYTES_MAX) giveUp();
        return true;
      },
      end: () => resolve(Buffer.concat(chunks).toString('utf8')),
      cut: () => resolve(''),
    });
  });
}

function readAnswer(status: number, body: string, { auth }: UpstreamSettings): KeyCheck {
  if (status === 200) {
    const models = modelCount(body);
    const list =
      models === undefined
        ? 'it answers'
        : `it lists ${models} ${models === 1 ? 'model' : 'models'}`;
    const key = auth === 'none' ? '' : 'the key is accepted, ';
    return { state: 'accepted', found: `${key}${list}` };
  }
  if (status === 401) return { state: 'refused', found: 'the provider refuses the key (401)' };
  if (status === 403) {
    const found = 'the key is known or blocked, and may not list models (403)';
    return { state: 'refused', found };
  }
  if (status === 402) return { state: 'unknown', found: 'the account has no credit (402)' };
  if (status === 404 || status === 405) {
    const found = `the provider answers, and has no model list to try the key on (${status})`;
    return { state: 'unknown', found };
  }
  if (status === 429) {
    return { state: 'unknown', found: 'the provider answers, and limits this key now (429)' };
  }
  if (status >= 300 && status < 400) {
    const found = `the provider redirects (${status}), which svc does not follow: is the URL right?`;
    return { state: 'unknown', found };
  }
  const trouble = status >= 500 ? 'is in trouble itself' : 'answers something unexpected';
  return { state: 'unknown', found: `the provider ${trouble} (${status})` };
}

function modelCount(body: string): number | undefined {
  try {
    const parsed: unknown = JSON.parse(body);
    const data: unknown =
      typeof parsed === 'object' && parsed !== null && Reflect.get(parsed, 'data');
    return Array.isArray(data) ? data.length : undefined;
  } catch {
    return undefined;
  }
}

function readFailure(error: unknown): KeyCheck {
  if (!(error instanceof ProxyError)) {
    return { state: 'unreachable', found: 'the provider does not answer in 10 seconds' };
  }
  if (error.code === 'UPSTREAM_ADDRESS_REFUSED') {
    const found = 'its address is private, and svc reaches those only where it is told to';
    return { state: 'not_allowed', found };
  }
  if (error.code === 'UPSTREAM_TIMEOUT') {
    return { state: 'unreachable', found: 'the provider does not answer in 10 seconds' };
  }
  const code = /\(([A-Z][A-Z0-9_]+)\)/.exec(error.message)?.[1];
  return { state: 'unreachable', found: code === undefined ? error.message : meaningOf(code) };
}

const MEANINGS: Readonly<Record<string, string>> = {
  ENOTFOUND: 'its name is not known: no network, or a slip in the URL',
  EAI_AGAIN: 'its name cannot be looked up now: no network?',
  ECONNREFUSED: 'nobody listens at that address',
  ECONNRESET: 'the connection was cut',
  ENETUNREACH: 'there is no network',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate is self-signed: see NODE_EXTRA_CA_CERTS',
  SELF_SIGNED_CERT_IN_CHAIN:
    'a certificate in its chain is unknown, as a company network makes them: see NODE_EXTRA_CA_CERTS',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'its certificate cannot be verified: see NODE_EXTRA_CA_CERTS',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'its certificate cannot be verified: see NODE_EXTRA_CA_CERTS',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another name',
};

function meaningOf(code: string): string {
  const meaning = Object.hasOwn(MEANINGS, code) ? MEANINGS[code] : undefined;
  return meaning === undefined ? `it cannot be reached (${code})` : `${meaning} (${code})`;
}
