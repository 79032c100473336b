import { readFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AUTHORIZED, startServer, type TestServer, writeRequest } from '../support/local-server.ts';
import { exchange, openSocket, parseAnswer, type RawAnswer, readAll } from '../support/raw-http.ts';
import { bomb, frame, rawBlock, sizedHeader } from '../support/zstd-frames.ts';

const JSON_TYPE = 'Content-Type: application/json';
const MIB = 1 << 20;
let running: TestServer;

beforeAll(async () => {
  running = await startServer();
});
afterAll(() => running.close());

/** Sends the head, then `size` bytes as fast as the server takes them, reading all the while. */
async function upload(headers: readonly string[], size: number): Promise<RawAnswer> {
  const socket = await openSocket(running.port);
  const everything = readAll(socket);
  socket.write(writeRequest(running.port, { headers }));
  await pour(socket, size, headers.includes('Transfer-Encoding: chunked'));
  return parseAnswer(await everything);
}

async function pour(socket: Socket, size: number, isChunked: boolean): Promise<void> {
  const piece = Buffer.alloc(MIB, ' ');
  const chunk = isChunked
    ? Buffer.concat([Buffer.from(`${MIB.toString(16)}\r\n`), piece, Buffer.from('\r\n')])
    : piece;
  for (let sent = 0; sent < size && !socket.destroyed; sent += MIB) {
    if (!socket.write(chunk)) await drained(socket);
  }
  if (isChunked && !socket.destroyed) socket.write('0\r\n\r\n');
}

/** Until more can be written, or nothing can any more. */
function drained(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    const settle = (): void => {
      socket.off('drain', settle);
      socket.off('close', settle);
      resolve();
    };
    socket.on('drain', settle);
    socket.on('close', settle);
  });
}

const alive = async (): Promise<number> =>
  (await running.ask({ method: 'GET', target: '/health', headers: [] })).status;

describe('identity', () => {
  test('R10: a large body arrives whole, announced or chunked', async () => {
    const whole = await upload([AUTHORIZED, JSON_TYPE, `Content-Length: ${8 * MIB}`], 8 * MIB);
    expect(whole.status).toBe(200);
    expect(running.seen.at(-1)?.body?.length).toBe(8 * MIB);
    const chunked = await upload([AUTHORIZED, JSON_TYPE, 'Transfer-Encoding: chunked'], 8 * MIB);
    expect(chunked.status).toBe(200);
    expect(running.seen.at(-1)?.body?.equals(Buffer.alloc(8 * MIB, ' '))).toBe(true);
  });

  test('R10: 70 MB in chunks are refused, and the client that still sends sees why', async () => {
    const before = running.seen.length;
    const answer = await upload([AUTHORIZED, JSON_TYPE, 'Transfer-Encoding: chunked'], 70 * MIB);
    expect(answer.status).toBe(413);
    expect(answer.headers.get('x-svc-error-code')).toBe('BODY_TOO_LARGE');
    expect(answer.headers.get('connection')).toBe('close');
    expect(running.seen.length).toBe(before);
    expect(await alive()).toBe(200);
  });

  test('R10: 70 MB as announced are refused without being read', async () => {
    const answer = await upload([AUTHORIZED, JSON_TYPE, `Content-Length: ${70 * MIB}`], 70 * MIB);
    expect(answer.status).toBe(413);
    expect(await alive()).toBe(200);
  });

  test('R4: a client that has no token and a large body sees its 401', async () => {
    const answer = await upload([JSON_TYPE, `Content-Length: ${40 * MIB}`], 40 * MIB);
    expect(answer.status).toBe(401);
    expect(answer.headers.get('x-should-retry')).toBe('false');
  });

  test('R4: the same through an ordinary HTTP client', async () => {
    const status = await new Promise((resolve, reject) => {
      const outgoing = httpRequest(
        {
          port: running.port,
          host: '127.0.0.1',
          method: 'POST',
          path: '/v1/messages',
          headers: { 'content-type': 'application/json' },
        },
        (incoming) => {
          incoming.resume();
          resolve(incoming.statusCode);
        },
      );
      outgoing.on('error', reject);
      outgoing.end(Buffer.alloc(30 * MIB));
    });
    expect(status).toBe(401);
  });

  test('a client that goes before its body is whole reaches nobody', async () => {
    const before = running.seen.length;
    const socket = await openSocket(running.port);
    const headers = [AUTHORIZED, JSON_TYPE, 'Content-Length: 100'];
    socket.write(writeRequest(running.port, { headers }));
    socket.write('{"half":');
    await expect.poll(() => running.server.openRequests).toBe(1);
    socket.destroy();
    await expect.poll(() => running.server.openRequests).toBe(0);
    expect(running.seen.length).toBe(before);
    expect(running.reports).toEqual([]);
  });

  test('R9: a broken chunk in the middle of a body is a 400', async () => {
    const head = writeRequest(running.port, {
      headers: [AUTHORIZED, JSON_TYPE, 'Transfer-Encoding: chunked'],
    });
    const request = Buffer.concat([head, Buffer.from('5\r\n{"a":\r\nnot a length\r\n')]);
    const answer = parseAnswer(await exchange(running.port, request));
    expect(answer.status).toBe(400);
    expect(answer.headers.get('x-svc-error-code')).toBe('REQUEST_MALFORMED');
    expect(running.reports).toEqual([]);
  });
});

describe('encoded', () => {
  const post = (encoding: string, body: Buffer): Promise<RawAnswer> =>
    running.ask({ headers: [AUTHORIZED, JSON_TYPE, `Content-Encoding: ${encoding}`], body });

  test('R11: a recorded Codex body reaches the handler as its JSON', async () => {
    const path = join(import.meta.dirname, '../recordings/codex-0.169.0/zstd-signed-in/0003');
    const encoded = readFileSync(`${path}.body.zst`);
    const recording = JSON.parse(readFileSync(`${path}.json`, 'utf8'));
    expect((await post('zstd', encoded)).status).toBe(200);
    expect(running.seen.at(-1)?.body?.toString()).toBe(JSON.stringify(recording.request.body));
  });

  test('R10: gzip is decoded, and refused over the limit', async () => {
    expect((await post('gzip', gzipSync('{"a":1}'))).status).toBe(200);
    expect(running.seen.at(-1)?.body?.toString()).toBe('{"a":1}');
    const answer = await post('gzip', gzipSync(Buffer.alloc(65 * MIB)));
    expect(answer.status).toBe(413);
    expect(answer.headers.get('x-svc-error-code')).toBe('BODY_TOO_LARGE');
  });

  test('R11: bombs are refused and the process lives on', async () => {
    const declared = frame({
      header: sizedHeader(1 << 30),
      blocks: [rawBlock(Buffer.alloc(0), true)],
    });
    expect(declared.length).toBe(16);
    expect((await post('zstd', declared)).status).toBe(413);
    const inflating = bomb(32_768);
    expect(inflating.length).toBeLessThan(132_000);
    expect((await post('zstd', inflating)).status).toBe(413);
    expect(await alive()).toBe(200);
  });

  test('R11: malformed, cut off, followed by more: 400 in the shape of the client', async () => {
    const good = frame({ header: [0, 0x58], blocks: [rawBlock(Buffer.from('{}'), true)] });
    expect((await post('zstd', good)).status).toBe(200);
    const bad = [
      good.subarray(0, -1),
      Buffer.concat([good, Buffer.from('{}')]),
      Buffer.from('{"plain":"json"}'),
    ];
    for (const body of bad) {
      const answer = await post('zstd', body);
      expect(answer.status).toBe(400);
      expect(JSON.parse(answer.body)).toMatchObject({
        type: 'error',
        error: { type: 'invalid_request_error', code: 'BODY_UNREADABLE' },
      });
    }
    const empty = await running.ask({
      headers: [AUTHORIZED, JSON_TYPE, 'Content-Encoding: zstd', 'Transfer-Encoding: chunked'],
      body: '0\r\n\r\n',
    });
    expect(empty.status).toBe(400);
    expect(empty.headers.get('x-svc-error-code')).toBe('BODY_UNREADABLE');
  });
});
