import type { Dialect } from '../../src/core/conversation/view.ts';

/** One message as it stands in a test body, of whatever shape the dialect takes. */
export type PlainItem = Readonly<Record<string, unknown>>;

/** A body of the dialect whose conversation is exactly these items. */
export function bodyOf(dialect: Dialect, items: readonly PlainItem[]): Record<string, unknown> {
  const shell = { model: 'test-model', stream: false };
  if (dialect === 'anthropic_messages') {
    return { ...shell, max_tokens: 1024, system: 'You are a test agent.', messages: items };
  }
  if (dialect === 'openai_responses') {
    return { ...shell, instructions: 'You are a test agent.', input: items };
  }
  const system = { role: 'system', content: 'You are a test agent.' };
  return { ...shell, messages: [system, ...items] };
}

/** A person's message or an answer of one plain text, as clients of the dialect write it. */
export function plainItem(dialect: Dialect, role: 'user' | 'assistant', text: string): PlainItem {
  if (dialect !== 'openai_responses') return { role, content: text };
  const type = role === 'user' ? 'input_text' : 'output_text';
  return { type: 'message', role, content: [{ type, text }] };
}
