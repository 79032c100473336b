import { type Dialect, DIALECTS } from '../conversation/view.ts';
import { MESSAGES_API } from './anthropic/api.ts';
import type { DialectApi } from './api.ts';
import { CHAT_API } from './chat/api.ts';
import { RESPONSES_API } from './responses/api.ts';

const APIS: Readonly<Record<Dialect, DialectApi>> = {
  anthropic_messages: MESSAGES_API,
  openai_responses: RESPONSES_API,
  openai_chat_completions: CHAT_API,
};

export const DIALECT_APIS: readonly DialectApi[] = DIALECTS.map(apiOf);

export function apiOf(name: Dialect): DialectApi {
  return APIS[name];
}
