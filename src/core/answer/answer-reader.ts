import { Buffer } from 'node:buffer';
import { StringDecoder } from 'node:string_decoder';
import type {
  Answer,
  AnswerParserOptions,
  DialectAnswer,
  LargeEvent,
} from '../dialects/dialect-answer.ts';
import type { Dialect } from '../conversation/view.ts';
import { dialectOf } from '../dialects/dialects.ts';
import { parseJson } from '../bytes/json-fields.ts';
import { BYTES_A_TOKEN, estimateTextTokens } from '../bytes/tokens.ts';
import { SseReader } from './sse.ts';

/**
 * Reads a provider's answer while its bytes are relayed. It never changes them and never throws: an answer that it
 * cannot read counts as incomplete.
 */
export class AnswerReader {
  readonly #parser: DialectAnswer;
  readonly #sse: SseReader;
  #form: 'unknown' | 'events' | 'json';
  /** Decodes chunks, each of which may end inside a character. */
  readonly #decoder = new StringDecoder('utf8');
  #events = 0;
  #unsettledBytes = 0;
  /** The body of a JSON answer so far. */
  #body: Buffer[] = [];
  #bodyBytes = 0;
  #endsSeen = 0;

  /** `contentType` is the value of the answer's header. */
  constructor(
    dialect: Dialect,
    options: AnswerParserOptions & { readonly contentType: string | undefined },
  ) {
    this.#parser = dialectOf(dialect).createAnswerParser(options);
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

  /**
   * Reads the next chunk. Returns true if the answer may end with this chunk; the result of `finish` says whether it
   * does. Calls the constructor's option `onThought` for each signed thought that the chunk completes.
   */
  push(chunk: Uint8Array): boolean {
    if (this.gaveUp) return false;
    if (this.#form === 'unknown') this.#form = sniff(chunk);
    return this.#form === 'json' ? this.#keep(chunk) : this.#readEvents(chunk);
  }

  /** True for a JSON answer over JSON_BYTES_MAX. Nothing is known about it, not even whether it was cut off. */
  get gaveUp(): boolean {
    return this.#bodyBytes > JSON_BYTES_MAX;
  }

  /** Returns the answer read so far. It may be called early, repeatedly, and before further chunks. */
  finish(): Answer {
    if (this.#form === 'json') this.#readBody();
    return this.#parser.answer();
  }

  /**
   * Estimates the output tokens so far. svc does not read the texts of reasoning and tool arguments, so it counts at
   * least one token for each event.
   */
  estimateTokens(): number {
    const { text, usage } = this.finish();
    const unread = this.#bodyBytes / BYTES_A_TOKEN;
    const counted = usage?.output ?? 0;
    return Math.ceil(Math.max(this.#events, unread, estimateTextTokens(text), counted));
  }

  #readEvents(chunk: Uint8Array): boolean {
    this.#sse.pushText(this.#decoder.write(chunk));
    this.#unsettledBytes += chunk.length;
    if (this.#unsettledBytes > SETTLE_BYTES) {
      this.#parser.settle();
      this.#unsettledBytes = 0;
    }
    return this.#parser.takeEnd();
  }

  #keep(chunk: Uint8Array): boolean {
    this.#bodyBytes += chunk.length;
    // Copies the bytes, because a chunk may be a slice of a larger buffer, which would stay in memory.
    if (this.gaveUp) this.#body = [];
    else this.#body.push(Buffer.from(chunk));
    if (this.gaveUp || this.#endsSeen >= JSON_ENDS_MAX || !endsObject(chunk)) return false;
    this.#endsSeen += 1;
    return true;
  }

  #readBody(): void {
    const bytes = Buffer.concat(this.#body);
    const body = parseJson(bytes.toString('utf8'));
    this.#body = body === undefined ? [bytes] : [];
    if (body !== undefined) this.#parser.readBody(body);
  }
}

/**
 * After so many bytes svc copies the texts of the events into one. Until then each text is a slice, which keeps its
 * whole chunk in memory.
 */
const SETTLE_BYTES = 32 * 1024;
/** Bound on one event, in characters. The last event of a Responses stream repeats the whole answer. */
const EVENT_CHARS_MAX = 4 * 1024 * 1024;
const JSON_BYTES_MAX = 4 * 1024 * 1024;
/**
 * A chunk of a JSON answer that ends in `}` may be the last one, so svc then parses all bytes so far. After so many of
 * these chunks it parses only at the end of the answer.
 */
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
