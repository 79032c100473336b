/** What the stand-in provider answers, in three dialects: whole JSON answers and the events of a stream. */

/** Headers that clients read; a proxy must not lose them. */
export const ANSWER_HEADERS = {
  messages: 'request-id: req_bench01\r\nanthropic-ratelimit-requests-limit: 4000\r\n',
  chat: 'x-request-id: req_bench01\r\nopenai-processing-ms: 12\r\n',
  responses: 'x-request-id: req_bench01\r\nopenai-processing-ms: 12\r\n',
};

export function dialectOf(path) {
  if (path.includes('/messages')) return 'messages';
  return path.includes('/responses') ? 'responses' : 'chat';
}

export function padding(chars) {
  const words = 'lorem ipsum dolor sit amet ';
  return words.repeat(Math.ceil(chars / words.length)).slice(0, chars);
}

const MODEL = 'bench-model';
const CHAT_CHUNK = {
  id: 'chatcmpl-bench01',
  object: 'chat.completion.chunk',
  created: 1_700_000_000,
  model: MODEL,
};

const ANSWERS = {
  messages: (text) => ({
    id: 'msg_bench01',
    type: 'message',
    role: 'assistant',
    model: MODEL,
    content: [{ type: 'text', text }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: {
      input_tokens: 100,
      output_tokens: 50,
      cache_read_input_tokens: 0,
      cache_creation_input_tokens: 0,
    },
  }),
  chat: (content) => ({
    id: 'chatcmpl-bench01',
    object: 'chat.completion',
    created: 1_700_000_000,
    model: MODEL,
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content, refusal: null },
        logprobs: null,
        finish_reason: 'stop',
      },
    ],
    usage: { prompt_tokens: 100, completion_tokens: 50, total_tokens: 150 },
  }),
  responses: (text) => ({
    id: 'resp_bench01',
    object: 'response',
    created_at: 1_700_000_000,
    status: 'completed',
    model: MODEL,
    output: [responsesMessage(text)],
    usage: { input_tokens: 100, output_tokens: 50, total_tokens: 150 },
  }),
};

function responsesMessage(text) {
  const content = [{ type: 'output_text', text, annotations: [] }];
  return { type: 'message', id: 'msg_1', status: 'completed', role: 'assistant', content };
}

export function jsonAnswer(dialect, bytes) {
  // Less what stands around the text, about.
  return Buffer.from(JSON.stringify(ANSWERS[dialect](padding(Math.max(0, bytes - 300)))));
}

/** Per dialect the text of the stream's start, of one piece of text, and of its end. */
export const STREAMS = {
  messages: {
    start: () =>
      namedEvent('message_start', {
        message: {
          ...ANSWERS.messages(''),
          content: [],
          stop_reason: null,
          usage: { input_tokens: 100, output_tokens: 1 },
        },
      }) +
      namedEvent('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }) +
      'event: ping\ndata: {"type": "ping"}\n\n',
    delta: (text) =>
      namedEvent('content_block_delta', { index: 0, delta: { type: 'text_delta', text } }),
    end: () =>
      namedEvent('content_block_stop', { index: 0 }) +
      namedEvent('message_delta', {
        delta: { stop_reason: 'end_turn', stop_sequence: null },
        usage: { output_tokens: 50 },
      }) +
      namedEvent('message_stop', {}),
  },
  chat: {
    start: () => chatEvent({ role: 'assistant', content: '' }, null),
    delta: (content) => chatEvent({ content }, null),
    end: () => `${chatEvent({}, 'stop')}data: [DONE]\n\n`,
  },
  responses: {
    start: () =>
      namedEvent('response.created', {
        sequence_number: 0,
        response: { id: 'resp_bench01', object: 'response', status: 'in_progress', output: [] },
      }) +
      namedEvent('response.output_item.added', {
        sequence_number: 1,
        output_index: 0,
        item: { ...responsesMessage(''), status: 'in_progress', content: [] },
      }),
    delta: (delta) =>
      namedEvent('response.output_text.delta', {
        item_id: 'msg_1',
        output_index: 0,
        content_index: 0,
        delta,
      }),
    end: () => namedEvent('response.completed', { response: ANSWERS.responses('') }),
  },
};

function namedEvent(type, fields) {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
}

function chatEvent(delta, finishReason) {
  const choices = [{ index: 0, delta, finish_reason: finishReason }];
  return `data: ${JSON.stringify({ ...CHAT_CHUNK, choices })}\n\n`;
}
