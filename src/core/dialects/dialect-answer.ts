import { ThoughtCollector } from '../conversation/thoughts.ts';
import { type LostThoughts, lostThoughtsIn } from '../conversation/lost-thoughts.ts';
import type { Answer, Usage } from './answer.ts';
import {
  asRecord,
  type Fields,
  hasAt,
  isRecord,
  joinParagraphs,
  parseJson,
} from '../bytes/json-fields.ts';

/** The arguments of DeltaTemplate for a dialect's text deltas. */
interface DeltaForm {
  readonly mark: string;
  readonly textIn: (event: Fields) => string | undefined;
}

/**
 * Reads an answer, as far as that is the same in every dialect. It reads text deltas with a DeltaTemplate, skips events
 * from which svc needs nothing, and parses the others. A subclass for each dialect says what its events mean.
 */
export abstract class DialectAnswer {
  protected readonly text: VisibleText;
  protected readonly thoughts: ThoughtCollector;
  protected isComplete = false;
  protected isFailed = false;
  protected isCutShort = false;
  protected usage: Usage | undefined;
  #id: string | undefined;
  #model: string | undefined;
  #lostThoughts: LostThoughts | undefined;
  protected limits: Fields | undefined;
  #usageTold: Fields | undefined;
  readonly #template: DeltaTemplate;

  constructor({ textCharsMax, onThought }: AnswerParserOptions, form: DeltaForm) {
    this.text = new VisibleText(textCharsMax);
    this.thoughts = new ThoughtCollector((id) => onThought?.(id, this.#model));
    this.#template = new DeltaTemplate(form.mark, form.textIn);
  }

  /** Reads the data of the next server-sent event. */
  readEvent(data: string): void {
    const text = this.#template.read(data);
    if (text !== undefined) {
      this.text.append(text);
      return;
    }
    if (this.passesBy(data)) return;
    const event = asRecord(parseJson(data));
    if (isRecord(event['error']) || event['type'] === 'error') this.isFailed = true;
    this.readParsed(event);
    this.learn(data, event);
  }

  /** Reads the next event if it is over the size limit. A dialect may find the end of the answer there. */
  skipEvent(_event: LargeEvent): void {}

  abstract readBody(body: unknown): void;

  /** Joins the text so far, so that the memory of the events can be freed. Called after each batch of events. */
  settle(): void {
    this.text.settle();
  }

  answer(): Answer {
    return {
      text: this.text.toString(),
      callsTools: this.isCalling(),
      isComplete: this.isComplete,
      isFailed: this.isFailed,
      isCutShort: this.isCutShort,
      thoughts: this.thoughts.ids,
      ...(this.#lostThoughts !== undefined && { lostThoughts: this.#lostThoughts }),
      ...(this.usage !== undefined && hasCounts(this.usage) && { usage: this.usage }),
      ...(this.#id !== undefined && { id: this.#id }),
      ...(this.#model !== undefined && { model: this.#model }),
      ...(this.limits !== undefined && { limits: this.limits }),
      ...(this.#usageTold !== undefined && { usageTold: this.#usageTold }),
    };
  }

  /** Notes the answer's id and model, which are members of the object. */
  protected noteNames({ id, model }: Fields): void {
    if (typeof id === 'string' && id !== '') this.#id = id;
    if (typeof model === 'string' && model !== '') this.#model = model;
  }

  /**
   * Notes what the provider reports about the thinking in the request. A later list replaces an earlier one, because
   * after a fallback to another model it is about the model that answered.
   */
  protected noteLostThoughts({ input_transformations: list }: Fields): void {
    if (Array.isArray(list)) this.#lostThoughts = lostThoughtsIn(list);
  }

  /** Notes the token counts of an event. If several events report the same count, the last one counts. */
  protected noteUsage(told: Fields): void {
    this.#usageTold = asRecord(usageNumbers({ ...this.#usageTold, ...told }));
  }

  /** Says whether an event needs no parsing. If it is the end of the answer, this also notes the end. */
  protected abstract passesBy(data: string): boolean;
  protected abstract readParsed(event: Fields): void;
  /** Says whether the client will call tools and send their results without the user. */
  protected abstract isCalling(): boolean;

  protected learn(data: string, event: Fields): void {
    this.#template.learn(data, event);
  }
}

/** An event over the size limit, of which only the beginning and the end are known. */
export interface LargeEvent {
  readonly head: string;
  readonly tail: string;
}

export interface AnswerParserOptions {
  /** Bound on the characters of visible text; further text is dropped. */
  readonly textCharsMax: number;
  /**
   * Called once per signed thought, while the event that completes it is read. `model`: the model that the answer
   * has named so far. Must not throw.
   */
  readonly onThought?: ((id: string, model: string | undefined) => void) | undefined;
}

/** Collects visible text in paragraphs, up to a limit. */
class VisibleText {
  readonly #charsMax: number;
  #chars = 0;
  #paragraphs: string[] = [''];
  #current = 0;
  #pending: string[] = [];

  constructor(charsMax: number) {
    this.#charsMax = charsMax;
  }

  get isEmpty(): boolean {
    return this.#chars === 0;
  }

  append(text: string): void {
    const room = this.#charsMax - this.#chars;
    this.#chars += text.length;
    if (room > 0) this.#pending.push(text.slice(0, room));
  }

  /** Starts a paragraph for the next text and returns its number. */
  open(): number {
    this.settle();
    this.#current = this.#paragraphs.push('') - 1;
    return this.#current;
  }

  /** Selects the paragraph with this number for the next text. */
  select(paragraph: number): void {
    if (paragraph === this.#current) return;
    this.settle();
    this.#current = paragraph;
  }

  // Joins the pieces, which copies them. Each is a slice of a larger text, which can then be freed.
  settle(): void {
    if (this.#pending.length === 0) return;
    const text = `${this.#paragraphs[this.#current] ?? ''}${this.#pending.join('')}`;
    this.#paragraphs[this.#current] = text;
    this.#pending = [];
  }

  toString(): string {
    this.settle();
    return joinParagraphs(this.#paragraphs);
  }
}

/**
 * Reads text deltas without parsing. A stream repeats the same event with another text, and parsing each event costs
 * twice as much as the rest of the reader. So this learns the bytes around the text from a parsed event, checks by
 * parsing that the text is between them, and then compares only these bytes. Any other event has to be parsed.
 * Two other parts of an event may differ: the digits of `sequence_number`, and the padding `obfuscation` at the end.
 */
export class DeltaTemplate {
  readonly #mark: string;
  readonly #textIn: (event: Readonly<Record<string, unknown>>) => string | undefined;
  #shape: Shape | undefined;
  #misses = 0;

  /**
   * `mark`: everything in front of the text, as in `"text":"`. `textIn`: returns the text of an event that is a text
   * delta and nothing else; undefined for any other event.
   */
  constructor(
    mark: string,
    textIn: (event: Readonly<Record<string, unknown>>) => string | undefined,
  ) {
    this.#mark = mark;
    this.#textIn = textIn;
  }

  /** Returns the text if the event differs from the learned one in no other part; undefined otherwise. */
  read(data: string): string | undefined {
    const literal = this.#literalIn(data);
    return literal === undefined ? undefined : unquote(literal);
  }

  /** Says whether read() would return a text. */
  matches(data: string): boolean {
    return this.#literalIn(data) !== undefined;
  }

  /** Learns the bytes around the text of a parsed event, instead of those of an earlier event. */
  learn(data: string, event: Readonly<Record<string, unknown>>): void {
    if (this.#textIn(event) === undefined) return;
    this.#shape = undefined;
    if (this.#misses >= MISSES_MAX) return;
    this.#misses += 1;
    const start = data.indexOf(this.#mark) + this.#mark.length;
    const end = start < this.#mark.length ? -1 : literalEnd(data, start);
    if (end === -1) return;
    const probe = `${data.slice(0, start)}${PROBE}${data.slice(end)}`;
    if (this.#textIn(asRecord(parseJson(probe))) === PROBE) this.#shape = cut(data, start, end);
  }

  #literalIn(data: string): string | undefined {
    const shape = this.#shape;
    if (shape === undefined || !hasAt(data, shape.head, 0)) return undefined;
    const start = shape.neck === undefined ? shape.head.length : afterNeck(data, shape, shape.neck);
    const end = start === -1 ? -1 : literalEnd(data, start);
    if (end === -1 || !hasAt(data, shape.tail, end)) return undefined;
    if (!endsLike(data, end + shape.tail.length, shape.isPadded)) return undefined;
    this.#misses = 0;
    return data.slice(start, end);
  }
}

/**
 * Bound on how many events are learned in a row without a later event that differs from one only in its text. After
 * that svc learns no more and every event is parsed, because more learning would only waste time.
 */
const MISSES_MAX = 16;
const PROBE = 'svc';
const SEQUENCE = '"sequence_number":';
const PADDING = ',"obfuscation":"';

interface Shape {
  /** The beginning of the event, up to the text or up to the digits of `sequence_number`. */
  readonly head: string;
  /** The part between those digits and the text; undefined without such digits. */
  readonly neck: string | undefined;
  /** The rest of the event after the text, up to its end or to the padding. */
  readonly tail: string;
  readonly isPadded: boolean;
}

function cut(data: string, start: number, end: number): Shape {
  const before = data.slice(0, start);
  const digits = before.indexOf(SEQUENCE) + SEQUENCE.length;
  const hasDigits = digits >= SEQUENCE.length;
  const padding = data.indexOf(PADDING, end);
  return {
    head: hasDigits ? before.slice(0, digits) : before,
    neck: hasDigits ? before.slice(digits).replace(/^\d+/, '') : undefined,
    tail: padding === -1 ? data.slice(end) : data.slice(end, padding + PADDING.length),
    isPadded: padding !== -1,
  };
}

function afterNeck(data: string, shape: Shape, neck: string): number {
  let at = shape.head.length;
  while (isDigit(data.charCodeAt(at))) at += 1;
  return at > shape.head.length && hasAt(data, neck, at) ? at + neck.length : -1;
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57;
}

/** Returns the offset of the quote that closes the string literal which began before `start`. */
function literalEnd(data: string, start: number): number {
  let end = data.indexOf('"', start);
  while (end !== -1 && isEscaped(data, start, end)) end = data.indexOf('"', end + 1);
  return end;
}

function isEscaped(data: string, start: number, at: number): boolean {
  let slashes = at;
  while (slashes > start && data.charCodeAt(slashes - 1) === 92) slashes -= 1;
  return (at - slashes) % 2 === 1;
}

function endsLike(data: string, at: number, isPadded: boolean): boolean {
  if (!isPadded) return at === data.length;
  const end = data.length - 2;
  return data.endsWith('"}') && data.indexOf('"', at) === end && data.indexOf('\\', at) === -1;
}

// Decodes the inside of a JSON string. It does not check that control characters are escaped: that would cost more than
// everything else, and the client fails on such an event anyway.
function unquote(literal: string): string | undefined {
  if (!literal.includes('\\')) return literal;
  const text = parseJson(`"${literal}"`);
  return typeof text === 'string' ? text : undefined;
}

const USAGE_DEPTH = 4;
const USAGE_MEMBERS_MAX = 64;
/** Bound on the numbers of a usage object at all depths. Providers send some twenty. */
const USAGE_NUMBERS_MAX = 256;
const USAGE_NAME = /^\w{1,64}$/;

/**
 * Returns the numbers of a provider's `usage` under their own names, at most USAGE_NUMBERS_MAX. It leaves strings out,
 * because they could be any text. Undefined if the value is neither an object nor a number.
 */
export function usageNumbers(
  value: unknown,
  depth = USAGE_DEPTH,
  room = { left: USAGE_NUMBERS_MAX },
): unknown {
  if (room.left <= 0) return undefined;
  if (typeof value === 'number') {
    room.left -= 1;
    return Number.isFinite(value) ? value : undefined;
  }
  if (!isRecord(value) || depth === 0) return undefined;
  const members: [string, unknown][] = [];
  for (const name of Object.keys(value).slice(0, USAGE_MEMBERS_MAX)) {
    const member = USAGE_NAME.test(name) ? usageNumbers(value[name], depth - 1, room) : undefined;
    if (member !== undefined) members.push([name, member]);
  }
  return Object.fromEntries(members);
}

/**
 * Says whether the provider counted tokens. A gateway may send zeros or an empty object instead (seen 2026-11-27).
 * Then svc estimates, as for an answer without `usage`.
 */
function hasCounts({ input, cacheRead, cacheWrite, output }: Usage): boolean {
  return input + cacheRead + cacheWrite + output > 0;
}
