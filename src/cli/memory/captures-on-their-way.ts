import { setTimeout as sleep } from 'node:timers/promises';
import { findWaiting } from '../../adapters/state/waiting-captures.ts';
import { lateCaptures } from '../proxy/late-captures.ts';
import type { Terminal } from '../terminal.ts';

/** A capture reaches the store 50 ms after the answer, and on a machine that is busy a second. */
const WAIT_MS = 3_000;
const LOOK_MS = 25;

/**
 * Waits until the memory has what the answers so far left in the outbox: a person who lists right
 * after an answer expects it. Says what is still on its way when the wait is over.
 */
export async function awaitCaptures(folder: string, terminal: Terminal): Promise<void> {
  const end = performance.now() + WAIT_MS;
  while (findWaiting(folder).length > 0) {
    if (performance.now() > end) {
      const late = lateCaptures(folder, { now: Date.now(), isRunning: false });
      for (const { found } of late) terminal.note(`${found}. See: svc status`);
      return;
    }
    // oxlint-disable-next-line no-await-in-loop -- One look after the other.
    await sleep(LOOK_MS);
  }
}
