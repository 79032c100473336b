import { field, isObject, listField, roughTokens, textField, textOf } from './loose-json.ts';
import { type Decision, type Prompt, type PromptText, decide, randomId } from './script.ts';
import {
  ARGUMENT_PIECE_CHARS,
  type AnswerTerms,
  type ScriptedAnswer,
  TEXT_PIECE_CHARS,
  type WrittenAnswer,
  namedEvent,
  pieces,
} from './scripted-answer.ts';

/** Anthropic Messages. */
export function answerMessages(request: unknown, terms: AnswerTerms): ScriptedAnswer {
  const decision = decide(readPrompt(request));
  const content = contentOf(decision, isThinking(request) && decision.thinks);
  return { decision, ...writeMessage(request, content, terms) };
}

/** Thinking without a signature gets one. */
export function writeMessage(
  request: unknown,
  blocks: readonly Block[],
  { usage, seal, transformations }: AnswerTerms,
): WrittenAnswer & { readonly content: readonly Block[] } {
  const id = randomId('msg_');
  const content = seal === undefined ? blocks.map((block) => signed(block, id)) : seal(blocks);
  const hour = usage.cacheWriteHour ?? 0;
  const message = {
    id,
    type: 'message',
    role: 'assistant',
    model: field(request, 'model'),
    content,
    stop_reason: content.some(({ type }) => type === 'tool_use') ? 'tool_use' : 'end_turn',
    stop_sequence: null,
    usage: {
      input_tokens: usage.input,
      cache_creation_input_tokens: usage.cacheWrite,
      cache_read_input_tokens: usage.cacheRead,
      cache_creation: {
        ephemeral_5m_input_tokens: usage.cacheWrite - hour,
        ephemeral_1h_input_tokens: hour,
      },
      output_tokens: roughTokens(content),
      service_tier: 'standard',
    },
    ...(transformations !== undefined && { input_transformations: transformations }),
  };
  return { content, whole: message, events: eventsOf(message) };
}

function signed(block: Block, id: string): Block {
  if (block.type !== 'thinking' || block.signature !== '') return block;
  return { ...block, signature: Buffer.from(`sig-${id}`).toString('base64') };
}

export type Block =
  | { readonly type: 'thinking'; readonly thinking: string; readonly signature: string }
  | { readonly type: 'redacted_thinking'; readonly data: string }
  | { readonly type: 'compaction'; readonly content: string }
  | { readonly type: 'text'; readonly text: string }
  | {
      readonly type: 'tool_use';
      readonly id: string;
      readonly name: string;
      readonly input: object;
    };

interface Message {
  readonly content: readonly Block[];
  readonly stop_reason: string;
  readonly usage: { readonly output_tokens: number };
}

function readPrompt(request: unknown): Prompt {
  const texts: PromptText[] = [];
  const toolResults: PromptText[] = [];
  let at = 0;
  for (const message of listField(request, 'messages')) {
    at += 1;
    if (field(message, 'role') !== 'user') continue;
    for (const block of blocksOf(field(message, 'content'))) {
      at += 1;
      if (field(block, 'type') === 'text') texts.push({ at, text: textField(block, 'text') });
      if (field(block, 'type') !== 'tool_result') continue;
      toolResults.push({ at, text: textOf(field(block, 'content')) });
    }
  }
  const tools = listField(request, 'tools')
    .filter((tool) => isObject(field(tool, 'input_schema')))
    .map((tool) => ({ name: textField(tool, 'name'), schema: field(tool, 'input_schema') }));
  return { texts, toolResults, tools };
}

function blocksOf(content: unknown): readonly unknown[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  return Array.isArray(content) ? content : [];
}

function isThinking(request: unknown): boolean {
  const thinking = field(request, 'thinking');
  return isObject(thinking) && thinking['type'] !== 'disabled';
}

function contentOf(decision: Decision, thinks: boolean): readonly Block[] {
  const thinking: Block = {
    type: 'thinking',
    thinking: `I consider step ${decision.step}.`,
    signature: '',
  };
  const text = decision.calls.length > 0 ? `Step ${decision.step + 1}.` : decision.final;
  const calls = decision.calls.map(({ id, name, input }) => ({
    type: 'tool_use' as const,
    id: `toolu_${id}`,
    name,
    input,
  }));
  return [...(thinks ? [thinking] : []), { type: 'text', text }, ...calls];
}

function eventsOf(message: Message): readonly string[] {
  const { content, usage } = message;
  const start = {
    ...message,
    content: [],
    stop_reason: null,
    usage: { ...usage, output_tokens: 1 },
  };
  return [
    namedEvent('message_start', { message: start }),
    namedEvent('ping'),
    ...content.flatMap((block, index) => blockEvents(block, index)),
    namedEvent('message_delta', {
      delta: { stop_reason: message.stop_reason, stop_sequence: null },
      usage: { output_tokens: usage.output_tokens },
    }),
    namedEvent('message_stop'),
  ];
}

function blockEvents(block: Block, index: number): readonly string[] {
  const { empty, deltas } = streamed(block);
  return [
    namedEvent('content_block_start', { index, content_block: empty }),
    ...deltas.map((delta) => namedEvent('content_block_delta', { index, delta })),
    namedEvent('content_block_stop', { index }),
  ];
}

function streamed(block: Block): { empty: object; deltas: readonly object[] } {
  switch (block.type) {
    case 'thinking':
      return {
        empty: { type: 'thinking', thinking: '', signature: '' },
        deltas: [
          ...pieces(block.thinking, 8).map((thinking) => ({ type: 'thinking_delta', thinking })),
          { type: 'signature_delta', signature: block.signature },
        ],
      };
    case 'redacted_thinking':
      return { empty: block, deltas: [] };
    case 'compaction':
      return {
        empty: { type: 'compaction', content: '' },
        deltas: [{ type: 'compaction_delta', content: block.content }],
      };
    case 'text':
      return {
        empty: { type: 'text', text: '' },
        deltas: pieces(block.text, TEXT_PIECE_CHARS).map((text) => ({ type: 'text_delta', text })),
      };
    case 'tool_use':
      return {
        empty: { ...block, input: {} },
        deltas: pieces(JSON.stringify(block.input), ARGUMENT_PIECE_CHARS).map((partial_json) => ({
          type: 'input_json_delta',
          partial_json,
        })),
      };
  }
}
