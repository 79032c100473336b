import { once } from 'node:events';
import { expect, test } from 'vitest';
import { AUTHORIZED, startServer, TOKEN, writeRequest } from '../support/local-server.ts';
import { openSocket } from '../support/raw-http.ts';

test('R31: a rotated token is refused on a connection that the old one opened', async () => {
  const running = await startServer();
  const socket = await openSocket(running.port);
  const request = writeRequest(running.port, {
    headers: [AUTHORIZED, 'Content-Type: application/json', 'Connection: keep-alive'],
    body: '{}',
  });
  const status = async (): Promise<string> => {
    const data = once(socket, 'data');
    socket.write(request);
    return String(await data).slice(0, 12);
  };
  expect(await status()).toBe('HTTP/1.1 200');
  expect(await status()).toBe('HTTP/1.1 200');
  running.setTokens(`${TOKEN}-new`);
  expect(await status()).toBe('HTTP/1.1 401');
  socket.destroy();
  await running.close();
});
