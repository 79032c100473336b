import { expect, test } from 'vitest';
import {
  cheapestModel,
  cachedTokens,
  testCall,
  testCallCost,
  TEST_CALL_TOKENS,
} from '../../src/core/settings/test-call.ts';
import { DIALECTS } from '../../src/core/dialects/apis.ts';
import { estimateTextTokens } from '../../src/core/bytes/tokens.ts';

test('a test call goes to the cheapest model that answers texts', () => {
  const openai = ['text-embedding-3-small', 'gpt-5', 'gpt-5-nano', 'gpt-5-pro', 'gpt-4o-mini-tts'];
  expect(cheapestModel(openai)).toBe('gpt-5-nano');
  expect(cheapestModel(['claude-opus-4-8', 'claude-haiku-4-5', 'claude-sonnet-5'])).toBe(
    'claude-haiku-4-5',
  );
  expect(cheapestModel(['house-large', 'house-mini'])).toBe('house-mini');
  expect(cheapestModel(['house-large'])).toBe('house-large');
  expect(cheapestModel(['whisper-1', '', 'x\u001b[2J', 'evil name'])).toBeUndefined();
});

test('a test call is the same every time, and long enough for the longest minimum of a cache', () => {
  for (const apiStyle of DIALECTS) {
    const body = testCall({ apiStyle, model: 'm' }, false);
    expect(testCall({ apiStyle, model: 'm' }, false)).toBe(body);
    expect(JSON.parse(body)).toMatchObject({ model: 'm' });
    const tokens = estimateTextTokens(body);
    expect(tokens).toBeGreaterThan(4096);
    expect(tokens).toBeLessThan(TEST_CALL_TOKENS * 1.2);
  }
  expect(testCall({ apiStyle: 'openai_chat_completions', model: 'm' }, true)).toContain(
    'max_completion_tokens',
  );
});

test('what it costs is told from the published price, or not at all', () => {
  expect(testCallCost('claude-haiku-4-5')).toBeCloseTo(0.01266, 5);
  expect(testCallCost('house-model')).toBeUndefined();
});

test('what came from a cache is read in the words of each API', () => {
  expect(cachedTokens('{"usage":{"cache_read_input_tokens":7}}')).toBe(7);
  expect(cachedTokens('{"usage":{"input_tokens_details":{"cached_tokens":8}}}')).toBe(8);
  expect(cachedTokens('{"usage":{"prompt_tokens_details":{"cached_tokens":0}}}')).toBe(0);
  expect(cachedTokens('{"usage":{"prompt_cache_hit_tokens":9}}')).toBe(9);
  for (const body of ['', '{}', '[1]', '{"usage":{"cache_read_input_tokens":"7"}}']) {
    expect(cachedTokens(body)).toBeUndefined();
  }
});
