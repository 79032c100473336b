import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { BackgroundPace, BackgroundQueue } from '../../src/proxy/background-queue.ts';

const STEP_MS = 100;
const PACE = { paceMs: STEP_MS, share: 1 };

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const placeOf = (conversation: string) => ({ tenant: 'local', space: 'default', conversation });

function open(pieces: Record<string, number>) {
  const done: string[] = [];
  const queue = new BackgroundQueue(new BackgroundPace(PACE));
  const add = (conversation: string, times: number, bytes = 1): void =>
    queue.add(placeOf(conversation), {
      kind: 'history',
      times,
      bytes,
      doOne: () => {
        const left = pieces[conversation] ?? 0;
        if (left === 0) return false;
        pieces[conversation] = left - 1;
        done.push(conversation);
        return true;
      },
    });
  return { done, queue, add };
}

test('one piece a step, no more than asked for, and conversations take turns', async () => {
  const { done, add } = open({ a: 9, b: 1 });
  add('a', 3);
  add('b', 3);
  expect(done).toEqual([]);
  await vi.advanceTimersByTimeAsync(STEP_MS);
  expect(done).toEqual(['a']);
  await vi.advanceTimersByTimeAsync(20 * STEP_MS);
  expect(done).toEqual(['a', 'b', 'a', 'a']);
});

test('a later request of the conversation takes the place of the earlier one', async () => {
  const { done, add } = open({ a: 9 });
  add('a', 8);
  add('a', 2);
  add('none', 0);
  await vi.advanceTimersByTimeAsync(20 * STEP_MS);
  expect(done).toEqual(['a', 'a']);
  expect(vi.getTimerCount()).toBe(0);
});

test('a piece that cannot be done ends nothing, and does not hold up the others', async () => {
  const { done, queue, add } = open({ a: 9 });
  const doOne = (): boolean => {
    throw new RangeError('Maximum call stack size exceeded');
  };
  queue.add(placeOf('broken'), { kind: 'history', doOne, times: 8, bytes: 1 });
  add('a', 2);
  await vi.advanceTimersByTimeAsync(20 * STEP_MS);
  expect(done).toEqual(['a', 'a']);
  expect(vi.getTimerCount()).toBe(0);
});

test('what waits at the end is done at once, also what is being done just then', async () => {
  const { done, queue, add } = open({ a: 9, b: 9 });
  add('a', 3);
  add('b', 2);
  vi.advanceTimersByTime(STEP_MS);
  await queue.drain(60_000);
  expect(done.toSorted()).toEqual(['a', 'a', 'a', 'b', 'b']);
});

test('a memory that does not answer holds up the end for a moment only', async () => {
  vi.useRealTimers();
  let count = 0;
  const queue = new BackgroundQueue(new BackgroundPace(PACE));
  const doOne = async (): Promise<boolean> => {
    count += 1;
    await new Promise((resolve) => setTimeout(resolve, 200));
    return true;
  };
  queue.add(placeOf('a'), { kind: 'history', doOne, times: 1000, bytes: 1 });
  await queue.drain(500);
  expect(count).toBeGreaterThan(0);
  expect(count).toBeLessThan(10);
});

test('of many conversations the latest wait, as far as their bodies have room', async () => {
  const names = ['a', 'b', 'c', 'd', 'e', 'f'];
  const { done, add } = open(Object.fromEntries(names.map((name) => [name, 1])));
  for (const name of names) add(name, 1, 12 * 1024 * 1024);
  await vi.advanceTimersByTimeAsync(20 * STEP_MS);
  expect(done).toEqual(['c', 'd', 'e', 'f']);
});

test('however small the bodies, no more than 256 works wait', async () => {
  const names = Array.from({ length: 500 }, (_, at) => `c${at}`);
  const { done, add } = open(Object.fromEntries(names.map((name) => [name, 1])));
  for (const name of names) add(name, 1);
  await vi.advanceTimersByTimeAsync(500 * STEP_MS);
  expect(done).toEqual(names.slice(-256));
});
