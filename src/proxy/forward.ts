import { isThoughtRefusal } from '../core/conversation/lost-thoughts.ts';
import {
  answerHeaders,
  forwardHeaders,
  isRedirect,
  withBeta,
  withoutHeader,
  withoutRetry,
  type RawHeaders,
} from '../core/http/header-rules.ts';
import type { Issuer } from '../core/plan/plan.ts';
import type { AnswerSink, UpstreamAnswer } from '../ports/upstream.ts';
import type { ClientRequest, ConfiguredUpstream } from './dependencies.ts';

/** A form of a request that svc may send: with all edits, with some of them, or as the client wrote it. */
export interface Form {
  /** The body in pieces; undefined: the client's own bytes. */
  readonly body: readonly Uint8Array[] | undefined;
  /** The value of `anthropic-beta` that the edits need. */
  readonly beta?: string | undefined;
  /**
   * True if this form lacks edits that earlier requests had in front of bound thinking (see Bond). svc sends it only if
   * the provider refused the request because of the thinking.
   */
  readonly breaksBond?: boolean;
}

export interface ForwardCall<Planned extends Form> {
  readonly configured: ConfiguredUpstream;
  readonly request: ClientRequest;
  readonly planned: Planned;
  /** Makes the other forms in the order in which they are tried. */
  readonly fallbacks: (() => readonly Planned[]) | undefined;
  readonly signal: AbortSignal;
  /**
   * Called if the provider refused the planned form, before the answer is returned. `accepted`: the form that the
   * provider accepted; undefined if it accepted none. Not called if another form got an error that is no refusal.
   */
  readonly onRefused: (accepted: Planned | undefined) => Promise<void>;
}

/**
 * Sends the planned form. If the provider refuses the request itself (not only its rate), svc sends the other forms in
 * order, before the client gets anything: no request may fail because of svc's edits. If all are refused, the client
 * gets the first refusal, because clients repair a request by its wording.
 */
export async function forwardPlanned<Planned extends Form>(
  call: ForwardCall<Planned>,
): Promise<UpstreamAnswer> {
  const { planned } = call;
  const answer = await sendForm(planned.body, { ...call, beta: planned.beta });
  if (call.fallbacks === undefined || !isRefusal(answer)) return answer;
  const first = await PeekedAnswer.of(answer, call.signal);
  let isBondBroken = speaksOfBond(first);
  for (const form of othersOf(call.fallbacks)) {
    if (form.breaksBond === true && !isBondBroken) continue;
    // Sends one form after the other, because each is needed only if the one before it was refused.
    // oxlint-disable-next-line no-await-in-loop
    const next = await tryForm(call, form);
    if (next === undefined) break;
    if (!isRefusal(next)) {
      first.abort();
      const isAccepted = next.status < FIRST_ERROR;
      // oxlint-disable-next-line no-await-in-loop
      if (isAccepted) await call.onRefused(form);
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

/** Sends another form. Returns undefined if the provider cannot be reached any more. */
async function tryForm(call: SendCall, form: Form): Promise<UpstreamAnswer | undefined> {
  try {
    return await sendForm(form.body, { ...call, beta: form.beta });
  } catch (error) {
    if (call.signal.aborted) throw error;
    return undefined;
  }
}

/** Makes the other forms. Returns none if that throws, so that the client gets the provider's refusal instead. */
function othersOf<Planned>(fallbacks: () => readonly Planned[]): readonly Planned[] {
  try {
    return fallbacks();
  } catch {
    return [];
  }
}

type SendCall = Pick<ForwardCall<Form>, 'configured' | 'request' | 'signal'> & Pick<Form, 'beta'>;

/** Sends one form of a request. If `body` is undefined, sends the client's own bytes. */
export function sendForm(
  body: readonly Uint8Array[] | undefined,
  { configured, request, signal, beta }: SendCall,
): Promise<UpstreamAnswer> {
  const { method, target, encoded } = request;
  let headers: RawHeaders = forwardHeaders(request.headers, configured.settings);
  if (beta !== undefined) headers = withBeta(headers, beta);
  if (body !== undefined)
    return configured.upstream.send({ method, target, headers, body }, signal);
  // `encoded` is kept only for a provider that takes the client's own login: others may not know the encoding.
  if (encoded !== undefined) headers = [...headers, 'content-encoding', encoded.encoding];
  const own = encoded?.bytes ?? request.body;
  const bytes = own === undefined ? [] : [own];
  return configured.upstream.send({ method, target, headers, body: bytes }, signal);
}

function speaksOfBond({ status, start }: PeekedAnswer): boolean {
  return status === 400 && isThoughtRefusal(start);
}

const UNAUTHORIZED = 401;

/**
 * Returns the headers of the provider's answer for the client. If the provider refused svc's own key, they tell the
 * client not to retry. In a service a redirect has no `location`, so that no provider sends clients of the service to
 * another host.
 */
export function headersForClient(
  { status, headers }: UpstreamAnswer,
  { settings }: ConfiguredUpstream,
  issuer: Issuer,
): string[] {
  const answered = answerHeaders(headers, status);
  if (issuer.kind === 'service' && isRedirect(status)) return withoutHeader(answered, 'location');
  const hasOwnKey = settings.auth !== 'client' && settings.auth !== 'none';
  return status === UNAUTHORIZED && hasOwnKey ? withoutRetry(answered) : answered;
}

const FIRST_ERROR = 400;

/**
 * Statuses with which a provider refuses the request itself: 400, 413 and 422 for its form, 403 and 451 for its
 * content. A 429 without headers about a rate is a refusal too: some providers send it for a request that is too big
 * for the account.
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

/**
 * Bytes of a refusal that svc reads before it sends another form. Most error bodies are shorter. The rest of a
 * longer one is relayed as it comes.
 */
const PEEKED_BYTES_MAX = 64 * 1024;
/**
 * Deadline for reading the beginning of a refusal, in milliseconds. A provider sends an error in one piece, so it
 * seldom takes so long.
 */
const PEEK_MS = 2_000;

/** A provider's answer whose beginning svc has read. It can still be relayed whole. */
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

  /** Reads the beginning of an answer. Never rejects. */
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

  /** The bytes that were read, as text. */
  get start(): string {
    return Buffer.concat(this.#chunks).toString('utf8');
  }

  deliver(sink: AnswerSink): void {
    this.#sink = sink;
    let wantsMore = true;
    for (const chunk of this.#chunks) wantsMore = sink.data(chunk);
    if (this.#end !== undefined) sink[this.#end]();
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
    const over = (end: 'end' | 'cut'): void => {
      this.#end = end;
      if (this.#sink === undefined) done();
      else this.#sink[end]();
    };
    this.#answer.deliver({
      data: (chunk) => {
        if (this.#sink !== undefined) return this.#sink.data(chunk);
        this.#chunks.push(chunk);
        this.#bytes += chunk.length;
        if (this.#bytes < PEEKED_BYTES_MAX) return true;
        done();
        return false;
      },
      end: () => over('end'),
      cut: () => over('cut'),
    });
  }
}
