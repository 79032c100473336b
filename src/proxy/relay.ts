import type { ServerResponse } from 'node:http';
import { BYTES_A_TOKEN } from '../core/bytes/tokens.ts';
import { AnswerReader } from '../core/answer/answer-reader.ts';
import { headerOf, type RawHeaders } from '../core/http/header-rules.ts';
import type { AnswerSink, UpstreamAnswer } from '../ports/upstream.ts';
import { isThoughtRefusal, type LostThoughts } from '../core/conversation/lost-thoughts.ts';
import type { Answer, AnswerParserOptions } from '../core/dialects/dialect-answer.ts';
import type { AnswerWatcher, ClientRequest, HoldBack } from './dependencies.ts';

/**
 * How a relay ended: the whole answer was sent, the client closed its connection, or the provider's answer broke off.
 */
export type RelayEnd = 'complete' | 'client-gone' | 'upstream-cut';

export interface RelayOptions {
  readonly answer: UpstreamAnswer;
  readonly outgoing: ServerResponse;
  readonly watcher?: AnswerWatcher | undefined;
  /** Called with each chunk of the answer, also if the watcher fails. Must not throw. */
  readonly onChunk?: ((chunk: Uint8Array) => void) | undefined;
  readonly holdBack?: HoldBack | undefined;
  /** The head as the client gets it, including the evidence headers. */
  readonly head: { readonly status: number; readonly headers: RawHeaders };
}

/**
 * Milliseconds for the provider to end its stream after the answer's last event, if the client has already closed its
 * connection. Codex closes its connection 12 to 38 ms after that event. If the stream ends in order, the connection to
 * the provider can be used again. After an abort the next request needs a TLS handshake.
 */
const AFTER_TERMINAL_MS = 500;
/** Bound on the bytes that are held back. Providers send some hundred bytes after the answer's last event. */
const HELD_BYTES_MAX = 1 << 20;

/**
 * Forwards the provider's bytes to the client unchanged, as they come; only `holdBack` may delay the end. Resolves when
 * node:http has the last byte, or when one side has closed its connection. If the client does not read, svc does not
 * read from the provider either.
 */
export function relay(options: RelayOptions): Promise<RelayEnd> {
  return new Promise((resolve, reject) => {
    try {
      new Relay(options, resolve).start(options.head);
    } catch (error) {
      // node:http refused the head, so nothing was sent, and the caller can still answer.
      options.answer.abort();
      reject(error);
    }
  });
}

class Relay implements AnswerSink {
  readonly #answer: UpstreamAnswer;
  readonly #outgoing: ServerResponse;
  readonly #resolve: (end: RelayEnd) => void;
  readonly #onChunk: RelayOptions['onChunk'];
  #watcher: AnswerWatcher | undefined;
  // Bytes left until Content-Length is reached; -1 if the answer has none.
  #bytesLeft: number;
  #hasWritten = false;
  #isLastSeen = false;
  #isOver = false;
  #graceTimer: NodeJS.Timeout | undefined;
  readonly #holdBack: HoldBack | undefined;
  /** The end of the answer while it is held back. */
  #held: Uint8Array[] | undefined;
  #heldBytes = 0;
  #hasHeld = false;
  #heldUntil = 0;
  #holdTimer: NodeJS.Timeout | undefined;
  #hasEnded = false;

  constructor(options: RelayOptions, resolve: (end: RelayEnd) => void) {
    const { answer, outgoing, watcher, onChunk, head, holdBack } = options;
    this.#holdBack = holdBack;
    this.#onChunk = onChunk;
    this.#answer = answer;
    this.#outgoing = outgoing;
    this.#watcher = watcher;
    this.#resolve = resolve;
    this.#bytesLeft = Number(headerOf(head.headers, 'content-length') ?? -1);
  }

  start({ status, headers }: RelayOptions['head']): void {
    const outgoing = this.#outgoing;
    outgoing.on('error', () => this.#clientGone());
    outgoing.on('close', () => this.#clientGone());
    if (outgoing.destroyed) {
      this.#clientGone();
      return;
    }
    outgoing.writeHead(status, [...headers]);
    outgoing.on('drain', () => this.#answer.resume());
    this.#answer.deliver(this);
    this.#flush();
    // Sends the head now, because a model may think for minutes before its first event, and clients wait for the head
    // only for some time.
    if (!this.#hasWritten && !this.#isOver) outgoing.flushHeaders();
  }

  data(chunk: Uint8Array): boolean {
    if (this.#isOver) return true;
    this.#hasWritten = true;
    if (this.#bytesLeft !== -1) this.#bytesLeft -= chunk.length;
    this.#onChunk?.(chunk);
    // The watcher reads first: the client may send a thought back, or act on the end, as soon as it has the bytes.
    const mayEnd = this.#ask((watcher) => watcher.data(chunk), false);
    if (this.#held !== undefined) {
      this.#held.push(chunk);
      this.#heldBytes += chunk.length;
      // A provider may send any number of bytes after the answer's last event.
      if (this.#heldBytes > HELD_BYTES_MAX) this.#letGo();
      return !this.#outgoing.writableNeedDrain;
    }
    if ((mayEnd || this.#bytesLeft === 0) && !this.#isLastSeen) {
      // Clients act on the answer's last event, or on its last byte if they know its length, without waiting for the
      // end of the stream. So svc first writes what must survive a kill of this process. Earlier bytes need not wait
      // for that.
      this.#flush();
      this.#isLastSeen = this.#passLast() || this.#bytesLeft === 0;
      if (this.#isLastSeen && this.#hold([chunk])) return true;
    }
    return this.#outgoing.write(chunk);
  }

  // Sends the writes so far now. Otherwise node:http collects all writes of this tick and sends them together.
  #flush(): void {
    this.#outgoing.socket?.uncork();
  }

  end(): void {
    clearTimeout(this.#graceTimer);
    if (this.#isOver) return;
    if (!this.#isLastSeen) this.#passLast();
    this.#hasEnded = true;
    if (this.#held !== undefined || this.#hold([])) {
      const msLeft = this.#heldUntil - performance.now();
      void this.#holdBack?.stored(msLeft).then(() => this.#letGo());
      return;
    }
    this.#outgoing.end();
    this.#settle('complete');
  }

  /** Holds the end of the answer back. Returns false if it is sent at once. */
  #hold(chunks: Uint8Array[]): boolean {
    if (this.#holdBack === undefined || this.#watcher === undefined) return false;
    // Holds the end back only once. After the delay svc sends it, even if the facts are not stored.
    if (this.#hasHeld) return false;
    this.#hasHeld = true;
    if (this.#holdBack.isNeeded?.() === false) return false;
    this.#heldUntil = performance.now() + this.#holdBack.ms;
    this.#held = chunks;
    this.#holdTimer = setTimeout(() => this.#letGo(), this.#holdBack.ms);
    return true;
  }

  #letGo(): void {
    clearTimeout(this.#holdTimer);
    const chunks = this.#held ?? [];
    this.#held = undefined;
    if (this.#isOver) return;
    for (const chunk of chunks) this.#outgoing.write(chunk);
    if (!this.#hasEnded) return;
    this.#outgoing.end();
    this.#settle('complete');
  }

  cut(): void {
    clearTimeout(this.#graceTimer);
    if (this.#isOver) return;
    this.#letGo();
    const end = this.#outgoing.destroyed ? 'client-gone' : 'upstream-cut';
    // Breaks the connection instead of ending it, because SDKs take a clean end for a whole answer.
    this.#outgoing.destroy();
    this.#settle(end);
  }

  #clientGone(): void {
    if (this.#isOver) return;
    if (this.#isLastSeen && this.#held === undefined) {
      this.#graceTimer = setTimeout(() => this.#answer.abort(), AFTER_TERMINAL_MS).unref();
      this.#settle('complete');
      this.#answer.resume();
      return;
    }
    this.#settle('client-gone');
    this.#answer.abort();
  }

  #settle(end: RelayEnd): void {
    clearTimeout(this.#holdTimer);
    this.#isOver = true;
    this.#watcher = undefined;
    this.#resolve(end);
  }

  #passLast(): boolean {
    return this.#ask((watcher) => watcher.beforeLast(), true);
  }

  /** Asks the watcher, and drops it if it throws. `otherwise`: the result without a watcher. */
  #ask<Result>(question: (watcher: AnswerWatcher) => Result, otherwise: Result): Result {
    if (this.#watcher === undefined) return otherwise;
    try {
      return question(this.#watcher);
    } catch {
      this.#watcher = undefined;
      return otherwise;
    }
  }
}

// Bound on the characters of an answer's text that are kept. The longest outputs of models in 2026 have 128,000 tokens,
// about 512 kB. A record has at most 32,768 characters.
const TEXT_CHARS_MAX = 1_048_576;

const BAD_REQUEST = 400;
// Characters of an error body in which svc searches for the reason.
const REFUSAL_CHARS_MAX = 16_384;

export interface AnswerListeners extends Pick<AnswerParserOptions, 'onThought'> {
  /** Called at most once, when the answer is whole or has failed. */
  readonly onAnswer: (answer: Answer) => void;
}

/**
 * Reads an answer while it is relayed. It reports each signed thought, and the whole answer, before the client has the
 * bytes that complete them. If the client closes its connection early, it may report the answer afterwards; see
 * endsEarly().
 */
export class AnswerWatch implements AnswerWatcher {
  readonly #reader: AnswerReader | undefined;
  readonly #onAnswer: (answer: Answer) => void;
  #isTold = false;
  /** True if the provider has counted the output tokens of the whole answer. Some gateways count the prompt alone. */
  #isCounted = false;
  /** Bytes of a successful answer that svc does not read, because it has an encoding or answers no model request. */
  #unreadBytes = 0;
  readonly #isSuccess: boolean;
  #lostThoughts: LostThoughts | undefined;
  /** The beginning of the body of an answer with status 400. */
  #refusal: string | undefined;

  constructor(
    request: Pick<ClientRequest, 'route'>,
    answer: Pick<UpstreamAnswer, 'status' | 'headers'>,
    { onAnswer, onThought }: AnswerListeners,
  ) {
    this.#onAnswer = onAnswer;
    this.#isSuccess = answer.status >= 200 && answer.status < 300;
    if (answer.status === BAD_REQUEST) this.#refusal = '';
    // svc asked for an uncompressed answer. If the provider compresses it anyway, svc does not read it.
    const isPlain = (headerOf(answer.headers, 'content-encoding') ?? 'identity') === 'identity';
    if (request.route.kind !== 'model' || !this.#isSuccess || !isPlain) return;
    this.#reader = new AnswerReader(request.route.dialect, {
      contentType: headerOf(answer.headers, 'content-type'),
      textCharsMax: TEXT_CHARS_MAX,
      onThought,
    });
  }

  data(chunk: Uint8Array): boolean {
    if (this.#reader !== undefined) return this.#reader.push(chunk);
    if (this.#isSuccess) this.#unreadBytes += chunk.length;
    else if (this.#refusal !== undefined && this.#refusal.length < REFUSAL_CHARS_MAX) {
      this.#refusal += Buffer.from(chunk).toString('latin1', 0, REFUSAL_CHARS_MAX);
    }
    return false;
  }

  beforeLast(): boolean {
    if (this.#reader === undefined || this.#isTold) return true;
    const said = this.#reader.finish();
    if (!said.isComplete && !said.isFailed) return false;
    this.#isTold = true;
    this.#isCounted = said.usage !== undefined && said.usage.output > 0;
    this.#lostThoughts = said.lostThoughts;
    this.#onAnswer(said);
    return true;
  }

  /**
   * Says, after the client has closed its connection, whether the client has the whole answer. Some clients close their
   * connection after the finish reason, without waiting for the end of the stream. True also if the answer's end cannot
   * be processed. Never throws.
   */
  endsEarly(): boolean {
    try {
      return this.#reader !== undefined && this.beforeLast();
    } catch {
      return true;
    }
  }

  /**
   * Returns how much thinking of the request the provider dropped, flagged or refused. Call it after the relay has
   * ended. Never throws.
   */
  lostThoughts(): LostThoughts | undefined {
    if (this.#refusal !== undefined) {
      return isThoughtRefusal(this.#refusal) ? { refused: 1 } : undefined;
    }
    try {
      return this.#isTold ? this.#lostThoughts : this.#reader?.finish().lostThoughts;
    } catch {
      return undefined;
    }
  }

  /**
   * True if svc read the answer and did not see its end. False for an answer that is too large to read, because it may
   * be whole. The value is final once the relay has ended.
   */
  get isCut(): boolean {
    return this.#reader !== undefined && !this.#reader.gaveUp && !this.#isTold;
  }

  /**
   * Estimates the output tokens of an answer, whole or not. Undefined if the provider has counted them, or if svc has
   * no bytes to estimate. Never throws.
   */
  uncountedTokens(): number | undefined {
    // The limits of a service also count the tokens of an answer that svc does not read.
    const unread = Math.ceil(this.#unreadBytes / BYTES_A_TOKEN);
    if (this.#reader === undefined) return unread === 0 ? undefined : unread;
    try {
      return this.#isCounted ? undefined : this.#reader.estimateTokens();
    } catch {
      return undefined;
    }
  }
}

/** Returns a signal that aborts if the client closes its connection before it has the whole answer. */
export function goneSignal(outgoing: ServerResponse): AbortSignal {
  const controller = new AbortController();
  const abort = (): void => controller.abort(new Error('The client has gone.'));
  if (outgoing.destroyed) abort();
  else {
    outgoing.once('close', () => {
      if (!outgoing.writableFinished) abort();
    });
  }
  return controller.signal;
}
