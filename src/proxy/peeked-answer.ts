import type { RawHeaders } from '../core/http/headers.ts';
import type { AnswerSink, UpstreamAnswer } from '../ports/upstream.ts';

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
