import { type Dialect, DIALECTS } from '../core/conversation/view.ts';
import { isThoughtRefusal } from '../core/conversation/lost-thoughts.ts';
import { apiOf, DIALECT_APIS } from '../core/dialects/apis.ts';
import { ProxyError } from '../core/errors.ts';
import type { Encoding } from '../core/http/http-form.ts';
import {
  answerHeaders,
  forwardHeaders,
  isRedirect,
  withBeta,
  withoutPlace,
  withoutRetry,
} from '../core/http/header-rules.ts';
import type { Issuer } from '../core/plan/evidence.ts';
import type { Route } from '../core/http/routes.ts';
import type { AnswerSink, UpstreamAnswer } from '../ports/upstream.ts';
import type { ProxySettings } from '../core/settings/settings.ts';
import type { ChooseUpstream, ClientRequest, ConfiguredUpstream } from './dependencies.ts';
import type { RawHeaders } from '../core/http/headers.ts';

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

/** One form of a request: with all edits, with the accepted ones, or as the client wrote it. */
export interface Form {
  /** Undefined for the client's own bytes. */
  readonly body: readonly Uint8Array[] | undefined;
  /** The value of `anthropic-beta` that its edits need. */
  readonly beta?: string | undefined;
  /** It leaves out edits in front of bound thinking, so it is sent only after a refusal that speaks of that. */
  readonly breaksBond?: boolean;
}

export interface ForwardCall {
  readonly configured: ConfiguredUpstream;
  readonly request: ClientRequest;
  /** The planned form first. Each is different from those before it. */
  readonly forms: readonly [Form, ...Form[]];
  readonly signal: AbortSignal;
  /**
   * Called when the provider refused the planned form, before its answer is returned. `accepted`: the number of
   * the form that it took; undefined where it took none.
   */
  readonly onRefused: (accepted: number | undefined) => Promise<void>;
}

/**
 * Sends the planned form. When the provider refuses it as a request (not as a rate), svc sends the other forms
 * in their order, before the client has seen anything: an answer must never fail because of svc's additions.
 * When all are refused, the client gets the provider's first answer, because clients repair themselves by its
 * words.
 */
export async function forwardPlanned(call: ForwardCall): Promise<UpstreamAnswer> {
  const [planned, ...others] = call.forms;
  const answer = await sendForm(planned.body, { ...call, beta: planned.beta });
  if (others.length === 0 || !isRefusal(answer)) return answer;
  const first = await PeekedAnswer.of(answer, call.signal);
  let isBondBroken = speaksOfBond(first);
  for (const [at, form] of others.entries()) {
    if (form.breaksBond === true && !isBondBroken) continue;
    // One form after the other: each is sent only because the one before was refused.
    // oxlint-disable-next-line no-await-in-loop
    const next = await tryForm(call, form);
    if (next === undefined) break;
    if (!isRefusal(next)) {
      first.abort();
      const isAccepted = next.status < FIRST_ERROR;
      // oxlint-disable-next-line no-await-in-loop
      if (isAccepted) await call.onRefused(at + 1);
      return next;
    }
    // oxlint-disable-next-line no-await-in-loop
    const refused = await PeekedAnswer.of(next, call.signal);
    isBondBroken ||= speaksOfBond(refused);
    refused.abort();
  }
  await call.onRefused(undefined);
  return first;
}

/** Undefined where the provider could not be reached any more: then its first answer counts. */
async function tryForm(call: ForwardCall, form: Form): Promise<UpstreamAnswer | undefined> {
  try {
    return await sendForm(form.body, { ...call, beta: form.beta });
  } catch (error) {
    if (call.signal.aborted) throw error;
    return undefined;
  }
}

type SendCall = Pick<ForwardCall, 'configured' | 'request' | 'signal'> & Pick<Form, 'beta'>;

/** Sends one form of a request. `body`: undefined for the client's own bytes. */
export function sendForm(
  body: readonly Uint8Array[] | undefined,
  call: SendCall,
): Promise<UpstreamAnswer> {
  return body === undefined ? forwardUntouched(call) : send(call, body);
}

function speaksOfBond({ status, start }: PeekedAnswer): boolean {
  return status === 400 && isThoughtRefusal(start);
}

/** Sends the client's own bytes. */
function forwardUntouched(call: SendCall): Promise<UpstreamAnswer> {
  const { body, encoded } = call.request;
  // A login's provider gets the body in the client's own encoding; others may not know it.
  if (encoded !== undefined) return send(call, [encoded.bytes], encoded.encoding);
  return send(call, body === undefined ? [] : [body]);
}

function send(
  { configured, request, signal, beta }: SendCall,
  body: readonly Uint8Array[],
  encoding: Encoding = 'identity',
): Promise<UpstreamAnswer> {
  const { method, target } = request;
  const own = forwardHeaders(request.headers, configured.settings);
  const plain = beta === undefined ? own : withBeta(own, beta);
  const headers = encoding === 'identity' ? plain : [...plain, 'content-encoding', encoding];
  return configured.upstream.send({ method, target, headers, body }, signal);
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

const FIRST_ERROR = 400;

/**
 * 400, 413 and 422 judge the request itself, 403 and 451 what it says. Some providers say with a 429 that names
 * no limit and no time that a request is too big for the account.
 */
const REFUSALS: ReadonlySet<number> = new Set([400, 403, 413, 422, 451]);

function isRefusal({ status, headers }: UpstreamAnswer): boolean {
  if (REFUSALS.has(status)) return true;
  return status === 429 && !headers.some((name, at) => at % 2 === 0 && isRateHeader(name));
}

function isRateHeader(name: string): boolean {
  const lower = name.toLowerCase();
  return lower.startsWith('retry-after') || lower.includes('ratelimit');
}

/** An error body is shorter; what comes behind is relayed as it comes. */
const PEEKED_BYTES_MAX = 64 * 1024;
/** A provider sends an error in one piece. */
const PEEK_MS = 2_000;

/** A provider's answer whose first bytes were read, and which can still be relayed whole. */
export class PeekedAnswer implements UpstreamAnswer {
  readonly status: number;
  readonly headers: RawHeaders;
  readonly #answer: UpstreamAnswer;
  readonly #chunks: Uint8Array[] = [];
  #bytes = 0;
  #end: 'end' | 'cut' | undefined;
  #sink: AnswerSink | undefined;

  private constructor(answer: UpstreamAnswer) {
    this.#answer = answer;
    this.status = answer.status;
    this.headers = answer.headers;
  }

  /** Resolves when the whole body is read, or as much of it as is read ahead. Never rejects. */
  static of(answer: UpstreamAnswer, signal: AbortSignal): Promise<PeekedAnswer> {
    const peeked = new PeekedAnswer(answer);
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        resolve(peeked);
      };
      const timer = setTimeout(done, PEEK_MS);
      if (signal.aborted) done();
      else peeked.#read(done);
    });
  }

  /** The beginning of the body as text. */
  get start(): string {
    return Buffer.concat(this.#chunks).toString('utf8');
  }

  deliver(sink: AnswerSink): void {
    this.#sink = sink;
    let wantsMore = true;
    for (const chunk of this.#chunks) wantsMore = sink.data(chunk);
    if (this.#end === 'end') sink.end();
    else if (this.#end === 'cut') sink.cut();
    else if (wantsMore) this.#answer.resume();
  }

  resume(): void {
    this.#answer.resume();
  }

  abort(): void {
    this.#sink = undefined;
    this.#answer.abort();
  }

  #read(done: () => void): void {
    this.#answer.deliver({
      data: (chunk) => {
        if (this.#sink !== undefined) return this.#sink.data(chunk);
        this.#chunks.push(chunk);
        this.#bytes += chunk.length;
        if (this.#bytes < PEEKED_BYTES_MAX) return true;
        done();
        return false;
      },
      end: () => {
        this.#end = 'end';
        if (this.#sink === undefined) done();
        else this.#sink.end();
      },
      cut: () => {
        this.#end = 'cut';
        if (this.#sink === undefined) done();
        else this.#sink.cut();
      },
    });
  }
}
