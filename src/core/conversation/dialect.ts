/**
 * The names of the API formats of clients and providers. A name is also the `apiStyle` of an
 * upstream: svc never translates, so the client's dialect picks the upstream. The descriptors under
 * `src/core/dialects/` contain all differences between dialects.
 */
export const DIALECTS = [
  'anthropic_messages',
  'openai_responses',
  'openai_chat_completions',
] as const;

export type Dialect = (typeof DIALECTS)[number];
