import { gzipSync } from 'node:zlib';
import { expect, onTestFinished, test } from 'vitest';
import { ProxyError } from '../../src/core/errors.ts';
import type { Handler } from '../../src/proxy/dependencies.ts';
import { AUTHORIZED, startServer, type TestRequest } from '../support/local-server.ts';

const JSON_TYPE = 'Content-Type: application/json';
const MODEL_PATHS = ['/v1/messages', '/v1/responses', '/v1/chat/completions'];

const STATES = {
  'x-svc-local-proxy': '0.1.2',
  'x-svc-memory-mode': 'read-write',
  'x-svc-memory-state': 'off',
  'x-svc-compression-mode': 'passthrough',
  'x-svc-continuity-state': 'not_applicable',
};
const COUNTS = {
  'x-svc-original-input-tokens': '0',
  'x-svc-forwarded-input-tokens': '0',
  'x-svc-recalled-tokens': '0',
  'x-svc-elided-items': '0',
  'x-svc-elided-tokens': '0',
};

async function toldBy(
  request: TestRequest,
  handler?: Handler,
): Promise<{ readonly status: number; readonly told: Readonly<Record<string, string>> }> {
  const running = await startServer(handler, { bodyBytesMax: 2_000 });
  onTestFinished(() => running.close());
  const { status, headers } = await running.ask(request);
  return { status, told: Object.fromEntries(headers) };
}

const stops: readonly (readonly [number, TestRequest])[] = [
  [401, { headers: [JSON_TYPE], body: '{}' }],
  [403, { headers: [AUTHORIZED, JSON_TYPE, 'Origin: https://evil.example'], body: '{}' }],
  [405, { method: 'PUT', body: '{}' }],
  [413, { body: 'x'.repeat(3_000) }],
  [415, { headers: [AUTHORIZED, 'Content-Type: text/plain'], body: '{}' }],
  [415, { headers: [AUTHORIZED, JSON_TYPE, 'Content-Encoding: lzma'], body: '{}' }],
  [400, { headers: [AUTHORIZED, JSON_TYPE, 'Content-Encoding: gzip'], body: 'no gzip' }],
  [
    413,
    {
      headers: [AUTHORIZED, JSON_TYPE, 'Content-Encoding: gzip'],
      body: gzipSync(Buffer.alloc(9_000)),
    },
  ],
  [422, { headers: [AUTHORIZED, JSON_TYPE, 'x-svc-memory-mode: all'], body: '{}' }],
];

test.each(stops)(
  'a request that stops with %i before it is read tells that',
  async (status, request) => {
    for (const target of MODEL_PATHS) {
      // oxlint-disable-next-line no-await-in-loop -- One listener after the other.
      const answer = await toldBy({ ...request, target });
      expect(answer).toMatchObject({ status, told: { ...STATES, ...COUNTS } });
    }
  },
);

test('the mode in a stopped request counts as it does in any other', async () => {
  const headers = [AUTHORIZED, 'Content-Type: text/plain', 'x-svc-memory-mode: read'];
  const { told } = await toldBy({ headers, body: '{}' });
  expect(told).toMatchObject({ ...STATES, 'x-svc-memory-mode': 'read' });
});

test('what the handler told of a request that failed stays', async () => {
  const { status, told } = await toldBy({ body: '{}' }, async (_request, outgoing) => {
    outgoing.setHeader('x-svc-memory-state', 'recalled');
    throw new ProxyError('UPSTREAM_TIMEOUT', 'No headers in time.');
  });
  expect(status).toBe(504);
  expect(told).toMatchObject({ ...STATES, 'x-svc-memory-state': 'recalled' });
});

test('svc’s own errors on a relayed path tell the states and no counts', async () => {
  const { status, told } = await toldBy({ method: 'GET', target: '/v1/models', headers: [] });
  expect(status).toBe(401);
  expect(told).toMatchObject(STATES);
  expect(told).not.toHaveProperty('x-svc-original-input-tokens');
});

test('R29: a path that svc does not serve tells nothing of a request', async () => {
  const { status, told } = await toldBy({ method: 'GET', target: '/v1/none' });
  expect(status).toBe(404);
  expect(told).not.toHaveProperty('x-svc-memory-mode');
});
