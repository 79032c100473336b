import { describe, expect, test } from 'vitest';
import { AnswerReader } from '../../src/core/answer/answer-reader.ts';
import type { Answer } from '../../src/core/dialects/dialect-answer.ts';
import type { Dialect } from '../../src/core/conversation/view.ts';
import { DIALECTS } from '../../src/core/dialects/apis.ts';
import { readItem } from '../../src/core/dialects/dialects.ts';
import { OPENAI_CACHE } from '../../src/core/dialects/common.ts';
import { paidFor } from '../../src/core/shortening/meter.ts';
import { recordings, type Recording } from '../support/recordings.ts';

const textCharsMax = 1 << 20;

function read(dialect: Dialect, answer: string, contentType?: string): Answer {
  const reader = new AnswerReader(dialect, { contentType, textCharsMax });
  reader.push(Buffer.from(answer));
  return reader.finish();
}

function events(...list: readonly unknown[]): string {
  return list.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
}

const textDelta = (text: string, index = 0) => ({
  type: 'content_block_delta',
  index,
  delta: { type: 'text_delta', text },
});
const block = (type: string) => ({ type: 'content_block_start', content_block: { type } });

describe('what the client sends back', () => {
  const all = recordings().filter(({ answer, status }) => answer !== '' && status === 200);

  // The next request of the same conversation holds the answer as items. What was read while it
  // streamed and what is read from history must be the same text, or it is stored twice.
  test('the text of an answer is the text of the items that it becomes', () => {
    let compared = 0;
    for (const [index, recording] of all.entries()) {
      const next = all[index + 1];
      const texts = next === undefined ? [] : newTexts(recording, next);
      if (recording.dialect === undefined || recording.isCut || texts.length === 0) continue;
      expect(texts.join('\n\n'), recording.name).toBe(
        read(recording.dialect, recording.answer).text,
      );
      compared += 1;
    }
    expect(compared).toBeGreaterThan(60);
  });
});

/** Assistant texts that `next` has and `recording` had not, when it continues it. */
function newTexts(recording: Recording, next: Recording): readonly string[] {
  const dialect = recording.dialect;
  const scenario = ({ name }: Recording): string => name.replace(/[^/]*$/, '');
  if (dialect === undefined || dialect !== next.dialect || scenario(recording) !== scenario(next)) {
    return [];
  }
  const before = itemsOf(recording).map((item) => readItem(dialect, item));
  const after = itemsOf(next).map((item) => readItem(dialect, item));
  const isNext =
    before.length > 0 && before.every((item, at) => item.humanText === after[at]?.humanText);
  if (!isNext) return [];
  // Only the answer's own items: up to the first that is not the assistant's.
  const added = after.slice(before.length);
  const end = added.findIndex(({ role }) => role === 'user' || role === 'tool');
  const own = added.slice(0, end === -1 ? added.length : end);
  return own.map(({ assistantText }) => assistantText).filter((text) => text !== '');
}

function itemsOf({ body }: Recording): readonly unknown[] {
  const items = body['messages'] ?? body['input'];
  return Array.isArray(items) ? items : [];
}

describe('Messages', () => {
  const read1 = (...list: readonly unknown[]) => read('anthropic_messages', events(...list));

  test('text blocks side by side are one paragraph, others stand between paragraphs', () => {
    const answer = read1(
      block('text'),
      textDelta('Paris'),
      block('text'),
      textDelta(' is big.'),
      block('tool_use'),
      block('text'),
      textDelta('Done.'),
    );
    expect(answer.text).toBe('Paris is big.\n\nDone.');
  });

  test('thinking, signatures and tool arguments are never text', () => {
    const thinking = {
      type: 'content_block_delta',
      delta: { type: 'thinking_delta', thinking: 'hm', text: 'no' },
    };
    const json = {
      type: 'content_block_delta',
      delta: { type: 'input_json_delta', partial_json: '{"text":"no"}' },
    };
    expect(read1(block('thinking'), thinking, block('tool_use'), json).text).toBe('');
  });

  test('the end says what the provider itself cleared; its other edits do not count', () => {
    const clearing = { type: 'clear_tool_uses_20250919', cleared_tool_uses: 8 };
    const thinking = { type: 'clear_thinking_20251015', cleared_input_tokens: 7 };
    const applied_edits = [thinking, { ...clearing, cleared_input_tokens: 50_000 }];
    const start = { type: 'message_start', message: { context_management: null } };
    const end = { type: 'message_delta', delta: { stop_reason: 'end_turn' } };
    const told = { ...end, context_management: { applied_edits } };
    expect(read1(start, told).cleared).toEqual({ outputs: 8, tokens: 50_000 });
    expect(read1(start, end)).not.toHaveProperty('cleared');
    const none = { ...end, context_management: { applied_edits: [] } };
    expect(read1(start, none)).not.toHaveProperty('cleared');
  });

  test('usage is the start and what the end corrects', () => {
    const usage = {
      input_tokens: 5,
      cache_creation_input_tokens: 7,
      cache_read_input_tokens: 11,
      output_tokens: 1,
    };
    const answer = read1(
      { type: 'message_start', message: { usage } },
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 40 } },
      { type: 'message_stop' },
    );
    expect(answer.usage).toEqual({ input: 5, cacheWrite: 7, cacheRead: 11, output: 40 });
    expect(answer).toMatchObject({ isComplete: true, isFailed: false, callsTools: false });
  });

  test.each([
    ['tool_use', { callsTools: true }],
    ['pause_turn', { callsTools: true }],
    ['end_turn', { callsTools: false, isCutShort: false, isFailed: false }],
    ['max_tokens', { isCutShort: true }],
    ['refusal', { isFailed: true }],
    ['stop_sequence', { isCutShort: false }],
    ['a reason of next year', { isCutShort: true }],
  ])('stop reason %s', (reason, want) => {
    const answer = read1(
      { type: 'message_delta', delta: { stop_reason: reason } },
      { type: 'message_stop' },
    );
    expect(answer).toMatchObject({ isComplete: true, ...want });
  });

  test('an error event is a failed answer, and one that just ends is not complete', () => {
    const error = { type: 'error', error: { type: 'overloaded_error', message: 'x' } };
    expect(read1(block('text'), textDelta('half'), error)).toMatchObject({
      text: 'half',
      isFailed: true,
      isComplete: false,
    });
    expect(read1(block('text'), textDelta('half'))).toMatchObject({
      isFailed: false,
      isComplete: false,
    });
  });

  test('a whole message in JSON', () => {
    const body = {
      type: 'message',
      content: [
        { type: 'thinking', thinking: 'hm' },
        { type: 'text', text: 'Hi.' },
      ],
      stop_reason: 'end_turn',
      usage: { input_tokens: 2, output_tokens: 3 },
    };
    expect(read('anthropic_messages', JSON.stringify(body), 'application/json')).toEqual({
      text: 'Hi.',
      callsTools: false,
      isComplete: true,
      isFailed: false,
      isCutShort: false,
      thoughts: [],
      usage: { input: 2, cacheRead: 0, cacheWrite: 0, output: 3 },
      usageTold: body.usage,
    });
  });
});

describe('Responses', () => {
  const said = (text: string, index = 0) => ({
    type: 'response.output_text.delta',
    output_index: index,
    delta: text,
  });
  const read1 = (...list: readonly unknown[]) => read('openai_responses', events(...list));
  const added = (item: unknown) => ({ type: 'response.output_item.added', item });

  test('each message is a paragraph', () => {
    expect(read1(said('One.', 1), said('Two', 3), said('.', 3)).text).toBe('One.\n\nTwo.');
  });

  test('cached tokens are not counted as input', () => {
    const usage = {
      input_tokens: 100,
      input_tokens_details: { cached_tokens: 60 },
      output_tokens: 9,
    };
    const answer = read1(said('x'), {
      type: 'response.completed',
      response: { status: 'completed', output: [], usage },
    });
    expect(answer.usage).toEqual({ input: 40, cacheRead: 60, cacheWrite: 0, output: 9 });
    expect(answer).toMatchObject({ text: 'x', isComplete: true });
  });

  // OpenAI's guide to prompt caching, 2026-09: both are parts of the input's tokens, and writing costs 1.25.
  test('tokens that were written to the cache are counted, and paid as such', () => {
    const input_tokens_details = { cached_tokens: 0, cache_write_tokens: 7_900 };
    const usage = { input_tokens: 8_200, input_tokens_details, output_tokens: 9 };
    const response = { status: 'completed', output: [], usage };
    const counted = read1({ type: 'response.completed', response }).usage;
    expect(counted).toEqual({ input: 300, cacheRead: 0, cacheWrite: 7_900, output: 9 });
    expect(counted && paidFor(counted, OPENAI_CACHE, undefined)).toBe(10_175);
  });

  test.each([
    ['function_call', { call_id: 'c' }, true],
    ['custom_tool_call', { call_id: 'c' }, true],
    ['local_shell_call', { call_id: 'c' }, true],
    ['mcp_approval_request', { id: 'a' }, true],
    ['web_search_call', { id: 'w' }, false],
    ['mcp_call', { id: 'm' }, false],
    ['tool_search_call', { call_id: null, execution: 'server' }, false],
  ])('%s waits for the client or not', (type, rest, want) => {
    expect(read1(added({ type, ...rest })).callsTools).toBe(want);
  });

  test('a call that the provider answers itself does not wait', () => {
    const answer = read1(
      added({ type: 'shell_call', call_id: 's' }),
      added({ type: 'shell_call_output', call_id: 's' }),
    );
    expect(answer.callsTools).toBe(false);
  });

  test.each([
    [
      'response.failed',
      { status: 'failed', error: { code: 'x' } },
      { isFailed: true, isComplete: false },
    ],
    [
      'response.incomplete',
      { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } },
      { isComplete: true, isCutShort: true },
    ],
    [
      'response.incomplete',
      { status: 'incomplete', incomplete_details: { reason: 'content_filter' } },
      { isFailed: true },
    ],
  ])('%s', (type, response, want) => {
    expect(read1({ type, response })).toMatchObject(want);
  });

  test('text that comes only at the end is read there, and a refusal is not text', () => {
    const output = [
      { type: 'message', content: [{ type: 'output_text', text: 'Yes.' }] },
      { type: 'message', content: [{ type: 'refusal', refusal: 'No.' }] },
    ];
    expect(
      read1({ type: 'response.completed', response: { status: 'completed', output } }).text,
    ).toBe('Yes.');
    expect(
      read('openai_responses', JSON.stringify({ object: 'response', status: 'completed', output }))
        .text,
    ).toBe('Yes.');
  });
});

describe('Chat Completions', () => {
  const chunk = (delta: unknown, rest: object = {}) => ({
    choices: [{ index: 0, delta, finish_reason: null, ...rest }],
  });
  const read1 = (...list: readonly unknown[]) => read('openai_chat_completions', events(...list));

  test('only the first choice is read', () => {
    const other = { choices: [{ index: 1, delta: { content: 'no' }, finish_reason: null }] };
    expect(read1(chunk({ content: 'a' }), other, chunk({ content: 'b' }), other).text).toBe('ab');
  });

  test('a provider that counts under ever new names fills no memory', () => {
    const counts = Array.from({ length: 500 }, (_, at) => ({
      choices: [],
      usage: { [`n${at}`]: at },
    }));
    const { usageTold = {} } = read1(chunk({ content: 'a' }), ...counts);
    expect(Object.keys(usageTold)).toHaveLength(64);
  });

  test('the end is a finish reason, even without [DONE]; usage comes after it', () => {
    const usage = {
      prompt_tokens: 50,
      completion_tokens: 4,
      prompt_tokens_details: { cached_tokens: 30 },
    };
    const answer = read1(chunk({ content: 'a' }), chunk({}, { finish_reason: 'stop' }), {
      choices: [],
      usage,
    });
    expect(answer).toEqual({
      text: 'a',
      callsTools: false,
      isComplete: true,
      isFailed: false,
      isCutShort: false,
      thoughts: [],
      usage: { input: 20, cacheRead: 30, cacheWrite: 0, output: 4 },
      usageTold: usage,
    });
  });

  test.each(['stop', 'STOP', 'eos', 'eos_token', 'stop_sequence', 'end_turn', 'COMPLETE'])(
    'an answer that ends with %s is whole',
    (reason) => {
      const answer = read1(chunk({ content: 'a' }), chunk({}, { finish_reason: reason }));
      expect(answer).toMatchObject({ isComplete: true, isCutShort: false, isFailed: false });
    },
  );

  test.each([
    'length',
    'insufficient_system_resource',
    'model_length',
    'error',
    'abort',
    'repetition',
    'MAX_TOKENS',
    'a reason of next year',
  ])('an answer that ends with %s is cut', (reason) => {
    const answer = read1(chunk({ content: 'a' }), chunk({}, { finish_reason: reason }));
    expect(answer).toMatchObject({ isComplete: true, isCutShort: true });
  });

  test('content that is flagged as a thought is no text, streamed and whole', () => {
    const extra_content = { google: { thought: true } };
    const answer = read1(
      chunk({ content: '<thought>hm', extra_content }),
      chunk({ content: ' hm', extra_content }),
      chunk({ content: '</thought>Paris' }),
      chunk({ content: ' is big.' }),
    );
    expect(answer.text).toBe('</thought>Paris is big.');
    const whole = (content: string): string => {
      const message = { content, extra_content };
      const body = { choices: [{ index: 0, message, finish_reason: 'stop' }] };
      return read('openai_chat_completions', JSON.stringify(body), 'application/json').text;
    };
    expect(whole('hm, the capital')).toBe('');
    expect(whole('<thought>hm</thought>Paris.')).toBe('<thought>hm</thought>Paris.');
  });

  test('tokens that were written to the cache are counted apart from the others', () => {
    const details = { cached_tokens: 1_000, cache_write_tokens: 7_900 };
    const usage = { prompt_tokens: 9_000, completion_tokens: 4, prompt_tokens_details: details };
    expect(read1({ choices: [], usage }).usage).toEqual({
      input: 100,
      cacheRead: 1_000,
      cacheWrite: 7_900,
      output: 4,
    });
  });

  test('a finish reason of no characters is none', () => {
    expect(read1(chunk({ content: 'a' }, { finish_reason: '' })).isComplete).toBe(false);
  });

  test('calls, reasoning, errors', () => {
    const call = chunk({
      tool_calls: [{ index: 0, id: 'c', function: { name: 'ls', arguments: '' } }],
    });
    expect(read1(chunk({ reasoning_content: 'hm' }), call)).toMatchObject({
      text: '',
      callsTools: true,
    });
    expect(read1(chunk({ function_call: { name: 'ls' } })).callsTools).toBe(true);
    expect(read1({ error: { message: 'x' } })).toMatchObject({ isFailed: true, isComplete: false });
    expect(read1(chunk({}, { finish_reason: 'length' })).isCutShort).toBe(true);
  });
});

const WHOLE = { status: 'completed', output: [] };

describe('limits', () => {
  test.each(DIALECTS)(
    '%s: an event beyond 4 MiB is skipped, and the events around it are read',
    (dialect) => {
      const reader = new AnswerReader(dialect, { contentType: 'text/event-stream', textCharsMax });
      const piece = Buffer.alloc(1 << 20, 'a');
      reader.push(Buffer.from('data: "'));
      for (let count = 0; count < 5; count += 1) reader.push(piece);
      const ends = [{ type: 'message_stop' }, { type: 'response.completed', response: WHOLE }];
      reader.push(Buffer.from(`"\n\n${events(...ends)}data: [DONE]\n\n`));
      expect(reader.finish()).toMatchObject({ isComplete: true, text: '' });
    },
  );

  const PICTURE = 'iVBORw0K'.repeat(700_000);

  test.each([700, 60_000, 8_000_000])(
    'a last event with a picture in it, in chunks of %i bytes, loses neither text nor token counts',
    (size) => {
      const usage = {
        input_tokens: 90,
        output_tokens: 7,
        input_tokens_details: { cached_tokens: 60 },
      };
      const output = [{ type: 'image_generation_call', id: 'ig_1', result: PICTURE }];
      const stream = Buffer.from(
        events(
          { type: 'response.output_text.delta', output_index: 0, delta: 'Here is the boat.' },
          { type: 'response.output_item.done', item: output[0] },
          {
            type: 'response.completed',
            response: { status: 'completed', output, usage, metadata: { '{': 'ü' } },
          },
        ),
      );
      const reader = new AnswerReader('openai_responses', {
        contentType: 'text/event-stream',
        textCharsMax,
      });
      let isLast = false;
      for (let at = 0; at < stream.length; at += size) {
        isLast = reader.push(stream.subarray(at, at + size));
      }
      expect(isLast).toBe(true);
      expect(reader.finish()).toMatchObject({
        text: 'Here is the boat.',
        isComplete: true,
        isCutShort: false,
        usage: { input: 30, cacheRead: 60, output: 7 },
      });
    },
  );

  test('a JSON answer beyond 4 MiB is not read', () => {
    const body = JSON.stringify({
      type: 'message',
      stop_reason: 'end_turn',
      content: [{ type: 'text', text: 'a'.repeat(5 << 20) }],
    });
    expect(read('anthropic_messages', body, 'application/json')).toMatchObject({
      text: '',
      isComplete: false,
    });
  });

  test('text beyond its limit is not read, but the answer is whole, and its usage is read', () => {
    const reader = new AnswerReader('anthropic_messages', {
      contentType: 'text/event-stream',
      textCharsMax: 5,
    });
    const end = { type: 'message_delta', delta: {}, usage: { output_tokens: 3 } };
    reader.push(
      Buffer.from(
        events(block('text'), textDelta('1234'), textDelta('5678'), end, { type: 'message_stop' }),
      ),
    );
    expect(reader.finish()).toMatchObject({
      text: '12345',
      isComplete: true,
      usage: { output: 3 },
    });
  });
});

describe('the end', () => {
  test('is called only when the blank line of the end event is in', () => {
    const reader = new AnswerReader('openai_responses', {
      contentType: 'text/event-stream',
      textCharsMax,
    });
    const stream =
      'event: response.completed\ndata: {"type":"response.completed","response":{"status":"completed"}}\n\n';
    const chunks = stream.match(/.{1,7}/gs) ?? [];
    const calls = chunks.map((chunk) => reader.push(Buffer.from(chunk)));
    expect(calls.indexOf(true)).toBe(chunks.length - 1);
    expect(reader.finish().isComplete).toBe(true);
  });

  test('is found although the model writes about it before', () => {
    const reader = new AnswerReader('anthropic_messages', {
      contentType: 'text/event-stream',
      textCharsMax,
    });
    const first = `${events(textDelta('message_stop'))}data: {"type":"message_stop"}\n`;
    expect(reader.push(Buffer.from(first))).toBe(false);
    expect(reader.finish().isComplete).toBe(false);
    expect(reader.push(Buffer.from('\n'))).toBe(true);
    expect(reader.finish()).toMatchObject({ text: 'message_stop', isComplete: true });
  });

  test('of a JSON answer is looked for eight times at most', () => {
    const reader = new AnswerReader('anthropic_messages', {
      contentType: 'application/json',
      textCharsMax,
    });
    const calls = Array.from({ length: 20 }, () => reader.push(Buffer.from('{} ')));
    expect(calls.filter((mayEnd) => mayEnd)).toHaveLength(8);
  });

  test('may come before the rest of the stream: finish can be called again', () => {
    const reader = new AnswerReader('openai_chat_completions', {
      contentType: 'text/event-stream',
      textCharsMax,
    });
    reader.push(
      Buffer.from(
        events({ choices: [{ index: 0, delta: { content: 'a' }, finish_reason: 'stop' }] }),
      ),
    );
    expect(reader.finish()).toMatchObject({ text: 'a', isComplete: true });
    reader.push(
      Buffer.from(events({ choices: [], usage: { prompt_tokens: 3, completion_tokens: 1 } })),
    );
    expect(reader.finish()).toMatchObject({ text: 'a', usage: { input: 3, output: 1 } });
  });
});
