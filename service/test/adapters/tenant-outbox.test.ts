import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { TenantOutboxes } from '../../src/adapters/service-memory/tenant-outbox.ts';
import type { CaptureState, MemoryRecord } from '../../../src/ports/memory.ts';
import { recordOf } from '../../../test/support/records.ts';
import { tempFolder } from '../../../test/support/temp-folder.ts';

test('what the store said that it holds is delivered again once the store may have lost it', async () => {
  const delivered: string[] = [];
  const capture = async (records: readonly MemoryRecord[]): Promise<readonly CaptureState[]> => {
    delivered.push(...records.map(({ text }) => text));
    return records.map(() => 'stored');
  };
  const outboxes = new TenantOutboxes({
    folder: tempFolder(),
    memoryOf: () => ({ capture }),
    report: () => undefined,
  });
  onTestFinished(() => outboxes.close());
  const keep = async (): Promise<void> => {
    outboxes.of('acme').keep([recordOf('The port is 6543.')]);
    await outboxes.flush(30_000);
  };
  await keep();
  await keep();
  expect(delivered).toEqual(['The port is 6543.']);
  outboxes.forgetSettled();
  await keep();
  expect(delivered).toEqual(['The port is 6543.', 'The port is 6543.']);
});

test('a store that is back gets what waits within a second, however long it was away', async () => {
  let [isAway, at] = [true, 0];
  const capture = async (records: readonly MemoryRecord[]): Promise<readonly CaptureState[]> => {
    if (isAway) throw new Error('away');
    at = performance.now();
    return records.map(() => 'stored');
  };
  const outboxes = new TenantOutboxes({
    folder: tempFolder(),
    memoryOf: () => ({ capture }),
    report: () => undefined,
  });
  onTestFinished(() => outboxes.close());
  outboxes.of('acme').keep([recordOf('one')]);
  // Tries come after 250, 500 and 1,000 ms, and then every second.
  await new Promise((resolve) => setTimeout(resolve, 5000));
  isAway = false;
  const back = performance.now();
  await expect.poll(() => at, { timeout: 20_000 }).toBeGreaterThan(0);
  expect(at - back).toBeLessThan(3000);
}, 60_000);

test('a purge leaves no word of a delivered capture in the folder', async () => {
  const folder = tempFolder();
  const capture = async (records: readonly MemoryRecord[]): Promise<readonly CaptureState[]> =>
    records.map(() => 'stored');
  const outboxes = new TenantOutboxes({
    folder,
    memoryOf: () => ({ capture }),
    report: () => undefined,
  });
  onTestFinished(() => outboxes.close());
  outboxes.of('acme').keep([recordOf('The port is 6543.')]);
  await outboxes.flush(30_000);
  expect(wordsIn(folder)).toContain('The port is 6543.');
  outboxes.eraseDelivered();
  expect(wordsIn(folder)).not.toContain('The port is 6543.');
});

function wordsIn(folder: string): string {
  return readdirSync(folder)
    .map((name) => readFileSync(join(folder, name), 'latin1'))
    .join('');
}
