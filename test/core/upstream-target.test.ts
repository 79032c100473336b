import { expect, test } from 'vitest';
import type { Dialect } from '../../src/core/conversation/view.ts';
import { parseBaseUrl } from '../../src/core/settings/config-upstreams.ts';
import { joinTarget, parseUpstreamBase } from '../../src/core/http/upstream-target.ts';

const ANTHROPIC = 'anthropic_messages';
const CHAT = 'openai_chat_completions';

function join(baseUrl: string, target: string, apiStyle: Dialect = ANTHROPIC): string {
  const base = parseUpstreamBase({ baseUrl, apiStyle, query: {} });
  return base.origin + joinTarget(base, target);
}

/** The base URL as a configuration or a provider of a tenant keeps it. */
function asConfigured(baseUrl: string): string {
  const parsed = parseBaseUrl(baseUrl, true);
  return 'url' in parsed ? parsed.url : '';
}

test.each([
  ['https://api.anthropic.com', 'https://api.anthropic.com/v1/messages'],
  ['https://api.anthropic.com/', 'https://api.anthropic.com/v1/messages'],
  ['https://api.anthropic.com/v1', 'https://api.anthropic.com/v1/messages'],
  ['https://api.anthropic.com/v1/', 'https://api.anthropic.com/v1/messages'],
  ['http://gateway/prefix', 'http://gateway/prefix/v1/messages'],
  ['http://gateway/prefix//', 'http://gateway/prefix/v1/messages'],
  ['http://gateway/v1/account/anthropic', 'http://gateway/v1/account/anthropic/v1/messages'],
])('a Messages base URL %s sends to %s', (baseUrl, expected) => {
  expect(join(baseUrl, '/v1/messages')).toBe(expected);
  expect(join(asConfigured(baseUrl), '/v1/messages')).toBe(expected);
});

test.each([
  ['https://api.openai.com', 'https://api.openai.com/v1/chat/completions'],
  ['https://api.openai.com/v1', 'https://api.openai.com/v1/chat/completions'],
  ['https://openrouter.ai/api/v1', 'https://openrouter.ai/api/v1/chat/completions'],
  ['http://127.0.0.1:11434/v1', 'http://127.0.0.1:11434/v1/chat/completions'],
  ['http://127.0.0.1:11434', 'http://127.0.0.1:11434/v1/chat/completions'],
  ['http://gateway/prefix/v1', 'http://gateway/prefix/v1/chat/completions'],
  ['http://gateway/prefix', 'http://gateway/prefix/chat/completions'],
  ['https://api.z.ai/api/paas/v4', 'https://api.z.ai/api/paas/v4/chat/completions'],
  ['https://g.example/v1beta/openai/', 'https://g.example/v1beta/openai/chat/completions'],
])('an OpenAI base URL %s sends to %s', (baseUrl, expected) => {
  expect(join(baseUrl, '/v1/chat/completions', CHAT)).toBe(expected);
  expect(join(asConfigured(baseUrl), '/v1/chat/completions', CHAT)).toBe(expected);
});

test('the query of the client stays as it was written', () => {
  const target = '/v1/messages?beta=true&x=%2F+a&&empty=';
  expect(join('https://api.anthropic.com', target)).toBe(`https://api.anthropic.com${target}`);
  expect(join('https://api.anthropic.com', '/v1/models?')).toBe(
    'https://api.anthropic.com/v1/models?',
  );
});

test('the query of the upstream is added, and replaces what the client sent under its names', () => {
  const base = parseUpstreamBase({
    baseUrl: 'https://res.example/openai/deployments/gpt?api-version=1',
    apiStyle: CHAT,
    query: { 'api-version': '2026-01-01', key: 'a b&c' },
  });
  expect(joinTarget(base, '/v1/chat/completions')).toBe(
    '/openai/deployments/gpt/chat/completions?api-version=2026-01-01&key=a%20b%26c',
  );
  expect(joinTarget(base, '/v1/chat/completions?k%65y=theirs&beta=%7e&key')).toBe(
    '/openai/deployments/gpt/chat/completions?beta=%7e&api-version=2026-01-01&key=a%20b%26c',
  );
});

test('a target outside /v1 goes to the base path without its version', () => {
  expect(join('https://api.anthropic.com/v1', '/api/hello')).toBe(
    'https://api.anthropic.com/api/hello',
  );
  expect(join('http://gateway/prefix/v1', '/v1beta/x')).toBe('http://gateway/prefix/v1beta/x');
  expect(join('https://api.anthropic.com', '/v1')).toBe('https://api.anthropic.com/v1');
});

test('a client cannot leave the host of the upstream by its target', () => {
  expect(join('https://api.anthropic.com', '//evil.example/v1/messages')).toBe(
    'https://api.anthropic.com//evil.example/v1/messages',
  );
});

test('a base URL that is no http URL is refused when it is read', () => {
  for (const baseUrl of ['', 'api.anthropic.com', 'ftp://x.example', 'file:///etc/passwd']) {
    expect(() => parseUpstreamBase({ baseUrl, apiStyle: CHAT, query: {} })).toThrow(TypeError);
  }
});

test('a base URL with a user name or password says so', () => {
  const parse = (baseUrl: string) => parseUpstreamBase({ baseUrl, apiStyle: CHAT, query: {} });
  expect(parse('https://user:secret@x.example').hasUserInfo).toBe(true);
  expect(parse('https://x.example').hasUserInfo).toBe(false);
});
