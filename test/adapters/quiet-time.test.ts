import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import { QuietTime } from '../../src/adapters/store/quiet-time.ts';
import { recordOf } from '../support/records.ts';
import { tempFolder } from '../support/temp-folder.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** Milliseconds that a write waits while `change` is called at its times. */
async function waited(quiet: QuietTime, changes: readonly (readonly [number, boolean])[]) {
  const start = performance.now();
  for (const [ms, isBusy] of changes) setTimeout(() => quiet.busy(isBusy), ms);
  let end = Number.NaN;
  const waiting = quiet.run(async () => {
    end = performance.now();
  });
  await vi.advanceTimersByTimeAsync(100);
  await waiting;
  return end - start;
}

test('where nobody asks, a write does not wait', async () => {
  expect(await waited(new QuietTime(), [])).toBe(0);
});

test('a write waits until a request had its first byte, and for the next request that comes at once', async () => {
  const quiet = new QuietTime();
  quiet.busy(true);
  const ms = await waited(quiet, [
    [5, false],
    [6, true],
    [9, false],
  ]);
  expect(ms).toBeGreaterThanOrEqual(12);
  expect(ms).toBeLessThanOrEqual(15);
});

test('a write waits 21 ms at most, whatever comes: a capture can be recalled after 50', async () => {
  const quiet = new QuietTime();
  quiet.busy(true);
  expect(await waited(quiet, [])).toBeLessThanOrEqual(21);
});

test('a capture of a busy proxy waits, and is stored all the same', async () => {
  vi.useRealTimers();
  const store = openEmbeddedStore({ folder: tempFolder(), report: () => {} });
  onTestFinished(() => store.close());
  await store.health();
  store.quiet.busy(true);
  const kept = performance.now();
  store.outbox.keep([recordOf('The walrus gateway listens on port 6431.')]);
  await expect.poll(() => store.outbox.waiting, { interval: 1 }).toBe(0);
  // Gathered for 10 ms, then the longest wait.
  expect(performance.now() - kept).toBeGreaterThan(25);
});
