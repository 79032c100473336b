import { type Dialect, DIALECTS, type ItemTraits } from '../conversation/view.ts';
import { MESSAGES } from './anthropic/dialect.ts';
import { CHAT } from './chat/dialect.ts';
import type { DialectDescriptor, ItemForm } from './descriptor.ts';
import { RESPONSES } from './responses/dialect.ts';

const DESCRIPTORS: Readonly<Record<Dialect, DialectDescriptor>> = {
  anthropic_messages: MESSAGES,
  openai_responses: RESPONSES,
  openai_chat_completions: CHAT,
};

export const DIALECT_DESCRIPTORS: readonly DialectDescriptor[] = DIALECTS.map(dialectOf);

export function dialectOf(name: Dialect): DialectDescriptor {
  return DESCRIPTORS[name];
}

/** The facts about one element of `messages` or `input`. */
export function readItem(name: Dialect, value: unknown, form?: ItemForm): ItemTraits {
  return DESCRIPTORS[name].readItem(value, form);
}
