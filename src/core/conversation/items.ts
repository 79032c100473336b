import type { Dialect } from './dialect.ts';
import type { ItemTraits } from './view.ts';
import { readMessagesItem } from '../dialects/anthropic/items.ts';
import { readChatItem } from '../dialects/chat/items.ts';
import { readResponsesItem } from '../dialects/responses/items.ts';

/**
 * What one element of `messages` or `input` says. `value` is its parsed JSON, whatever that is: an
 * item that no client sends today reads as one about which nothing is known, and never throws.
 */
export function readItem(dialect: Dialect, value: unknown): ItemTraits {
  return READERS[dialect](value);
}

const READERS: Readonly<Record<Dialect, (value: unknown) => ItemTraits>> = {
  anthropic_messages: readMessagesItem,
  openai_responses: readResponsesItem,
  openai_chat_completions: readChatItem,
};
