import { wholeBody } from '../adapters/whole-answer.ts';
import { isRecord } from '../core/json-fields.ts';
import { forwardHeaders } from '../core/header-rules.ts';
import { isOwnMachineUrl } from '../core/config-upstreams.ts';
import type { UpstreamSettings } from '../core/settings.ts';
import { failureOf, type KeyCheck, type OpenUpstream } from './key-check.ts';

/**
 * Whether a hosted memory can be reached and takes its key: GET /v1/svc/whoami, which any key may
 * call. Nothing that the service says is repeated but names of scopes.
 */
export interface ServiceCheck extends KeyCheck {
  /** What the key may do; empty unless it was accepted. */
  readonly scopes: readonly Scope[];
}

const SCOPES = ['read', 'write', 'receipt:read'] as const;
type Scope = (typeof SCOPES)[number];

export interface ServicePlace {
  readonly baseUrl: string;
  readonly serviceKey: string;
  readonly allowPrivate?: boolean;
}

// A memory that needs seconds would be left out of every request.
const ANSWER_MS = 5000;
/** The answer is one short object. */
const BODY_BYTES_MAX = 64 * 1024;
const WHO = 'the memory service';

export async function checkService(place: ServicePlace, open: OpenUpstream): Promise<ServiceCheck> {
  const settings = settingsOf(place);
  const upstream = open(settings, { headersMs: ANSWER_MS });
  const from = performance.now();
  try {
    const signal = AbortSignal.timeout(ANSWER_MS);
    const headers = forwardHeaders(['accept', 'application/json'], settings);
    const request = { method: 'GET', target: '/v1/svc/whoami', headers, body: [] };
    const answer = await upstream.send(request, signal);
    const body = await wholeBody(answer, { bytesMax: BODY_BYTES_MAX, signal });
    const ms = Math.round(performance.now() - from);
    return readAnswer(answer.status, body?.toString('utf8') ?? '', ms);
  } catch (error) {
    return { ...failureOf(error, WHO), scopes: [] };
  } finally {
    await upstream.close();
  }
}

// The style whose base may have a path before its /v1; nothing else of it is used.
function settingsOf({ baseUrl, serviceKey, allowPrivate }: ServicePlace): UpstreamSettings {
  return {
    name: 'memory',
    apiStyle: 'anthropic_messages',
    baseUrl,
    providerKey: serviceKey,
    auth: 'bearer',
    headers: {},
    query: {},
    allowPrivate: allowPrivate === true || isOwnMachineUrl(baseUrl),
  };
}

function readAnswer(status: number, body: string, ms: number): ServiceCheck {
  if (status === 200) return readIdentity(body, ms);
  const none: readonly Scope[] = [];
  if (status === 401) {
    return { state: 'refused', found: `${WHO} refuses the service key (401)`, scopes: none };
  }
  if (status === 403) {
    return { state: 'refused', found: `${WHO} knows the key and blocks it (403)`, scopes: none };
  }
  if (status === 404) {
    const found = 'what answers there is no memory service (404): is the URL right?';
    return { state: 'unknown', found, scopes: none };
  }
  return { state: 'unknown', found: `${WHO} is in trouble itself (${status})`, scopes: none };
}

function readIdentity(body: string, ms: number): ServiceCheck {
  const scopes = scopesIn(body);
  if (scopes === undefined) {
    const found = 'what answers there is no memory service: is the URL right?';
    return { state: 'unknown', found, scopes: [] };
  }
  const may = scopes.length === 0 ? 'nothing' : scopes.join(', ');
  return { state: 'accepted', found: `the key is accepted and may: ${may}; ${ms} ms`, scopes };
}

function scopesIn(body: string): readonly Scope[] | undefined {
  try {
    const value: unknown = JSON.parse(body);
    const key = isRecord(value) ? value['key'] : undefined;
    const scopes: unknown = isRecord(key) ? key['scopes'] : undefined;
    if (!Array.isArray(scopes)) return undefined;
    return SCOPES.filter((scope) => scopes.includes(scope));
  } catch {
    return undefined;
  }
}
