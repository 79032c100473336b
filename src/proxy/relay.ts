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
  /** As the client gets it, evidence included. */
  readonly head: { readonly status: number; readonly headers: RawHeaders };
}

/** Keeps the end of an answer from the client until the facts of it are stored elsewhere. */
export interface HoldBack {
  /** Milliseconds from the terminal event on; then the end goes out all the same. */
  readonly ms: number;
  /** Asked once, when the answer is whole. */
  isNeeded?(): boolean;
  /** Called once, when the provider has ended: every byte is known. `msLeft` of the time. Never rejects. */
  stored(msLeft: number): Promise<void>;
}

/**
 * After the terminal event the client has everything it needs, and Codex hangs up 12 to 38 ms
 * later, before the provider's own end. The provider gets this long to end: an orderly end lets the
 * connection be used again, and an aborted one costs the next request a TLS handshake.
 */
const AFTER_TERMINAL_MS = 500;
/** Behind the terminal event an honest provider sends some hundred bytes. */
const HELD_BYTES_MAX = 1 << 20;

/**
 * Moves the provider's bytes to the client: unchanged, as they come, at the client's pace. Resolves
 * when the last byte is handed to the client's socket, or when one side is gone.
 *
 * There is no stream, no branch and no buffer between the provider's parser and the client's
 * socket. The client takes each chunk, or the provider has to wait.
 */
export function relay(options: RelayOptions): Promise<RelayEnd> {
  return new Promise((resolve, reject) => {
    try {
      new Relay(options, resolve).start(options.head);
    } catch (error) {
      // A head that node:http will not write: nothing is out yet, so the caller can still answer.
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
  // Bytes until Content-Length is met; -1 when the answer has none.
  #bytesLeft: number;
  #hasWritten = false;
  #isLastSeen = false;
  #isOver = false;
  #graceTimer: NodeJS.Timeout | undefined;
  readonly #holdBack: HoldBack | undefined;
  /** The end of the answer, while it is held back. */
  #held: Uint8Array[] | undefined;
  #heldBytes = 0;
  #hasHeld = false;
  #heldUntil = 0;
  #holdTimer: NodeJS.Timeout | undefined;
  #hasEnded = false;
  /** Handed to the client, and not yet to the watcher. */
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
    // A model may think for minutes before its first event; the client's own timers watch the head.
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
      // A provider that sends more after its end does not fill this process.
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
      // The client may send the thought back, or hang up, as soon as it has it.
      this.#watch(chunk);
      this.#watchThought();
      return this.#outgoing.write(chunk);
    }
    const wantsMore = this.#outgoing.write(chunk);
    this.#watch(chunk);
    return wantsMore;
  }

  // node:http holds writes back until the end of this tick, so that what arrived together leaves in one
  // write.
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

  /** True: the end waits from now on. */
  #hold(chunks: Uint8Array[]): boolean {
    if (this.#holdBack === undefined || this.#watcher === undefined) return false;
    // Once: bytes that went out late say nothing any more.
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
    // The client must see a broken connection, never a clean end of a half answer: SDKs take that
    // for a whole one.
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

  /** The watcher reads once the bytes have left: node:http has asked for this tick's end before. */
  #watch(chunk: Uint8Array): void {
    if (this.#watcher === undefined) return;
    this.#unwatched.push(chunk);
    if (this.#unwatched.length === 1) process.nextTick(this.#watchWritten);
  }

  #watchNow(): void {
    const chunks = this.#unwatched;
    if (chunks.length === 0) return;
    this.#unwatched = [];
    try {
      for (const chunk of chunks) this.#watcher?.data(chunk);
    } catch {
      this.#watcher = undefined;
    }
  }

  #completes(chunk: Uint8Array): Completes {
    if (this.#bytesLeft === 0) return 'answer';
    try {
      return this.#watcher?.completes(chunk) ?? 'nothing';
    } catch {
      this.#watcher = undefined;
      return 'nothing';
    }
  }

  #watchThought(): void {
    this.#watchNow();
    try {
      this.#watcher?.beforeThought();
    } catch {
      this.#watcher = undefined;
    }
  }

  #passLast(): boolean {
    this.#watchNow();
    try {
      return this.#watcher?.beforeLast() ?? true;
    } catch {
      this.#watcher = undefined;
      return true;
    }
  }
}

// The longest model outputs today are 128,000 tokens, about 512 kB. svc reads the beginning of a
// longer one; a memory holds less than that.
const TEXT_CHARS_MAX = 1_048_576;
// English prose and JSON; a compressed answer has more tokens a byte, so this is a lower bound of it.
const BYTES_A_TOKEN = 4;

const BAD_REQUEST = 400;
// The sentence is in the message, which is nearly all of an error.
const REFUSAL_CHARS_MAX = 16_384;

export interface AnswerListeners extends Pick<AnswerParserOptions, 'onThought'> {
  /** Called once, with an answer that is whole or has failed. */
  readonly onAnswer: (answer: Answer) => void;
}

/**
 * Reads an answer while it is relayed. It reports each signed thought, and the answer once it is whole,
 * before the bytes that complete them are handed to the client. The relay drops a watch that throws.
 */
export class AnswerWatch implements AnswerWatcher {
  readonly #reader: AnswerReader | undefined;
  readonly #onAnswer: (answer: Answer) => void;
  #isTold = false;
  /** The provider has counted the tokens of the whole answer. */
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
      // The provider was asked for identity; one that compresses all the same is relayed unread.
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
   * When the client is gone: some go with the finish reason and do not wait for the end of the
   * stream. True when they have the whole answer all the same. Never throws.
   */
  endsEarly(): boolean {
    try {
      return this.#reader !== undefined && this.beforeLast();
    } catch {
      return true;
    }
  }

  /** When the relay is over: the thoughts of the request that the provider did not use. Never throws. */
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
   * When the relay is over: it is an answer that can be read, and its end did not come. One that is too large to
   * be read may be whole.
   */
  get isCut(): boolean {
    return this.#reader !== undefined && !this.#reader.gaveUp && !this.#isTold;
  }

  /**
   * Estimates the output tokens of an answer in which the provider has not counted them, cut or whole.
   * Undefined for any other answer. Never throws.
   */
  uncountedTokens(): number | undefined {
    if (this.#reader === undefined) return this.#unreadTokens();
    try {
      return this.#isCounted ? undefined : this.#reader.estimateTokens();
    } catch {
      return undefined;
    }
  }

  /** Estimates the tokens of an answer that svc cannot read, because a budget has to count it too. */
  #unreadTokens(): number | undefined {
    return this.#unreadBytes === 0 ? undefined : Math.ceil(this.#unreadBytes / BYTES_A_TOKEN);
  }
}

/** Aborts when the client hangs up before its answer is whole. */
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
