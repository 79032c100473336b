import { expect, test } from 'vitest';
import { judgeBody } from '../support/conversation-fuzz/judge.ts';
import { expectPricedPrefix, type Sent } from '../support/conversation-fuzz/prefix.ts';
import { requestWith, said, type WireItem } from '../support/dialect-wire.ts';

/** The judge of the random histories: it must find every broken prefix, and nothing else. */

const DIALECT = 'anthropic_messages';
const LAST = said('user', 'Where do they live?');
const LEFT = '[svc left out 1 earlier exchange of this conversation]';

function exchange(at: number): readonly WireItem[] {
  return [said('user', `Prompt ${at}`), said('assistant', `Answer ${at}: ${'word '.repeat(800)}`)];
}

const EXCHANGES = [0, 1, 2, 3, 4, 5].map(exchange);

/** A request with these exchanges, of which those at `left` were not forwarded. */
function sent(exchanges: readonly (readonly WireItem[])[], left: readonly number[] = []): Sent {
  const kept = exchanges.map((items, at) => {
    const [prompt, answer] = items;
    if (prompt === undefined || answer === undefined || left.includes(at)) return [];
    const isNoted = left.includes(at - 1);
    return [
      isNoted ? { ...prompt, content: `${String(prompt['content'])}\n\n${LEFT}` } : prompt,
      answer,
    ];
  });
  const bytes = (items: readonly WireItem[]) =>
    Buffer.from(JSON.stringify(requestWith(DIALECT, [...items, LAST])));
  const judged = judgeBody(DIALECT, bytes(exchanges.flat()), bytes(kept.flat()));
  return { judged, isUndecided: false, isBatchTold: left.length > 0 };
}

/** The prompt of this exchange has other words. */
function edited(at: number) {
  const [, answer] = exchange(at);
  const prompt = said('user', `Another prompt ${at}`);
  return EXCHANGES.with(at, answer === undefined ? [prompt] : [prompt, answer]);
}

const BEFORE = sent(EXCHANGES, [0, 1, 2]);

test('law 6: an exchange that comes back in front of an item that the provider has breaks the prefix', () => {
  for (const left of [[], [0], [0, 1], [1, 2], [0, 2]]) {
    expect(() => expectPricedPrefix([BEFORE], sent(EXCHANGES, left))).toThrow('prefix break');
    // The prompt that says what left is in the cache, and the exchange in front of it came back.
    expect(() => expectPricedPrefix([BEFORE], sent(edited(4), left))).toThrow('prefix break');
  }
});

test('law 6: behind an edit in a gap, nothing of the gap is in the cache of the provider', () => {
  for (const at of [1, 2, 3]) {
    for (const left of [[], [0], [0, 1], [0, 1, 2]]) {
      const now = sent(edited(at), left);
      expect(expectPricedPrefix([BEFORE], now)).toMatchObject({ isBatch: false });
    }
  }
});

test('law 6: what came back in a gap must stay from then on, unless a batch takes it', () => {
  const now = sent(edited(1), [0]);
  expect(() => expectPricedPrefix([BEFORE, now], sent(edited(1)))).toThrow('prefix break');
  expect(expectPricedPrefix([BEFORE, now], sent(edited(1), [0, 1]))).toMatchObject({
    isBatch: true,
  });
});
