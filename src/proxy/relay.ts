import type { ServerResponse } from 'node:http';
import { AnswerReader, type Completes } from '../core/answer/answer-reader.ts';
import { headerOf, type RawHeaders } from '../core/http/header-rules.ts';
import type { AnswerSink, UpstreamAnswer } from '../ports/upstream.ts';
import { isThoughtRefusal, type LostThoughts } from '../core/conversation/lost-thoughts.ts';
import type { Answer } from '../core/dialects/answer.ts';
import type { AnswerParserOptions } from '../core/dialects/dialect-answer.ts';
import type { AnswerWatcher, ClientRequest } from './dependencies.ts';

/** How a relay ended. Only 'complete' may be captured as a whole answer. */
export type RelayEnd = 'complete' | 'client-gone' | 'upstream-cut';

export interface RelayOptions {
  readonly answer: UpstreamAnswer;
  readonly outgoing: ServerResponse;
  readonly watcher?: AnswerWatcher | undefined;
  readonly holdBack?: HoldBack | undefined;
  /** The head as the client gets it, including the evidence headers. */
  readonly head: { readonly status: number; readonly headers: RawHeaders };
}

/** Delays the end of an answer until its facts are stored elsewhere. */
export interface HoldBack {
  /** Longest delay after the terminal event, in milliseconds; then the end is sent anyway. */
  readonly ms: number;
  /** Called once, when the answer is whole. If this member is undefined, the end is always delayed. */
  isNeeded?(): boolean;
  /** Called once when the provider has sent every byte. `msLeft`: what is left of the delay. Never rejects. */
  stored(msLeft: number): Promise<void>;
}

/**
 * Time for the provider to end its stream after the terminal event. The client has everything by then; Codex hangs
 * up 12 to 38 ms later. If the provider ends in order, the connection can be used again; an abort costs the next
 * request a TLS handshake.
 */
const AFTER_TERMINAL_MS = 500;
/** Bound on bytes held back after the terminal event; providers send some hundred. */
const HELD_BYTES_MAX = 1 << 20;

/**
 * Moves the provider's bytes to the client: unchanged, as they come, at the client's pace. Resolves when the last
 * byte is handed to the client's socket, or when one side is gone.
 * There is no stream and no buffer between the provider's parser and the client's socket. If the client does not
 * read, the provider has to wait.
 */
export function relay(options: RelayOptions): Promise<RelayEnd> {
  return new Promise((resolve, reject) => {
    try {
      new Relay(options, resolve).start(options.head);
    } catch (error) {
      // node:http refused to write the head, so nothing was sent: the caller can still answer.
      options.answer.abort();
      reject(error);
    }
  });
}

class Relay implements AnswerSink {
  readonly #answer: UpstreamAnswer;
  readonly #outgoing: ServerResponse;
  readonly #resolve: (end: RelayEnd) => void;
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
  /** Chunks that were sent to the client and that the watcher has not read yet. */
  #unwatched: Uint8Array[] = [];
  readonly #watchWritten = (): void => this.#watchNow();

  constructor(options: RelayOptions, resolve: (end: RelayEnd) => void) {
    const { answer, outgoing, watcher, head, holdBack } = options;
    this.#holdBack = holdBack;
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
    // Send the head now: a model may think for minutes before its first event, and clients have a timeout for the
    // head.
    if (!this.#hasWritten && !this.#isOver) outgoing.flushHeaders();
  }

  data(chunk: Uint8Array): boolean {
    if (this.#isOver) return true;
    this.#hasWritten = true;
    if (this.#bytesLeft !== -1) this.#bytesLeft -= chunk.length;
    if (this.#held !== undefined) {
      this.#held.push(chunk);
      this.#heldBytes += chunk.length;
      this.#watch(chunk);
      // Bound the memory if a provider sends more after its terminal event.
      if (this.#heldBytes > HELD_BYTES_MAX) this.#letGo();
      return !this.#outgoing.writableNeedDrain;
    }
    const completes = this.#isLastSeen ? 'nothing' : this.#completes(chunk);
    if (completes === 'answer') {
      // Clients act on the terminal event, or on the last byte of a known length, without waiting
      // for the end of the stream. So svc first writes the facts that must survive a kill of this
      // process. The bytes before it need not wait for that.
      this.#flush();
      this.#watch(chunk);
      this.#isLastSeen = this.#passLast() || this.#bytesLeft === 0;
      if (this.#isLastSeen && this.#hold([chunk])) return true;
      return this.#outgoing.write(chunk);
    }
    if (completes === 'thought') {
      // As soon as the client has the thinking, it may send it back or hang up. So svc records the thinking first.
      this.#watch(chunk);
      this.#watchNow();
      this.#ask((watcher) => watcher.beforeThought(), undefined);
      return this.#outgoing.write(chunk);
    }
    const wantsMore = this.#outgoing.write(chunk);
    this.#watch(chunk);
    return wantsMore;
  }

  // Sends the buffered writes now. Otherwise node:http collects the writes of this tick and sends them together.
  #flush(): void {
    this.#outgoing.socket?.uncork();
  }

  end(): void {
    clearTimeout(this.#graceTimer);
    if (this.#isOver) return;
    if (!this.#isLastSeen) this.#passLast();
    this.#hasEnded = true;
    if (this.#held !== undefined || this.#hold([])) {
      this.#watchNow();
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
    // Hold back only once: after the deadline the facts no longer matter.
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
    // Break the connection instead of ending it: SDKs take a clean end for a whole answer.
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
    this.#watchNow();
    clearTimeout(this.#holdTimer);
    this.#isOver = true;
    this.#watcher = undefined;
    this.#resolve(end);
  }

  /** Queues a chunk for the watcher, to run after the bytes were sent: node:http scheduled its write earlier. */
  #watch(chunk: Uint8Array): void {
    if (this.#watcher === undefined) return;
    this.#unwatched.push(chunk);
    if (this.#unwatched.length === 1) process.nextTick(this.#watchWritten);
  }

  #watchNow(): void {
    const chunks = this.#unwatched;
    if (chunks.length === 0) return;
    this.#unwatched = [];
    this.#ask((watcher) => {
      for (const chunk of chunks) watcher.data(chunk);
    }, undefined);
  }

  #completes(chunk: Uint8Array): Completes {
    if (this.#bytesLeft === 0) return 'answer';
    return this.#ask<Completes>((watcher) => watcher.completes(chunk), 'nothing');
  }

  #passLast(): boolean {
    this.#watchNow();
    return this.#ask((watcher) => watcher.beforeLast(), true);
  }

  /** Asks the watcher, and drops it if it throws. `otherwise`: the answer without a watcher. */
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

// Bound on the text that is read. The longest outputs today are 128,000 tokens, about 512 kB. Of a longer answer svc
// reads the beginning, and a memory stores less than that.
const TEXT_CHARS_MAX = 1_048_576;
// Bytes of a token in English prose and JSON. A compressed answer has more tokens per byte, so the estimate is a
// lower bound.
const BYTES_A_TOKEN = 4;

const BAD_REQUEST = 400;
// Characters of an error body that are searched for the reason; nearly all of an error is its message.
const REFUSAL_CHARS_MAX = 16_384;

export interface AnswerListeners extends Pick<AnswerParserOptions, 'onThought'> {
  /** Called once, when the answer is whole or has failed. */
  readonly onAnswer: (answer: Answer) => void;
}

/**
 * Reads an answer while it is relayed. It reports each signed thought and the whole answer before the client has the
 * bytes that complete them. If it throws, the relay drops it.
 */
export class AnswerWatch implements AnswerWatcher {
  readonly #reader: AnswerReader | undefined;
  readonly #onAnswer: (answer: Answer) => void;
  #isTold = false;
  /** True if the provider has reported the tokens of the whole answer. */
  #isCounted = false;
  /** Bytes of a successful answer in an encoding that svc does not read. */
  #unreadBytes = 0;
  readonly #isSuccess: boolean;
  #lostThoughts: LostThoughts | undefined;
  /** The beginning of an error that may say why the provider refused the request. */
  #refusal: string | undefined;

  constructor(
    request: Pick<ClientRequest, 'route'>,
    answer: Pick<UpstreamAnswer, 'status' | 'headers'>,
    { onAnswer, onThought }: AnswerListeners,
  ) {
    this.#onAnswer = onAnswer;
    this.#isSuccess = answer.status >= 200 && answer.status < 300;
    if (answer.status === BAD_REQUEST) this.#refusal = '';
    const isReadable =
      request.route.kind === 'model' &&
      this.#isSuccess &&
      // svc asked the provider for an uncompressed answer; a compressed one is relayed unread.
      (headerOf(answer.headers, 'content-encoding') ?? 'identity') === 'identity';
    if (!isReadable || request.route.kind !== 'model') return;
    this.#reader = new AnswerReader(request.route.dialect, {
      contentType: headerOf(answer.headers, 'content-type'),
      textCharsMax: TEXT_CHARS_MAX,
      onThought,
    });
  }

  data(chunk: Uint8Array): void {
    if (this.#reader !== undefined) this.#reader.push(chunk);
    else if (this.#isSuccess) this.#unreadBytes += chunk.length;
    else if (this.#refusal !== undefined && this.#refusal.length < REFUSAL_CHARS_MAX) {
      this.#refusal += Buffer.from(chunk).toString('latin1', 0, REFUSAL_CHARS_MAX);
    }
  }

  completes(chunk: Uint8Array): Completes {
    return this.#reader?.completes(chunk) ?? 'nothing';
  }

  beforeThought(): void {
    this.#reader?.readNow();
  }

  beforeLast(): boolean {
    if (this.#reader === undefined || this.#isTold) return true;
    const said = this.#reader.finish();
    if (!said.isComplete && !said.isFailed) return false;
    this.#isTold = true;
    this.#isCounted = said.usage !== undefined;
    this.#lostThoughts = said.lostThoughts;
    this.#onAnswer(said);
    return true;
  }

  /**
   * Says, when the client has hung up, whether it has the whole answer anyway: some clients leave after the finish
   * reason without waiting for the end of the stream. Never throws.
   */
  endsEarly(): boolean {
    try {
      return this.#reader !== undefined && this.beforeLast();
    } catch {
      return true;
    }
  }

  /** Returns the request's thoughts that the provider did not use, after the relay's end. Never throws. */
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
   * True if svc could read the answer and its end did not come. False for an answer that is too large to read,
   * because it may be whole. Valid after the relay has ended.
   */
  get isCut(): boolean {
    return this.#reader !== undefined && !this.#reader.gaveUp && !this.#isTold;
  }

  /**
   * Estimates the output tokens of an answer that the provider has not counted, cut or whole. Undefined for any
   * other answer. Never throws.
   */
  uncountedTokens(): number | undefined {
    if (this.#reader === undefined) return this.#unreadTokens();
    try {
      return this.#isCounted ? undefined : this.#reader.estimateTokens();
    } catch {
      return undefined;
    }
  }

  /** Estimates the tokens of an answer that svc cannot read, because budgets must count it. */
  #unreadTokens(): number | undefined {
    return this.#unreadBytes === 0 ? undefined : Math.ceil(this.#unreadBytes / BYTES_A_TOKEN);
  }
}

/** Returns a signal that aborts when the client hangs up before its answer is whole. */
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
