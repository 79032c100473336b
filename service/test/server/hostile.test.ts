import { ProcessLimiter } from '../../src/adapters/limiter/process-limiter.ts';
import { once } from 'node:events';
import { connect } from 'node:net';
import { NO_EGRESS } from '../../src/core/providers.ts';
import { connect as connectTls } from 'node:tls';
import { expect, test } from 'vitest';
import { makeCertificate } from '../../../test/support/certificate.ts';
import { manualClock } from '../../../test/support/manual-clock.ts';
import {
  callService,
  itemOf,
  startMemoryService,
  type TestService,
} from '../support/memory-service.ts';
import {
  exchange,
  openSocket,
  parseAnswer,
  type RawAnswer,
} from '../../../test/support/raw-http.ts';
import { tempFolder } from '../../../test/support/temp-folder.ts';

/** Clients that mean ill, or are merely broken: on real sockets, byte by byte. */

interface Raw {
  readonly method?: string;
  readonly target?: string;
  readonly lines?: readonly string[];
  readonly body?: string | Buffer;
}

async function open(): Promise<{
  service: TestService;
  key: string;
  readonly send: (raw: Raw) => Promise<RawAnswer>;
}> {
  const service = await startMemoryService();
  const key = await service.makeKey();
  const send = async ({
    method = 'POST',
    target = '/v1/svc/memory/recall',
    lines,
    body = '',
  }: Raw) => {
    const bytes = Buffer.from(body);
    const given = lines ?? ['Content-Type: application/json', `Content-Length: ${bytes.length}`];
    const head = [
      `${method} ${target} HTTP/1.1`,
      'Host: memory.example.com',
      `Authorization: Bearer ${key}`,
      'Connection: close',
      ...given,
    ];
    const request = Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), bytes]);
    return parseAnswer(await exchange(service.port, request));
  };
  return { service, key, send };
}

function codeIn(answer: RawAnswer): string {
  const { error } = JSON.parse(answer.body) as { error: { code: string } };
  return `${answer.status} ${error.code}`;
}

/** The service answers an honest call. */
async function isWell({ url, makeKey }: TestService): Promise<boolean> {
  return (await callService(url, '/v1/svc/whoami', { key: await makeKey() })).status === 200;
}

test('R5: a path that is not in the table does not exist, a method that it lacks is 405 with Allow', async () => {
  const { send } = await open();
  for (const target of [
    '/v1/svc/memory',
    '/v1/svc/memory/',
    '/v1/svc/memory/recall/',
    '/v1/svc//whoami',
    '/v1/svc/memory/../whoami',
    '/v1/svc/memory/%72ecall',
    '/v1/svc/memory/items/*',
    '/v1/svc/memory/objects/*',
    '/v1/svc/__proto__',
    '/v1/svc/memory/items/a/b',
    '/metrics',
  ]) {
    // oxlint-disable-next-line no-await-in-loop
    expect(codeIn(await send({ method: 'GET', target, lines: [] })), target).toBe('404 NOT_FOUND');
  }
  const put = await send({ method: 'PUT', target: '/v1/svc/memory/purges', lines: [] });
  expect([codeIn(put), put.headers.get('allow')]).toEqual(['405 METHOD_NOT_ALLOWED', 'POST, GET']);
  const post = await send({ method: 'POST', target: '/v1/svc/whoami', lines: [] });
  expect([codeIn(post), post.headers.get('allow')]).toEqual(['405 METHOD_NOT_ALLOWED', 'GET']);
  const constructor = await send({ method: 'constructor', target: '/v1/svc/whoami', lines: [] });
  expect(constructor.status).toBe(400);
});

test('R10: a body over its limit is refused by its announced length, and when it comes in chunks', async () => {
  const { send, service } = await open();
  const announced = await send({
    lines: ['Content-Type: application/json', 'Content-Length: 300000000'],
  });
  expect(codeIn(announced)).toBe('413 PAYLOAD_TOO_LARGE');
  const chunk = Buffer.concat([
    Buffer.from('10000\r\n'),
    Buffer.alloc(65_536, 32),
    Buffer.from('\r\n'),
  ]);
  const chunked = await send({
    lines: ['Content-Type: application/json', 'Transfer-Encoding: chunked'],
    body: Buffer.concat([...Array.from({ length: 8 }, () => chunk), Buffer.from('0\r\n\r\n')]),
  });
  expect(codeIn(chunked)).toBe('413 PAYLOAD_TOO_LARGE');
  expect(await isWell(service)).toBe(true);
});

test('a body that is encoded, of another type or on the wrong call is refused unread', async () => {
  const { send } = await open();
  const json = 'Content-Type: application/json';
  expect(codeIn(await send({ lines: [json, 'Content-Encoding: gzip', 'Content-Length: 5'] }))).toBe(
    '415 UNSUPPORTED_ENCODING',
  );
  expect(codeIn(await send({ lines: ['Content-Type: text/plain', 'Content-Length: 5'] }))).toBe(
    '415 UNSUPPORTED_ENCODING',
  );
  const get = { method: 'GET', target: '/v1/svc/whoami', lines: ['Content-Length: 5'] };
  expect(codeIn(await send({ ...get, body: 'hello' }))).toBe('422 INVALID_REQUEST');
});

test.each([
  ['nothing', '', '400 INVALID_JSON'],
  ['half of it', '{"space":"a"', '400 INVALID_JSON'],
  ['bad UTF-8', Buffer.from([0x7b, 0xff, 0x7d]), '400 INVALID_JSON'],
  ['a byte order mark and nothing', '\ufeff', '400 INVALID_JSON'],
  ['another form', '[]', '422 INVALID_REQUEST'],
  ['a null', 'null', '422 INVALID_REQUEST'],
  ['a foreign space', '{"space":"../etc","max_tokens":1}', '422 INVALID_REQUEST'],
  ['a fraction of a token', '{"space":"a","max_tokens":1.5}', '422 INVALID_REQUEST'],
  [
    'candidates without a nonce',
    `{"space":"a","max_tokens":1,"candidates":["${itemOf('x').digest}"]}`,
    '422 INVALID_REQUEST',
  ],
  ['100,000 levels', `${'['.repeat(100_000)}${']'.repeat(100_000)}`, '422 INVALID_REQUEST'],
  ['a prototype', '{"__proto__":{"space":"a"},"max_tokens":1}', '422 INVALID_REQUEST'],
])('JSON of %s is refused with its reason', async (_, body, expected) => {
  const { send, service } = await open();
  expect(codeIn(await send({ body }))).toBe(expected);
  expect(await isWell(service)).toBe(true);
});

test('R7: too many headers, too long ones and repeated ones are refused, never cut', async () => {
  const { send } = await open();
  const many = Array.from({ length: 100 }, (_, at) => `X-Filler-${at}: 1`);
  expect(codeIn(await send({ lines: many }))).toBe('422 INVALID_REQUEST');
  expect((await send({ lines: [`X-Long: ${'x'.repeat(80_000)}`] })).status).toBe(431);
  expect(codeIn(await send({ lines: ['X-Svc-Deadline-Ms: 100', 'X-Svc-Deadline-Ms: 9000'] }))).toBe(
    '422 INVALID_REQUEST',
  );
  for (const deadline of ['0', '-5', '10001', '1e3', 'soon']) {
    // oxlint-disable-next-line no-await-in-loop
    const answer = await send({ lines: [`X-Svc-Deadline-Ms: ${deadline}`] });
    expect(codeIn(answer), deadline).toBe('422 INVALID_REQUEST');
  }
});

test('what is not HTTP, an upgrade and a tunnel get a short refusal', async () => {
  const { service, key } = await open();
  const ask = async (text: string): Promise<number> =>
    parseAnswer(await exchange(service.port, text)).status;
  expect(await ask('\u0016\u0003\u0001 hello\r\n\r\n')).toBe(400);
  expect(
    await ask(
      'GET /livez HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n',
    ),
  ).toBe(426);
  // As Java does with every request, and curl with --http2.
  const offer =
    'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n';
  const body = JSON.stringify({ space: 'a', max_tokens: 1 });
  const call = `Host: a\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n`;
  const answer = await exchange(
    service.port,
    `POST /v1/svc/memory/recall HTTP/1.1\r\n${call}${offer}\r\n${body}`,
  );
  expect(answer).toMatch(/^HTTP\/1\.1 200 [^]*\r\nConnection: close\r\n/);
  expect(await ask('CONNECT example.com:443 HTTP/1.1\r\nHost: a\r\n\r\n')).toBe(405);
  expect(await ask('GET http://a/livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')).toBe(
    422,
  );
  expect(await isWell(service)).toBe(true);
});

test('a monitor may ask for the head of a health check alone, and needs no key', async () => {
  const { service } = await open();
  for (const path of ['/health', '/livez', '/readyz']) {
    // oxlint-disable-next-line no-await-in-loop
    const said = await exchange(
      service.port,
      `HEAD ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`,
    );
    expect(said, path).toMatch(/^HTTP\/1\.1 200 [^]*\r\n\r\n$/);
  }
});

test('100 Continue is sent for a good key only', async () => {
  const { service, key } = await open();
  const body = JSON.stringify({ space: 'a', max_tokens: 1 });
  const head = (credential: string): string =>
    `POST /v1/svc/memory/recall HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${credential}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n`;
  const stranger = await exchange(service.port, head('nobody'));
  expect(stranger).not.toContain('100 Continue');
  expect(parseAnswer(stranger).status).toBe(401);
  const socket = await openSocket(service.port);
  let said = '';
  socket.on('data', (bytes: Buffer) => {
    said += bytes.toString('latin1');
  });
  socket.write(head(key));
  await expect.poll(() => said).toContain('100 Continue');
  socket.write(body);
  await once(socket, 'close');
  expect(parseAnswer(said).status).toBe(200);
});

test(
  'R9: a head or a body that drips is cut off, and nobody else waits for it',
  { timeout: 60_000 },
  async () => {
    const { service, key } = await open();
    const drip = connect(service.port, '127.0.0.1');
    drip.on('error', () => undefined);
    drip.write('GET /v1/svc/whoami HTTP/1.1\r\nHost: a\r\nX-Slow: ');
    const timer = setInterval(() => drip.write('x'), 200);
    let said = '';
    drip.on('data', (bytes: Buffer) => {
      said += bytes.toString('latin1');
    });
    expect((await callService(service.url, '/v1/svc/whoami', { key })).status).toBe(200);
    await once(drip, 'close');
    clearInterval(timer);
    expect(said).toContain('408');
  },
);

test('bodies that are announced and never come take their part of the memory, and no more', async () => {
  const { service, key, send } = await open();
  const head = [
    'POST /v1/svc/memory/capture HTTP/1.1',
    'Host: a',
    `Authorization: Bearer ${key}`,
    'Content-Type: application/json',
    `Content-Length: ${8 << 20}`,
  ].join('\r\n');
  const answers: string[] = [];
  const sockets = await Promise.all(Array.from({ length: 20 }, () => openSocket(service.port)));
  for (const socket of sockets) {
    socket.on('data', (bytes: Buffer) => answers.push(bytes.toString('latin1')));
    socket.write(`${head}\r\n\r\n`);
  }
  await expect.poll(() => answers.length, { timeout: 20_000 }).toBe(8);
  for (const answer of answers) {
    expect(answer).toMatch(/^HTTP\/1\.1 503 [^]*\r\nretry-after: 1\r\n[^]*STORE_UNAVAILABLE/);
  }
  for (const socket of sockets) socket.destroy();
  const body = JSON.stringify({ space: 'a', max_tokens: 1 });
  await expect.poll(async () => (await send({ body })).status).toBe(200);
});

test('a caller that hangs up in the middle of a body leaves nothing behind', async () => {
  const { service, key } = await open();
  const socket = await openSocket(service.port);
  socket.write(
    `POST /v1/svc/memory/capture HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n{"space"`,
  );
  await expect
    .poll(async () => (await service.store.of('default').listKeys())[0]?.usedAt)
    .toBeGreaterThan(0);
  socket.destroy();
  await expect
    .poll(() => service.calls.at(-1))
    .toMatchObject({ operation: 'capture', status: 499 });
  expect(service.reports).toEqual([]);
});

test('R22: over TLS only what is 1.2 or newer gets in, a stranger’s certificate is the client’s to refuse', async () => {
  const own = makeCertificate('localhost');
  const service = await startMemoryService({ tls: own });
  const key = await service.makeKey();
  const call = (ca: string): Promise<number> =>
    callService(service.url, '/v1/svc/whoami', { key, ca }).then(({ status }) => status);
  expect(await call(own.cert)).toBe(200);
  await expect(call(makeCertificate('localhost').cert)).rejects.toThrow();
  const old = connectTls({
    port: service.port,
    host: '127.0.0.1',
    ca: own.cert,
    servername: 'localhost',
    maxVersion: 'TLSv1.1',
    minVersion: 'TLSv1',
  });
  await expect(once(old, 'secureConnect')).rejects.toThrow();
  const plain = await exchange(service.port, 'GET /livez HTTP/1.1\r\nHost: a\r\n\r\n');
  expect(plain).not.toContain('200');
});

test('a renewed certificate is in use for new connections, and open ones go on', async () => {
  const [first, second] = [makeCertificate('localhost'), makeCertificate('localhost')];
  const service = await startMemoryService({ tls: first });
  const kept = connectTls({
    port: service.port,
    host: '127.0.0.1',
    ca: first.cert,
    servername: 'localhost',
  });
  await once(kept, 'secureConnect');
  service.renew(second);
  expect((await callService(service.url, '/livez', { ca: second.cert })).status).toBe(200);
  await expect(callService(service.url, '/livez', { ca: first.cert })).rejects.toThrow();
  kept.write('GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n');
  const [bytes] = (await once(kept, 'data')) as [Buffer];
  expect(bytes.toString('latin1')).toContain('200 OK');
  expect(() => service.renew({ cert: 'no', key: 'no' })).toThrow();
});

test('plain HTTP beyond loopback is for a declared proxy only', async () => {
  const { MemoryService } = await import('../../src/server/server.ts');
  const service = await startMemoryService();
  const options = {
    store: service.store,
    changes: service.changes,
    pepper: service.pepper,
    masterKeys: { find: async () => undefined },
    listCatalog: async () => [],
    limiter: new ProcessLimiter({ now: () => 0, monotonic: () => 0 }),
    receipts: service.receipts,
    models: service.models,
    clock: { now: () => Date.now(), monotonic: () => performance.now() },
    newRequestId: () => 'req_0',
    randomBytes: () => new Uint8Array(32),
    report: () => undefined,
    onCall: () => undefined,
    version: '0',
    host: '0.0.0.0',
    port: 0,
    tls: undefined,
  };
  const limits = { requestsPerMinute: null, egress: NO_EGRESS };
  expect(
    () => new MemoryService({ ...options, settings: { ...limits, isBehindProxy: false } }),
  ).toThrow(TypeError);
  expect(
    () => new MemoryService({ ...options, settings: { ...limits, isBehindProxy: true } }),
  ).not.toThrow();
});

test('behind a proxy wrong keys count for the address that the proxy names last', async () => {
  const service = await startMemoryService({
    limits: { isBehindProxy: true },
    clock: manualClock(),
  });
  const guess = async (address: string): Promise<number> => {
    const headers = { 'x-forwarded-for': `${Math.random()}, ${address}` };
    return (await callService(service.url, '/v1/svc/whoami', { key: 'guess', headers })).status;
  };
  for (let tries = 0; tries < 25; tries += 1) {
    // oxlint-disable-next-line no-await-in-loop
    await guess('203.0.113.7');
  }
  expect(await guess('203.0.113.7')).toBe(429);
  expect(await guess('203.0.113.8')).toBe(401);
  expect(await guess('203.0.113.7:50111')).toBe(429);
  for (let tries = 0; tries < 25; tries += 1) {
    // oxlint-disable-next-line no-await-in-loop
    await guess(`[2001:db8:7::${tries}]:${50_000 + tries}`);
  }
  expect(await guess('2001:db8:7::ff')).toBe(429);
  expect(await guess('[2001:db8:8::1]:443')).toBe(401);
});

test('R33: it stops at once with silent connections open, and lets a running call finish', async () => {
  const tls = makeCertificate('localhost');
  const service = await startMemoryService({ tls, folder: tempFolder() });
  const key = await service.makeKey();
  const silent = connect(service.port, '127.0.0.1');
  const greeted = connectTls({
    port: service.port,
    host: '127.0.0.1',
    ca: tls.cert,
    servername: 'localhost',
  });
  for (const socket of [silent, greeted]) socket.on('error', () => undefined);
  await Promise.all([once(silent, 'connect'), once(greeted, 'secureConnect')]);
  const items = Array.from({ length: 32 }, (_, at) => itemOf(`Fact ${at} of some. `.repeat(300)));
  const running = callService(service.url, '/v1/svc/memory/capture', {
    key,
    ca: tls.cert,
    body: { space: 'a', if_generation: 'new', items },
    headers: { 'x-svc-deadline-ms': '10000' },
  });
  await expect
    .poll(async () => (await service.store.of('default').listKeys())[0]?.usedAt)
    .toBeGreaterThan(0);
  // Far longer than the test may take: it must not be waited for.
  await service.stop(600_000);
  expect((await running).status).toBe(200);
});
