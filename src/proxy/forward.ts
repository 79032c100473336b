import { isThoughtRefusal } from '../core/conversation/lost-thoughts.ts';
import {
  answerHeaders,
  forwardHeaders,
  isRedirect,
  withBeta,
  withoutPlace,
  withoutRetry,
  type RawHeaders,
} from '../core/http/header-rules.ts';
import type { Issuer } from '../core/plan/evidence.ts';
import type { AnswerSink, UpstreamAnswer } from '../ports/upstream.ts';
import type { ClientRequest, ConfiguredUpstream } from './dependencies.ts';

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
  { configured, request, signal, beta }: SendCall,
): Promise<UpstreamAnswer> {
  const { method, target, encoded } = request;
  let headers: RawHeaders = forwardHeaders(request.headers, configured.settings);
  if (beta !== undefined) headers = withBeta(headers, beta);
  if (body !== undefined)
    return configured.upstream.send({ method, target, headers, body }, signal);
  // A login's provider gets the body in the client's own encoding; others may not know it.
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
