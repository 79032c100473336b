import { ThoughtCollector } from '../conversation/thoughts.ts';
import { type LostThoughts, lostThoughtsIn } from '../conversation/lost-thoughts.ts';
import {
  asCount,
  asRecord,
  type Fields,
  isRecord,
  joinParagraphs,
  parseJson,
} from '../bytes/json-fields.ts';

/**
 * Reads a provider's answer. This class has what all dialects share; each dialect's subclass reads its own events.
 */
export abstract class DialectAnswer {
  protected readonly text: VisibleText;
  protected readonly thoughts: ThoughtCollector;
  protected isComplete = false;
  protected isFailed = false;
  protected isCutShort = false;
  /** True from the last event of a stream until takeEnd(). */
  protected hasEnded = false;
  protected usage: Usage | undefined;
  #id: string | undefined;
  #model: string | undefined;
  #lostThoughts: LostThoughts | undefined;
  protected limits: Fields | undefined;
  #usageTold: Fields | undefined;

  constructor({ textCharsMax, onThought }: AnswerParserOptions) {
    this.text = new VisibleText(textCharsMax);
    this.thoughts = new ThoughtCollector((id) => onThought?.(id, this.#model));
  }

  /** Reads the data of the next server-sent event. */
  readEvent(data: string): void {
    const event = asRecord(parseJson(data));
    if (isRecord(event['error']) || event['type'] === 'error') this.isFailed = true;
    this.readParsed(event);
  }

  /** Skips an event over the size limit. A subclass may find the end of the answer in such an event. */
  skipEvent(_event: LargeEvent): void {}

  abstract readBody(body: unknown): void;

  /**
   * Says whether the last event of the stream was read since the previous call: `message_stop`, `[DONE]`,
   * `response.completed`, `response.incomplete` or `response.failed` (OpenAI's and Anthropic's references of streaming,
   * 2026-11-29).
   */
  takeEnd(): boolean {
    const hasEnded = this.hasEnded;
    this.hasEnded = false;
    return hasEnded;
  }

  /** Copies the text so far into one string. Its pieces are slices, which keep the whole chunks in memory. */
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

  /**
   * Reads the token counts of OpenAI's dialects, which give them different names. DeepSeek reports cache reads in
   * `prompt_cache_hit_tokens`.
   */
  protected readOpenAiUsage(value: unknown, input: string, output: string): void {
    if (!isRecord(value)) return;
    this.noteUsage(value);
    const details = asRecord(value[`${input}_details`]);
    const cacheRead = asCount(details['cached_tokens'], asCount(value['prompt_cache_hit_tokens']));
    // The input includes cache reads and writes. OpenAI reports writes since GPT-5.6.
    const cacheWrite = asCount(details['cache_write_tokens']);
    this.usage = {
      input: Math.max(0, asCount(value[input]) - cacheRead - cacheWrite),
      cacheRead,
      cacheWrite,
      output: asCount(value[output]),
    };
  }

  protected abstract readParsed(event: Fields): void;
  /** Says whether the client will call tools and send their results without the user. */
  protected abstract isCalling(): boolean;
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

  // Joins the pieces, which copies them, so that the larger texts of which they are slices can be freed.
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
 * Bounds on what is read of a usage object: its levels of nesting, the members of each object, and the numbers at all
 * levels. Providers send some twenty numbers.
 */
const USAGE_DEPTH = 4;
const USAGE_MEMBERS_MAX = 64;
const USAGE_NUMBERS_MAX = 256;
const USAGE_NAME = /^\w{1,64}$/;

/**
 * Returns the numbers of a provider's `usage` under their own names, at most USAGE_NUMBERS_MAX. It leaves strings out,
 * because they could be any text. Undefined for a value that is neither an object nor a number, or over a bound.
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
 * Says whether the provider counted tokens. A gateway may send zeros or an empty object instead (seen 2026-11-27). svc
 * then estimates the tokens, as for an answer without `usage`.
 */
function hasCounts({ input, cacheRead, cacheWrite, output }: Usage): boolean {
  return input + cacheRead + cacheWrite + output > 0;
}

/** What svc reads from a provider's answer while its bytes are relayed. */

export interface Usage {
  /** Tokens that the provider charged in full, without cached ones. */
  readonly input: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  /** The part of `cacheWrite` that is cached for an hour, if the provider reports it. */
  readonly cacheWriteHour?: number;
  readonly output: number;
}

/** The number of tool outputs that the provider removed from the prompt, and their tokens, as it reports them. */
export interface Cleared {
  readonly outputs: number;
  readonly tokens: number;
}

export interface Answer {
  /** The visible text of the assistant, in order, without reasoning and tool arguments. */
  readonly text: string;
  /** True if the answer asks the client to run tools, so that the exchange continues. */
  readonly callsTools: boolean;
  /**
   * True if the provider has ended the answer, for example with `message_stop`, `response.completed` or a finish
   * reason.
   */
  readonly isComplete: boolean;
  /** True if the provider reported an error inside the answer, refused, or filtered it. */
  readonly isFailed: boolean;
  /** True if the answer ended early, mostly at a limit (`max_tokens`, `length`), so that its text is not whole. */
  readonly isCutShort: boolean;
  /** The ids of the answer's thoughts, in order. */
  readonly thoughts: readonly string[];
  /** How many thinking blocks of the request the provider dropped or flagged, by reason. */
  readonly lostThoughts?: LostThoughts;
  readonly usage?: Usage;
  readonly cleared?: Cleared;
  readonly id?: string;
  /** The model that answered, as the provider reports it. */
  readonly model?: string;
  /** The newest event that states how much of the user's subscription is used; see core/meter/quota.ts. */
  readonly limits?: Fields;
  /** The numbers of the provider's `usage` object; see usageNumbers(). */
  readonly usageTold?: Fields;
}
