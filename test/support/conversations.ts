import * as fc from 'fast-check';
import type { Dialect } from '../../src/core/conversation/view.ts';
import { requestWith, said, type WireItem } from './dialect-wire.ts';

/**
 * Conversations as agents have them, to be sent request by request: prompts, tool loops with calls
 * side by side, answers, and the cache mark that Claude Code moves to the newest message.
 */
export interface Conversation {
  readonly exchanges: readonly {
    readonly prompt: string;
    readonly answer: string;
    /** So many calls in each round. */
    readonly rounds: readonly number[];
  }[];
  /** Headers that name the conversation, or none. */
  readonly headers: Readonly<Record<string, string>>;
  /** A prompt without a mark is written as text, and not as a list of one part. */
  readonly writesText: boolean;
}

const PROMPTS = [
  'On which port does the staging database of the walrus shop listen?',
  'Who owns the billing dashboard and its Grafana alerts?',
  'Where do the feature flags of the workspace kestrel live?',
  'How are the nightly backups encrypted, and where are they shipped?',
  'Paint the mountains in winter, please. "Quoted", \\ and \u{1f600} too.',
  'ok',
];

const exchange = fc.record({
  prompt: fc.constantFrom(...PROMPTS),
  answer: fc.constantFrom(
    'Port 6431, I think.',
    'Marta does.',
    'In Frankfurt.\n\nReally.',
    'Done.',
  ),
  rounds: fc.array(fc.integer({ min: 1, max: 3 }), { maxLength: 4 }),
});

/** One to three of them; some begin with the same words, and some have no name. */
export function conversations(): fc.Arbitrary<Conversation[]> {
  const conversation = fc.record({
    exchanges: fc.array(exchange, { minLength: 1, maxLength: 4 }),
    isNamed: fc.boolean(),
    writesText: fc.boolean(),
  });
  return fc.array(conversation, { minLength: 1, maxLength: 3 }).map((all) =>
    all.map(({ isNamed, ...rest }, index) => ({
      ...rest,
      headers: isNamed ? { 'session-id': `session-${index}` } : {},
    })),
  );
}

/** The items of each request, in order: one after every prompt and after every round. */
export function stepsOf(dialect: Dialect, conversation: Conversation): readonly WireItem[][] {
  const steps: WireItem[][] = [];
  let items: WireItem[] = [];
  for (const [at, { prompt, answer, rounds }] of conversation.exchanges.entries()) {
    items = [...items, said('user', promptContent(dialect, prompt, conversation))];
    steps.push(items);
    for (const [round, calls] of rounds.entries()) {
      const ids = Array.from({ length: calls }, (_, call) => `call_${at}_${round}_${call}`);
      items = [...items, ...roundItems(dialect, ids)];
      steps.push(items);
    }
    items = [...items, said('assistant', answerContent(dialect, answer))];
  }
  return dialect === 'anthropic_messages' ? steps.map(marked) : steps;
}

export function bodyOf(dialect: Dialect, items: readonly WireItem[]): Buffer {
  // Its thinking binds nothing: what a conversation here thought was not relayed.
  const model = 'claude-opus-4-5';
  const extra = { model, tools: [{ type: 'function', name: 'shell' }], stream: true };
  return Buffer.from(JSON.stringify(requestWith(dialect, items, extra)));
}

function promptContent(dialect: Dialect, text: string, { writesText }: Conversation): unknown {
  if (writesText) return text;
  return [{ type: dialect === 'openai_responses' ? 'input_text' : 'text', text }];
}

function answerContent(dialect: Dialect, text: string): unknown {
  if (dialect === 'openai_responses') return [{ type: 'output_text', text, annotations: [] }];
  return dialect === 'anthropic_messages' ? [{ type: 'text', text }] : text;
}

function roundItems(dialect: Dialect, ids: readonly string[]): readonly WireItem[] {
  switch (dialect) {
    case 'anthropic_messages': {
      const thinking = { type: 'thinking', thinking: 'Hm.', signature: 'c2ln' };
      const calls = ids.map((id) => ({ type: 'tool_use', id, name: 'Bash', input: { id } }));
      const results = ids.map((id) => ({
        type: 'tool_result',
        tool_use_id: id,
        content: `of ${id}`,
      }));
      return [said('assistant', [thinking, ...calls]), said('user', results)];
    }
    case 'openai_responses':
      return [
        { type: 'reasoning', id: `rs_${ids[0] ?? ''}`, summary: [], encrypted_content: 'x' },
        ...ids.map((id) => ({
          type: 'function_call',
          call_id: id,
          name: 'shell',
          arguments: '{}',
        })),
        ...ids.map((id) => ({ type: 'function_call_output', call_id: id, output: `of ${id}` })),
      ];
    case 'openai_chat_completions': {
      const call = { type: 'function', function: { name: 'shell', arguments: '{}' } };
      const tool_calls = ids.map((id) => ({ id, ...call }));
      return [
        { role: 'assistant', content: null, tool_calls },
        ...ids.map((id) => ({ role: 'tool', tool_call_id: id, content: `of ${id}` })),
      ];
    }
  }
}

/** Claude Code: the newest message is a list whose last block has the mark. */
export function marked(items: readonly WireItem[]): WireItem[] {
  const newest = items.at(-1);
  if (newest === undefined) return [];
  const { content } = newest;
  const blocks: readonly object[] = Array.isArray(content)
    ? (content as object[])
    : [{ type: 'text', text: content }];
  const last = { ...blocks.at(-1), cache_control: { type: 'ephemeral' } };
  return [...items.slice(0, -1), { ...newest, content: [...blocks.slice(0, -1), last] }];
}
