import { once } from 'node:events';
import type { Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { createUpstream } from '../../src/adapters/network/undici-upstream.ts';
import { ProxyError } from '../../src/core/errors.ts';
import type { UpstreamSettings } from '../../src/core/settings/settings.ts';
import type { Upstream, UpstreamRequest } from '../../src/ports/upstream.ts';
import {
  chunk,
  head,
  LAST_CHUNK,
  pause,
  startProvider,
  startSocketProvider,
  STREAM_HEAD,
  until,
} from '../support/sockets.ts';
import { readAnswer, upstreamRequest, upstreamSettings } from '../support/upstream.ts';

const OK = head('200 OK', 'Content-Length: 2') + 'ok';
const never = new AbortController().signal;

function open(changes: Partial<UpstreamSettings>, headersMs = 600_000): Upstream {
  const upstream = createUpstream(upstreamSettings({ allowPrivate: true, ...changes }), {
    headersMs,
  });
  onTestFinished(async () => upstream.close());
  return upstream;
}

async function failure(
  upstream: Upstream,
  request?: Partial<UpstreamRequest>,
): Promise<ProxyError> {
  const error: unknown = await upstream.send(upstreamRequest(request), never).catch((it) => it);
  if (error instanceof ProxyError) return error;
  throw new Error('A ProxyError was expected.', { cause: error });
}

test('the request arrives with its headers as they were, host of the base URL, and one length', async () => {
  const provider = await startProvider(({ socket }) => socket.write(OK));
  const upstream = open({ baseUrl: `${provider.url}/prefix`, query: { key: 'k' } });
  const headers = ['X-Case', 'Kept', 'x-twice', '1', 'X-Twice', '2', 'x-latin1', 'caf\u00e9'];
  const body = [Buffer.from('{"a":'), Buffer.from('1}')];
  const target = '/v1/messages?beta=true';
  const answer = await upstream.send({ method: 'POST', target, headers, body }, never);
  expect((await readAnswer(answer)).body.toString()).toBe('ok');
  const [seen] = provider.requests;
  expect(seen?.line).toBe('POST /prefix/v1/messages?beta=true&key=k HTTP/1.1');
  expect(seen?.headers).toEqual([
    'host',
    `127.0.0.1:${provider.port}`,
    'connection',
    'keep-alive',
    ...headers,
    'content-length',
    '7',
  ]);
  expect(seen?.body.toString()).toBe('{"a":1}');
});

test.each([
  ['none', []],
  ['one', [3]],
  ['small ones', [10, 1, 100, 0, 7]],
  ['one over the copy limit', [200_000]],
  ['large and small ones', [1_000_000, 2_000, 300, 65_536, 65_537, 0, 3_000_000, 1]],
])('a body of pieces arrives whole: %s', async (_name, sizes) => {
  const provider = await startProvider(({ socket }) => socket.write(OK));
  const upstream = open({ baseUrl: provider.url });
  const body = sizes.map((size, at) => Buffer.alloc(size, 97 + at));
  await readAnswer(await upstream.send(upstreamRequest({ body }), never));
  const [seen] = provider.requests;
  expect(seen?.body.equals(Buffer.concat(body))).toBe(true);
  const lengths = seen?.headers.filter((_, at, all) => all[at - 1] === 'content-length');
  expect(lengths).toEqual([String(Buffer.concat(body).length)]);
  expect(seen?.headers).not.toContain('transfer-encoding');
});

test('a 4xx or 5xx of the provider is an answer with its own headers', async () => {
  const provider = await startProvider(({ socket }) => {
    socket.write(
      head('529 Overloaded', 'Retry-After: 3', 'X-Should-Retry: true', 'Content-Length: 2') + '{}',
    );
  });
  const answer = await open({ baseUrl: provider.url }).send(upstreamRequest(), never);
  expect(answer.status).toBe(529);
  expect(answer.headers).toEqual([
    'Retry-After',
    '3',
    'X-Should-Retry',
    'true',
    'Content-Length',
    '2',
  ]);
});

test('R17: a redirect is an answer, not a place to go', async () => {
  const provider = await startProvider(({ socket }) => {
    socket.write(head('307 Temporary Redirect', 'Location: /elsewhere', 'Content-Length: 0'));
  });
  const answer = await open({ baseUrl: provider.url }).send(upstreamRequest(), never);
  expect(answer.status).toBe(307);
  expect(provider.requests.length).toBe(1);
});

test('an encoded body is not decoded', async () => {
  const bytes = Buffer.from([0x1f, 0x8b, 8, 0, 0xff, 0xfe]);
  const provider = await startProvider(({ socket }) => {
    socket.write(head('200 OK', 'Content-Encoding: gzip', 'Content-Length: 6'));
    socket.write(bytes);
  });
  const answer = await open({ baseUrl: provider.url }).send(upstreamRequest(), never);
  expect((await readAnswer(answer)).body.equals(bytes)).toBe(true);
});

test('informational answers are passed over', async () => {
  const provider = await startProvider(({ socket }) => {
    socket.write(head('103 Early Hints', 'Link: </x>') + head('102 Processing') + OK);
  });
  const answer = await open({ baseUrl: provider.url }).send(upstreamRequest(), never);
  expect(answer.status).toBe(200);
  expect((await readAnswer(answer)).body.toString()).toBe('ok');
});

test('trailers end the answer and are dropped', async () => {
  const provider = await startProvider(({ socket }) => {
    socket.write(STREAM_HEAD);
    socket.write(chunk('x'));
    socket.write('0\r\nX-Svc-Memory-State: forged\r\n\r\n');
  });
  const answer = await open({ baseUrl: provider.url }).send(upstreamRequest(), never);
  expect(await readAnswer(answer)).toEqual({ body: Buffer.from('x'), end: 'end' });
});

test('chunks that come before the body is wanted are kept, and held back beyond a limit', async () => {
  const total = 64 * 1024 * 1024;
  let accepted = 0;
  const provider = await startProvider(({ socket }) => {
    socket.write(head('200 OK', `Content-Length: ${total}`));
    const block = Buffer.alloc(65_536, 120);
    const pump = (): void => {
      while (accepted < total) {
        accepted += block.length;
        if (!socket.write(block)) return;
      }
    };
    socket.on('drain', pump);
    pump();
  });
  const answer = await open({ baseUrl: provider.url }).send(upstreamRequest(), never);
  await pause(300);
  expect(accepted).toBeLessThan(total);
  const { body, end } = await readAnswer(answer);
  expect([body.length, end]).toEqual([total, 'end']);
});

// spec: 7-5xx
test('R18: nobody listens: UPSTREAM_UNREACHABLE with a code and no address', async () => {
  const provider = await startSocketProvider(() => {});
  const { url } = provider;
  const closed = url.replace(/\d+$/, '1');
  const error = await failure(open({ baseUrl: closed }));
  expect(error.code).toBe('UPSTREAM_UNREACHABLE');
  expect(error.message).toBe('The provider could not be reached (ECONNREFUSED).');
});

test.each([
  ['a reset before the head', (socket) => socket.resetAndDestroy(), 'ECONNRESET'],
  ['a close before the head', (socket) => socket.end(), 'UND_ERR_SOCKET'],
  ['half a head', (socket) => socket.end('HTTP/1.1 200 OK\r\nConte'), 'UND_ERR_SOCKET'],
  ['no HTTP', (socket) => socket.write('SSH-2.0-OpenSSH_9\r\n'), 'did not answer in HTTP/1.1'],
  [
    'two lengths',
    (socket) => socket.write(head('200 OK', 'Content-Length: 1', 'Content-Length: 2')),
    'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
  ],
  [
    'a length and chunks',
    (socket) => socket.write(head('200 OK', 'Content-Length: 1', 'Transfer-Encoding: chunked')),
    'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
  ],
  [
    'a bad header',
    (socket) => socket.write(head('200 OK', 'X\u0000: 1')),
    'did not answer in HTTP/1.1',
  ],
] satisfies [string, (socket: Socket) => unknown, string][])(
  'R17, R18: %s is UPSTREAM_UNREACHABLE, after one attempt',
  async (_name, misbehave, code) => {
    const provider = await startProvider(({ socket }) => misbehave(socket));
    const error = await failure(open({ baseUrl: provider.url }), { body: [Buffer.from('{}')] });
    expect([error.code, error.status]).toEqual(['UPSTREAM_UNREACHABLE', 502]);
    expect(error.message).toContain(code);
    await pause(50);
    expect(provider.requests.length).toBe(1);
  },
);

test('R18: no head in time is UPSTREAM_TIMEOUT, and the connection is closed', async () => {
  const provider = await startProvider(() => {});
  const error = await failure(open({ baseUrl: provider.url }, 300));
  expect([error.code, error.status]).toEqual(['UPSTREAM_TIMEOUT', 504]);
  await until(() => provider.connections[0]?.destroyed === true);
  expect(provider.requests.length).toBe(1);
});

test('R17: a POST that met a dying keep-alive connection is not sent twice', async () => {
  const provider = await startProvider(({ socket }) => {
    // The second request on a connection is read, perhaps processed, and never answered.
    if (provider.requests.length === 1) socket.write(OK);
    else socket.resetAndDestroy();
  });
  const upstream = open({ baseUrl: provider.url });
  await readAnswer(await upstream.send(upstreamRequest(), never));
  const error = await failure(upstream, { body: [Buffer.from('{}')] });
  expect(error.code).toBe('UPSTREAM_UNREACHABLE');
  await pause(50);
  expect(provider.requests.length).toBe(2);
});

test('R17: a connection that the provider closed while idle is replaced before anything is written', async () => {
  const provider = await startProvider(({ socket }) => socket.write(OK));
  const upstream = open({ baseUrl: provider.url });
  for (let round = 0; round < 5; round += 1) {
    await readAnswer(await upstream.send(upstreamRequest(), never));
    const last = provider.connections.at(-1);
    last?.end();
    if (last !== undefined) await once(last, 'close');
  }
  expect(provider.requests.length).toBe(5);
});

test('connections are kept: ten requests one after the other use one', async () => {
  const provider = await startProvider(({ socket }) => socket.write(OK));
  const upstream = open({ baseUrl: provider.url });
  for (let round = 0; round < 10; round += 1) {
    await readAnswer(await upstream.send(upstreamRequest(), never));
    // undici looks once more at a connection before it gives it to the next request.
    await pause(1);
  }
  expect(provider.connections.length).toBe(1);
});

test('warm opens one connection, writes nothing to it, and the first request uses it', async () => {
  const provider = await startProvider(({ socket }) => socket.write(OK));
  let bytesBefore = -1;
  const upstream = open({ baseUrl: provider.url });
  upstream.warm();
  upstream.warm();
  await until(() => provider.connections.length > 0);
  await pause(50);
  upstream.warm();
  bytesBefore = provider.connections[0]?.bytesRead ?? -1;
  await readAnswer(await upstream.send(upstreamRequest(), never));
  expect(bytesBefore).toBe(0);
  expect(provider.connections.length).toBe(1);
  expect(provider.requests.length).toBe(1);
});

test('warm ignores a provider that is not there', async () => {
  const upstream = open({ baseUrl: 'http://127.0.0.1:1' });
  upstream.warm();
  await pause(50);
  expect((await failure(upstream)).code).toBe('UPSTREAM_UNREACHABLE');
});

test('an abort before the head rejects with its reason and closes the connection', async () => {
  const provider = await startProvider(() => {});
  const stop = new AbortController();
  const sent = open({ baseUrl: provider.url }).send(upstreamRequest(), stop.signal);
  await until(() => provider.requests.length === 1);
  const reason = new Error('the client is gone');
  stop.abort(reason);
  await expect(sent).rejects.toBe(reason);
  await until(() => provider.connections[0]?.destroyed === true);
});

test('a request that is aborted while it connects is never written', async () => {
  const provider = await startProvider(({ socket }) => socket.write(OK));
  const upstream = open({ baseUrl: provider.url });
  const stop = new AbortController();
  const sent = upstream.send(upstreamRequest(), stop.signal);
  stop.abort(new Error('gone'));
  await expect(sent).rejects.toThrow('gone');
  await expect(upstream.send(upstreamRequest(), stop.signal)).rejects.toThrow('gone');
  await readAnswer(await upstream.send(upstreamRequest(), never));
  expect(provider.requests.length).toBe(1);
});

test('an answer whose request was aborted is delivered as cut', async () => {
  const provider = await startProvider(({ socket }) => socket.write(STREAM_HEAD + 'ffff\r\n'));
  const stop = new AbortController();
  const answer = await open({ baseUrl: provider.url }).send(upstreamRequest(), stop.signal);
  stop.abort();
  expect((await readAnswer(answer)).end).toBe('cut');
  await until(() => provider.connections[0]?.destroyed === true);
});

test.each([
  ['a close', (socket) => socket.end()],
  ['a reset', (socket) => socket.resetAndDestroy()],
] satisfies [string, (socket: Socket) => unknown][])(
  'R19: %s in the middle of the chunks is a cut',
  async (_name, cut) => {
    const provider = await startProvider(({ socket }) =>
      socket.write(STREAM_HEAD + chunk('data: 1\n\n').toString()),
    );
    const answer = await open({ baseUrl: provider.url }).send(upstreamRequest(), never);
    // What was sent must have come before the connection breaks.
    const onData = (): void => provider.connections.forEach((socket) => void cut(socket));
    expect(await readAnswer(answer, onData)).toEqual({
      body: Buffer.from('data: 1\n\n'),
      end: 'cut',
    });
  },
);

test('R19: a body shorter than its Content-Length is a cut', async () => {
  for (const connection of ['close', 'keep-alive']) {
    const provider = await startProvider(({ socket }) => {
      socket.end(head('200 OK', 'Content-Length: 9', `Connection: ${connection}`) + 'short');
    });
    const answer = await open({ baseUrl: provider.url }).send(upstreamRequest(), never);
    expect((await readAnswer(answer)).end).toBe('cut');
  }
});

test('a body that ends with its connection is whole', async () => {
  const provider = await startProvider(({ socket }) => {
    socket.end(head('200 OK', 'Connection: close') + 'all of it');
  });
  const answer = await open({ baseUrl: provider.url }).send(upstreamRequest(), never);
  expect(await readAnswer(answer)).toEqual({ body: Buffer.from('all of it'), end: 'end' });
});

test('answers without a body end: 204, 304, HEAD', async () => {
  const provider = await startProvider(({ line, socket }) => {
    if (line.startsWith('HEAD')) socket.write(head('200 OK', 'Content-Length: 100'));
    else socket.write(head(line.includes('204') ? '204 No Content' : '304 Not Modified'));
  });
  const upstream = open({ baseUrl: provider.url });
  for (const [method, target] of [
    ['GET', '/v1/204'],
    ['GET', '/v1/304'],
    ['HEAD', '/v1/models'],
  ] as const) {
    const answer = await upstream.send(upstreamRequest({ method, target }), never);
    expect(await readAnswer(answer)).toEqual({ body: Buffer.alloc(0), end: 'end' });
  }
});

test.each([
  ['one piece', [8_000_000]],
  ['pieces', [4_000_000, 100, 4_000_000]],
])('a provider that answers before it read the body is heard: %s', async (_name, sizes) => {
  const provider = await startSocketProvider((socket) => {
    socket.once('data', () => {
      socket.pause();
      socket.write(head('413 Content Too Large', 'Content-Length: 2', 'Connection: close') + '{}');
      // Providers linger: they drop what still comes for a while, so that the answer is not lost.
      setTimeout(() => socket.resume().end(), 50);
    });
  });
  const upstream = open({ baseUrl: provider.url });
  const body = sizes.map((size) => Buffer.alloc(size, 32));
  const answer = await upstream.send(upstreamRequest({ body }), never);
  expect(answer.status).toBe(413);
  expect((await readAnswer(answer)).end).toBe('end');
});

test('close lets a running answer finish and then closes its connection', async () => {
  const provider = await startProvider(({ socket }) => {
    socket.write(STREAM_HEAD + chunk('a').toString());
  });
  const upstream = open({ baseUrl: provider.url });
  const answer = await upstream.send(upstreamRequest(), never);
  const closed = upstream.close();
  provider.connections[0]?.write(chunk('b').toString() + LAST_CHUNK);
  expect(await readAnswer(answer)).toEqual({ body: Buffer.from('ab'), end: 'end' });
  await closed;
  await until(() => provider.connections[0]?.destroyed === true);
  expect((await failure(upstream)).code).toBe('UPSTREAM_UNREACHABLE');
});

test('a header that cannot be written is our fault, and says no value', async () => {
  const provider = await startProvider(({ socket }) => socket.write(OK));
  const error = await failure(open({ baseUrl: provider.url }), {
    headers: ['x', 'a\r\nkey: secret'],
  });
  expect(error.code).toBe('INTERNAL');
  expect(error.message).not.toContain('secret');
  expect(provider.requests.length).toBe(0);
});
