import { constants, brotliCompressSync, gzipSync } from 'node:zlib';
import { afterEach, describe, expect, test } from 'vitest';
import { AUTHORIZED, startServer, type TestServer, writeRequest } from '../support/local-server.ts';
import { openSocket } from '../support/raw-http.ts';
import { until } from '../support/sockets.ts';

const JSON_TYPE = 'Content-Type: application/json';
const SIZE = 62 << 20;
const plain = Buffer.alloc(SIZE, ' ');
const fast = { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } };
const encodings = [
  ['identity', plain],
  ['gzip', gzipSync(plain, { level: 1 })],
  ['br', brotliCompressSync(plain, fast)],
] as const;

let running: TestServer | undefined;
let letGo: () => void = () => {};
afterEach(() => {
  letGo();
  return running?.close();
});

/** Holds every request until `letGo`, and counts the bytes that it holds. */
async function startHolding(): Promise<TestServer> {
  const open = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  running = await startServer(async (_request, outgoing) => {
    await open;
    outgoing.writeHead(200, { 'content-type': 'application/json', 'content-length': 2 });
    outgoing.end('{}');
  });
  return running;
}

/** When so many of them have been refused. */
async function allRefused(answers: readonly Promise<{ status: number }>[], count: number) {
  let refused = 0;
  const look = async (answer: Promise<{ status: number }>): Promise<void> => {
    if ((await answer).status === 503) refused += 1;
  };
  const looking = Promise.all(answers.map(look));
  await Promise.race([looking, until(() => refused >= count)]);
}

function post(server: TestServer, encoding: string, body: Buffer) {
  return server.ask({ headers: [AUTHORIZED, JSON_TYPE, `Content-Encoding: ${encoding}`], body });
}

describe.each(encodings)('R38: many large bodies at once, %s', (encoding, body) => {
  test('three are held, the others are told to come again, and later ones get in', async () => {
    const server = await startHolding();
    const answers = Array.from({ length: 6 }, () => post(server, encoding, body));
    const refusals = allRefused(answers, 3);
    const refused = await Promise.race(answers);
    expect(refused.status).toBe(503);
    expect(refused.headers.get('x-should-retry')).toBe('true');
    expect(refused.headers.get('retry-after')).toBe('1');
    expect(refused.headers.get('x-svc-error-code')).toBe('TOO_BUSY');
    expect(JSON.parse(refused.body)).toMatchObject({
      type: 'error',
      error: { type: 'overloaded_error' },
    });
    // What is short goes on beside them.
    const small = post(server, 'identity', Buffer.from('{}'));
    await Promise.all([refusals, until(() => server.seen.length === 4)]);
    letGo();
    expect((await small).status).toBe(200);
    const statuses = (await Promise.all(answers)).map(({ status }) => status);
    expect(statuses.toSorted((one, other) => one - other)).toEqual([200, 200, 200, 503, 503, 503]);
    expect((await post(server, encoding, body)).status).toBe(200);
  }, 60_000);
});

test('R38: more than the line holds is refused at once', async () => {
  const server = await startHolding();
  const head = [AUTHORIZED, JSON_TYPE, `Content-Length: ${SIZE}`];
  const startedAt = performance.now();
  const answers = Array.from({ length: 24 }, () => server.ask({ headers: head, body: '{' }));
  const first = await Promise.race(answers);
  expect(first.status).toBe(503);
  // Whoever stands in the line waits for two seconds.
  expect(performance.now() - startedAt).toBeLessThan(2_000);
  letGo();
  await server.close();
  await Promise.allSettled(answers);
});

test('R38: a body without an announced length counts as it arrives', async () => {
  const server = await startHolding();
  const held = Array.from({ length: 3 }, () => post(server, 'identity', plain));
  await until(() => server.seen.length === 3);
  const socket = await openSocket(server.port);
  const chunked = [AUTHORIZED, JSON_TYPE, 'Transfer-Encoding: chunked'];
  socket.write(writeRequest(server.port, { headers: chunked }));
  const answered = new Promise<string>((resolve) => {
    socket.on('data', (bytes: Buffer) => resolve(bytes.toString()));
  });
  const chunk = Buffer.concat([Buffer.from('1000000\r\n'), plain.subarray(0, 16 << 20)]);
  socket.write(Buffer.concat([chunk, Buffer.from('\r\n')]));
  expect(await answered).toContain('TOO_BUSY');
  socket.destroy();
  letGo();
  await Promise.all(held);
});

test('R38: a client that hangs up while its body waits gives its place back', async () => {
  const server = await startHolding();
  const head = writeRequest(server.port, {
    headers: [AUTHORIZED, JSON_TYPE, `Content-Length: ${SIZE}`],
  });
  const sockets = await Promise.all(Array.from({ length: 3 }, () => openSocket(server.port)));
  for (const socket of sockets) socket.write(head);
  await until(() => server.server.openRequests === 3);
  for (const socket of sockets) socket.destroy();
  await until(() => server.server.openRequests === 0);
  letGo();
  const statuses = await Promise.all(
    Array.from({ length: 3 }, async () => (await post(server, 'identity', plain)).status),
  );
  expect(statuses).toEqual([200, 200, 200]);
});
