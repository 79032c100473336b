import { expect, test } from 'vitest';
import { bindsThinking } from '../../src/core/conversation/thoughts.ts';

test.each([
  'claude-opus-5-5',
  'claude-opus-5-5-20260901',
  'claude-sonnet-5-5[1m]',
  'claude-haiku-5-5',
  'claude-fable-5-1',
  'us.anthropic.claude-fable-5-2-v1:0',
  'claude-mythos-5',
  'anthropic/claude-opus-5.5',
  'claude-opus-6',
  'claude-nova-1',
  'gpt-6-astra',
  'gpt-6.2-sol',
  'gpt-5.6-sol',
  'some-model',
  '',
  undefined,
])('thinking of %s may be bound', (model) => {
  expect(bindsThinking(model)).toBe(true);
});

test.each([
  'claude-opus-5',
  'claude-opus-5-20260601',
  'claude-opus-5[1m]',
  'claude-sonnet-5@20260601',
  'claude-fable-5',
  'claude-haiku-4-5-20251001',
  'claude-sonnet-4-5',
  'claude-opus-4-1-20250805',
  'claude-sonnet-4-20250514',
  'anthropic/claude-opus-4.8',
  'eu.anthropic.claude-sonnet-4-6-v1:0',
  'claude-3-5-sonnet-20241022',
  'claude-2.1',
  'claude-instant-1.2',
  'gpt-5',
  'gpt-5.1-codex',
  'openai/gpt-5.5-pro',
  'gpt-4.1',
  'gpt-4o-mini',
  'o3-pro',
  'o4-mini',
])('thinking of %s is bound to nothing', (model) => {
  expect(bindsThinking(model)).toBe(false);
});
