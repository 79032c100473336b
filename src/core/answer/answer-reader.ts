import { Buffer } from 'node:buffer';
import { StringDecoder } from 'node:string_decoder';
import type { Answer } from '../dialects/answer.ts';
import type { Dialect } from '../conversation/view.ts';
import type { AnswerParserOptions, DialectAnswer, LargeEvent } from '../dialects/dialect-answer.ts';
import { dialectOf } from '../dialects/dialects.ts';
import { parseJson } from '../bytes/json-fields.ts';
import { estimateTextTokens } from '../bytes/tokens.ts';
import { SseReader } from './sse.ts';

/** What a chunk may complete. */
export type Completes = 'nothing' | 'thought' | 'answer';

/**
 * Reads a provider's answer while its bytes are relayed. It never changes or delays them and never throws: an answer
 * that it cannot read counts as incomplete.
 * `push` and `completes` run for every chunk of every stream, so they only store and search the chunk. Decoding and
 * parsing happen in batches.
 */
export class AnswerReader {
  readonly #parser: DialectAnswer;
  readonly #end: EventEnd;
  readonly #thoughtEnd: EventEnd;
  readonly #sse: SseReader;
  #form: 'unknown' | 'events' | 'json';
  /** A copy of the chunks since the last batch, because keeping hundreds of small buffers would cost more. */
  #batch: Buffer | undefined;
  #batchBytes = 0;
  /** Decodes batches, each of which may end inside a character. */
  readonly #decoder = new StringDecoder('utf8');
  #events = 0;
  /** The body of a JSON answer so far. */
  #body: Buffer[] = [];
  #bodyBytes = 0;
  #endsSeen = 0;
  #gaveUp = false;

  /** `contentType` is the value of the answer's header. */
  constructor(
    dialect: Dialect,
    options: AnswerParserOptions & { readonly contentType: string | undefined },
  ) {
    const descriptor = dialectOf(dialect);
    this.#parser = descriptor.createAnswerParser(options);
    this.#end = new EventEnd(descriptor.endMarks);
    this.#thoughtEnd = new EventEnd(descriptor.thoughtMarks);
    this.#form = formOf(options.contentType);
    const onEvent = (data: string): void => {
      this.#events += 1;
      this.#parser.readEvent(data);
    };
    const onSkipped = (event: LargeEvent): void => {
      this.#events += 1;
      this.#parser.skipEvent(event);
    };
    this.#sse = new SseReader(onEvent, { eventCharsMax: EVENT_CHARS_MAX, onSkipped });
  }

  push(chunk: Uint8Array): void {
    if (this.#gaveUp) return;
    if (chunk.length > BATCH_BYTES - this.#batchBytes) this.readNow();
    if (chunk.length > BATCH_BYTES) {
      this.#read(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength));
      return;
    }
    this.#makeRoom(this.#batchBytes + chunk.length).set(chunk, this.#batchBytes);
    this.#batchBytes += chunk.length;
  }

  /**
   * Says what a chunk may complete, so that the caller can read that before it forwards the chunk: an answer with
   * `finish`, a thought with `readNow`. Call it once per chunk, in order, before or after `push`.
   */
  completes(chunk: Uint8Array): Completes {
    if (this.#form === 'unknown') this.#form = sniff(chunk);
    if (this.#form !== 'json') {
      const text = latin1(chunk);
      const isThought = this.#thoughtEnd.isIn(text);
      if (this.#end.isIn(text)) return 'answer';
      return isThought ? 'thought' : 'nothing';
    }
    if (this.#endsSeen >= JSON_ENDS_MAX || !endsObject(chunk)) return 'nothing';
    this.#endsSeen += 1;
    return 'answer';
  }

  /** Reads the chunks so far, instead of waiting until the batch is full. */
  readNow(): void {
    const bytes = this.#batch?.subarray(0, this.#batchBytes);
    this.#batchBytes = 0;
    if (bytes !== undefined && bytes.length > 0) this.#read(bytes);
  }

  /** True for a JSON answer over JSON_BYTES_MAX. Nothing is known about it, not even whether it was cut off. */
  get gaveUp(): boolean {
    return this.#gaveUp;
  }

  /** Returns the answer read so far. It may be called early, repeatedly, and before further chunks. */
  finish(): Answer {
    this.readNow();
    if (this.#form === 'json') this.#readBody();
    return this.#parser.answer();
  }

  /**
   * Estimates the output tokens so far. Each event has one token or a few. That includes reasoning and arguments, which
   * svc does not read.
   */
  estimateTokens(): number {
    const { text, usage } = this.finish();
    const unread = this.#bodyBytes / BYTES_A_TOKEN;
    const counted = usage?.output ?? 0;
    return Math.ceil(Math.max(this.#events, unread, estimateTextTokens(text), counted));
  }

  /** Returns the batch with room for so many bytes. A short answer gets a small one from Node's buffer pool. */
  #makeRoom(bytes: number): Buffer {
    const before = this.#batch;
    if (before !== undefined && before.length >= bytes) return before;
    const isShort = bytes <= SHORT_BYTES;
    const batch = isShort ? Buffer.allocUnsafe(SHORT_BYTES) : Buffer.allocUnsafeSlow(BATCH_BYTES);
    if (before !== undefined) batch.set(before.subarray(0, this.#batchBytes));
    this.#batch = batch;
    return batch;
  }

  #read(bytes: Buffer): void {
    if (this.#form === 'unknown') this.#form = sniff(bytes);
    if (this.#form !== 'json') {
      this.#sse.pushText(this.#decoder.write(bytes));
      this.#parser.settle();
      return;
    }
    this.#bodyBytes += bytes.length;
    this.#gaveUp = this.#bodyBytes > JSON_BYTES_MAX;
    // Copies the bytes, because the batch and the relay reuse their buffers.
    if (this.#gaveUp) this.#body = [];
    else this.#body.push(Buffer.from(bytes));
  }

  #readBody(): void {
    const bytes = Buffer.concat(this.#body);
    const body = parseJson(bytes.toString('utf8'));
    this.#body = body === undefined ? [bytes] : [];
    if (body !== undefined) this.#parser.readBody(body);
  }
}

/** Bytes of a JSON body for one token. */
const BYTES_A_TOKEN = 4;

const LF = 10;

/** Size of a batch: some 130 events. Of the sizes from 16 to 64 KiB, larger ones were not faster. */
const BATCH_BYTES = 32 * 1024;
/** Size of the first buffer of an answer: enough for a few sentences. */
const SHORT_BYTES = 3 * 1024;
/** Bound on one event. The last event of a Responses stream repeats the whole answer. */
const EVENT_CHARS_MAX = 4 * 1024 * 1024;
const JSON_BYTES_MAX = 4 * 1024 * 1024;
/** How many chunks of a JSON answer may end like its last one. For each, everything so far is parsed. */
const JSON_ENDS_MAX = 8;

function formOf(contentType: string | undefined): 'unknown' | 'events' | 'json' {
  const type = contentType?.toLowerCase() ?? '';
  if (type.includes('event-stream')) return 'events';
  return type.includes('json') ? 'json' : 'unknown';
}

/**
 * Guesses the form by the first byte that is no white space. A JSON answer begins with `{`, and an event with the name
 * of a field, such as `data`.
 */
function sniff(bytes: Uint8Array): 'unknown' | 'events' | 'json' {
  const first = bytes.find((byte) => byte > 0x20);
  if (first === undefined) return 'unknown';
  return first === 0x7b ? 'json' : 'events';
}

function endsObject(chunk: Uint8Array): boolean {
  return chunk.findLast((byte) => byte > 0x20) === 0x7d;
}

/** Decodes each byte as a character. That is cheaper than UTF-8, and the texts to search for are ASCII. */
function latin1(chunk: Uint8Array): string {
  const bytes = Buffer.isBuffer(chunk)
    ? chunk
    : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
  return bytes.toString('latin1');
}

/**
 * Finds the chunk that completes a certain event, such as the last event of an answer. The client acts on an event
 * as soon as its blank line arrives, so svc must write to disk before it forwards that chunk. Finding an event that is
 * none only costs time.
 */
class EventEnd {
  readonly #marks: readonly string[];
  /** Characters of the longest mark but one: so many of a split mark may be at the end of a chunk. */
  readonly #markCharsMax: number;
  /** The last characters of the earlier chunks, because a mark or a blank line may be split. */
  #tail = '';
  /** True if a mark has come, but not yet the blank line that ends its event. */
  #isMarked = false;

  /** `marks`: texts of which the event contains at least one. */
  constructor(marks: readonly string[]) {
    this.#marks = marks;
    this.#markCharsMax = Math.max(...this.#marks.map((mark) => mark.length)) - 1;
  }

  /** Says whether this chunk may complete the event. Call it once per chunk, with one character for each byte. */
  isIn(chunk: string): boolean {
    const text = this.#tail === '' ? chunk : this.#tail + chunk;
    const first = this.#isMarked ? 0 : this.#markIn(text);
    if (first === -1) {
      this.#keepTail(text);
      return false;
    }
    // The model's text may contain a mark too. So an event after the last mark may be still open.
    const last = Math.max(
      this.#isMarked ? 0 : -1,
      ...this.#marks.map((mark) => text.lastIndexOf(mark)),
    );
    this.#isMarked = !BLANK_LINE.test(text.slice(last));
    this.#keepTail(text);
    return BLANK_LINE.test(text.slice(first));
  }

  #keepTail(text: string): void {
    if (this.#isMarked) this.#tail = text.slice(-BLANK_CHARS_MAX);
    else
      this.#tail = text.charCodeAt(text.length - 1) === LF ? '' : text.slice(-this.#markCharsMax);
  }

  #markIn(text: string): number {
    // A plain loop, because this runs for every chunk.
    for (let nth = 0; nth < this.#marks.length; nth += 1) {
      const at = text.indexOf(this.#marks[nth] ?? '');
      if (at !== -1) return at;
    }
    return -1;
  }
}

/** Characters of a blank line, `\r\n\r\n`, that may be in earlier chunks. */
const BLANK_CHARS_MAX = 3;
const BLANK_LINE = /(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r)/;
