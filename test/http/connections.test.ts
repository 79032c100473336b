import { once } from 'node:events';
import { createServer, get, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { Connections } from '../../src/http/bounded-server.ts';

test('a stop waits for open answers also where one of them fails', async () => {
  const connections = new Connections();
  const answers: ServerResponse[] = [];
  const server = createServer((incoming, outgoing) => {
    connections.open(incoming.socket, outgoing);
    outgoing.on('error', () => outgoing.destroy());
    answers.push(outgoing);
  });
  server.on('connection', (socket: Socket) => connections.add(socket));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  for (const path of ['/one', '/two']) get({ port, path }).on('error', () => undefined);
  await expect.poll(() => answers.length).toBe(2);
  let isSettled = false;
  const settled = connections.settle(30_000).then(() => (isSettled = true));
  answers[0]?.emit('error', new Error('no more'));
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(isSettled).toBe(false);
  answers[1]?.end();
  await settled;
});
