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

test('a request that expects 100 Continue behind a running answer leaves that answer whole', async () => {
  const server = await startServer(async (request, outgoing) => {
    outgoing.writeHead(200, { 'content-type': 'text/plain', 'content-length': '8' });
    outgoing.write('half');
    if (request.body?.toString() === '{"n":1}') await sleep(300);
    outgoing.end('done');
  });
  const socket = await openSocket(server.port);
  const answer = readAll(socket, 20_000);
  socket.write(requestOf(server.port, '{"n":1}'));
  await sleep(100);
  socket.write(requestOf(server.port, '{"n":2}', 'Expect: 100-continue', 'Connection: close'));
  const text = await answer;
  await server.close();
  const [first = '', ...rest] = text.split('halfdone');
  expect(first).toMatch(/^HTTP\/1\.1 200 OK/);
  expect(rest.join('halfdone')).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK/);
});
