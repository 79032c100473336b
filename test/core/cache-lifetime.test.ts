import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Dialect, RequestView } from '../../src/core/conversation/view.ts';
import { viewRequest } from '../support/view-of.ts';
import { cacheLifetimeMs } from '../../src/core/shortening/pricing.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const MARK = { cache_control: { type: 'ephemeral', ttl: '1h' } };

function lifetimeOf(json: string, dialect: Dialect = 'anthropic_messages'): number {
  const view = viewRequest(Buffer.from(json), dialect);
  if (view === undefined) throw new Error('The body of this test is no request.');
  return cacheLifetimeMs(view);
}

const blocks = fc.array(
  fc.record({ text: fc.constantFrom('one', '"ttl":"1h"', 'two'), isMarked: fc.boolean() }),
  { maxLength: 3 },
);
const bodies = fc.array(
  fc.record({ messages: fc.array(blocks, { maxLength: 6 }), system: blocks, tools: blocks }),
  { minLength: 1, maxLength: 6 },
);

function written(parts: readonly { text: string; isMarked: boolean }[]) {
  return parts.map(({ text, isMarked }) => ({ type: 'text', text, ...(isMarked && MARK) }));
}

test('a cache of an hour is seen wherever its mark stands, whatever stood in the request before', () => {
  fc.assert(
    fc.property(bodies, (all) => {
      let view: RequestView | undefined;
      for (const { messages, system, tools } of all) {
        const list = messages.map((content) => ({ role: 'user', content: written(content) }));
        const body = { tools: written(tools), messages: list, system: written(system) };
        const bytes = Buffer.from(JSON.stringify(body));
        view = viewRequest(bytes, 'anthropic_messages', view);
        if (view === undefined) throw new Error('The body of this test is no request.');
        const isMarked = [...messages, system, tools].flat().some((part) => part.isMarked);
        expect(cacheLifetimeMs(view)).toBe(isMarked ? HOUR_MS : 5 * MINUTE_MS);
      }
    }),
    { numRuns: 100 },
  );
});

const RESULT_MARK =
  '{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text",' +
  '"text":"x","cache_control":{"type":"ephemeral","ttl":"1h"}}]}]}';

test.each([
  ['a space', '{"messages":[],"system":[{"text":"x","cache_control":{"ttl" : "1h"}}]}', HOUR_MS],
  ['an escape', String.raw`{"messages":[],"cache_control":{"ttl":"\u0031h"}}`, HOUR_MS],
  ['a part of a result', `{"messages":[${RESULT_MARK}]}`, HOUR_MS],
  ['five minutes', '{"messages":[],"cache_control":{"ttl":"5m"}}', 5 * MINUTE_MS],
  ['words', String.raw`{"messages":[{"role":"user","content":"\"ttl\":\"1h\""}]}`, 5 * MINUTE_MS],
  ['nonsense', '{"messages":[],"cache_control":{"ttl":["1h"]}}', 5 * MINUTE_MS],
])('Anthropic, marked with %s', (_, json, expected) => {
  expect(lifetimeOf(json)).toBe(expected);
});

test.each([
  ['gpt-5.6', {}, 30 * MINUTE_MS],
  ['openai/gpt-5.6-codex', {}, 30 * MINUTE_MS],
  ['gpt-6', {}, 30 * MINUTE_MS],
  ['gpt-5.6', { prompt_cache_options: { ttl: '2h' } }, 2 * HOUR_MS],
  ['gpt-5.5', {}, 24 * HOUR_MS],
  ['gpt-5-2025-08-07', {}, 24 * HOUR_MS],
  ['gpt-4.1-mini', {}, 24 * HOUR_MS],
  ['gpt-4.1', { prompt_cache_retention: 'in_memory' }, 5 * MINUTE_MS],
  ['gpt-4o', {}, 5 * MINUTE_MS],
  ['gpt-4-1106-preview', {}, 5 * MINUTE_MS],
  ['gpt-oss-120b', {}, 5 * MINUTE_MS],
  ['qwen3-coder', { prompt_cache_retention: '24h' }, 24 * HOUR_MS],
])('OpenAI’s dialects: %s with %j', (model, fields, expected) => {
  const json = JSON.stringify({ model, ...fields, input: [], messages: [] });
  expect(lifetimeOf(json, 'openai_responses')).toBe(expected);
  expect(lifetimeOf(json, 'openai_chat_completions')).toBe(expected);
});
