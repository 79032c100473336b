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
function sent(
  exchanges: readonly (readonly WireItem[])[],
  left: readonly number[] = [],
  last: { readonly prompt: WireItem; readonly block: string } = { prompt: LAST, block: '' },
): Sent {
  const kept = exchanges.map((items, at) => {
    const [prompt, answer] = items;
    if (prompt === undefined || answer === undefined || left.includes(at)) return [];
    const isNoted = left.includes(at - 1);
    return [
      isNoted ? { ...prompt, content: `${String(prompt['content'])}\n\n${LEFT}` } : prompt,
      answer,
    ];
  });
  const { prompt: newest, block } = last;
  const told = { ...newest, content: `${String(newest['content'])}${block}` };
  const bytes = (...items: readonly WireItem[]) =>
    Buffer.from(JSON.stringify(requestWith(DIALECT, items)));
  const judged = judgeBody(
    DIALECT,
    bytes(...exchanges.flat(), newest),
    bytes(...kept.flat(), told),
  );
  return { judged, isUndecided: false, isBatchTold: left.length > 0 };
}

/** The prompt of this exchange has other words. */
function edited(at: number) {
  const [, answer] = exchange(at);
  const prompt = said('user', `Another prompt ${at}`);
  return EXCHANGES.with(at, answer === undefined ? [prompt] : [prompt, answer]);
}

const BEFORE = sent(EXCHANGES, [0, 1, 2]);

test('law 6: what leaves in front of an edit and behind it is one batch, and too little of both is none', () => {
  const short = (at: number) => [
    said('user', `Prompt ${at}`),
    said('assistant', `Answer ${at}: ${'word '.repeat(400)}`),
  ];
  const exchanges = [0, 1, 2, 3, 4, 5].map(short);
  const before = sent(exchanges);
  const prompt = said('user', 'Another prompt');
  const changed = exchanges.with(2, [prompt, ...short(2).slice(1)]);
  for (const now of [sent(exchanges, [0]), sent(changed, [0])]) {
    expect(() => expectPricedPrefix([before], now)).toThrow('which no batch pays for');
  }
  for (const now of [sent(exchanges, [0, 1]), sent(changed, [0, 3])]) {
    expect(expectPricedPrefix([before], now)).toMatchObject({ isBatch: true });
  }
});

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

const BLOCK = '\n\n<svc-memory id="a">Told.</svc-memory>';

test('law 6: a prompt of the history that is asked again may get a block, and keeps the one that it has', () => {
  const prompt = said('user', 'Prompt 3');
  const again = sent(EXCHANGES.slice(0, 3), [0, 1], { prompt, block: BLOCK });
  // It said in the history what left in front of it, and one of those exchanges is kept again.
  expect(expectPricedPrefix([BEFORE], again)).toMatchObject({ isBatch: false });
  const whole = sent(EXCHANGES.slice(0, 3), [], { prompt, block: BLOCK });
  expect(expectPricedPrefix([sent(EXCHANGES)], whole)).toMatchObject({ isBatch: false });
  const other = sent(EXCHANGES.slice(0, 3), [], { prompt, block: BLOCK.replace('Told', 'Else') });
  expect(() => expectPricedPrefix([whole], other)).toThrow('prefix break');
  expect(() => expectPricedPrefix([BEFORE], whole)).toThrow('prefix break');
});
