import { type LostThoughts, lostThoughtsIn } from '../conversation/lost-thoughts.ts';
import { ThoughtCollector } from '../conversation/thoughts.ts';
import { usageNumbers } from './usage-numbers.ts';
import type { Answer, Usage } from './answer.ts';
import {
  type AnswerParser,
  type AnswerParserOptions,
  DeltaTemplate,
  type LargeEvent,
  VisibleText,
} from './answer-parser.ts';
import { asRecord, type Fields, isRecord, parseJson } from '../bytes/json-fields.ts';

/** How DeltaTemplate recognises the text deltas of a dialect among its other events. */
export interface DeltaForm {
  readonly mark: string;
  readonly textIn: (event: Fields) => string | undefined;
}

/**
 * The part of reading an answer that is the same in every dialect. Text deltas are read by their
 * template, events without facts for svc are skipped, the rest is parsed. A dialect says what its
 * events mean.
 */
export abstract class DialectAnswer implements AnswerParser {
  protected readonly text: VisibleText;
  protected readonly thoughts: ThoughtCollector;
  protected isComplete = false;
  protected isFailed = false;
  protected isCutShort = false;
  protected usage: Usage | undefined;
  #id: string | undefined;
  #model: string | undefined;
  #lostThoughts: LostThoughts | undefined;
  #usageTold: Fields | undefined;
  readonly #template: DeltaTemplate;

  constructor({ textCharsMax, onThought }: AnswerParserOptions, form: DeltaForm) {
    this.text = new VisibleText(textCharsMax);
    this.thoughts = new ThoughtCollector((id) => onThought?.(id, this.#model));
    this.#template = new DeltaTemplate(form.mark, form.textIn);
  }

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

  /** Nothing of a large event is known but its ends. A dialect may read an end of the answer there. */
  skipEvent(_event: LargeEvent): void {}

  abstract readBody(body: unknown): void;

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
      ...(this.usage !== undefined && { usage: this.usage }),
      ...(this.#id !== undefined && { id: this.#id }),
      ...(this.#model !== undefined && { model: this.#model }),
      ...(this.#usageTold !== undefined && { usageTold: this.#usageTold }),
    };
  }

  /** Notes what the provider calls its answer, in the object that holds the names. */
  protected noteNames({ id, model }: Fields): void {
    if (typeof id === 'string' && id !== '') this.#id = id;
    if (typeof model === 'string' && model !== '') this.#model = model;
  }

  /**
   * Notes what the provider made of the thoughts in the request. A later list replaces an earlier one: after a
   * fallback it is that of the model which answered.
   */
  protected noteLostThoughts({ input_transformations: list }: Fields): void {
    if (Array.isArray(list)) this.#lostThoughts = lostThoughtsIn(list);
  }

  /** Later counts of one answer complete the earlier ones. */
  protected noteUsage(told: Fields): void {
    // A provider may report anything again in each event.
    this.#usageTold = asRecord(usageNumbers({ ...this.#usageTold, ...told }));
  }

  /** True for an event that needs no parsing; it may be noted in passing. */
  protected abstract passesBy(data: string): boolean;
  protected abstract readParsed(event: Fields): void;
  /** The client will call tools and send their results by itself. */
  protected abstract isCalling(): boolean;

  protected learn(data: string, event: Fields): void {
    this.#template.learn(data, event);
  }
}
