import type { ItemTraits, ToolCall } from '../conversation/view.ts';

/** An item about which nothing is known: svc leaves it alone. */
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

/** A call without a usable id cannot be paired with its result: '' pairs with nothing. */
export function toolCall(id: unknown, name: unknown): ToolCall {
  return {
    id: typeof id === 'string' ? id : '',
    name: typeof name === 'string' ? name : '',
  };
}
