import { describe, expect, test } from 'vitest';
import { AnswerReader } from '../../src/core/answer/answer-reader.ts';
import type { Dialect } from '../../src/core/conversation/view.ts';
import { isThoughtRefusal, type LostThoughts } from '../../src/core/conversation/lost-thoughts.ts';
import { lostThoughtsText, thoughtSumsText } from '../../src/core/plan/states.ts';

const textCharsMax = 1 << 20;
const event = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`;

function lostIn(dialect: Dialect, answer: string, contentType?: string): LostThoughts | undefined {
  const reader = new AnswerReader(dialect, { contentType, textCharsMax });
  reader.push(Buffer.from(answer));
  return reader.finish().lostThoughts;
}

const dropped = (reason: string, at = 1) => ({
  type: 'thinking_dropped',
  path: `messages.${at}.content.0`,
  reason,
});

describe('Messages', () => {
  const start = (input_transformations: unknown): string =>
    event({ type: 'message_start', message: { id: 'm', model: 'c', input_transformations } });
  const delta = (more: object): string =>
    event({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, ...more });

  test('the start of a stream tells what became of the thoughts of the request', () => {
    const list = [
      dropped('prefix_binding_mismatch'),
      dropped('prefix_binding_mismatch', 3),
      dropped('model_binding_mismatch', 5),
      dropped('organization_binding_mismatch', 7),
      {
        type: 'thinking_mismatch_allowed',
        path: 'messages.9.content.0',
        reason: 'prefix_binding_mismatch',
      },
    ];
    expect(lostIn('anthropic_messages', start(list) + delta({}))).toEqual({
      prefix: 2,
      model: 1,
      account: 1,
      allowed: 1,
    });
  });

  test('after a fallback the last list counts, also an empty one', () => {
    const first = start([dropped('model_binding_mismatch'), dropped('model_binding_mismatch', 3)]);
    const last = delta({ input_transformations: [dropped('prefix_binding_mismatch')] });
    expect(lostIn('anthropic_messages', first + last)).toEqual({ prefix: 1 });
    expect(
      lostIn('anthropic_messages', first + delta({ input_transformations: [] })),
    ).toBeUndefined();
    expect(lostIn('anthropic_messages', first + delta({ input_transformations: null }))).toEqual({
      model: 2,
    });
  });

  test('a plain body has it at its top; most answers have none', () => {
    const body = { type: 'message', stop_reason: 'end_turn', content: [] };
    const read = (more: object) =>
      lostIn('anthropic_messages', JSON.stringify({ ...body, ...more }), 'application/json');
    expect(read({ input_transformations: [dropped('prefix_binding_mismatch')] })).toEqual({
      prefix: 1,
    });
    expect(read({ input_transformations: [] })).toBeUndefined();
    expect(read({})).toBeUndefined();
  });

  test('unknown kinds are counted and nothing else, and hostile sizes are bounded', () => {
    const list = [
      { type: 'thinking_moved', reason: 'prefix_binding_mismatch' },
      dropped('constructor'),
      { ...dropped('x'), reason: 7 },
      null,
      'thinking_dropped',
    ];
    expect(lostIn('anthropic_messages', start(list))).toEqual({ other: 5 });
    const many = Array.from({ length: 20_000 }, () => 0);
    expect(lostIn('anthropic_messages', start(many))).toEqual({ other: 10_000 });
    expect(lostIn('anthropic_messages', start({ length: 4 }))).toBeUndefined();
  });
});

describe('Responses', () => {
  const input_transformations = [
    { type: 'reasoning_removed', id: 'rs_1', reason: 'prefix_mismatch' },
    { id: 'rs_2', reason: 'prefix_mismatch' },
    { type: 'something_new', id: 'rs_3', reason: 'too_old' },
  ];

  test('removed reasoning is read at the start, at the end and from a plain body, and counts once', () => {
    const created = event({ type: 'response.created', response: { input_transformations } });
    const response = { status: 'completed', output: [], input_transformations };
    const completed = event({ type: 'response.completed', response });
    for (const stream of [created, completed, created + completed]) {
      expect(lostIn('openai_responses', stream)).toEqual({ prefix: 2, other: 1 });
    }
    const plain = lostIn('openai_responses', JSON.stringify(response), 'application/json');
    expect(plain).toEqual({ prefix: 2, other: 1 });
  });
});

describe('a refusal', () => {
  const message = (sentence: string): string =>
    JSON.stringify({
      type: 'error',
      error: {
        type: 'invalid_request_error',
        message: `messages.1.content.0: Invalid \`signature\` in \`thinking\` block. ${sentence}`,
      },
    });

  test.each([
    'The block is bound to a different conversation. Remove the block, or set …',
    'The block is bound to another conversation.',
    'This block is bound to the other conversation.',
  ])('is known by its sentence, also where a word differs: %s', (sentence) => {
    expect(isThoughtRefusal(message(sentence))).toBe(true);
  });

  test.each(['', 'The block is bound to this conversation.', 'Start a different conversation.'])(
    'for a damaged signature or another cause is none: %s',
    (sentence) => {
      expect(isThoughtRefusal(message(sentence))).toBe(false);
    },
  );
});

test('a person reads how many blocks were lost, why, and who changed something first', () => {
  expect(lostThoughtsText({ prefix: 3, model: 1 }, 'client')).toBe(
    'The provider dropped 3 thinking blocks, because something before the thinking had changed, ' +
      'and dropped 1 thinking block that another model had made. The client changed it first.',
  );
  expect(lostThoughtsText({ refused: 1 })).toBe(
    'The provider refused the request, because something before the thinking had changed. ' +
      'svc does not know who changed it.',
  );
  expect(lostThoughtsText({ account: 2 }, 'svc')).toBe(
    'The provider dropped 2 thinking blocks that another account had made.',
  );
  expect(thoughtSumsText({ dropped: 0, unfit: 0, refused: 0, bySvc: 0 })).toBeUndefined();
  expect(thoughtSumsText({ dropped: 12, unfit: 10, refused: 1, bySvc: 0 })).toBe(
    'Providers dropped 12 thinking blocks, 10 of them because something before them had changed, ' +
      'and refused 1 request for that reason. svc had changed something first in 0 of these cases.',
  );
});
