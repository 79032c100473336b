import { expect, test } from 'vitest';
import { fillOf, isHalfFull, type WindowFacts } from '../../src/core/shortening/window.ts';

// A model that is not known has 200,000 tokens; 32,000 of them are asked for, of which 28,000 count.
function factsOf(tokens: number, other: Partial<WindowFacts> = {}): WindowFacts {
  const model = 'claude-sonnet-4-5';
  return {
    model,
    answerTokens: 32_000,
    isLong: false,
    tokens,
    tokenRatio: 1,
    measure: undefined,
    ...other,
  };
}

/** The provider counted exactly so many tokens of the whole request. */
function counted(tokens: number, other: Partial<WindowFacts> = {}): WindowFacts {
  return factsOf(tokens, { measure: { counted: tokens, estimated: tokens }, ...other });
}

test.each([
  [159_000, { hasRoom: true, isAtEdge: false, mayNotFit: false }],
  [161_000, { hasRoom: false, isAtEdge: false, mayNotFit: false }],
  [171_000, { hasRoom: false, isAtEdge: false, mayNotFit: false }],
  [173_000, { hasRoom: false, isAtEdge: true, mayNotFit: false }],
  [191_000, { hasRoom: false, isAtEdge: true, mayNotFit: false }],
  [193_000, { hasRoom: false, isAtEdge: false, mayNotFit: true }],
])('of 200,000 tokens %d are filled', (tokens, fill) => {
  expect(fillOf(counted(tokens))).toMatchObject(fill);
});

test('a small answer leaves more room, a huge one takes no more than a part', () => {
  expect(fillOf(counted(180_000, { answerTokens: 1_024 })).isAtEdge).toBe(false);
  expect(fillOf(counted(185_000, { answerTokens: undefined })).isAtEdge).toBe(true);
  expect(fillOf(counted(171_000, { answerTokens: 128_000 })).isAtEdge).toBe(false);
});

test.each([
  ['gpt-5.2', 260_000],
  ['gpt-4o', 122_000],
])('%s has its own window', (model, tokens) => {
  expect(fillOf(counted(tokens - 12_000, { model, answerTokens: 0 })).isAtEdge).toBe(false);
  expect(fillOf(counted(tokens, { model, answerTokens: 0 })).isAtEdge).toBe(true);
});

test('a request that asks for the long window has it', () => {
  expect(fillOf(counted(300_000, { isLong: true })).hasRoom).toBe(true);
});

test('what the provider counted corrects the estimate; what makes no sense does not', () => {
  const shorter = { counted: 60_000, estimated: 40_000 };
  // 60,000 were counted, and the 80,000 that were not are as much more than their estimate.
  expect(fillOf(factsOf(120_000, { measure: shorter })).isAtEdge).toBe(true);
  expect(fillOf(factsOf(110_000, { measure: shorter })).isAtEdge).toBe(false);
  for (const measure of [
    { counted: 10, estimated: 40_000 },
    { counted: 60_000, estimated: 0 },
    { counted: NaN, estimated: 1 },
  ]) {
    expect(fillOf(factsOf(120_000, { measure }))).toEqual(fillOf(factsOf(120_000)));
  }
});

test('an estimate that nobody checked counts as larger where the whole must fit', () => {
  expect(fillOf(factsOf(155_000)).isAtEdge).toBe(true);
  expect(fillOf(factsOf(170_000)).mayNotFit).toBe(true);
  expect(fillOf(counted(170_000)).mayNotFit).toBe(false);
});

test('the provider’s count is noted from half of the window on', () => {
  expect(isHalfFull(factsOf(99_000))).toBe(false);
  expect(isHalfFull(factsOf(101_000))).toBe(true);
});
