import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { recordingWatcher, startRelaying, TERMINAL } from '../support/relaying.ts';
import { ask, chunk, LAST_CHUNK, startProvider, STREAM_HEAD, until } from '../support/sockets.ts';

// The end of an answer that is held back until it is stored.

const ANSWER = STREAM_HEAD + chunk('a').toString() + chunk(TERMINAL).toString();

test('the end waits until it is stored, and every byte arrives', async () => {
  const provider = await startProvider(({ socket }) => socket.end(ANSWER + LAST_CHUNK));
  let letGo = (): void => undefined;
  let isAsked = false;
  const stored = () => {
    isAsked = true;
    return new Promise<void>((resolve) => (letGo = resolve));
  };
  const { port, ends } = await startRelaying(provider.url, {
    watcher: recordingWatcher([]),
    holdBack: { ms: 60_000, stored },
  });
  const answered = ask(port);
  await until(() => isAsked);
  expect(ends).toEqual([]);
  letGo();
  const { body, isCut } = await answered;
  expect([body.toString(), isCut]).toEqual([`a${TERMINAL}`, false]);
  expect(ends).toEqual(['complete']);
});

test('after its time the end goes out all the same, also when the provider does not end', async () => {
  const provider = await startProvider(({ socket }) => {
    socket.write(ANSWER);
    setTimeout(() => socket.end(LAST_CHUNK), 300);
  });
  let asked = 0;
  const { port, ends } = await startRelaying(provider.url, {
    watcher: recordingWatcher([]),
    holdBack: {
      ms: 10,
      stored: () => {
        asked += 1;
        return new Promise(() => undefined);
      },
    },
  });
  const client = connect(port, '127.0.0.1');
  let seen = '';
  client.on('data', (bytes) => (seen += bytes.toString()));
  client.write('POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n');
  await until(() => seen.includes(TERMINAL.trim()));
  await until(() => ends.length === 1);
  expect(ends).toEqual(['complete']);
  // The client has the end: that it is stored now is no news.
  expect(asked).toBe(0);
  client.destroy();
});

test('a client that hangs up while the end is held back did not get it', async () => {
  const provider = await startProvider(({ socket }) => socket.end(ANSWER + LAST_CHUNK));
  let isAsked = false;
  const { port, ends } = await startRelaying(provider.url, {
    watcher: recordingWatcher([]),
    holdBack: {
      ms: 60_000,
      stored: () => {
        isAsked = true;
        return new Promise(() => undefined);
      },
    },
  });
  const client = connect(port, '127.0.0.1');
  client.write('POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n');
  await until(() => isAsked);
  client.destroy();
  await until(() => ends.length === 1);
  expect(ends).toEqual(['client-gone']);
});

test('a provider that goes on behind its end is not held back for long', async () => {
  const more = Buffer.alloc(2 << 20, 'x');
  const provider = await startProvider(({ socket }) => {
    socket.write(ANSWER);
    socket.write(chunk(more));
    socket.end(LAST_CHUNK);
  });
  const { port } = await startRelaying(provider.url, {
    watcher: recordingWatcher([]),
    holdBack: { ms: 60_000, stored: async () => undefined },
  });
  const { body, isCut } = await ask(port);
  expect([body.length, isCut]).toEqual([1 + TERMINAL.length + more.length, false]);
});
