import { expect, test } from 'vitest';
import { ProxyError } from '../../src/core/errors.ts';
import { AUTHORIZED, startServer, writeRequest } from '../support/local-server.ts';
import { exchange, parseAnswer } from '../support/raw-http.ts';

const JSON_TYPE = 'Content-Type: application/json';

test('R29: an unexpected failure is a constant 500, and its report names only class and place', async () => {
  const secret = 'sk-ant-secret';
  const failing = await startServer(async () => {
    JSON.parse(`{"key": ${secret}`);
  });
  const answer = await failing.ask({ body: '{}' });
  expect(answer.status).toBe(500);
  expect(answer.headers.get('x-svc-error-code')).toBe('INTERNAL');
  expect(answer.headers.get('x-should-retry')).toBe('false');
  expect(answer.body).not.toContain(secret);
  expect(failing.reports).toHaveLength(1);
  const [line] = failing.reports;
  expect(line).toMatchObject({ code: 'INTERNAL', fields: { error: 'SyntaxError' } });
  expect(String(line?.fields?.['at'])).toMatch(/^failures\.test\.ts:\d+:\d+$/);
  expect(JSON.stringify(failing.reports)).not.toContain('sk-ant');
  await failing.close();
});

test('what the handler refuses is answered with its code, and the connection lives on', async () => {
  const failing = await startServer(async (_request, outgoing) => {
    outgoing.setHeader('x-svc-memory-state', 'off');
    throw new ProxyError('UPSTREAM_UNREACHABLE', 'The provider cannot be reached.');
  });
  const one = writeRequest(failing.port, {
    headers: [AUTHORIZED, JSON_TYPE, 'Connection: keep-alive'],
    body: '{}',
  });
  const last = writeRequest(failing.port, { body: '{}' });
  const text = await exchange(failing.port, Buffer.concat([one, last]));
  expect(text.match(/HTTP\/1\.1 502/g)).toHaveLength(2);
  const answer = parseAnswer(text);
  expect(answer.headers.get('x-should-retry')).toBe('true');
  expect(answer.headers.get('x-svc-memory-state')).toBe('off');
  expect(failing.reports).toEqual([]);
  await failing.close();
});

test('a failure after the headers cuts the connection: a half answer has no clean end', async () => {
  const failing = await startServer(async (_request, outgoing) => {
    outgoing.writeHead(200, { 'content-type': 'text/event-stream' });
    outgoing.write('data: half\n\n');
    await new Promise((resolve) => setTimeout(resolve, 50));
    throw new Error('the provider went away');
  });
  const text = await exchange(failing.port, writeRequest(failing.port, { body: '{}' }));
  expect(text).toContain('data: half');
  expect(text).not.toContain('\r\n0\r\n');
  await failing.close();
});

test('a failure after the answer has ended is reported, and the answer arrives whole', async () => {
  const body = Buffer.alloc(16 << 20, 'x');
  const failing = await startServer(async (_request, outgoing) => {
    outgoing.writeHead(200, { 'content-length': body.length });
    outgoing.end(body);
    throw new TypeError('what follows an answer');
  });
  const text = await exchange(failing.port, writeRequest(failing.port, { body: '{}' }));
  expect(text.length).toBeGreaterThan(body.length);
  expect(failing.reports).toMatchObject([{ code: 'INTERNAL', fields: { error: 'TypeError' } }]);
  await failing.close();
});

test('a handler that forgets to answer is a failure of ours, not a client that waits', async () => {
  const failing = await startServer(async () => undefined);
  expect((await failing.ask({ body: '{}' })).status).toBe(500);
  expect(failing.reports).toHaveLength(1);
  await failing.close();
});
