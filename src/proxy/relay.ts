import type { ServerResponse } from 'node:http';
import type { Completes } from '../core/answer/answer-reader.ts';
import { headerOf } from '../core/http/header-rules.ts';
import type { RawHeaders } from '../core/http/headers.ts';
import type { AnswerSink, UpstreamAnswer } from '../ports/upstream.ts';

/** How a relay ended. Only 'complete' may be captured as a whole answer. */
export type RelayEnd = 'complete' | 'client-gone' | 'upstream-cut';

/**
 * Sees the bytes pass. It shares their thread, so it must return at once. An error that it throws
 * is dropped, and the watcher with it: memory may miss an answer, the client may not.
 */
export interface AnswerWatcher {
  data(chunk: Uint8Array): void;
  /** Tells what may be whole with this chunk, which was not yet given to `data`. */
  completes(chunk: Uint8Array): Completes;
  /** After `data` of what may complete a signed thought, before the client can have it. */
  beforeThought(): void;
  /**
   * After `data` of what may be the last bytes that matter, before the client can have them. False:
   * the answer only quotes its own end and continues, so this is asked again. True: never again.
   */
  beforeLast(): boolean;
}

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
