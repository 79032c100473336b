import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { AnswerReader } from '../../src/core/answer/answer-reader.ts';
import type { Answer } from '../../src/core/dialects/dialect-answer.ts';
import type { Dialect } from '../../src/core/conversation/view.ts';
import { DIALECTS } from '../../src/core/dialects/apis.ts';
import { readWithOracle } from '../support/answer-oracle.ts';
import { recordings } from '../support/recordings.ts';

const textCharsMax = 1 << 20;

function readInChunks(dialect: Dialect, bytes: Uint8Array, cuts: readonly number[]): Answer {
  const reader = new AnswerReader(dialect, { contentType: undefined, textCharsMax });
  let start = 0;
  for (const cut of cuts.toSorted((a, b) => a - b)) {
    const end = Math.max(start, Math.min(cut, bytes.length));
    reader.push(bytes.subarray(start, end));
    start = end;
  }
  reader.push(bytes.subarray(start));
  return reader.finish();
}

/** True when some chunk up to the one that completes the end event was called terminal. */
function seesEnd(dialect: Dialect, bytes: Uint8Array, chunkBytes: number): boolean {
  const reader = new AnswerReader(dialect, { contentType: 'text/event-stream', textCharsMax });
  let isComplete = false;
  for (let start = 0; start < bytes.length && !isComplete; start += chunkBytes) {
    const chunk = bytes.subarray(start, start + chunkBytes);
    if (reader.push(chunk)) isComplete = reader.finish().isComplete;
  }
  return isComplete;
}

const recorded = recordings().filter(
  ({ answer, dialect }) => answer !== '' && dialect !== undefined,
);
const bodies = [...new Map(recorded.map((it) => [it.answer, it])).values()].map((it) => ({
  dialect: it.dialect ?? 'anthropic_messages',
  answer: it.answer,
  bytes: new TextEncoder().encode(it.answer),
}));
const streams = bodies.filter(({ answer }) => /^(?:event|data):/.test(answer));

describe('recorded answers', () => {
  test('say the same however their bytes are split', () => {
    expect(bodies.length).toBeGreaterThan(200);
    fc.assert(
      fc.property(
        fc.constantFrom(...bodies),
        fc.array(fc.nat(9000)),
        ({ dialect, bytes }, cuts) => {
          expect(readInChunks(dialect, bytes, cuts)).toEqual(readInChunks(dialect, bytes, []));
        },
      ),
      { numRuns: 300 },
    );
  });

  test('say what the reference parser and plain JSON say', () => {
    for (const { dialect, answer, bytes } of streams) {
      expect(readInChunks(dialect, bytes, [])).toMatchObject(readWithOracle(dialect, answer));
    }
  });

  test('end with a chunk that was called terminal before it was forwarded', () => {
    const whole = streams.filter(
      ({ dialect, answer }) => readWithOracle(dialect, answer).isComplete,
    );
    const isShut = (answer: string): boolean => answer.endsWith('\n\n');
    fc.assert(
      fc.property(fc.constantFrom(...whole), fc.integer({ min: 1, max: 700 }), (stream, size) => {
        fc.pre(isShut(stream.answer));
        expect(seesEnd(stream.dialect, stream.bytes, size)).toBe(true);
      }),
      { numRuns: 300 },
    );
  });
});

// Texts with everything that JSON escapes, and events as providers space and order them.
const said = fc.string({ unit: 'grapheme', maxLength: 12 });
const spaced = fc.constantFrom(
  (value: unknown) => JSON.stringify(value),
  (value: unknown) => JSON.stringify(value, null, 1).replaceAll('\n', ''),
);
const padding = fc.constantFrom(
  {},
  { obfuscation: 'aB"3' },
  { obfuscation: 'xyz' },
  { later: [1] },
);

const events: Readonly<Record<Dialect, fc.Arbitrary<unknown>>> = {
  anthropic_messages: fc.oneof(
    fc.record({ text: said, index: fc.nat(2), pad: padding }).map(({ text, index, pad }) => ({
      type: 'content_block_delta',
      index,
      delta: { type: 'text_delta', text },
      ...pad,
    })),
    fc
      .tuple(fc.constantFrom('thinking_delta', 'input_json_delta', 'new_delta'), said)
      .map(([type, text]) => ({ type: 'content_block_delta', index: 0, delta: { type, text } })),
    fc.constantFrom('text', 'thinking', 'tool_use', 'server_tool_use').map((type) => ({
      type: 'content_block_start',
      content_block: { type, text: '' },
    })),
    fc.constantFrom('end_turn', 'tool_use', 'pause_turn').map((stop) => ({
      type: 'message_delta',
      delta: { stop_reason: stop },
    })),
    fc.constantFrom({ type: 'ping' }, { type: 'message_stop' }, { type: 'new_event', text: 'x' }),
  ),
  openai_responses: fc.oneof(
    fc.record({ delta: said, index: fc.nat(1), at: fc.nat(), pad: padding }).map((it) => ({
      type: 'response.output_text.delta',
      sequence_number: it.at,
      item_id: `msg_${it.index}`,
      output_index: it.index,
      delta: it.delta,
      ...it.pad,
    })),
    fc
      .tuple(fc.constantFrom('reasoning_summary_text', 'function_call_arguments', 'audio'), said)
      .map(([type, delta]) => ({ type: `response.${type}.delta`, output_index: 0, delta })),
    fc.constantFrom('function_call', 'web_search_call', 'reasoning').map((type) => ({
      type: 'response.output_item.added',
      item: { type, ...(type === 'function_call' && { call_id: 'c1' }) },
    })),
    fc.constantFrom({ type: 'response.in_progress' }, { type: 'response.new', delta: 'x' }),
  ),
  openai_chat_completions: fc
    .record({
      delta: fc.oneof(
        said.map((content) => ({ content })),
        said.map((content) => ({ content: null, reasoning_content: content })),
        said.map((text) => ({ tool_calls: [{ index: 0, function: { arguments: text } }] })),
        said.map((content) => ({ content, tool_calls: [] })),
      ),
      index: fc.constantFrom(0, 0, 0, 1),
      reason: fc.constantFrom(null, null, null, null, 'stop', 'tool_calls'),
      pad: padding,
    })
    .map(({ delta, index, reason, pad }) => ({
      id: 'chatcmpl-1',
      choices: [{ index, delta, finish_reason: reason }],
      ...pad,
    })),
};

describe.each(DIALECTS)('any stream of %s', (dialect) => {
  const line = fc.tuple(events[dialect], spaced).map(([event, print]) => `data: ${print(event)}`);
  const odd = fc.constantFrom(': ping', 'data: {"type":', 'data: [1]', 'data: null', 'data: "x"');
  const stream = fc
    .array(fc.oneof({ weight: 9, arbitrary: line }, { weight: 1, arbitrary: odd }), {
      maxLength: 60,
    })
    .chain((lines) =>
      fc.constantFrom('\n', '\r\n', '\r').map((end) => lines.map((it) => it + end + end).join('')),
    );

  test('reads as the reference parser and plain JSON read it, however it is split', () => {
    fc.assert(
      fc.property(stream, fc.array(fc.nat(5000)), (text, cuts) => {
        // The reference needs one more character to settle a final CR.
        const whole = readWithOracle(dialect, `${text}:`);
        const bytes = new TextEncoder().encode(text);
        expect(readInChunks(dialect, bytes, cuts)).toMatchObject(whole);
      }),
      { numRuns: 400 },
    );
  });

  test('never throws, whatever the bytes', () => {
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ maxLength: 200 })),
        fc.constantFrom('application/json', 'text/event-stream', undefined),
        (chunks, contentType) => {
          const reader = new AnswerReader(dialect, { contentType, textCharsMax: 100 });
          for (const chunk of chunks) reader.push(chunk);
          expect(reader.finish()).toEqual(reader.finish());
        },
      ),
      { numRuns: 200 },
    );
  });
});
