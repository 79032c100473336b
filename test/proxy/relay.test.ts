import { Agent, IncomingMessage, request as httpRequest, ServerResponse } from 'node:http';
import { connect, Socket } from 'node:net';
import { expect, test } from 'vitest';
import { relay } from '../../src/proxy/relay.ts';
import type { AnswerSink } from '../../src/ports/upstream.ts';
import { recordingWatcher, startRelaying, TERMINAL } from '../support/relaying.ts';
import {
  ask,
  chunk,
  head,
  LAST_CHUNK,
  startProvider,
  STREAM_HEAD,
  until,
} from '../support/sockets.ts';

function logCalls(outgoing: ServerResponse, names: ('write' | 'end')[], log: string[]): void {
  for (const name of names) {
    const call: unknown = outgoing[name].bind(outgoing);
    Object.defineProperty(outgoing, name, {
      value: (...given: unknown[]): unknown => {
        log.push(name);
        return (call as (...same: unknown[]) => unknown)(...given);
      },
    });
  }
}

// spec: 1.5-native-bytes, 6-sse-unchanged
test('R20: bytes are identical wherever the stream is split, invalid UTF-8 included', async () => {
  const payload = Buffer.concat([
    Buffer.from('data: {"a":"h\u00e9\u{1f600}"}\r\n\r\n: comment\n\ndata: '),
    Buffer.from([0xff, 0xfe, 0xc3, 0x28, 0x00, 0xf0, 0x9f]),
    Buffer.from('\n\nevent: unknown\ndata: x\ndata: y\n\n'),
  ]);
  const provider = await startProvider(({ line, socket }) => {
    const at = Number(/split=(\d+)/.exec(line)?.[1]);
    socket.write(STREAM_HEAD);
    if (at > 0) socket.write(chunk(payload.subarray(0, at)));
    if (at < payload.length) socket.write(chunk(payload.subarray(at)));
    socket.write(LAST_CHUNK);
  });
  const watcher = recordingWatcher();
  const { port, ends } = await startRelaying(provider.url, { watcher });
  for (let at = 0; at <= payload.length; at += 1) {
    const answer = await ask(port, { path: `/v1/messages?split=${at}` });
    expect(answer.body.equals(payload)).toBe(true);
    expect(Buffer.concat(watcher.seen.splice(0)).equals(payload)).toBe(true);
  }
  expect(new Set(ends)).toEqual(new Set(['complete']));
});

test('R20: bytes are identical when they come one by one', async () => {
  const payload = Buffer.from('data: \u00e9\n\ndata: [DONE]\n\n');
  const provider = await startProvider(({ socket }) => {
    socket.setNoDelay(true);
    socket.write(STREAM_HEAD);
    let at = 0;
    const next = (): void => {
      if (at === payload.length) {
        socket.write(LAST_CHUNK);
        return;
      }
      socket.write(chunk(payload.subarray(at, at + 1)), () => setImmediate(next));
      at += 1;
    };
    next();
  });
  const { port } = await startRelaying(provider.url);
  expect((await ask(port)).body.equals(payload)).toBe(true);
});

test('R20: a line of 8 MiB crosses unchanged', async () => {
  const line = Buffer.alloc(8 * 1024 * 1024, 'data: \u00ff');
  const provider = await startProvider(({ socket }) => {
    socket.write(STREAM_HEAD);
    socket.write(chunk(line));
    socket.write(LAST_CHUNK);
  });
  const { port } = await startRelaying(provider.url, { watcher: recordingWatcher() });
  expect((await ask(port)).body.equals(line)).toBe(true);
});

test('R20: the head and the first event are not held back', async () => {
  let sendEvent = (): void => {};
  const provider = await startProvider(({ socket }) => {
    socket.write(STREAM_HEAD);
    sendEvent = () => socket.write(chunk('data: 1\n\n'));
  });
  const { port } = await startRelaying(provider.url, { watcher: recordingWatcher() });
  const client = connect(port, '127.0.0.1');
  let received = '';
  client.on('data', (bytes) => (received += bytes.toString()));
  client.write('POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n');
  await until(() => received.includes('\r\n\r\n'));
  expect(received).toContain('HTTP/1.1 200 OK');
  sendEvent();
  await until(() => received.includes('data: 1\n\n'));
  client.destroy();
});

test('status, rate limits, retry hints and the error body cross as they are; x-svc does not', async () => {
  const body = '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}';
  const provider = await startProvider(({ socket }) => {
    const headers = [
      'Retry-After: 7',
      'X-Should-Retry: true',
      'anthropic-ratelimit-requests-remaining: 0',
      'request-id: req_1',
      'X-Svc-Memory-State: forged',
      'x_svc_anything: forged',
      'Set-Cookie: a=b',
      'Keep-Alive: timeout=5',
      `Content-Length: ${body.length}`,
    ];
    socket.write(head('529 Site Overloaded', ...headers) + body);
  });
  const { port, ends } = await startRelaying(provider.url);
  const answer = await ask(port);
  expect(answer.status).toBe(529);
  expect(answer.body.toString()).toBe(body);
  expect(answer.headers).toMatchObject({
    'retry-after': '7',
    'x-should-retry': 'true',
    'anthropic-ratelimit-requests-remaining': '0',
    'request-id': 'req_1',
    'x-content-type-options': 'nosniff',
  });
  expect(JSON.stringify(answer.rawHeaders)).not.toMatch(/svc|forged|cookie/i);
  expect(ends).toEqual(['complete']);
});

test('R14: the provider gets its own key once, last, and never the local token', async () => {
  const provider = await startProvider(({ socket }) => socket.write(head('204 No Content')));
  const { port } = await startRelaying(provider.url);
  const token = 'svc_local_secret';
  await ask(port, {
    headers: [
      'X-Api-Key',
      token,
      'Authorization',
      `Bearer ${token}`,
      'Cookie',
      token,
      'X-Svc-A',
      token,
    ],
  });
  const headers = provider.requests[0]?.headers ?? [];
  expect(headers).not.toContain(token);
  expect(headers.join()).not.toContain(token);
  expect(headers.filter((name) => name.toLowerCase() === 'x-api-key')).toEqual(['x-api-key']);
  expect(headers.slice(-4)).toEqual(['x-api-key', 'provider-key', 'content-length', '0']);
});

test('answers without a body end at once: 204, 304, HEAD', async () => {
  const provider = await startProvider(({ line, socket }) => {
    if (line.startsWith('HEAD')) socket.write(head('200 OK', 'Content-Length: 10'));
    else
      socket.write(head(line.includes('204') ? '204 No Content' : '304 Not Modified', 'ETag: "x"'));
  });
  const { port, ends } = await startRelaying(provider.url, { watcher: recordingWatcher() });
  expect((await ask(port, { method: 'GET', path: '/v1/204' })).status).toBe(204);
  expect((await ask(port, { method: 'GET', path: '/v1/304' })).headers['etag']).toBe('"x"');
  expect((await ask(port, { method: 'HEAD', path: '/v1/models' })).headers['content-length']).toBe(
    '10',
  );
  expect(ends).toEqual(['complete', 'complete', 'complete']);
});

test('evidence goes out with the head; a head that cannot be written stops the provider', async () => {
  const provider = await startProvider(({ socket }) => {
    socket.write(STREAM_HEAD + chunk('a').toString());
    // The second answer has no end: only who stops it closes its connection.
    if (provider.requests.length === 1) socket.write(LAST_CHUNK);
  });
  const good = await startRelaying(provider.url, { evidence: ['x-svc-memory-state', 'off'] });
  expect((await ask(good.port)).headers['x-svc-memory-state']).toBe('off');
  const bad = await startRelaying(provider.url, { evidence: ['x-svc-memory-state', 'o\nff'] });
  await expect(ask(bad.port)).rejects.toThrow('socket hang up');
  expect(bad.ends).toEqual([]);
  await until(() => provider.requests.at(-1)?.socket.destroyed === true);
});

test('the barrier comes after the terminal bytes are shown and before they are written, once', async () => {
  const provider = await startProvider(({ socket }) => {
    socket.write(STREAM_HEAD);
    socket.write(chunk('event: a\n\n'));
  });
  const log: string[] = [];
  const { port } = await startRelaying(provider.url, {
    watcher: recordingWatcher(log),
    onOutgoing: (outgoing) => {
      logCalls(outgoing, ['write', 'end'], log);
    },
  });
  const answer = ask(port);
  // Each piece after the one before it is through: side by side in one read they were one piece.
  await until(() => log.includes('data'));
  provider.connections[0]?.write(chunk(TERMINAL));
  await until(() => log.includes('beforeLast'));
  provider.connections[0]?.write(Buffer.concat([chunk('\n'), Buffer.from(LAST_CHUNK)]));
  await answer;
  // Nothing more is asked of the bytes behind the terminal event.
  expect(log).toEqual(['data', 'write', 'data', 'beforeLast', 'write', 'data', 'write', 'end']);
});

test('the barrier comes before the last byte of a known length', async () => {
  const provider = await startProvider(({ socket }) =>
    socket.write(head('200 OK', 'Content-Length: 10') + '12345'),
  );
  const log: string[] = [];
  const { port } = await startRelaying(provider.url, {
    watcher: recordingWatcher(log),
    onOutgoing: (outgoing) => {
      logCalls(outgoing, ['write'], log);
    },
  });
  const answer = ask(port);
  await until(() => log.includes('data'));
  provider.connections[0]?.write('67890');
  expect((await answer).body.toString()).toBe('1234567890');
  expect(log).toEqual(['data', 'write', 'data', 'beforeLast', 'write']);
});

test('without a terminal event the barrier comes before the end of the stream', async () => {
  const provider = await startProvider(({ socket }) => {
    socket.write(STREAM_HEAD + chunk('{}').toString() + LAST_CHUNK);
  });
  const log: string[] = [];
  const { port, ends } = await startRelaying(provider.url, { watcher: recordingWatcher(log) });
  await ask(port);
  expect(log).toEqual(['data', 'beforeLast']);
  expect(ends).toEqual(['complete']);
});

test('an answer that quotes its own end goes on, and its real end is still asked about', async () => {
  const provider = await startProvider(({ socket }) =>
    socket.write(STREAM_HEAD + chunk(`event: a\n\ndata: "${TERMINAL.trim()}"\n\n`).toString()),
  );
  const log: string[] = [];
  let asked = 0;
  const watcher = {
    ...recordingWatcher(log),
    beforeLast: () => {
      asked += 1;
      return asked === 2;
    },
  };
  const { port, ends } = await startRelaying(provider.url, { watcher });
  const answer = ask(port);
  await until(() => asked === 1);
  provider.connections[0]?.write(chunk(TERMINAL).toString() + LAST_CHUNK);
  await answer;
  expect(asked).toBe(2);
  expect(ends).toEqual(['complete']);
});

test.each(['data', 'beforeLast'] as const)(
  'a watcher that throws in %s is dropped, and the answer is not',
  async (broken) => {
    const provider = await startProvider(({ socket }) => {
      socket.write(STREAM_HEAD + chunk('event: a\n\n').toString());
      socket.write(chunk(TERMINAL).toString() + LAST_CHUNK);
    });
    let calls = 0;
    const watcher = {
      ...recordingWatcher(),
      [broken]: () => {
        calls += 1;
        throw new Error('broken watcher');
      },
    };
    let sent = '';
    const onChunk = (bytes: Uint8Array): void => {
      sent += Buffer.from(bytes).toString();
    };
    const { port, ends } = await startRelaying(provider.url, { watcher, onChunk });
    expect((await ask(port)).body.toString()).toBe(`event: a\n\n${TERMINAL}`);
    expect(ends).toEqual(['complete']);
    expect(calls).toBe(1);
    expect(sent).toBe(`event: a\n\n${TERMINAL}`);
  },
);

test.each([204, 304])(
  'an answer %i that states a length does not break the next request of its socket',
  async (status) => {
    const provider = await startProvider(({ line, socket }) => {
      const isFirst = line.includes('first');
      if (isFirst) socket.write(head(`${status} Nothing`, 'Content-Length: 10', 'ETag: "x"'));
      else socket.write(head('200 OK', 'Content-Length: 4') + 'good');
    });
    const { port, ends } = await startRelaying(provider.url);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const get = (path: string): Promise<{ status: number; body: string; isReused: boolean }> =>
      new Promise((resolve, reject) => {
        const request = httpRequest({ agent, port, host: '127.0.0.1', path }, (answer) => {
          let body = '';
          answer.on('data', (bytes: Buffer) => {
            body += bytes.toString();
          });
          answer.on('end', () =>
            resolve({ status: answer.statusCode ?? 0, body, isReused: request.reusedSocket }),
          );
        });
        request.on('error', reject);
        request.end();
      });
    expect(await get('/v1/first')).toEqual({ status, body: '', isReused: false });
    expect(await get('/v1/second')).toEqual({ status: 200, body: 'good', isReused: true });
    expect(ends).toEqual(['complete', 'complete']);
    agent.destroy();
  },
);

test('the watcher has read all that was written when the client goes in the same moment', async () => {
  const outgoing = new ServerResponse(new IncomingMessage(new Socket()));
  const watcher = recordingWatcher();
  const answer = {
    status: 200,
    headers: [],
    resume: () => undefined,
    abort: () => undefined,
    deliver: (sink: AnswerSink) => {
      sink.data(Buffer.from('what was said'));
      outgoing.emit('close');
    },
  };
  const end = await relay({ answer, outgoing, watcher, head: { status: 200, headers: [] } });
  expect([end, Buffer.concat(watcher.seen).toString()]).toEqual(['client-gone', 'what was said']);
});
