import { getHeapSpaceStatistics } from 'node:v8';
import { expect, test } from 'vitest';
import { boundHeaps } from '../../src/adapters/processes/heap-bound.ts';

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
  const before = meanOldSpace();
  boundHeaps();
  const after = meanOldSpace();
  expect(after).toBeLessThan(0.85 * before);
});
