import { describe, expect, test } from 'vitest';
import type { Dialect } from '../../../src/core/conversation/view.ts';
import type { PromptUsage } from '../scripted-provider/prompt-cache.ts';
import { type Item, accepted, text, user } from './conversation.ts';
import { priceOf } from './prompt-cache.ts';
import { strictSettings } from './settings.ts';
import { StrictProvider } from './strict-provider.ts';

const LONG = 'word '.repeat(2_000);
const MARK = { cache_control: { type: 'ephemeral' } };
const HOUR_MARK = { cache_control: { type: 'ephemeral', ttl: '1h' } };

/** A provider whose clock the test moves, and what it charges. */
function charged(dialect: Dialect): {
  charge: (json: object) => PromptUsage;
  wait: (minutes: number) => void;
} {
  let now = 0;
  const provider = new StrictProvider(strictSettings({ now: () => now }));
  return {
    charge: (json) => accepted(provider.judge({ dialect, isCount: false, betas: [], json })).usage,
    wait: (minutes) => {
      now += minutes * 60_000;
    },
  };
}

// https://platform.claude.com/docs/en/build-with-claude/prompt-caching, 2026-08-22.
describe('the prompt cache of Anthropic', () => {
  const request = (...messages: readonly Item[]): object => ({ model: 'claude-opus-5', messages });
  const marked = user([{ ...text(LONG), ...MARK }]);
  const answer = { role: 'assistant', content: 'ok' };

  test('writes up to a mark, and reads that when it comes again', () => {
    const { charge } = charged('anthropic_messages');
    const first = charge(request(marked));
    expect(first.cacheWrite).toBeGreaterThan(2_000);
    expect([first.input, first.cacheRead]).toEqual([0, 0]);
    const next = request(user(LONG), answer, user([{ ...text('more'), ...MARK }]));
    const second = charge(next);
    expect(second.cacheRead).toBe(first.cacheWrite);
    expect(second.cacheWrite).toBeLessThan(100);
  });

  test('reads nothing behind a change', () => {
    const { charge } = charged('anthropic_messages');
    charge(request(marked));
    expect(charge(request(user([{ ...text(`x${LONG}`), ...MARK }]))).cacheRead).toBe(0);
  });

  test('keeps an entry for five minutes from its last use, or for an hour', () => {
    const { charge, wait } = charged('anthropic_messages');
    charge(request(marked));
    wait(4);
    expect(charge(request(marked)).cacheRead).toBeGreaterThan(0);
    wait(4);
    expect(charge(request(marked)).cacheRead).toBeGreaterThan(0);
    wait(6);
    const hour = charge(request(user([{ ...text(LONG), ...HOUR_MARK }])));
    expect([hour.cacheRead, hour.cacheWriteHour]).toEqual([0, hour.cacheWrite]);
    wait(59);
    expect(charge(request(marked)).cacheRead).toBeGreaterThan(0);
  });

  test('caches no prompt below 1,024 tokens, and none without a mark', () => {
    const { charge } = charged('anthropic_messages');
    expect(charge(request(user([{ ...text('short'), ...MARK }]))).cacheWrite).toBe(0);
    expect(charge(request(user(LONG)))).toMatchObject({ cacheRead: 0, cacheWrite: 0 });
  });

  test('looks back 20 blocks from a mark, and no further', () => {
    const { charge } = charged('anthropic_messages');
    charge(request(marked));
    const behind = (count: number): object =>
      request(
        user([
          text(LONG),
          ...Array.from({ length: count }, () => text('x')),
          { ...text('y'), ...MARK },
        ]),
      );
    expect(charge(behind(19)).cacheRead).toBeGreaterThan(0);
    expect(charge(behind(20)).cacheRead).toBe(0);
  });
});

// https://developers.openai.com/api/docs/guides/prompt-caching, digest of 2026-09-22.
describe('the prompt cache of OpenAI', () => {
  const request = (model: string, ...input: readonly Item[]): object => ({ model, input });
  const answer = { role: 'assistant', content: 'ok' };

  test('writes at the newest prompt from GPT-5.6 on, for 30 minutes', () => {
    const { charge, wait } = charged('openai_responses');
    const first = charge(request('gpt-6', user(LONG)));
    expect(first.cacheWrite).toBeGreaterThan(2_000);
    const next = request('gpt-6', user(LONG), answer, user('more'));
    expect(charge(next).cacheRead).toBe(first.cacheWrite);
    wait(31);
    expect(charge(next).cacheRead).toBe(0);
  });

  test('reads only up to a breakpoint', () => {
    const { charge } = charged('openai_responses');
    charge(request('gpt-6', user(LONG), user('one')));
    expect(charge(request('gpt-6', user(LONG), user('two'))).cacheRead).toBe(0);
    const part = { type: 'input_text', text: LONG, prompt_cache_breakpoint: { mode: 'explicit' } };
    charge(request('gpt-6', user([part]), user('one')));
    expect(charge(request('gpt-6', user([part]), user('two'))).cacheRead).toBeGreaterThan(0);
  });

  test('writes free before GPT-5.6', () => {
    const { charge } = charged('openai_responses');
    charge(request('gpt-5.2', user(LONG), user('one')));
    const { cacheRead, cacheWrite } = charge(request('gpt-5.2', user(LONG), user('two')));
    expect(cacheRead).toBeGreaterThan(2_000);
    expect(cacheWrite).toBe(0);
  });
});

test('a price counts reads and writes as the models do', () => {
  const usage = { input: 100, cacheRead: 1_000, cacheWrite: 400, cacheWriteHour: 200 };
  expect(priceOf(usage, 'claude-opus-5-5')).toBeCloseTo(100 + 100 + 250 + 400);
  expect(priceOf(usage, 'claude-fable-5-2')).toBeCloseTo(100 + 25 + 250 + 400);
});
