import confirmPrompt from '@inquirer/confirm';
import inputPrompt from '@inquirer/input';
import passwordPrompt from '@inquirer/password';
import searchPrompt from '@inquirer/search';
import selectPrompt from '@inquirer/select';
import { wrapped } from '../text-table.ts';

/** The prompts of inquirer break a long line in the middle of a word. These break between words first. */

export interface PromptStreams {
  readonly input?: NodeJS.ReadableStream;
  readonly output?: NodeJS.WritableStream & { readonly columns?: number };
}

interface Choice<Value> {
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

/** The mark before a question or a choice. */
const MARK = '  ';
/** A list of up to so many lines is shown whole; above that it scrolls, so that it fits on a screen. */
const LINES_MAX = 15;
/** Behind the question of `confirm`. */
const YES_NO = ' (Y/n)';

export function confirm(
  question: { readonly message: string; readonly default?: boolean },
  streams: PromptStreams,
): Promise<boolean> {
  const message = fitted(question.message, streams, YES_NO.length);
  return confirmPrompt({ ...question, message }, streams);
}

export function input(question: Typed, streams: PromptStreams): Promise<string> {
  return inputPrompt({ ...question, message: fitted(question.message, streams) }, streams);
}

export function password(
  question: Omit<Typed, 'default'>,
  streams: PromptStreams,
): Promise<string> {
  const message = fitted(question.message, streams);
  return passwordPrompt({ ...question, message, mask: '*' }, streams);
}

export function select<Value>(
  question: {
    readonly message: string;
    readonly default?: Value;
    readonly choices: readonly Choice<Value>[];
  },
  streams: PromptStreams,
): Promise<Value> {
  const message = fitted(question.message, streams);
  const choices = question.choices.map((choice) => fittedChoice(choice, message, streams));
  const lines = choices.flatMap(({ name }) => name.split('\n')).length;
  const pageSize = Math.min(lines, LINES_MAX);
  return selectPrompt<Value>({ ...question, message, choices, pageSize }, streams);
}

export function search(
  question: {
    readonly message: string;
    readonly source: (term: string) => readonly Choice<string>[];
    readonly pageSize: number;
  },
  streams: PromptStreams,
): Promise<string> {
  const message = fitted(question.message, streams);
  const source = (term: string | undefined): readonly Choice<string>[] =>
    question.source(term ?? '').map((choice) => fittedChoice(choice, message, streams));
  return searchPrompt({ ...question, message, source }, streams);
}

function fittedChoice<Value>(
  choice: Choice<Value>,
  message: string,
  streams: PromptStreams,
): Choice<Value> {
  const { name, description } = choice;
  const isSaid = description !== undefined && description !== '';
  // Once it is chosen, it is shown behind the question.
  const asked = message.split('\n').at(-1) ?? '';
  const isOver = `${MARK}${asked} ${name}`.length > columnsOf(streams);
  return {
    ...choice,
    name: fitted(name, streams),
    short: isOver ? `\n${MARK}${fitted(name, streams)}` : name,
    ...(isSaid ? { description: wrapped(description, columnsOf(streams)).join('\n') } : {}),
  };
}

function fitted(text: string, streams: PromptStreams, suffix = 0): string {
  return wrapped(text, columnsOf(streams) - MARK.length - suffix).join(`\n${MARK}`);
}

function columnsOf({ output }: PromptStreams): number {
  return output?.columns ?? Infinity;
}
