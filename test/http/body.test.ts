import { once } from 'node:events';
import { createServer, IncomingMessage, request } from 'node:http';
import { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { readBody } from '../../src/http/request-bodies.ts';

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
