import confirmPrompt from '@inquirer/confirm';
import inputPrompt from '@inquirer/input';
import passwordPrompt from '@inquirer/password';
import searchPrompt from '@inquirer/search';
import selectPrompt from '@inquirer/select';
import { wrapped } from '../text-table.ts';

export interface PromptStreams {
  readonly input?: NodeJS.ReadableStream;
  readonly output?: NodeJS.WritableStream & { readonly columns?: number };
}

export interface Choice<Value> {
  readonly value: Value;
  readonly name: string;
  readonly description?: string;
  readonly disabled?: string;
  readonly short?: string;
}

interface Typed {
  readonly message: string;
  readonly default?: string;
  readonly validate?: (text: string) => string | true | Promise<string | true>;
}

/** The width of what inquirer prints before each question and choice: a sign or a cursor, and a space. */
const MARK = '  ';
/** Bound on the visible lines of the list of select(). A longer list scrolls, so that it fits on a screen. */
const LINES_MAX = 15;
/** The text that inquirer prints after the question of `confirm`. */
const YES_NO = ' (Y/n)';

/** Asks questions with inquirer. Breaks long lines between words first, because inquirer breaks them inside a word. */
export class Prompts {
  readonly #streams: PromptStreams;

  constructor(streams: PromptStreams) {
    this.#streams = streams;
  }

  confirm(
    question: { readonly message: string; readonly default?: boolean },
    signal?: AbortSignal,
  ): Promise<boolean> {
    const message = this.#fitted(question.message, YES_NO.length);
    return confirmPrompt({ ...question, message }, { ...this.#streams, ...(signal && { signal }) });
  }

  input(question: Typed): Promise<string> {
    const message = this.#fitted(question.message);
    return inputPrompt({ ...question, message }, this.#streams);
  }

  password(question: Omit<Typed, 'default'>): Promise<string> {
    const message = this.#fitted(question.message);
    return passwordPrompt({ ...question, message, mask: '*' }, this.#streams);
  }

  select<Value>(question: {
    readonly message: string;
    readonly default?: Value;
    readonly choices: readonly Choice<Value>[];
  }): Promise<Value> {
    const message = this.#fitted(question.message);
    const choices = question.choices.map((choice) => this.#fittedChoice(choice, message));
    const lines = choices.flatMap(({ name }) => name.split('\n')).length;
    const pageSize = Math.min(lines, LINES_MAX);
    return selectPrompt<Value>({ ...question, message, choices, pageSize }, this.#streams);
  }

  search(question: {
    readonly message: string;
    readonly source: (term: string) => readonly Choice<string>[];
    readonly pageSize: number;
  }): Promise<string> {
    const message = this.#fitted(question.message);
    const source = (term = ''): readonly Choice<string>[] =>
      question.source(term).map((choice) => this.#fittedChoice(choice, message));
    return searchPrompt({ ...question, message, source }, this.#streams);
  }

  #fittedChoice<Value>(choice: Choice<Value>, message: string): Choice<Value> {
    const { name, description } = choice;
    const isSaid = description !== undefined && description !== '';
    // inquirer shows the chosen answer after the last line of the question.
    const asked = message.split('\n').at(-1) ?? '';
    const isOver = `${MARK}${asked} ${name}`.length > this.#columns;
    return {
      ...choice,
      name: this.#fitted(name),
      short: isOver ? `\n${MARK}${this.#fitted(name)}` : name,
      ...(isSaid ? { description: wrapped(description, this.#columns).join('\n') } : {}),
    };
  }

  #fitted(text: string, suffix = 0): string {
    return wrapped(text, this.#columns - MARK.length - suffix).join(`\n${MARK}`);
  }

  get #columns(): number {
    const { columns } = this.#streams.output ?? {};
    // A terminal that does not know its size reports 0.
    return columns === undefined || columns === 0 ? Infinity : columns;
  }
}
