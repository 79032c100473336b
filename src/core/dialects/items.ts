import type { Dialect } from '../dialect.ts';
import type { ItemTraits } from '../view.ts';

/** Stands in until the dialects are read: it knows nothing about any item. */
export function readItem(_dialect: Dialect, _value: unknown): ItemTraits {
  return {
    role: 'other',
    humanText: '',
    assistantText: '',
    toolCalls: [],
    toolResultIds: [],
    hasReasoning: false,
    isInterruption: false,
  };
}
