import type { Dialect } from '../dialect.ts';
import type { ItemTraits } from '../view.ts';
import { readMessagesItem } from './anthropic-messages.ts';
import { readChatItem } from './openai-chat.ts';
import { readResponsesItem } from './openai-responses.ts';

/**
 * What one element of `messages` or `input` says. `value` is its parsed JSON, whatever that is: an
 * item that no client sends today reads as one about which nothing is known, and never throws.
 */
export function readItem(dialect: Dialect, value: unknown): ItemTraits {
  switch (dialect) {
    case 'anthropic_messages':
      return readMessagesItem(value);
    case 'openai_responses':
      return readResponsesItem(value);
    case 'openai_chat_completions':
      return readChatItem(value);
  }
}
