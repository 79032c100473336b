import { Buffer } from 'node:buffer';
import type { Answer } from '../dialects/answer.ts';
import type { Dialect } from '../conversation/view.ts';
import type { AnswerParser, AnswerParserOptions } from '../dialects/dialect-answer.ts';
import { dialectOf } from '../dialects/dialects.ts';
import { parseJson } from '../bytes/json-fields.ts';
import { estimateTextTokens } from '../bytes/tokens.ts';
import { type SkippedEvent, SseReader } from './sse.ts';

/** The most that a chunk may complete. */
export type Completes = 'nothing' | 'thought' | 'answer';

/**
 * Reads a provider's answer on the side while its bytes are relayed. It never changes, holds back
 * or throws at anything: what it cannot read is an answer that is not complete.
 *
 * `push` and `completes` run for every chunk of every stream, so they only keep the chunk and
 * search it. Decoding and parsing happen in batches.
 */
export class AnswerReader {
  readonly #parser: AnswerParser;
  readonly #end: EventEnd;
  readonly #thoughtEnd: EventEnd;
  readonly #sse: SseReader;
  #form: 'unknown' | 'events' | 'json';
  /** Chunks since the last batch, copied: keeping hundreds of small buffers would cost more. */
  #batch: Buffer | undefined;
  #batchBytes = 0;
  /** Bytes that wait for the end of their line. */
  #held: Buffer[] = [];
  #heldBytes = 0;
  #gaveUp = false;
  #endsSeen = 0;
  #events = 0;
  #jsonBytes = 0;

  /** `contentType`: of the answer's headers. */
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
    const onSkipped = (event: SkippedEvent): void => {
      this.#events += 1;
      this.#parser.skipEvent(event);
    };
    this.#sse = new SseReader(onEvent, { eventCharsMax: EVENT_BYTES_MAX, onSkipped });
  }

  push(chunk: Uint8Array): void {
    if (this.#gaveUp) return;
    if (chunk.length > BATCH_BYTES - this.#batchBytes) this.#readBatch();
    if (chunk.length > BATCH_BYTES) {
      this.#read(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength));
      return;
    }
    this.#makeRoom(this.#batchBytes + chunk.length).set(chunk, this.#batchBytes);
    this.#batchBytes += chunk.length;
  }

  /**
   * Tells what may be whole with this chunk, so that it is read before the chunk is forwarded: an answer by
   * `finish`, a thought by `readNow`. Each chunk once, in order, before or after its `push`.
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

  /** Reads the events that are whole by now. */
  readNow(): void {
    this.#readBatch();
    if (this.#form !== 'json') this.#readHeldLines();
  }

  /** The answer is larger than svc reads: nothing is known of it, also not whether it was cut. */
  get gaveUp(): boolean {
    return this.#gaveUp;
  }

  /** The answer read so far. May be called early, again, and before further chunks. */
  finish(): Answer {
    this.readNow();
    if (this.#form === 'json') this.#readBody();
    return this.#parser.answer();
  }

  /**
   * Estimates how many tokens came so far, where the provider has not counted them. An event carries
   * one or some, also those of reasoning and of arguments, which are not read.
   */
  estimateTokens(): number {
    const { text, usage } = this.finish();
    const unread = this.#jsonBytes / BYTES_A_TOKEN;
    const counted = usage?.output ?? 0;
    return Math.ceil(Math.max(this.#events, unread, estimateTextTokens(text), counted));
  }

  /** A short answer takes its room from Node's pool: a large buffer for each would be most of the garbage. */
  #makeRoom(bytes: number): Buffer {
    const before = this.#batch;
    if (before !== undefined && before.length >= bytes) return before;
    const isShort = bytes <= SHORT_BYTES;
    const batch = isShort ? Buffer.allocUnsafe(SHORT_BYTES) : Buffer.allocUnsafeSlow(BATCH_BYTES);
    if (before !== undefined) batch.set(before.subarray(0, this.#batchBytes));
    this.#batch = batch;
    return batch;
  }

  #readBatch(): void {
    const bytes = this.#batch?.subarray(0, this.#batchBytes);
    this.#batchBytes = 0;
    if (bytes !== undefined && bytes.length > 0) this.#read(bytes);
  }

  #read(bytes: Buffer): void {
    if (this.#form === 'unknown') this.#form = sniff(bytes);
    if (this.#form === 'json') {
      this.#jsonBytes += bytes.length;
      this.#hold(bytes, JSON_BYTES_MAX);
    } else this.#readLines(bytes, bytes.lastIndexOf(LF));
  }

  // A line end is never inside a UTF-8 character, so whole lines decode by themselves.
  #readLines(bytes: Buffer, lastLineEnd: number): void {
    if (lastLineEnd === -1) {
      this.#hold(bytes, EVENT_BYTES_MAX);
      return;
    }
    const lines = bytes.subarray(0, lastLineEnd + 1);
    const whole = this.#held.length === 0 ? lines : Buffer.concat([...this.#held, lines]);
    this.#held = [];
    this.#heldBytes = 0;
    this.#sse.pushText(whole.toString('utf8'));
    this.#parser.settle();
    this.#hold(bytes.subarray(lastLineEnd + 1), EVENT_BYTES_MAX);
  }

  // A copy: the bytes are the batch's or the relay's.
  #hold(bytes: Buffer, bytesMax: number): void {
    if (bytes.length === 0) return;
    this.#held.push(Buffer.from(bytes));
    this.#heldBytes += bytes.length;
    if (this.#heldBytes <= bytesMax) return;
    if (this.#form === 'json') this.#giveUp();
    else this.#skipHeld();
  }

  /** A line that is longer than an event may be: the reader of events drops it, and the rest of its event. */
  #skipHeld(): void {
    const text = Buffer.concat(this.#held).toString('latin1');
    this.#held = [];
    this.#heldBytes = 0;
    this.#sse.pushText(text);
  }

  #giveUp(): void {
    this.#gaveUp = true;
    this.#held = [];
    this.#heldBytes = 0;
    this.#batch = undefined;
    this.#batchBytes = 0;
  }

  // Lines may end in CR alone. No provider sends that, so svc looks for it only at the end of the
  // answer.
  #readHeldLines(): void {
    const held = Buffer.concat(this.#held);
    const lastLineEnd = held.lastIndexOf(CR);
    if (lastLineEnd === -1) return;
    this.#held = [];
    this.#heldBytes = 0;
    this.#readLines(held, lastLineEnd);
  }

  #readBody(): void {
    const body = parseJson(Buffer.concat(this.#held).toString('utf8'));
    if (body === undefined) return;
    this.#held = [];
    this.#heldBytes = 0;
    this.#parser.readBody(body);
  }
}

const BYTES_A_TOKEN = 4;

const LF = 10;
const CR = 13;

/** Some 130 events decoded and split at once. Measured from 16 to 64 KiB: more gains nothing. */
const BATCH_BYTES = 32 * 1024;
/** An answer of a few sentences. */
const SHORT_BYTES = 3 * 1024;
/** One event, or one line: the last event of Responses repeats the whole answer. */
const EVENT_BYTES_MAX = 4 * 1024 * 1024;
const JSON_BYTES_MAX = 4 * 1024 * 1024;
/** How often a JSON answer may look whole before its end: each look parses what is there. */
const JSON_ENDS_MAX = 8;

function formOf(contentType: string | undefined): 'unknown' | 'events' | 'json' {
  const type = contentType?.toLowerCase() ?? '';
  if (type.includes('event-stream')) return 'events';
  return type.includes('json') ? 'json' : 'unknown';
}

/** By the first byte that is not a space: JSON answers are objects, events begin with a name. */
function sniff(bytes: Uint8Array): 'unknown' | 'events' | 'json' {
  const first = bytes.find((byte) => byte > 0x20);
  if (first === undefined) return 'unknown';
  return first === 0x7b ? 'json' : 'events';
}

function endsObject(chunk: Uint8Array): boolean {
  return chunk.findLast((byte) => byte > 0x20) === 0x7d;
}

/** One byte, one character: cheaper than decoding, and the marks are ASCII. */
function latin1(chunk: Uint8Array): string {
  const bytes = Buffer.isBuffer(chunk)
    ? chunk
    : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
  return bytes.toString('latin1');
}

/**
 * Finds the chunk that completes a certain event, such as the one with which an answer ends, while the
 * chunks pass by. The client acts on the event as soon as its blank line is in, so svc must write to disk
 * before it forwards that chunk. Finding too much is harmless, missing the event is not.
 */
class EventEnd {
  readonly #marks: readonly string[];
  /** One less than the longest mark: the longest start of a mark that is split over chunks. */
  readonly #markCharsMax: number;
  /** End of the bytes before, for a mark or a blank line that is split over chunks. */
  #tail = '';
  /** The mark has been seen; the blank line that ends its event has not. */
  #isMarked = false;

  /** `marks`: the event contains one of them. */
  constructor(marks: readonly string[]) {
    this.#marks = marks;
    this.#markCharsMax = Math.max(...this.#marks.map((mark) => mark.length)) - 1;
  }

  /** True when the event may be whole with this chunk. Each chunk once, in order, one byte a character. */
  isIn(chunk: string): boolean {
    const text = this.#tail === '' ? chunk : this.#tail + chunk;
    const first = this.#isMarked ? 0 : this.#markIn(text);
    if (first === -1) {
      this.#tail = text.charCodeAt(text.length - 1) === LF ? '' : text.slice(-this.#markCharsMax);
      return false;
    }
    // The model may write about marks: the last one decides what is still to come.
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
    // A loop without an iterator: this runs for every chunk.
    for (let nth = 0; nth < this.#marks.length; nth += 1) {
      const at = text.indexOf(this.#marks[nth] ?? '');
      if (at !== -1) return at;
    }
    return -1;
  }
}

/** A blank line is at most two line ends of two characters; the last one arrives with the chunk. */
const BLANK_CHARS_MAX = 3;
const BLANK_LINE = /(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r)/;
