import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { BackgroundPace, BackgroundQueue } from '../../src/proxy/background-queue.ts';

const SHARE = 0.05;
const KEYS = 200;
const PIECES = 3;

/** Milliseconds that pieces took of the thread: timers know nothing of them. */
let spent = 0;

beforeEach(() => {
  vi.useFakeTimers();
  spent = 0;
  const now = performance.now.bind(performance);
  vi.spyOn(performance, 'now').mockImplementation(() => now() + spent);
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

const placeOf = (conversation: string) => ({ tenant: 'acme', space: 'default', conversation });

/** Pieces of 10 ms and a wait for the disk, as storing an exchange takes. */
function fill(queue: BackgroundQueue, done: () => void): void {
  queue.add(placeOf('a'), {
    kind: 'history',
    times: PIECES,
    bytes: 1,
    doOne: async () => {
      spent += 4;
      await new Promise((resolve) => setTimeout(resolve, 15));
      spent += 6;
      done();
      return true;
    },
  });
}

test('every key gets its work done, within a share of the thread', async () => {
  const pace = new BackgroundPace({ paceMs: 20, share: SHARE });
  const counts = new Map<number, number>();
  for (let key = 0; key < KEYS; key += 1) {
    fill(new BackgroundQueue(pace), () => counts.set(key, (counts.get(key) ?? 0) + 1));
  }
  const began = performance.now();
  let firstAround = 0;
  while (vi.getTimerCount() > 0) {
    // oxlint-disable-next-line no-await-in-loop
    await vi.advanceTimersByTimeAsync(100);
    const elapsed = performance.now() - began;
    // The piece that runs just now has its rest before it.
    expect(spent - 10).toBeLessThanOrEqual(SHARE * elapsed);
    if (firstAround === 0 && counts.size === KEYS) firstAround = elapsed;
  }
  expect([...counts.values()]).toEqual(Array.from({ length: KEYS }, () => PIECES));
  // They went by turns: no key had all of its work done before another one had any.
  expect(firstAround).toBeLessThan((performance.now() - began) / 2);
});

test('a queue that is closed forgets its work, takes none, and leaves the pace to the others', async () => {
  const pace = new BackgroundPace({ paceMs: 20, share: SHARE });
  const [closed, open] = [new BackgroundQueue(pace), new BackgroundQueue(pace)];
  const done: string[] = [];
  fill(closed, () => done.push('closed'));
  fill(open, () => done.push('open'));
  closed.close();
  fill(closed, () => done.push('closed'));
  expect([closed.bytes, open.bytes]).toEqual([0, 1]);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(done).toEqual(['open', 'open', 'open']);
  expect(vi.getTimerCount()).toBe(0);
});
