import { setMaxListeners } from 'node:events';
import { expect, onTestFinished, test } from 'vitest';
import { startThread, StoreClient, THREADS } from '../../src/adapters/store/client.ts';
import { recordOf } from '../support/records.ts';

/** A worker that answers 'list' and dies of everything else, as a fault in native code would. */
const MORTAL = `
  import { parentPort } from 'node:worker_threads';
  parentPort.on('message', ({ number, name }) => {
    if (name === 'close') parentPort.close();
    else if (name !== 'list') throw new Error('fatal');
    parentPort.postMessage({ kind: 'answer', number, value: [] });
  });`;

/** A worker that never answers. */
const MUTE = `
  import { parentPort } from 'node:worker_threads';
  parentPort.on('message', ({ number, name }) => {
    if (name === 'close') parentPort.postMessage({ kind: 'answer', number });
  });`;

const NOTHING = { records: [], ownSecrets: [] };

function openClient(code: string, lines: string[] = []): StoreClient {
  const worker = new URL(`data:text/javascript,${encodeURIComponent(code)}`);
  const client = new StoreClient({ folder: '', report: (line) => lines.push(line), worker });
  onTestFinished(() => client.close());
  return client;
}

test('a worker that dies is started again, and only the calls of that moment fail', async () => {
  const lines: string[] = [];
  const client = openClient(MORTAL, lines);
  const deadly = client.call('capture', { records: [recordOf('one')], ownSecrets: [] });
  const behind = client.call('list', { limit: 1 });
  await expect(deadly).rejects.toMatchObject({ name: 'MemoryError', reason: 'unavailable' });
  await expect(behind).rejects.toMatchObject({ name: 'MemoryError', reason: 'unavailable' });
  expect(await client.call('list', { limit: 1 })).toEqual([]);
  expect(lines).toEqual(['The memory stopped and restarts.']);
});

test('a worker that dies again and again is given up for a while', async () => {
  const client = openClient(MORTAL);
  for (let death = 0; death < 5; death += 1) {
    // oxlint-disable-next-line no-await-in-loop
    await expect(client.call('capture', NOTHING)).rejects.toMatchObject({ reason: 'unavailable' });
  }
  await expect(client.call('list', { limit: 1 })).rejects.toMatchObject({
    message: 'The memory stopped too often.',
  });
});

test('a process that ends while it ends the worker does not wait for the worker', async () => {
  const waiting = process.listenerCount('exit');
  let whileEnding: number | undefined;
  THREADS.start = (...given) => {
    const thread = startThread(...given);
    const terminate = thread.terminate.bind(thread);
    thread.terminate = () => {
      whileEnding = process.listenerCount('exit');
      return terminate();
    };
    return thread;
  };
  onTestFinished(() => void (THREADS.start = startThread));
  await openClient(MUTE).close();
  expect(whileEnding).toBe(waiting);
});

test('more waiting calls than the bound are refused at once', async () => {
  const client = openClient(MUTE);
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  const calls = Array.from({ length: 1024 }, () =>
    client.call('list', { limit: 1 }, controller.signal).catch((error: unknown) => error),
  );
  await expect(client.call('list', { limit: 1 })).rejects.toMatchObject({ reason: 'unavailable' });
  controller.abort();
  const errors = await Promise.all(calls);
  expect(errors.every((error) => Reflect.get(Object(error), 'reason') === 'timeout')).toBe(true);
});

test('what is asked while it closes is refused, and what was asked before is answered', async () => {
  const client = openClient(MORTAL);
  const before = client.call('list', { limit: 1 });
  const closing = client.close();
  const behind = client.call('list', { limit: 1 });
  await expect(behind).rejects.toMatchObject({ message: 'The memory is closed.' });
  expect(await before).toEqual([]);
  await Promise.all([closing, client.close()]);
});
