import type { Dialect } from '../../core/conversation/dialect.ts';

/**
 * The least of each dialect that a question and an answer need, for both sides of the demo. The
 * proxy between them knows nothing of this file.
 */
export interface DemoDialect {
  readonly dialect: Dialect;
  /** As people call it. */
  readonly title: string;
  readonly path: string;
  request(text: string, isStreamed: boolean): object;
  /** The newest message of a request, as JSON. */
  newestMessage(request: unknown): unknown;
  /** A whole answer with this text. */
  answer(text: string): object;
  /** The same as a stream; each piece is one event's text. */
  events(pieces: readonly string[]): readonly object[];
  /** The text of a whole answer. */
  textOf(answer: unknown): string;
  /** The text that one event adds; '' for most events. */
  pieceOf(event: unknown): string;
}

const MODEL = 'stand-in';
const ID = 'demo_1';

const MESSAGES: DemoDialect = {
  dialect: 'anthropic_messages',
  title: 'Anthropic Messages',
  path: '/v1/messages',
  request: (text, stream) => ({ model: MODEL, max_tokens: 200, stream, messages: [said(text)] }),
  newestMessage: (request) => memberAt(request, 'messages', -1),
  answer: (text) => messagesAnswer([{ type: 'text', text }], 'end_turn'),
  events: (pieces) => [
    { type: 'message_start', message: messagesAnswer([], null) },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    ...pieces.map((text) => ({
      type: 'content_block_delta',
      index: 0,
      delta: { type: 'text_delta', text },
    })),
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 1 } },
    { type: 'message_stop' },
  ],
  textOf: (answer) => textAt(answer, 'content', 0, 'text'),
  pieceOf: (event) => textAt(event, 'delta', 'text'),
};

const RESPONSES: DemoDialect = {
  dialect: 'openai_responses',
  title: 'OpenAI Responses',
  path: '/v1/responses',
  request: (text, stream) => ({ model: MODEL, stream, store: false, input: [said(text)] }),
  newestMessage: (request) => memberAt(request, 'input', -1),
  answer: (text) => responsesAnswer(text),
  events: (pieces) => [
    { type: 'response.created', response: { ...responsesAnswer(''), status: 'in_progress' } },
    ...pieces.map((delta) => ({ type: 'response.output_text.delta', item_id: ID, delta })),
    { type: 'response.completed', response: responsesAnswer(pieces.join('')) },
  ],
  textOf: (answer) => textAt(answer, 'output', 0, 'content', 0, 'text'),
  pieceOf: (event) => textAt(event, 'delta'),
};

const CHAT: DemoDialect = {
  dialect: 'openai_chat_completions',
  title: 'OpenAI Chat Completions',
  path: '/v1/chat/completions',
  request: (text, stream) => ({ model: MODEL, stream, messages: [said(text)] }),
  newestMessage: (request) => memberAt(request, 'messages', -1),
  answer: (content) => ({
    id: ID,
    object: 'chat.completion',
    model: MODEL,
    choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  }),
  events: (pieces) => [
    ...pieces.map((content) => chatChunk({ content }, null)),
    chatChunk({}, 'stop'),
  ],
  textOf: (answer) => textAt(answer, 'choices', 0, 'message', 'content'),
  pieceOf: (event) => textAt(event, 'choices', 0, 'delta', 'content'),
};

export const DEMO_DIALECTS: readonly DemoDialect[] = [MESSAGES, RESPONSES, CHAT];

/** A member of somebody else's JSON; a negative index counts from the end. */
export function memberAt(value: unknown, ...path: readonly (string | number)[]): unknown {
  let member = value;
  for (const step of path) {
    if (Array.isArray(member) && typeof step === 'number') member = member.at(step);
    else if (typeof member === 'object' && member !== null) member = Reflect.get(member, step);
    else return undefined;
  }
  return member;
}

export function textAt(value: unknown, ...path: readonly (string | number)[]): string {
  const text = memberAt(value, ...path);
  return typeof text === 'string' ? text : '';
}

function said(text: string): object {
  return { role: 'user', content: text };
}

function messagesAnswer(content: readonly object[], stopReason: string | null): object {
  const usage = { input_tokens: 1, output_tokens: 1 };
  const common = { id: ID, type: 'message', role: 'assistant', model: MODEL };
  return { ...common, content, stop_reason: stopReason, usage };
}

function responsesAnswer(text: string): object {
  const content = [{ type: 'output_text', text, annotations: [] }];
  const message = { id: ID, type: 'message', role: 'assistant', status: 'completed', content };
  const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };
  const common = { id: ID, object: 'response', status: 'completed', model: MODEL };
  return { ...common, output: [message], usage };
}

function chatChunk(delta: object, finishReason: string | null): object {
  const choices = [{ index: 0, delta, finish_reason: finishReason }];
  return { id: ID, object: 'chat.completion.chunk', model: MODEL, choices };
}
