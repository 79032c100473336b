import type { PromptUsage } from './prompt-cache.ts';
import type { Decision } from './script.ts';

/** One answer in one dialect, as a whole and as a stream. */
export interface WrittenAnswer {
  readonly whole: object;
  /** Complete server-sent events, blank line included. */
  readonly events: readonly string[];
}

export interface ScriptedAnswer extends WrittenAnswer {
  readonly decision: Decision;
}

/** What the provider says beside the model's words. */
export interface AnswerTerms {
  readonly usage: PromptUsage;
  /** Binds the thinking of the answer to its request; a strict provider has one. */
  readonly seal?: <Part extends object>(output: readonly Part[]) => readonly Part[];
  /** What the model did not get; a strict provider tells. */
  readonly transformations?: readonly object[] | undefined;
}

export function namedEvent(type: string, fields: object = {}): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
}

/** Cuts a text as providers do: a few characters an event. */
export function pieces(text: string, chars: number): readonly string[] {
  return text.match(new RegExp(`.{1,${chars}}`, 'gs')) ?? [];
}

/** Characters of an answer in one event, about what real streams were seen to send. */
export const TEXT_PIECE_CHARS = 40;
export const ARGUMENT_PIECE_CHARS = 16;
