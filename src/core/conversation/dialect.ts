/**
 * The three ways in which clients and providers talk. A dialect is also the `apiStyle` of an
 * upstream: svc never translates, so the client's dialect picks the upstream.
 */
export const DIALECTS = [
  'anthropic_messages',
  'openai_responses',
  'openai_chat_completions',
] as const;

export type Dialect = (typeof DIALECTS)[number];

/** The member of the request body that holds the conversation. */
export function listKey(dialect: Dialect): 'messages' | 'input' {
  return dialect === 'openai_responses' ? 'input' : 'messages';
}

/** Where each is spoken, as every provider's own API has it. */
export const MODEL_PATHS: Readonly<Record<Dialect, string>> = {
  anthropic_messages: '/v1/messages',
  openai_responses: '/v1/responses',
  openai_chat_completions: '/v1/chat/completions',
};
