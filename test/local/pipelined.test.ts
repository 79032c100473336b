import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { AUTHORIZED, startServer } from '../support/local-server.ts';
import { openSocket, readAll } from '../support/raw-http.ts';

function requestOf(port: number, body: string, ...lines: string[]): string {
  const head = [
    'POST /v1/messages HTTP/1.1',
    `Host: 127.0.0.1:${port}`,
    AUTHORIZED,
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
    ...lines,
  ];
  return `${head.join('\r\n')}\r\n\r\n${body}`;
}

/** Three answers of a server: to a whole request, the call for a body, and to the request with that body. */
const IN_ORDER =
  /^HTTP\/1\.1 200 OK[^]*\{"n":1\}HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK[^]*\{"n":2\}$/;

test.each([
  ['that runs', true],
  ['that is not begun', false],
])('a client that waits for 100 Continue gets it behind an answer %s', async (_, isBegun) => {
  const server = await startServer(async (request, outgoing) => {
    outgoing.setHeader('content-length', String(request.body?.length));
    if (isBegun) outgoing.flushHeaders();
    if (request.body?.toString() === '{"n":1}') await sleep(200);
    outgoing.end(request.body);
  });
  const socket = await openSocket(server.port);
  const answer = readAll(socket, 20_000);
  let seen = '';
  socket.on('data', (chunk: Buffer) => {
    seen += chunk.toString();
    if (seen.endsWith('100 Continue\r\n\r\n')) socket.write('{"n":2}');
  });
  socket.write(requestOf(server.port, '{"n":1}'));
  await sleep(50);
  const second = requestOf(server.port, '{"n":2}', 'Expect: 100-continue', 'Connection: close');
  socket.write(second.slice(0, -'{"n":2}'.length));
  expect(await answer).toMatch(IN_ORDER);
  await server.close();
});

test('a client that sends the body at once gets no 100 Continue inside an answer', async () => {
  const server = await startServer(async (request, outgoing) => {
    if (request.body?.toString() === '{"n":1}') await sleep(200);
    outgoing.end(request.body);
  });
  const socket = await openSocket(server.port);
  const answer = readAll(socket, 20_000);
  const second = requestOf(server.port, '{"n":2}', 'Expect: 100-continue', 'Connection: close');
  socket.write(requestOf(server.port, '{"n":1}') + second);
  expect(await answer).toMatch(
    /^HTTP\/1\.1 200 OK[^]*\r\n\r\n\{"n":1\}(?:HTTP\/1\.1 100 Continue\r\n\r\n)?HTTP\/1\.1 200 OK[^]*\r\n\r\n\{"n":2\}$/,
  );
  await server.close();
});

test.each([
  [
    'an upgrade',
    'GET /v1/responses HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
  ],
  ['a tunnel', 'CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['no HTTP', 'nonsense\r\n\r\n'],
])('the refusal of %s is never the answer to the request before it', async (_, next) => {
  const server = await startServer(async (_request, outgoing) => {
    await sleep(300);
    outgoing.end('{}');
  });
  const socket = await openSocket(server.port);
  const answer = readAll(socket, 20_000);
  socket.write(requestOf(server.port, '{"n":1}') + next);
  expect(await answer).not.toMatch(/^HTTP\/1\.1 4/);
  await server.close();
});
