import { expect, test } from 'vitest';
import {
  answerHeaders,
  forwardHeaders,
  headerCount,
  headerOf,
  withBeta,
} from '../../src/core/http/header-rules.ts';

const anthropic = { auth: 'x-api-key', providerKey: 'provider-key', headers: {} } as const;
const openai = { auth: 'bearer', providerKey: 'provider-key', headers: {} } as const;

test('a header is found in any case, the first of several', () => {
  const headers = ['Accept', 'a', 'X-Thing', '1', 'x-thing', '2'];
  expect(headerOf(headers, 'x-thing')).toBe('1');
  expect(headerCount(headers, 'x-thing')).toBe(2);
  expect(headerOf(headers, 'x-other')).toBeUndefined();
  expect(headerCount(headers, 'x-other')).toBe(0);
});

test('R14: what the provider may see crosses in its order, case and number', () => {
  const client = [
    'User-Agent',
    'claude-cli/2.1.329 (external, cli)',
    'X-Stainless-Lang',
    'js',
    'anthropic-version',
    '2023-06-01',
    'anthropic-beta',
    'a,b',
    'Anthropic-Beta',
    'c',
    'session_id',
    '0198',
    'x-codex-turn-metadata',
    '{"a":1}',
    'OpenAI-Organization',
    'org',
    'traceparent',
    '00-1-2-01',
    'X-Unknown-Vendor',
    'caf\u00e9',
  ];
  expect(forwardHeaders(client, anthropic)).toEqual([
    ...client,
    'accept-encoding',
    'identity',
    'x-api-key',
    'provider-key',
  ]);
});

test.each([
  [
    'hop-by-hop',
    ['Keep-Alive', 'TE', 'Trailer', 'Transfer-Encoding', 'Upgrade', 'Proxy-Connection'],
  ],
  ['our own', ['x-svc-memory-mode', 'X-Svc-Anything', 'X_SVC_MEMORY_SPACE']],
  ['cookies', ['Cookie', 'Cookie2', 'Set-Cookie']],
  ['forwarding', ['Forwarded', 'X-Forwarded-For', 'X-Forwarded-Anything', 'Via', 'X-Real-IP']],
  ['client addresses', ['CF-Connecting-IP', 'True-Client-IP', 'X-Client-IP', 'Fastly-Client-IP']],
  ['gateways', ['CloudFront-Viewer-Address', 'X-Akamai-Edgescape', 'X-Envoy-External-Address']],
  ['pages', ['Origin', 'Referer']],
  ['framing', ['Host', 'Content-Length', 'Content-Encoding', 'Accept-Encoding', 'Expect']],
  ['credentials', ['Authorization', 'X-API-Key', 'api-key', 'Proxy-Authorization']],
  ['more credentials', ['x-goog-api-key', 'Ocp-Apim-Subscription-Key', 'x_api_key', 'API_KEY']],
])('R14: %s headers do not cross', (_kind, names) => {
  const client = names.flatMap((name) => [name, 'secret']);
  expect(forwardHeaders(client, openai)).toEqual([
    'accept-encoding',
    'identity',
    'authorization',
    'Bearer provider-key',
  ]);
});

test('R14: what Connection names does not cross, in either direction', () => {
  const headers = [
    'Connection',
    'close, X-Private , x_other',
    'x-private',
    '1',
    'X-Other',
    '2',
    'a',
    'b',
  ];
  expect(forwardHeaders(headers, { ...openai, auth: 'none' })).toEqual([
    'a',
    'b',
    'accept-encoding',
    'identity',
  ]);
  expect(answerHeaders(headers)).toEqual(['a', 'b', 'x-content-type-options', 'nosniff']);
});

test('R14: a Connection header cannot take the provider key away', () => {
  const forwarded = forwardHeaders(['Connection', 'x-api-key, accept-encoding'], anthropic);
  expect(forwarded).toEqual(['accept-encoding', 'identity', 'x-api-key', 'provider-key']);
});

test('R14: custom headers replace those of the same name and come before the credential', () => {
  const headers = { 'X-Team': 'ours', 'api-key': 'resolved-key', 'HTTP-Referer': 'https://svc' };
  const client = ['x-team', 'theirs', 'x_team', 'theirs too', 'a', 'b', 'api-key', 'svc_local_x'];
  expect(forwardHeaders(client, { ...openai, headers })).toEqual([
    'a',
    'b',
    'accept-encoding',
    'identity',
    'X-Team',
    'ours',
    'api-key',
    'resolved-key',
    'HTTP-Referer',
    'https://svc',
    'authorization',
    'Bearer provider-key',
  ]);
});

test('R14: the credential is there exactly once, whatever client and configuration say', () => {
  const headers = { Authorization: 'Bearer custom', 'x-api-key': 'custom' };
  const client = ['authorization', 'Bearer svc_local_x', 'x-api-key', 'svc_local_x'];
  const bearer = forwardHeaders(client, { ...openai, headers });
  expect(bearer.slice(-2)).toEqual(['authorization', 'Bearer provider-key']);
  expect(headerCount(bearer, 'authorization')).toBe(1);
  expect(headerOf(bearer, 'x-api-key')).toBe('custom');
  const none = forwardHeaders(client, { auth: 'none', providerKey: '', headers });
  expect(headerOf(none, 'authorization')).toBe('Bearer custom');
});

test('R14: a custom header cannot change the host, the framing or the encoding', () => {
  const headers = {
    Host: 'evil.example',
    'Content-Length': '0',
    'Transfer-Encoding': 'chunked',
    Connection: 'upgrade',
    'Accept-Encoding': 'gzip',
  };
  const expected = ['accept-encoding', 'identity'];
  expect(forwardHeaders([], { auth: 'none', providerKey: '', headers })).toEqual(expected);
});

test('R15: the client gets request ids, limits and retry hints as the provider wrote them', () => {
  const provider = [
    'Date',
    'Thu, 01 Jan 1970 00:00:00 GMT',
    'request-id',
    'req_1',
    'anthropic-ratelimit-requests-limit',
    '4000',
    'Retry-After',
    '3',
    'x-should-retry',
    'true',
    'Content-Encoding',
    'gzip',
    'Content-Length',
    '12',
    'x-repeated',
    '1',
    'x-repeated',
    '2',
  ];
  const answered = answerHeaders([...provider, 'X-Content-Type-Options', 'none']);
  expect(answered).toEqual([...provider, 'x-content-type-options', 'nosniff']);
});

test('R15: what is meant for browsers, for one connection or for us does not reach the client', () => {
  const names = [
    'Set-Cookie',
    'Access-Control-Allow-Origin',
    'access-control-expose-headers',
    'Alt-Svc',
    'Strict-Transport-Security',
    'X-Svc-Memory-State',
    'x_svc_memory_state',
    'Transfer-Encoding',
    'Keep-Alive',
    'Trailer',
  ];
  expect(answerHeaders(names.flatMap((name) => [name, 'value']))).toEqual([
    'x-content-type-options',
    'nosniff',
  ]);
});

test('R44: what makes a gateway take another method, path or host, and what traces the client, does not cross', () => {
  const names = [
    'X-HTTP-Method-Override',
    'x_http_method_override',
    'X-HTTP-Method',
    'X-Method-Override',
    'X-Original-URL',
    'X-Original-Method',
    'X-Rewrite-URL',
    'X-Host-Override',
    'X-Amzn-Trace-Id',
    'X-Amzn-Oidc-Data',
    'X-Amz-Cf-Id',
    'X-B3-TraceId',
    'b3',
    'X-Cloud-Trace-Context',
    'X-Datadog-Trace-Id',
    'X-Envoy-Original-Path',
    'X-Appengine-City',
    'X-Azure-ClientIP',
    'CF-IPCity',
  ];
  const upstream = { auth: 'none', providerKey: '', headers: {} } as const;
  const client = names.flatMap((name) => [name, 'value']);
  expect(forwardHeaders(client, upstream)).toEqual(['accept-encoding', 'identity']);
  const kept = [
    'X-Amzn-Bedrock-Trace',
    'traceparent',
    'x-stainless-os',
    'x-goog-user-project',
    'x-ms-client-request-id',
  ];
  const forwarded = forwardHeaders(
    kept.flatMap((name) => [name, 'value']),
    upstream,
  );
  expect(forwarded.filter((name) => kept.includes(name))).toEqual(kept);
});

test('R44: an answer without a body has no length', () => {
  const provider = ['Content-Length', '5', 'ETag', 'x'];
  const nosniff = ['x-content-type-options', 'nosniff'];
  for (const status of [204, 304]) {
    expect(answerHeaders(provider, status)).toEqual(['ETag', 'x', ...nosniff]);
  }
  expect(answerHeaders(provider, 200)).toEqual([...provider, ...nosniff]);
});

test('a beta joins the client’s own list, once, and has its own header where there is none', () => {
  expect(withBeta(['a', '1'], 'new')).toEqual(['a', '1', 'anthropic-beta', 'new']);
  expect(withBeta(['Anthropic-Beta', 'a,b', 'x', 'y'], 'new')).toEqual([
    'Anthropic-Beta',
    'a,b,new',
    'x',
    'y',
  ]);
  expect(withBeta(['anthropic-beta', ''], 'new')).toEqual(['anthropic-beta', 'new']);
  const has = ['anthropic-beta', 'a', 'Anthropic-Beta', 'b, new'];
  expect(withBeta(has, 'new')).toBe(has);
});
