import type { Dialect } from '../conversation/view.ts';

/** Small requests and answers in each dialect, for the demo and for calls that test a provider. */

interface DialectSample {
  request(model: string, text: string, isStreamed: boolean): object;
  /** Returns a request whose prefix the provider can store in its prompt cache. */
  cacheableRequest(call: CacheableCall): object;
  newestMessage(request: unknown): unknown;
  answer(model: string, text: string): object;
  /** Returns the answer as a stream; each piece is the text of one event. */
  events(model: string, pieces: readonly string[]): readonly object[];
  /** The text after the last event of a stream; '' in most dialects. */
  readonly streamEnd: string;
  textOf(answer: unknown): string;
  /** Returns the text that an event adds; '' if it adds none. */
  pieceOf(event: unknown): string;
}

interface CacheableCall {
  readonly model: string;
  readonly prefix: string;
  readonly question: string;
  readonly answerTokensMax: number;
  /** True if the provider is OpenAI itself, which refuses some fields that others require. */
  readonly isOpenAi: boolean;
}

const ID = 'sample_1';

const MESSAGES: DialectSample = {
  request: (model, text, stream) => ({ model, max_tokens: 200, stream, messages: [said(text)] }),
  cacheableRequest: ({ model, prefix, question, answerTokensMax }) => ({
    model,
    max_tokens: answerTokensMax,
    system: [{ type: 'text', text: prefix, cache_control: { type: 'ephemeral' } }],
    messages: [said(question)],
  }),
  newestMessage: (request) => memberAt(request, 'messages', -1),
  answer: (model, text) => messageOf(model, [{ type: 'text', text }], 'end_turn'),
  events: (model, pieces) => [
    { type: 'message_start', message: messageOf(model, [], null) },
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
  streamEnd: '',
  textOf: (answer) => textAt(answer, 'content', 0, 'text'),
  pieceOf: (event) => textAt(event, 'delta', 'text'),
};

function messageOf(model: string, content: readonly object[], stopReason: string | null): object {
  const usage = { input_tokens: 1, output_tokens: 1 };
  const common = { id: ID, type: 'message', role: 'assistant', model };
  return { ...common, content, stop_reason: stopReason, usage };
}

const CHAT: DialectSample = {
  request: (model, text, stream) => ({ model, stream, messages: [said(text)] }),
  cacheableRequest: ({ model, prefix, question, answerTokensMax, isOpenAi }) => ({
    model,
    // OpenAI requires the newer name; many other providers know only the older one.
    [isOpenAi ? 'max_completion_tokens' : 'max_tokens']: answerTokensMax,
    messages: [{ role: 'system', content: prefix }, said(question)],
  }),
  newestMessage: (request) => memberAt(request, 'messages', -1),
  answer: (model, content) => ({
    id: ID,
    object: 'chat.completion',
    model,
    choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  }),
  events: (model, pieces) => [
    ...pieces.map((content) => chunkOf(model, { content }, null)),
    chunkOf(model, {}, 'stop'),
  ],
  streamEnd: 'data: [DONE]\n\n',
  textOf: (answer) => textAt(answer, 'choices', 0, 'message', 'content'),
  pieceOf: (event) => textAt(event, 'choices', 0, 'delta', 'content'),
};

function chunkOf(model: string, delta: object, finishReason: string | null): object {
  const choices = [{ index: 0, delta, finish_reason: finishReason }];
  return { id: ID, object: 'chat.completion.chunk', model, choices };
}

const RESPONSES: DialectSample = {
  request: (model, text, stream) => ({ model, stream, store: false, input: [said(text)] }),
  cacheableRequest: ({ model, prefix, question, answerTokensMax }) => ({
    model,
    max_output_tokens: answerTokensMax,
    store: false,
    instructions: prefix,
    input: question,
  }),
  newestMessage: (request) => memberAt(request, 'input', -1),
  answer: responseOf,
  events: (model, pieces) => [
    { type: 'response.created', response: { ...responseOf(model, ''), status: 'in_progress' } },
    ...pieces.map((delta) => ({ type: 'response.output_text.delta', item_id: ID, delta })),
    { type: 'response.completed', response: responseOf(model, pieces.join('')) },
  ],
  streamEnd: '',
  textOf: (answer) => textAt(answer, 'output', 0, 'content', 0, 'text'),
  pieceOf: (event) => textAt(event, 'delta'),
};

function responseOf(model: string, text: string): object {
  const content = [{ type: 'output_text', text, annotations: [] }];
  const message = { id: ID, type: 'message', role: 'assistant', status: 'completed', content };
  const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };
  const common = { id: ID, object: 'response', status: 'completed', model };
  return { ...common, output: [message], usage };
}

const SAMPLES: Readonly<Record<Dialect, DialectSample>> = {
  anthropic_messages: MESSAGES,
  openai_chat_completions: CHAT,
  openai_responses: RESPONSES,
};

export function sampleOf(dialect: Dialect): DialectSample {
  return SAMPLES[dialect];
}

function said(text: string): object {
  return { role: 'user', content: text };
}

/** Returns a member of untyped JSON by its path; a negative index counts from the end. */
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
