import { createHash } from 'node:crypto';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { AnswerReader } from '../../src/core/answer/answer-reader.ts';
import type { Dialect } from '../../src/core/conversation/view.ts';
import { thoughtId } from '../../src/core/conversation/thoughts.ts';

const textCharsMax = 1 << 20;

interface Heard {
  readonly thoughts: readonly string[];
  readonly model: string | undefined;
  /** As they were reported: the id, the model so far, and the number of chunks that were read by then. */
  readonly told: readonly (readonly [string, string | undefined, number])[];
  /** For each chunk, whether it may complete the answer. */
  readonly ends: readonly boolean[];
}

/** Reads chunks as a relay does. */
function hear(dialect: Dialect, chunks: readonly string[], contentType?: string): Heard {
  const told: (readonly [string, string | undefined, number])[] = [];
  let read = 0;
  const reader = new AnswerReader(dialect, {
    contentType,
    textCharsMax,
    onThought: (id, model) => told.push([id, model, read]),
  });
  const ends = chunks.map((text) => {
    read += 1;
    const mayEnd = reader.push(Buffer.from(text));
    if (mayEnd) reader.finish();
    return mayEnd;
  });
  const { thoughts, model } = reader.finish();
  return { thoughts, model, told, ends };
}

const event = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`;

test('a thought is named by the first 22 characters of the hash of its signature', () => {
  const hashed = createHash('sha256').update('EqQBCgIYAhIM').digest('base64url');
  expect(thoughtId('EqQBCgIYAhIM')).toBe(hashed.slice(0, 22));
});

describe('Messages', () => {
  const start = event({ type: 'message_start', message: { id: 'm', model: 'claude-opus-5-5' } });
  const open = (index: number, content_block: object): string =>
    event({ type: 'content_block_start', index, content_block });
  const delta = (index: number, type: string, text: object): string =>
    event({ type: 'content_block_delta', index, delta: { type, ...text } });
  const stop = (index: number): string => event({ type: 'content_block_stop', index });
  const thinking = (index: number): string =>
    open(index, { type: 'thinking', thinking: '', signature: '' });

  test('a thought is complete with the chunk that stops its block, and names its model', () => {
    const chunks = [
      start,
      thinking(0) + delta(0, 'thinking_delta', { thinking: 'hm' }),
      delta(0, 'signature_delta', { signature: 'sig-one' }),
      stop(0),
      open(1, { type: 'text', text: '' }) + delta(1, 'text_delta', { text: 'Paris.' }),
    ];
    const heard = hear('anthropic_messages', chunks);
    expect(heard.told).toEqual([[thoughtId('sig-one'), 'claude-opus-5-5', 4]]);
    expect(heard.thoughts).toEqual([thoughtId('sig-one')]);
    expect(heard.ends).toEqual([false, false, false, false, false]);
  });

  test('blocks that overlap keep their signatures apart, and pieces are joined', () => {
    const chunks = [
      thinking(0) + thinking(2),
      delta(2, 'signature_delta', { signature: 'b1' }),
      delta(0, 'signature_delta', { signature: 'a1' }),
      delta(2, 'signature_delta', { signature: 'b2' }),
      delta(0, 'signature_delta', { signature: 'a2' }),
      stop(2) + stop(0),
    ];
    expect(hear('anthropic_messages', chunks).thoughts).toEqual(['b1b2', 'a1a2'].map(thoughtId));
  });

  test('a redacted block is a thought, and one whose stop never came is complete at the end', () => {
    const chunks = [
      open(0, { type: 'redacted_thinking', data: 'locked' }),
      stop(0) + thinking(1) + delta(1, 'signature_delta', { signature: 'late' }),
      event({ type: 'message_stop' }),
    ];
    expect(hear('anthropic_messages', chunks).thoughts).toEqual(['locked', 'late'].map(thoughtId));
  });

  test('an answer without events, of other spelling or without thoughts', () => {
    const body = {
      type: 'message',
      model: 'claude-x',
      stop_reason: 'end_turn',
      content: [
        { type: 'thinking', thinking: 'hm', signature: 'one' },
        { type: 'redacted_thinking', data: 'two' },
        { type: 'connector_text', connector_text: 'I looked.', signature: 'three' },
        { type: 'text', text: 'Paris.' },
      ],
    };
    const plain = hear('anthropic_messages', [JSON.stringify(body)], 'application/json');
    expect(plain.thoughts).toEqual(['one', 'two', 'three'].map(thoughtId));
    expect(plain.told[0]?.[1]).toBe('claude-x');
    const spaced = [thinking(0), delta(0, 'signature_delta', { signature: 's' }), stop(0)];
    const spacedOut = spaced.map((text) => text.replaceAll('":', '": ').replaceAll(',"', ', "'));
    expect(hear('anthropic_messages', spacedOut).thoughts).toEqual([thoughtId('s')]);
    expect(hear('anthropic_messages', [thinking(0), stop(0)]).thoughts).toEqual([]);
  });

  test('every thought is reported with a chunk that was called before it went out, at any split', () => {
    const stream = [
      start,
      thinking(0),
      delta(0, 'signature_delta', { signature: 'first é' }),
      stop(0),
      open(1, { type: 'text', text: 'content_block_stop' }),
      stop(1),
      open(2, { type: 'redacted_thinking', data: 'second' }),
      stop(2),
      event({ type: 'message_stop' }),
    ].join('');
    const bytes = Buffer.from(stream);
    // The client has a thought with the blank line behind its block's stop.
    const ends = [0, 2].map((index) => {
      const mark = stop(index);
      return Buffer.byteLength(stream.slice(0, stream.indexOf(mark) + mark.length));
    });
    fc.assert(
      fc.property(fc.uniqueArray(fc.nat(bytes.length), { maxLength: 12 }), (cuts) => {
        const at = [0, ...cuts.toSorted((a, b) => a - b), bytes.length];
        const chunks = at.slice(1).map((end, index) => bytes.subarray(at[index], end));
        let seen = 0;
        const told: number[] = [];
        const reader = new AnswerReader('anthropic_messages', {
          contentType: 'text/event-stream',
          textCharsMax,
          onThought: () => told.push(seen),
        });
        for (const chunk of chunks) {
          seen += chunk.length;
          if (reader.push(chunk)) reader.finish();
        }
        const wanted = ends.map((end) => at.find((cut) => cut >= end));
        expect(told).toEqual(wanted);
      }),
    );
  });
});

describe('Responses', () => {
  const created = event({ type: 'response.created', response: { id: 'r', model: 'gpt-6.2' } });
  const reasoning = { type: 'reasoning', id: 'rs_1', encrypted_content: 'gAAAAone', summary: [] };

  test('a reasoning item is complete with the event that says it is done, and is reported once', () => {
    const half = { ...reasoning, encrypted_content: 'gAAAAhalf' };
    const chunks = [
      created,
      event({ type: 'response.output_item.added', output_index: 0, item: half }),
      event({ type: 'response.output_item.done', output_index: 0, item: reasoning }),
      event({
        type: 'response.completed',
        response: { model: 'gpt-6.2', status: 'completed', output: [reasoning] },
      }),
    ];
    const heard = hear('openai_responses', chunks);
    expect(heard.told).toEqual([[thoughtId('gAAAAone'), 'gpt-6.2', 3]]);
    expect(heard).toMatchObject({ thoughts: [thoughtId('gAAAAone')], model: 'gpt-6.2' });
    expect(heard.ends).toEqual([false, false, false, true]);
  });

  test('without encrypted content the id of the item names it; a plain body is read too', () => {
    const { encrypted_content: _, ...stored } = reasoning;
    const body = {
      model: 'gpt-6.2',
      status: 'completed',
      output: [stored, { ...reasoning, encrypted_content: null, id: 'rs_2' }, { type: 'message' }],
    };
    const { thoughts } = hear('openai_responses', [JSON.stringify(body)], 'application/json');
    expect(thoughts).toEqual(['rs_1', 'rs_2'].map(thoughtId));
  });
});

describe('Chat Completions', () => {
  const chunk = (delta: object, finish_reason: string | null = null): string =>
    event({ model: 'anthropic/claude-opus-5.5', choices: [{ index: 0, delta, finish_reason }] });

  test('pieces of one index are joined, and complete with the finish reason', () => {
    const chunks = [
      chunk({
        reasoning: 'a',
        reasoning_details: [{ type: 'reasoning.text', text: 'a', index: 0 }],
      }),
      chunk({ reasoning_details: [{ type: 'reasoning.text', signature: 'sig', index: 0 }] }),
      chunk({ reasoning_details: [{ type: 'reasoning.text', signature: 'nature', index: 0 }] }),
      chunk({ reasoning_details: [{ type: 'reasoning.encrypted', data: 'enc', index: 1 }] }),
      chunk({ content: 'Paris.' }),
      chunk({}, 'stop'),
      'data: [DONE]\n\n',
    ];
    const heard = hear('openai_chat_completions', chunks);
    const ids = ['signature', 'enc'].map(thoughtId);
    expect(heard.thoughts).toEqual(ids);
    expect(heard.told).toEqual(ids.map((id) => [id, 'anthropic/claude-opus-5.5', 6]));
    expect(heard.ends.slice(4)).toEqual([false, false, true]);
  });

  test('a signature that is sent again at the end is the same thought', () => {
    const again = chunk({ reasoning_details: [{ signature: 'sig', index: 0 }] });
    const { thoughts } = hear('openai_chat_completions', [again, again, chunk({}, 'stop')]);
    expect(thoughts).toEqual([thoughtId('sig')]);
  });

  test('blocks of LiteLLM have no index: each signature is a thought', () => {
    const blocks = (...thinking_blocks: readonly object[]): string => chunk({ thinking_blocks });
    const chunks = [
      blocks({ type: 'thinking', thinking: 'hm', signature: null }),
      blocks({ type: 'thinking', thinking: '', signature: 'one' }),
      blocks({ type: 'redacted_thinking', data: 'two' }),
      blocks({ type: 'thinking', thinking: '', signature: 'three' }),
      'data: [DONE]\n\n',
    ];
    const { thoughts } = hear('openai_chat_completions', chunks);
    expect(thoughts).toEqual(['one', 'two', 'three'].map(thoughtId));
  });

  test('a plain body says its thoughts in the message', () => {
    const message = {
      content: 'Paris.',
      reasoning_details: [{ type: 'reasoning.text', text: 'hm', signature: 'one', index: 0 }],
      thinking_blocks: [{ type: 'redacted_thinking', data: 'two' }],
    };
    const body = JSON.stringify({ choices: [{ index: 0, message, finish_reason: 'stop' }] });
    const { thoughts } = hear('openai_chat_completions', [body], 'application/json');
    expect(thoughts).toEqual(['one', 'two'].map(thoughtId));
  });
});

test('an answer of endless thoughts is read up to a limit', () => {
  const entries = Array.from({ length: 5_000 }, (_, index) => ({ signature: `s${index}` }));
  const chunks = [
    event({ choices: [{ index: 0, delta: { reasoning_details: entries } }] }),
    event({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }),
  ];
  expect(hear('openai_chat_completions', chunks).thoughts).toHaveLength(1_024);
});

test.each([
  [
    'anthropic_messages',
    [
      { type: 'content_block_start', index: {}, content_block: { type: 'thinking', signature: 7 } },
      { type: 'content_block_stop' },
    ],
  ],
  [
    'openai_responses',
    [{ type: 'response.output_item.done', item: { type: 'reasoning', encrypted_content: {} } }],
  ],
  [
    'openai_chat_completions',
    [
      {
        choices: [
          {
            delta: {
              reasoning_details: { signature: 's' },
              thinking_blocks: [null, 's', { data: 4 }],
            },
            finish_reason: 'stop',
          },
        ],
      },
    ],
  ],
] as const)('signatures that are no text are no thoughts (%s)', (dialect, list) => {
  expect(hear(dialect, list.map(event)).thoughts).toEqual([]);
});
