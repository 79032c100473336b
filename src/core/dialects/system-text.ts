import { projectInSystem } from '../conversation/stated-project.ts';
import type { ClientOrder, ItemTraits, ToolCall } from '../conversation/view.ts';
import { asText, isRecord } from '../bytes/json-fields.ts';

/** Beginnings of system prompts with which a client, not the user, gives the model a task; see ClientOrder. */
const ORDERS: readonly (readonly [starts: string, order: ClientOrder])[] = [
  ['You are a title generator', 'side'], // opencode
  ['You are now acting as the managed memory', 'side'], // Qwen Code
  ['You are the component that summarizes internal chat history', 'compaction'], // Qwen Code
  ['*Briefly* summarize this partial conversation', 'compaction'], // Aider
  ['You are an expert software engineer that generates concise, one-line Git commit', 'side'], // Aider
  ['You are a context summarization assistant', 'compaction'], // pi
];

/** Reads a system or developer message of any dialect. */
export function readSystemItem(texts: readonly string[]): ItemTraits {
  const clientOrder = orderOfSystem(texts[0] ?? '');
  return {
    ...NO_TRAITS,
    role: 'system',
    ...projectInSystem(texts),
    ...(clientOrder !== undefined && { clientOrder }),
  };
}

export function orderOfSystem(text: string): ClientOrder | undefined {
  const start = text.trimStart();
  return ORDERS.find(([starts]) => start.startsWith(starts))?.[1];
}

/**
 * Returns the texts of a member `content`, `system` or `instructions`: of a string, or of a list of parts. It skips
 * pictures, files and thinking.
 */
export function textsOf(content: unknown): readonly string[] {
  if (typeof content === 'string') return [content];
  if (!Array.isArray(content)) return [];
  return content.filter(isTextPart).map((part) => asText(part['text']));
}

function isTextPart(part: unknown): part is Readonly<Record<string, unknown>> {
  return isRecord(part) && typeof part['text'] === 'string' && !REASONING_PARTS.has(part['type']);
}

/** Part types whose text is the model's thinking, in dialects that put it among the content. */
const REASONING_PARTS: ReadonlySet<unknown> = new Set(
  'thinking reasoning reasoning_text summary_text'.split(' '),
);

/** The facts about an item in a form that svc does not know. The facts about every other item begin with these. */
export const NO_TRAITS: ItemTraits = Object.freeze({
  role: 'other',
  humanText: '',
  assistantText: '',
  toolCalls: [],
  toolResultIds: [],
  hasReasoning: false,
  thoughts: [],
  isInterruption: false,
  isReference: false,
});

/** Returns a call. An id that is no string becomes '', and '' matches no result. */
export function toolCall(id: unknown, name: unknown): ToolCall {
  return { id: asText(id), name: asText(name) };
}
