import { once } from 'node:events';
import { createServer, IncomingMessage, request } from 'node:http';
import { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { dropBody } from '../../src/http/bounded-server.ts';
import { readBody, RequestBodies } from '../../src/http/request-bodies.ts';
import { collectGarbage } from '../support/collect-garbage.ts';
import { until } from '../support/sockets.ts';

const BODY = Buffer.from(Array.from({ length: 400_000 }, (_, at) => `${at} `).join(''));

/** Sends BODY through node:http. Without `length` it is sent chunked. */
async function receive(length: number | undefined): Promise<Buffer | undefined> {
  let reading: Promise<Buffer | undefined> | undefined;
  const server = createServer((incoming) => {
    reading = readBody(incoming, { length, wireBytesMax: BODY.length });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  const headers = length === undefined ? {} : { 'content-length': length };
  const asked = request({ host: '127.0.0.1', port, method: 'POST', headers });
  asked.on('error', () => undefined);
  asked.end(BODY);
  try {
    await once(server, 'request');
    return await reading;
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

test.each([
  ['announced', BODY.length],
  ['chunked', undefined],
])('a long body that is %s arrives whole', async (_, length) => {
  expect((await receive(length))?.equals(BODY)).toBe(true);
});

test('a body of one chunk keeps its memory', async () => {
  const chunk = Buffer.from(BODY.buffer.slice(0, 60_000));
  expect(await readChunks([chunk], chunk.length)).toBe(chunk);
});

/** Gives the chunks to a request that no connection brought. */
function readChunks(
  chunks: readonly Buffer[],
  length: number | undefined,
): Promise<Buffer | undefined> {
  const incoming = new IncomingMessage(new Socket());
  const reading = readBody(incoming, { length, wireBytesMax: BODY.length });
  for (const chunk of chunks) incoming.emit('data', chunk);
  incoming.emit('end');
  return reading;
}

test('R38: a body over the limit is let go before its request is', async () => {
  const incoming = new IncomingMessage(new Socket());
  const reading = readBody(incoming, { length: undefined, wireBytesMax: 10 });
  incoming.push(BODY.subarray(0, 11));
  await expect(reading).rejects.toThrow('The body is over the limit.');
  const names = ['data', 'end', 'close'];
  expect(names.map((name) => incoming.listenerCount(name))).toEqual([0, 0, 0]);
});

test('R38: a short body is read while three of the largest are decoded', async () => {
  const stopped = new AbortController();
  let decoding = 0;
  const decode = (): Promise<Buffer> => {
    decoding += 1;
    return new Promise((_resolve, reject) => {
      stopped.signal.addEventListener('abort', () => reject(new Error('stopped')));
    });
  };
  const budget = { bytesMax: 0, waitMs: 50, waitingMax: 16 };
  const bodies = new RequestBodies(decode, () => 64 << 20, budget);
  const send = (bytes: string, encoding: 'br' | 'identity') => {
    const incoming = new IncomingMessage(new Socket());
    incoming.push(bytes);
    incoming.push(null);
    const expected = { encoding, length: bytes.length, wireBytesMax: 64 << 20 };
    return bodies.receive(incoming, expected, { gone: new AbortController().signal });
  };
  // A few bytes of brotli may decode to any length, so each of them reserves 64 MiB.
  const held = Promise.allSettled(Array.from({ length: 3 }, () => send('few', 'br')));
  await until(() => decoding === 3);
  expect(await send('{}', 'identity')).toMatchObject({ body: Buffer.from('{}') });
  await expect(send('few', 'br')).rejects.toThrow('Too many large requests');
  stopped.abort();
  await held;
});

test('a body of small chunks holds little more than its bytes', async () => {
  const incoming = new IncomingMessage(new Socket());
  const reading = readBody(incoming, { length: undefined, wireBytesMax: 2 ** 26 });
  collectGarbage();
  const before = process.memoryUsage();
  const count = 50_000;
  for (let sent = 0; sent < count; sent += 1) {
    // Each chunk is cut from the buffer that the socket has read, as Node does it.
    incoming.emit('data', Buffer.alloc(4096, sent % 251).subarray(0, 64));
  }
  collectGarbage();
  const after = process.memoryUsage();
  const held = after.heapUsed + after.arrayBuffers - before.heapUsed - before.arrayBuffers;
  expect(held).toBeLessThan(3 * 64 * count);
  incoming.emit('end');
  const body = await reading;
  expect(body?.length).toBe(64 * count);
  expect(body?.every((byte, at) => byte === Math.floor(at / 64) % 251)).toBe(true);
});

test('a body of a byte in each chunk is refused before it occupies the thread', async () => {
  const chunks = (count: number, bytes: number) =>
    readChunks(
      Array.from({ length: count }, () => Buffer.alloc(bytes)),
      undefined,
    );
  expect((await chunks(16_384, 1))?.length).toBe(16_384);
  await expect(chunks(20_000, 1)).rejects.toThrow('too many small chunks');
  expect((await chunks(20_000, 20))?.length).toBe(400_000);
});

test('the rest of a refused body is not dropped to its end if it comes in small chunks', async () => {
  const socket = new Socket();
  const incoming = new IncomingMessage(socket);
  incoming.pause();
  dropBody(incoming);
  // A listener alone does not make a paused request flow.
  expect(incoming.isPaused()).toBe(false);
  for (let sent = 0; sent < 1000; sent += 1) incoming.emit('data', Buffer.alloc(1));
  for (let sent = 0; sent < 5000; sent += 1) incoming.emit('data', Buffer.alloc(65_536));
  expect(socket.destroyed).toBe(false);
  for (let sent = 0; sent < 6_000_000 && !socket.destroyed; sent += 1) {
    incoming.emit('data', Buffer.alloc(1));
  }
  expect(socket.destroyed).toBe(true);
});
