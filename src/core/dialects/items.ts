import type { Dialect } from '../request/dialect.ts';
import type { ItemTraits } from '../request/view.ts';
import { readMessagesItem } from './anthropic-messages.ts';
import { readChatItem } from './openai-chat.ts';
import { readResponsesItem } from './openai-responses.ts';

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
