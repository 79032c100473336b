import { expect, test } from 'vitest';
import { factsOfModel } from '../../src/core/settings/model-facts.ts';
import { inputRoom } from '../../src/core/shortening/pricing.ts';

function windowOf(model: string): number | undefined {
  return factsOfModel(model)?.windowTokens;
}

test('a maker, dots, dates, versions, "latest" and "preview" name the same model', () => {
  expect(windowOf('claude-sonnet-4-5-20250929')).toBe(200_000);
  expect(windowOf('anthropic/claude-sonnet-4.6')).toBe(1_000_000);
  expect(windowOf('claude-opus-4-5@20251101')).toBe(200_000);
  expect(windowOf('us.anthropic.claude-sonnet-4-5-20250929-v1:0')).toBe(200_000);
  expect(windowOf('claude-opus-5-5[1m]')).toBe(1_000_000);
  expect(windowOf('gemini-2.5-pro-preview')).toBe(1_048_576);
  expect(windowOf('gpt-4.1-mini')).toBe(1_047_576);
  expect(factsOfModel('gpt-4o-mini-2024-07-18')).toEqual({
    windowTokens: 128_000,
    inputTokensMax: 128_000,
    outputTokensMax: 16_384,
    price: { input: 0.15, output: 0.6, cacheRead: 0.075 },
  });
});

test.each([
  ['o3-pro', 20],
  ['o3', 2],
  ['gpt-5.2-pro', 21],
  ['gpt-5.2', 1.75],
  ['gpt-4-1106-preview', 10],
  ['claude-opus-5-5', 4],
  ['claude-opus-5', 5],
])('%s has its own price, and not that of a sibling', (model, input) => {
  expect(factsOfModel(model)?.price?.input).toBe(input);
});

test.each([
  ['claude-haiku-5-5', 100_000],
  ['gpt-5.4', 272_000],
  ['gpt-6.2-astra', 272_000],
  ['gemini-3.1-pro-preview', 200_000],
  ['grok-4.7', 200_000],
  ['minimax-m3', 512_000],
  ['claude-haiku-4-5', undefined],
  ['claude-sonnet-5-5', undefined],
  ['gpt-5.3-codex', undefined],
  ['gemini-3-flash', undefined],
])('a request to %s is long above %s tokens', (model, above) => {
  expect(factsOfModel(model)?.price?.long?.above).toBe(above);
});

test.each(['o3-deep-research', 'claude-opus-6', 'gpt-6.3-sol', 'gpt-5.2-tiny', 'house-model', ''])(
  '%s is not known, though models with the same beginning are',
  (model) => {
    expect(factsOfModel(model)).toBeUndefined();
  },
);

test('what is no name has no facts', () => {
  for (const model of [undefined, 5, null, {}, 'x'.repeat(200)]) {
    expect(factsOfModel(model)).toBeUndefined();
  }
});

function roomOf(model: string, answerTokens?: unknown, isLong = false): number | undefined {
  return inputRoom({ model, facts: factsOfModel(model), isLong, answerTokens });
}

test('the answer that a request asks for takes its room out of the window', () => {
  expect(roomOf('claude-sonnet-4-5', 32_000)).toBe(168_000);
  expect(roomOf('claude-sonnet-4-5')).toBe(200_000);
  // More than the model ever answers is not kept free.
  expect(roomOf('claude-sonnet-4-5', 1_000_000)).toBe(136_000);
  for (const odd of ['32000', NaN, -1, null]) expect(roomOf('claude-opus-5', odd)).toBe(1_000_000);
});

test('a published limit of the input holds whatever the answer takes', () => {
  expect(roomOf('gpt-5.2', 1_000)).toBe(272_000);
  expect(roomOf('gpt-5.5', 128_000)).toBe(922_000);
});

test('the long window is asked for by a header or by the name', () => {
  expect(roomOf('claude-sonnet-4-5', 0, true)).toBe(1_000_000);
  expect(roomOf('claude-sonnet-4-5[1m]')).toBe(1_000_000);
  expect(roomOf('claude-of-tomorrow[1m]')).toBe(1_000_000);
});

test('a model that is not known has no limit that svc could come near to', () => {
  expect(roomOf('claude-of-tomorrow', 32_000)).toBeUndefined();
});
