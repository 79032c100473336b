import { describe, expect, test } from 'vitest';
import { viewIn, viewRequest } from '../support/view-of.ts';
import type { RequestView } from '../../src/core/conversation/view.ts';
import { Conversations } from '../../src/proxy/conversations.ts';

const PIECE_BYTES = 4 << 20;

/** `bytes`: of a file among the messages, in pieces as long as one item may be. */
function body(name: string, count: number, bytes = 0): Buffer {
  const messages: object[] = Array.from({ length: count }, (_, at) => ({
    role: 'user',
    content: `${name} ${at}`,
  }));
  for (let left = bytes; left > 0; left -= PIECE_BYTES) {
    const data = 'x'.repeat(Math.min(left, PIECE_BYTES));
    messages.splice(1, 0, { role: 'user', content: [{ type: 'text', text: '' }], data });
  }
  return Buffer.from(JSON.stringify({ model: 'm', messages }));
}

/** How many items were taken over from the earlier view, and not read again. */
function keptOf(earlier: RequestView | undefined, later: RequestView | undefined): number {
  const known = new Set(earlier?.items);
  return later?.items.filter((item) => known.has(item)).length ?? 0;
}

describe('a conversation that goes on', () => {
  test('is read from where it differs', () => {
    const conversations = new Conversations();
    const earlier = viewIn(conversations, body('a', 5), 'anthropic_messages');
    const later = viewIn(conversations, body('a', 7), 'anthropic_messages');
    expect(later).toEqual(viewRequest(body('a', 7), 'anthropic_messages'));
    expect(keptOf(earlier, later)).toBe(5);
  });

  test('is found among others, and after it was rewound', () => {
    const conversations = new Conversations();
    const long = viewIn(conversations, body('a', 9), 'anthropic_messages');
    viewIn(conversations, body('b', 9), 'anthropic_messages');
    expect(keptOf(long, viewIn(conversations, body('a', 3), 'anthropic_messages'))).toBe(3);
    expect(keptOf(long, viewIn(conversations, body('a', 10), 'anthropic_messages'))).toBe(9);
  });

  test('is read from the view that shares most, though a newer one is all in it', () => {
    const conversations = new Conversations();
    const long = viewIn(conversations, body('a', 40), 'anthropic_messages');
    const fork = JSON.parse(body('a', 20).toString()) as { messages: unknown[] };
    fork.messages.push('another way');
    viewIn(conversations, Buffer.from(JSON.stringify(fork)), 'anthropic_messages');
    expect(keptOf(long, viewIn(conversations, body('a', 41), 'anthropic_messages'))).toBe(40);
  });

  test('is not pushed out by another one that begins the same way', () => {
    const conversations = new Conversations();
    const parent = viewIn(conversations, body('a', 9), 'anthropic_messages');
    const child = JSON.parse(body('a', 9).toString()) as { messages: unknown[] };
    child.messages = [child.messages[0], 'task'];
    viewIn(conversations, Buffer.from(JSON.stringify(child)), 'anthropic_messages');
    expect(keptOf(parent, viewIn(conversations, body('a', 9), 'anthropic_messages'))).toBe(9);
  });

  test('does not mix with the same bytes in another dialect', () => {
    const conversations = new Conversations();
    const one = viewIn(conversations, body('a', 3), 'anthropic_messages');
    const other = viewIn(conversations, body('a', 3), 'openai_chat_completions');
    expect(keptOf(one, other)).toBe(0);
    expect(other?.dialect).toBe('openai_chat_completions');
  });
});

describe('the limits', () => {
  test('the sixteen conversations used last are remembered', () => {
    const conversations = new Conversations();
    const views = Array.from({ length: 17 }, (_, at) =>
      viewIn(conversations, body(`conversation ${at}`, 2), 'anthropic_messages'),
    );
    const again = (at: number) =>
      keptOf(views[at], viewIn(conversations, body(`conversation ${at}`, 2), 'anthropic_messages'));
    expect(again(1)).toBe(2);
    expect(again(0)).toBe(0);
  });

  test('24 MiB of bodies are remembered', () => {
    const conversations = new Conversations();
    const mebibytes = (name: string, count: number) =>
      viewIn(conversations, body(name, 2, count * 1024 * 1024), 'anthropic_messages');
    const [a, b] = [mebibytes('a', 11), mebibytes('b', 12)];
    expect(keptOf(b, mebibytes('b', 12))).toBe(5);
    expect(keptOf(a, mebibytes('a', 11))).toBe(5);
    mebibytes('c', 2);
    expect(keptOf(a, mebibytes('a', 11))).toBe(5);
    expect(keptOf(b, mebibytes('b', 12))).toBe(0);
  });

  test('a body that is larger than all of it is viewed, and pushes nothing out', () => {
    const conversations = new Conversations();
    const small = viewIn(conversations, body('a', 3), 'anthropic_messages');
    expect(
      viewIn(conversations, body('b', 1, 25 * 1024 * 1024), 'anthropic_messages'),
    ).toBeDefined();
    expect(keptOf(small, viewIn(conversations, body('a', 3), 'anthropic_messages'))).toBe(3);
  });
});

test('what is not JSON has no view and is not remembered', () => {
  const conversations = new Conversations();
  const earlier = viewIn(conversations, body('a', 3), 'anthropic_messages');
  expect(
    viewIn(conversations, Buffer.from('{"messages":[1,'), 'anthropic_messages'),
  ).toBeUndefined();
  expect(keptOf(earlier, viewIn(conversations, body('a', 3), 'anthropic_messages'))).toBe(3);
});
