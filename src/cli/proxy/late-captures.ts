import { findWaiting, type WaitingCaptures } from '../../adapters/state/waiting-captures.ts';
import { count } from '../listing.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Terminal } from '../terminal.ts';
import type { Trouble } from './recent-trouble.ts';

/** Age from which a capture is late, in milliseconds: time for two attempts of 30 s and two pauses of 30 s. */
const LATE_MS = 120_000;

/** Describes the captures that wait too long, so recalls do not find them. Without a running proxy all are late. */
export function lateCaptures(
  folder: string,
  { now, isRunning }: { readonly now: number; readonly isRunning: boolean },
): readonly Trouble[] {
  return findWaiting(folder).flatMap((waiting) => {
    const ageMs = Math.max(0, now - waiting.since);
    if (isRunning && ageMs < LATE_MS) return [];
    return { found: foundText(waiting, ageMs), fix: fixText(waiting, isRunning) };
  });
}

function foundText({ target, records, bytes }: WaitingCaptures, ageMs: number): string {
  const place = target === 'store' ? 'the memory on this machine' : 'the memory service';
  const size = `${count(records, 'capture')} (${sizeText(bytes)})`;
  return `${size} not yet stored in ${place}; the oldest has waited ${ageText(ageMs)}`;
}

function fixText({ target }: WaitingCaptures, isRunning: boolean): string {
  if (!isRunning) return 'Nothing is lost. A running proxy stores them: svc start';
  return target === 'store'
    ? 'Nothing is lost. Check whether the disk is full or the store is locked: svc doctor'
    : 'Nothing is lost. Check whether the service answers and accepts the key: svc doctor. If you configured another service or key since, svc delivers them only when the earlier one is configured again.';
}

function sizeText(bytes: number): string {
  if (bytes < 1_000) return count(bytes, 'byte');
  return bytes < 1_000_000
    ? `${Math.round(bytes / 1_000)} kB`
    : `${(bytes / 1_000_000).toFixed(1)} MB`;
}

const UNITS: readonly (readonly [number, string])[] = [
  [86_400_000, 'day'],
  [3_600_000, 'hour'],
  [60_000, 'minute'],
];

function ageText(ageMs: number): string {
  const [ms, unit] = UNITS.find(([length]) => ageMs >= length) ?? [1_000, 'second'];
  return count(Math.floor(ageMs / ms), unit);
}

/** Deadline of awaitCaptures(), in milliseconds. Captures need 50 ms to the store; on a busy machine a second. */
const WAIT_MS = 3_000;
const POLL_MS = 25;

/**
 * Waits until the memory has the captures of all answers so far, because a user who lists memories right after an
 * answer expects them. After the deadline it prints which captures still wait.
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
    await sleep(POLL_MS);
  }
}
