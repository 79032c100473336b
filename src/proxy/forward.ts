import { type Dialect, DIALECTS } from '../core/conversation/dialect.ts';
import { DIALECT_APIS, apiOf } from '../core/dialects/apis.ts';
import { ProxyError } from '../core/errors.ts';
import type { Encoding } from '../core/http/http-form.ts';
import {
  answerHeaders,
  forwardHeaders,
  isRedirect,
  withoutPlace,
  withoutRetry,
} from '../core/http/header-rules.ts';
import type { RawHeaders } from '../core/http/headers.ts';
import type { Issuer } from '../core/plan/evidence.ts';
import type { Route } from '../core/http/routes.ts';
import type { Cancellation } from '../ports/cancellation.ts';
import type { UpstreamAnswer } from '../ports/upstream.ts';
import type { ClientRequest } from './client-request.ts';
import type { ProxySettings, UpstreamSettings } from '../core/settings/settings.ts';
import type { ChooseUpstream, ConfiguredUpstream } from './dependencies.ts';

/** The settings of a proxy that has one upstream a dialect. */
export interface LiveSettings {
  readonly proxy: ProxySettings;
  readonly upstreams: ReadonlyMap<Dialect, ConfiguredUpstream>;
}

/** Chooses by the route alone: the model in the body is the client's business. */
export function chooseByRoute(live: () => LiveSettings): ChooseUpstream {
  return ({ request }) => ({ configured: upstreamFor(live(), request.route) });
}

/** The upstream of a route's dialect; undefined where none is configured. */
export function findUpstream(live: LiveSettings, route: Route): ConfiguredUpstream | undefined {
  return upstreamChoices(route)
    .map((choice) => live.upstreams.get(choice))
    .find((upstream) => upstream !== undefined);
}

/** The upstream of a route's dialect. Throws UPSTREAM_NOT_CONFIGURED. */
function upstreamFor(live: LiveSettings, route: Route): ConfiguredUpstream {
  const dialect = 'dialect' in route ? route.dialect : undefined;
  const found = findUpstream(live, route);
  if (found !== undefined) return found;
  throw new ProxyError(
    'UPSTREAM_NOT_CONFIGURED',
    `No upstream with apiStyle ${dialect ?? 'openai_responses'} is configured.`,
  );
}

/** Each route asks several times in a request. */
const RELAY_CHOICES: ReadonlyMap<Dialect | undefined, readonly Dialect[]> = new Map(
  [undefined, ...DIALECTS].map((dialect) => [dialect, relayChoices(dialect)]),
);

function upstreamChoices(route: Route): readonly Dialect[] {
  const dialect = 'dialect' in route ? route.dialect : undefined;
  const isModel = dialect !== undefined && route.kind === 'model';
  return isModel ? [dialect] : (RELAY_CHOICES.get(dialect) ?? []);
}

/**
 * The dialects of one provider usually share an upstream, so a relayed path goes to any of them. A path
 * of no dialect is the model list, asked for without `anthropic-version`: OpenAI's side first.
 */
function relayChoices(dialect: Dialect | undefined): readonly Dialect[] {
  const provider = dialect === undefined ? 'openai' : apiOf(dialect).provider;
  const [kin, others] = [true, false].map((isKin) => {
    return DIALECT_APIS.filter((one) => (one.provider === provider) === isKin);
  });
  const names = (list: typeof kin): readonly Dialect[] => (list ?? []).map(({ name }) => name);
  return dialect === undefined ? [...names(kin), ...names(others)] : [dialect, ...names(kin)];
}

/** How the provider took the client's own bytes. Accepted: svc's change was why it had refused. */
export type OwnBytes = 'accepted' | 'refused' | 'failed';

export interface ForwardCall {
  readonly configured: ConfiguredUpstream;
  readonly request: ClientRequest;
  /** The changed body; undefined when the client's own bytes are sent. */
  readonly changed: readonly Uint8Array[] | undefined;
  readonly signal: Cancellation;
  /** False once this conversation was refused in both forms: then a refusal is passed on. */
  readonly isTriedAgain: boolean;
  /** The provider refused the changed request, and the client's own bytes were sent instead. */
  readonly onRefused: (own: OwnBytes) => Promise<void>;
}

/**
 * Sends the planned bytes. When the provider refuses a changed request as a request (not as a
 * rate), svc sends the client's own bytes once, before the client has seen anything. An answer must
 * never fail because of svc's additions.
 */
export function forwardPlanned(call: ForwardCall): Promise<UpstreamAnswer> {
  return call.changed === undefined ? forwardUntouched(call) : forwardChanged(call, call.changed);
}

async function forwardChanged(
  call: ForwardCall,
  changed: readonly Uint8Array[],
): Promise<UpstreamAnswer> {
  const answer = await send(call, changed);
  if (!call.isTriedAgain || !isRefusal(answer)) return answer;
  answer.abort();
  const again = await forwardUntouched(call);
  await call.onRefused(fateOf(again));
  return again;
}

/** Sends the client's own bytes. */
export function forwardUntouched(
  call: Pick<ForwardCall, 'configured' | 'request' | 'signal'>,
): Promise<UpstreamAnswer> {
  const { body, encoded } = call.request;
  // A login's provider gets the body in the client's own encoding; others may not know it.
  if (encoded !== undefined) return send(call, [encoded.bytes], encoded.encoding);
  return send(call, body === undefined ? [] : [body]);
}

function send(
  { configured, request, signal }: Pick<ForwardCall, 'configured' | 'request' | 'signal'>,
  body: readonly Uint8Array[],
  encoding: Encoding = 'identity',
): Promise<UpstreamAnswer> {
  const { method, target } = request;
  const plain = forwardedHeaders(request.headers, configured.settings);
  const headers = encoding === 'identity' ? plain : [...plain, 'content-encoding', encoding];
  return configured.upstream.send({ method, target, headers, body }, signal);
}

interface Forwarded {
  readonly settings: UpstreamSettings;
  readonly headers: RawHeaders;
}

/**
 * The forwarded headers by the client's: a list that no one changes, and the same one as long as a connection
 * sends the same headers.
 */
const FORWARDED = new WeakMap<RawHeaders, Forwarded>();

function forwardedHeaders(client: RawHeaders, settings: UpstreamSettings): RawHeaders {
  const known = FORWARDED.get(client);
  if (known?.settings === settings) return known.headers;
  const headers = forwardHeaders(client, settings);
  FORWARDED.set(client, { settings, headers });
  return headers;
}

const UNAUTHORIZED = 401;

/**
 * The provider's headers for the client. A refused key of svc's own is not worth another try. A service
 * serves clients of many providers: it leads none of them to a host that a provider names.
 */
export function headersForClient(
  { status, headers }: UpstreamAnswer,
  { settings }: ConfiguredUpstream,
  issuer: Issuer,
): string[] {
  const answered = answerHeaders(headers, status);
  if (issuer.kind === 'service' && isRedirect(status)) return withoutPlace(answered);
  const hasOwnKey = settings.auth !== 'client' && settings.auth !== 'none';
  return status === UNAUTHORIZED && hasOwnKey ? withoutRetry(answered) : answered;
}

function fateOf(answer: UpstreamAnswer): OwnBytes {
  if (isRefusal(answer)) return 'refused';
  return answer.status < FIRST_ERROR ? 'accepted' : 'failed';
}

const FIRST_ERROR = 400;

// 400 and 413 judge the request itself. Some providers say with a 429 that names no limit and no
// time that a request is too big for the account.
function isRefusal({ status, headers }: UpstreamAnswer): boolean {
  if (status === 400 || status === 413) return true;
  return status === 429 && !headers.some((name, at) => at % 2 === 0 && isRateHeader(name));
}

function isRateHeader(name: string): boolean {
  const lower = name.toLowerCase();
  return lower.startsWith('retry-after') || lower.includes('ratelimit');
}
