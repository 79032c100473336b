import { expect, test } from 'vitest';
import { factsOfModel, windowOf } from '../../src/core/settings/model-windows.ts';

test('the longest beginning of a name wins, with a maker before it or dots in it', () => {
  expect(windowOf('claude-sonnet-4-5-20250929')).toBe(200_000);
  expect(windowOf('claude-sonnet-4-6')).toBe(1_000_000);
  expect(windowOf('anthropic/claude-sonnet-4.6')).toBe(1_000_000);
  expect(windowOf('gpt-4')).toBe(8192);
  expect(windowOf('gpt-4.1-mini')).toBe(1_047_576);
  expect(windowOf('gpt-5.1-codex-max')).toBe(272_000);
  expect(factsOfModel('gpt-4o-mini-2024-07-18')).toEqual({
    inputTokensMax: 128_000,
    outputTokensMax: 16_384,
    price: { input: 0.15, output: 0.6 },
  });
});

test('a model that is not known, or no name at all, has the window that agents are used with', () => {
  for (const model of ['claude-of-tomorrow-9', 'house-model', '', '/', undefined, 5, null, {}]) {
    expect(windowOf(model)).toBe(200_000);
  }
  expect(factsOfModel('house-model')).toBeUndefined();
});
