/**
 * The names of the ways in which clients and providers talk. A name is also the `apiStyle` of an
 * upstream: svc never translates, so the client's dialect picks the upstream. How a dialect differs
 * from the others stands in its descriptor under `src/core/dialects/`, and nowhere else.
 */
export const DIALECTS = [
  'anthropic_messages',
  'openai_responses',
  'openai_chat_completions',
] as const;

export type Dialect = (typeof DIALECTS)[number];
