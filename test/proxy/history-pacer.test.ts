import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type History, HistoryPacer } from '../../src/proxy/history-pacer.ts';

/** More than the pace, so that each look is one step. */
const STEP_MS = 100;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function historyOf(conversation: string): History {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The pacer looks at the place alone.
  return {
    reading: { place: { space: 'default', conversation, isStated: true } },
    placements: [],
  } as unknown as History;
}

function open(exchanges: Record<string, number>) {
  const kept: string[] = [];
  const pacer = new HistoryPacer(async ({ reading: { place } }) => {
    const left = exchanges[place.conversation] ?? 0;
    if (left === 0) return false;
    exchanges[place.conversation] = left - 1;
    kept.push(place.conversation);
    return true;
  });
  return { kept, pacer };
}

test('one exchange a step, no more than asked for, and conversations take turns', async () => {
  const { kept, pacer } = open({ a: 9, b: 1 });
  pacer.add(historyOf('a'), 3);
  pacer.add(historyOf('b'), 3);
  expect(kept).toEqual([]);
  await vi.advanceTimersByTimeAsync(STEP_MS);
  expect(kept).toEqual(['a']);
  await vi.advanceTimersByTimeAsync(20 * STEP_MS);
  expect(kept).toEqual(['a', 'b', 'a', 'a']);
});

test('a later request of the conversation takes the place of the earlier one', async () => {
  const { kept, pacer } = open({ a: 9 });
  pacer.add(historyOf('a'), 8);
  pacer.add(historyOf('a'), 2);
  pacer.add(historyOf('none'), 0);
  await vi.advanceTimersByTimeAsync(20 * STEP_MS);
  expect(kept).toEqual(['a', 'a']);
  expect(vi.getTimerCount()).toBe(0);
});

test('a history that cannot be kept ends nothing, and does not hold up the others', async () => {
  const kept: string[] = [];
  const pacer = new HistoryPacer(async ({ reading: { place } }) => {
    if (place.conversation === 'broken') throw new RangeError('Maximum call stack size exceeded');
    kept.push(place.conversation);
    return true;
  });
  pacer.add(historyOf('broken'), 8);
  pacer.add(historyOf('a'), 2);
  await vi.advanceTimersByTimeAsync(20 * STEP_MS);
  expect(kept).toEqual(['a', 'a']);
  expect(vi.getTimerCount()).toBe(0);
});

test('what waits at the end is kept at once, also what is being kept just then', async () => {
  const { kept, pacer } = open({ a: 9, b: 9 });
  pacer.add(historyOf('a'), 3);
  pacer.add(historyOf('b'), 2);
  vi.advanceTimersByTime(STEP_MS);
  await pacer.finish();
  expect(kept.toSorted()).toEqual(['a', 'a', 'a', 'b', 'b']);
  pacer.add(historyOf('a'), 1);
  expect(vi.getTimerCount()).toBe(0);
});

test('a memory that does not answer holds up the end for a moment only', async () => {
  vi.useRealTimers();
  let count = 0;
  const pacer = new HistoryPacer(async () => {
    count += 1;
    await new Promise((resolve) => setTimeout(resolve, 200));
    return true;
  });
  pacer.add(historyOf('a'), 1000);
  await pacer.finish();
  expect(count).toBeGreaterThan(0);
  expect(count).toBeLessThan(10);
});

test('nothing is kept while an answer has not begun', async () => {
  const { kept, pacer } = open({ a: 9 });
  const [begun, otherBegun] = [pacer.hold(), pacer.hold()];
  pacer.add(historyOf('a'), 1);
  await vi.advanceTimersByTimeAsync(3 * STEP_MS);
  begun();
  begun();
  await vi.advanceTimersByTimeAsync(3 * STEP_MS);
  expect(kept).toEqual([]);
  otherBegun();
  await vi.advanceTimersByTimeAsync(STEP_MS);
  expect(kept).toEqual(['a']);
});

test('of many conversations the latest few wait', async () => {
  const names = ['a', 'b', 'c', 'd', 'e', 'f'];
  const { kept, pacer } = open(Object.fromEntries(names.map((name) => [name, 1])));
  for (const name of names) pacer.add(historyOf(name), 1);
  await vi.advanceTimersByTimeAsync(20 * STEP_MS);
  expect(kept).toEqual(['c', 'd', 'e', 'f']);
});
