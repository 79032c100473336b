import type { Decision } from './script.ts';

/** One answer in one dialect, as a whole and as a stream. */
export interface ScriptedAnswer {
  readonly decision: Decision;
  readonly whole: object;
  /** Complete server-sent events, blank line included. */
  readonly events: readonly string[];
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
