import { once } from 'node:events';
import { setImmediate as nextTick } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { Worker } from 'node:worker_threads';
import { afterEach, expect, onTestFinished, test, vi } from 'vitest';
import {
  collectGarbage,
  HeapBound,
  IdleCollector,
} from '../../src/adapters/processes/heap-bound.ts';

/**
 * A queue in which each entry lives until it reaches the old generation, and the mean megabytes of that generation.
 * In a thread, whose heap holds nothing else; V8's flags are those of the process.
 */
const QUEUE = `
  const { getHeapSpaceStatistics } = require('node:v8');
  const sizes = [];
  const queue = [];
  for (let at = 0; at < 3_000_000; at += 1) {
    queue.push({ at, text: 'text ' + at, list: [at, at + 1] });
    if (queue.length > 200_000) queue.splice(0, 1_000);
    if (at % 5_000 !== 0 || at <= 500_000) continue;
    const space = getHeapSpaceStatistics().find(({ space_name: name }) => name === 'old_space');
    sizes.push(space.physical_space_size / 1024 / 1024);
  }
  require('node:worker_threads').parentPort.postMessage(
    sizes.reduce((sum, size) => sum + size, 0) / sizes.length,
  );
`;

async function meanOldSpace(): Promise<number> {
  const thread = new Worker(QUEUE, { eval: true });
  const [megabytes] = (await once(thread, 'message')) as [number];
  await thread.terminate();
  return megabytes;
}

test('the heap of a busy process grows to less beside what is alive', async () => {
  // Another file of this process may have bound it.
  setFlagsFromString('--heap-growing-percent=0');
  const before = await meanOldSpace();
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const bound = new HeapBound();
  vi.advanceTimersByTime(3_000);
  bound.note({ originalInputTokens: 2_000 });
  vi.useRealTimers();
  const after = await meanOldSpace();
  bound.close();
  expect(after).toBeLessThan(0.85 * before);
});

/** Megabytes of a thread's young generation after work in which much survives. It begins with a message. */
const YOUNG = `
  const { getHeapSpaceStatistics } = require('node:v8');
  const { parentPort } = require('node:worker_threads');
  parentPort.once('message', () => {
    const queue = [];
    for (let at = 0; at < 100; at += 1) {
      queue.push(Array.from({ length: 20_000 }, (_, index) => ({ index })));
      if (queue.length > 40) queue.shift();
    }
    const young = getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space');
    parentPort.postMessage(young.space_size / 1024 / 1024);
  });
  parentPort.postMessage('started');
`;

test('the young generation stops growing at 16 MB, and grows again when it is smaller', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  let megabytes = 0;
  const bound = new HeapBound(
    setFlagsFromString,
    new IdleCollector(() => undefined),
    () => megabytes * 1024 * 1024,
  );
  onTestFinished(() => bound.close());
  vi.advanceTimersByTime(3_000);
  const grownAt = async (mb: number): Promise<number> => {
    const thread = new Worker(YOUNG, { eval: true });
    await once(thread, 'message');
    megabytes = mb;
    vi.advanceTimersByTime(1_000);
    bound.note({ originalInputTokens: 2_000 });
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- That is a window's.
    thread.postMessage('begin');
    const [grown] = (await once(thread, 'message')) as [number];
    await thread.terminate();
    return grown;
  };
  expect(await grownAt(15)).toBeGreaterThan(8);
  expect(await grownAt(16)).toBeLessThan(8);
  expect(await grownAt(1)).toBeGreaterThan(8);
});

afterEach(() => {
  vi.useRealTimers();
});

/** A bound that writes down its flags, of a process whose young generation is small. */
function boundWith(flags: string[]): HeapBound {
  const collector = new IdleCollector(() => undefined);
  return new HeapBound(
    (flag) => flags.push(flag),
    collector,
    () => 0,
  );
}

test('long requests get room for their bodies, until none has come for a minute', () => {
  vi.useFakeTimers();
  const flags: string[] = [];
  const bound = boundWith(flags);
  vi.advanceTimersByTime(3_000);
  bound.note({ originalInputTokens: 2_000 });
  expect(flags).toEqual(['--heap-growing-percent=50']);
  bound.note({ originalInputTokens: 250_000 });
  vi.advanceTimersByTime(59_000);
  bound.note({ originalInputTokens: 250_000 });
  bound.note({ originalInputTokens: 2_000 });
  vi.advanceTimersByTime(59_000);
  expect(flags.slice(1)).toEqual(['--heap-growing-percent=300']);
  vi.advanceTimersByTime(2_000);
  expect(flags.slice(2)).toEqual(['--heap-growing-percent=50']);
  bound.note({ originalInputTokens: 250_000 });
  expect(flags.slice(3)).toEqual(['--heap-growing-percent=300']);
});

test('many requests a second get some room, until there were not so many for a minute', () => {
  vi.useFakeTimers();
  const flags: string[] = [];
  const bound = boundWith(flags);
  const noteMany = (count: number, originalInputTokens = 2_000): void => {
    for (let at = 0; at < count; at += 1) bound.note({ originalInputTokens });
  };
  vi.advanceTimersByTime(3_000);
  noteMany(199);
  vi.advanceTimersByTime(1_000);
  noteMany(199);
  expect(flags).toEqual(['--heap-growing-percent=50']);
  noteMany(1);
  expect(flags.slice(1)).toEqual(['--heap-growing-percent=150']);
  bound.note({ originalInputTokens: 250_000 });
  expect(flags.slice(2)).toEqual(['--heap-growing-percent=300']);
  vi.advanceTimersByTime(30_000);
  noteMany(200);
  vi.advanceTimersByTime(30_001);
  expect(flags.slice(3)).toEqual(['--heap-growing-percent=150']);
  vi.advanceTimersByTime(30_000);
  noteMany(100);
  expect(flags.slice(4)).toEqual(['--heap-growing-percent=50']);
});

test('no flag changes until the compiled code is saved, whatever requests come', () => {
  vi.useFakeTimers();
  const flags: string[] = [];
  const bound = boundWith(flags);
  bound.note({ originalInputTokens: 250_000 });
  vi.advanceTimersByTime(2_000);
  expect(flags).toEqual([]);
  vi.advanceTimersByTime(1_000);
  expect(flags).toEqual(['--heap-growing-percent=300']);
});

test('the garbage is collected once, half a minute after the last request', () => {
  vi.useFakeTimers();
  let collections = 0;
  const bound = new HeapBound(() => undefined, new IdleCollector(() => (collections += 1)));
  bound.note({ originalInputTokens: 2_000 });
  vi.advanceTimersByTime(20_000);
  bound.note({ originalInputTokens: 250_000 });
  vi.advanceTimersByTime(29_000);
  expect(collections).toBe(0);
  vi.advanceTimersByTime(100_000);
  expect(collections).toBe(1);
  bound.note({ originalInputTokens: 2_000 });
  vi.advanceTimersByTime(30_000);
  expect(collections).toBe(2);
});

test('the collection frees what nobody holds', async () => {
  const reference = garbage();
  await nextTick();
  vi.useFakeTimers();
  new HeapBound(() => undefined).note({ originalInputTokens: 2_000 });
  vi.advanceTimersByTime(30_000);
  expect(reference.deref()).toBeUndefined();
});

/** A reference to an object that nobody holds. */
function garbage(): WeakRef<object> {
  return new WeakRef({ text: 'x'.repeat(1_000) });
}

test('the end of a process leaves V8 with its own flags', () => {
  vi.useFakeTimers();
  const flags: string[] = [];
  const make = () => boundWith(flags);
  const early = make();
  early.close();
  vi.advanceTimersByTime(3_000);
  expect(flags).toEqual([]);
  const bound = make();
  vi.advanceTimersByTime(3_000);
  bound.note({ originalInputTokens: 250_000 });
  bound.close();
  vi.advanceTimersByTime(120_000);
  expect(flags.at(-1)).toBe('--heap-growing-percent=0');
});

test('another thread may take the flag back before it is used: nothing is collected, and svc goes on', () => {
  const flags: string[] = [];
  collectGarbage((flag) => flags.push(flag));
  expect(flags).toEqual(['--expose-gc', '--no-expose-gc']);
});
