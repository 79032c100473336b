import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { recordingWatcher, startRelaying, TERMINAL } from '../support/relaying.ts';
import {
  ask,
  chunk,
  head,
  LAST_CHUNK,
  pause,
  startProvider,
  startSocketProvider,
  STREAM_HEAD,
  until,
} from '../support/sockets.ts';

// How a relay ends when one of its two sides goes, or answers before it was asked to the end.

test('R21: a client that hangs up stops the provider', async () => {
  const provider = await startProvider(({ socket }) =>
    socket.write(STREAM_HEAD + chunk('a').toString()),
  );
  const log: string[] = [];
  const { port, ends } = await startRelaying(provider.url, { watcher: recordingWatcher(log) });
  const client = connect(port, '127.0.0.1');
  client.write('POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n');
  await until(() => log.length === 1);
  client.destroy();
  await until(() => provider.connections[0]?.destroyed === true);
  await until(() => ends.length === 1);
  expect(ends).toEqual(['client-gone']);
  expect(log).toEqual(['data']);
});

test('R21: a client that hangs up before the head stops the provider', async () => {
  const provider = await startProvider(() => {});
  const { port } = await startRelaying(provider.url);
  const client = connect(port, '127.0.0.1');
  client.write('POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n');
  await until(() => provider.requests.length === 1);
  client.destroy();
  await until(() => provider.connections[0]?.destroyed === true);
});

test('a client that hangs up after the terminal event has a complete answer, and the connection is kept', async () => {
  let finish = (): void => {};
  const provider = await startProvider(({ socket }) => {
    socket.write(STREAM_HEAD + chunk(TERMINAL).toString());
    finish = () => socket.write(LAST_CHUNK);
  });
  const log: string[] = [];
  const { port, ends } = await startRelaying(provider.url, {
    watcher: recordingWatcher(log),
    // At once: half a second later the provider is given up.
    onOutgoing: (outgoing) => outgoing.on('close', () => finish()),
  });
  const client = connect(port, '127.0.0.1');
  client.write('POST /v1/responses HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n');
  await until(() => log.includes('beforeLast'));
  client.destroy();
  await until(() => ends.length === 1);
  expect(ends).toEqual(['complete']);
  await pause(50);
  expect(provider.connections[0]?.destroyed).toBe(false);
});

test('a provider that does not end after its terminal event is dropped once the client is gone', async () => {
  const provider = await startProvider(({ socket }) => {
    socket.write(STREAM_HEAD + chunk(TERMINAL).toString());
  });
  const log: string[] = [];
  const { port } = await startRelaying(provider.url, { watcher: recordingWatcher(log) });
  const client = connect(port, '127.0.0.1');
  client.write('POST /v1/responses HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n');
  await until(() => log.includes('beforeLast'));
  client.destroy();
  await until(() => provider.connections[0]?.destroyed === true);
});

test.each([
  ['a reset', 'reset'],
  ['a close with a chunk missing', 'close'],
])(
  'R19: %s looks like a cut connection to the client, and nothing is invented',
  async (_name, how) => {
    const provider = await startProvider(({ socket }) =>
      socket.write(STREAM_HEAD + chunk('data: 1\n\n').toString()),
    );
    const log: string[] = [];
    const { port, ends } = await startRelaying(provider.url, { watcher: recordingWatcher(log) });
    const asked = ask(port);
    // What was sent must be through before the connection breaks.
    await until(() => log.length === 1);
    const [socket] = provider.connections;
    if (how === 'reset') socket?.resetAndDestroy();
    else socket?.end();
    const answer = await asked;
    expect([answer.isCut, answer.body.toString()]).toEqual([true, 'data: 1\n\n']);
    expect(ends).toEqual(['upstream-cut']);
    expect(log).toEqual(['data']);
  },
);

test('R19: a body shorter than its Content-Length is a cut, and no barrier is passed', async () => {
  const provider = await startProvider(({ socket }) => {
    socket.end(head('200 OK', 'Content-Length: 10', 'Connection: close') + '12345');
  });
  const log: string[] = [];
  const { port, ends } = await startRelaying(provider.url, { watcher: recordingWatcher(log) });
  const answer = await ask(port);
  expect([answer.isCut, answer.body.toString()]).toEqual([true, '12345']);
  expect(ends).toEqual(['upstream-cut']);
  expect(log).toEqual(['data']);
});

test('a provider that answers 413 before it read the body is relayed', async () => {
  const provider = await startSocketProvider((socket) => {
    socket.once('data', () => {
      socket.pause();
      socket.write(`${head('413 Content Too Large', 'Content-Length: 2', 'Connection: close')}{}`);
      setTimeout(() => socket.resume().end(), 50);
    });
  });
  const { port, ends } = await startRelaying(provider.url);
  const answer = await ask(port, { body: Buffer.alloc(8_000_000, 32) });
  expect([answer.status, answer.body.toString()]).toEqual([413, '{}']);
  expect(ends).toEqual(['complete']);
});
