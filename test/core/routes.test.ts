import { expect, test } from 'vitest';
import {
  errorDialect,
  explainUnknownPath,
  findPath,
  type PathEntry,
} from '../../src/core/http/routes.ts';

function find(path: string, isAnthropic = false): PathEntry | undefined {
  return findPath({ path, isAnthropic, relayPaths: ['/v1/embeddings', '/v1/messages/batches'] });
}

// spec: 4.4-chat, 4.4-responses, 4.4-messages, 9-v1
test('R5: the three model routes take POST alone', () => {
  const routes = [
    ['/v1/messages', 'anthropic_messages'],
    ['/v1/responses', 'openai_responses'],
    ['/v1/chat/completions', 'openai_chat_completions'],
  ] as const;
  for (const [path, dialect] of routes) {
    expect(find(path)).toEqual({ route: { kind: 'model', dialect }, methods: ['POST'] });
  }
});

test('R5: token counting and the helpers of Responses are relayed to their own side', () => {
  const paths = [
    ['/v1/messages/count_tokens', 'anthropic_messages'],
    ['/v1/responses/compact', 'openai_responses'],
    ['/v1/responses/input_tokens', 'openai_responses'],
  ] as const;
  for (const [path, dialect] of paths) {
    expect(find(path)?.route).toEqual({ kind: 'relay', dialect });
  }
});

test('models are asked of the side whose client asks', () => {
  for (const path of ['/v1/models', '/v1/models/gpt-5', '/v1/models/org%2Fmodel%3Afree']) {
    expect(find(path, true)?.route).toEqual({ kind: 'relay', dialect: 'anthropic_messages' });
    expect(find(path, false)?.route).toEqual({ kind: 'relay', dialect: undefined });
    expect(find(path)?.methods).toEqual(['GET', 'HEAD']);
  }
});

test.each([
  '',
  '/',
  '/v1',
  '/v1/',
  '/v1/messages/',
  '/v1//messages',
  '//v1/messages',
  '/V1/messages',
  '/v1/Messages',
  '/v1/./messages',
  '/v1/x/../messages',
  '/v1/%6dessages',
  '/v1/messages%2Fcount_tokens',
  '/v1/messages;x',
  '/v1/models/',
  '/v1/models/a/b',
  '/v1/models/..',
  '/v1/models/.',
  '/v1/models/%2e%2e',
  '/v1/models/..%2f..%2fadmin',
  '/v1/models/a%2F..%2Fb',
  '/v1/models/a%2F%2Fb',
  '/v1/models/%252e%252e',
  '/v1/models/a%00',
  '/v1/models/a%0d%0ax',
  '/v1/models/%zz',
  '/v1/files',
  '/v1/embeddings/',
  '/api/event_logging/batch',
  '/health/',
  '/metrics',
])('R5: "%s" is unknown', (path) => {
  expect(find(path)).toBeUndefined();
});

test('a path of the settings is relayed to the side that it names, else to that of the client', () => {
  const methods = ['GET', 'HEAD', 'POST'];
  const relay = (dialect?: string): unknown => ({ route: { kind: 'relay', dialect }, methods });
  expect(find('/v1/embeddings')).toEqual(relay());
  expect(find('/v1/embeddings', true)).toEqual(relay('anthropic_messages'));
  expect(find('/v1/messages/batches')).toEqual(relay('anthropic_messages'));
});

test('a wrong base URL is answered with the right one', () => {
  const origin = 'http://127.0.0.1:4000';
  expect(explainUnknownPath('/v1/v1/messages', origin)).toContain(`base URL to ${origin} .`);
  expect(explainUnknownPath('/v1/v1/responses', origin)).toContain(`base URL to ${origin}/v1 .`);
  for (const path of ['/messages', '/responses', '/chat/completions', '/models']) {
    expect(explainUnknownPath(path, origin)).toContain(`base URL to ${origin}/v1 .`);
  }
  for (const path of ['/v1/v1/nothing', '/nothing', '/v1/nothing']) {
    expect(explainUnknownPath(path, origin)).not.toContain('base URL');
  }
});

test('an error about an unknown path has the shape of its client', () => {
  expect(errorDialect('/v1/v1/messages', false)).toBe('anthropic_messages');
  expect(errorDialect('/messages', false)).toBe('anthropic_messages');
  expect(errorDialect('/api/event_logging/batch', false)).toBe('anthropic_messages');
  expect(errorDialect('/v1/responses/x', true)).toBe('openai_responses');
  expect(errorDialect('/v1/models', true)).toBe('anthropic_messages');
  expect(errorDialect('/nothing', false)).toBeUndefined();
});
