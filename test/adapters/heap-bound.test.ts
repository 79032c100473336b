import { spawnSync } from 'node:child_process';
import { getHeapSpaceStatistics } from 'node:v8';
import { afterEach, expect, test, vi } from 'vitest';
import { HeapBound } from '../../src/adapters/processes/heap-bound.ts';

function oldSpaceMb(): number {
  const space = getHeapSpaceStatistics().find(({ space_name: name }) => name === 'old_space');
  return (space?.physical_space_size ?? 0) / 1024 / 1024;
}

/** A queue in which each entry lives until it reaches the old generation. Gives the mean megabytes. */
function meanOldSpace(): number {
  const queue: unknown[] = [];
  const sizes: number[] = [];
  for (let at = 0; at < 3_000_000; at += 1) {
    queue.push({ at, text: `text ${at}`, list: [at, at + 1] });
    if (queue.length > 200_000) queue.splice(0, 1_000);
    if (at % 5_000 === 0 && at > 500_000) sizes.push(oldSpaceMb());
  }
  return sizes.reduce((sum, size) => sum + size, 0) / sizes.length;
}

test('the heap of a busy process grows to less beside what is alive', () => {
  vi.useFakeTimers();
  const before = meanOldSpace();
  const bound = new HeapBound();
  vi.advanceTimersByTime(3_000);
  bound.note({ originalInputTokens: 2_000 });
  const after = meanOldSpace();
  expect(after).toBeLessThan(0.85 * before);
});

afterEach(() => {
  vi.useRealTimers();
});

test('long requests get room for their bodies, until none has come for a minute', () => {
  vi.useFakeTimers();
  const flags: string[] = [];
  const bound = new HeapBound(
    (flag) => flags.push(flag),
    () => 0,
  );
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

test('no flag changes until the compiled code is saved, whatever requests come', () => {
  vi.useFakeTimers();
  const flags: string[] = [];
  const bound = new HeapBound(
    (flag) => flags.push(flag),
    () => 0,
  );
  bound.note({ originalInputTokens: 250_000 });
  vi.advanceTimersByTime(2_000);
  expect(flags).toEqual([]);
  vi.advanceTimersByTime(1_000);
  expect(flags).toEqual(['--heap-growing-percent=300']);
});

test('the young generation grows to 8 MB and no further, once the compiled code is saved', () => {
  vi.useFakeTimers();
  const flags: string[] = [];
  let youngMb = 8;
  const bound = new HeapBound(
    (flag) => flags.push(flag),
    () => youngMb * 1024 * 1024,
  );
  bound.note({ originalInputTokens: 2_000 });
  expect(flags).toEqual([]);
  vi.advanceTimersByTime(3_000);
  youngMb = 4;
  bound.note({ originalInputTokens: 2_000 });
  expect(flags.slice(1)).toEqual([]);
  youngMb = 8;
  bound.note({ originalInputTokens: 2_000 });
  bound.note({ originalInputTokens: 2_000 });
  expect(flags.slice(1)).toEqual(['--semi-space-growth-factor=1']);
});

test('V8 obeys the bound of the young generation while the process runs', () => {
  const code = `const v8 = require('node:v8');
    const mb = () => v8.getHeapSpaceStatistics().find((it) => it.space_name === 'new_space').space_size / 1048576;
    const kept = [];
    for (let at = 0; at < 60; at += 1) {
      kept[at % 3] = Array.from({ length: 20_000 }, (_, i) => ({ at, i, text: 'x' + i }));
      if (process.argv[1] === 'bound' && mb() >= 8) v8.setFlagsFromString('--semi-space-growth-factor=1');
    }
    console.log(mb());`;
  const grown = (word: string): number => {
    const { stdout, stderr } = spawnSync(process.execPath, ['-e', code, word], {
      encoding: 'utf8',
    });
    expect(stderr).toBe('');
    return Number(stdout);
  };
  expect(grown('free')).toBeGreaterThan(16);
  expect(grown('bound')).toBeLessThanOrEqual(10);
});
