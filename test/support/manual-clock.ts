import type { Clock } from '../../src/ports/clock.ts';

/** A clock that stands still until it is told to go on: how long a test takes decides nothing. */
export interface ManualClock extends Clock {
  goOn(ms: number): void;
}

export function manualClock(): ManualClock {
  const startedAt = Date.now();
  let passedMs = 0;
  return {
    now: () => startedAt + passedMs,
    monotonic: () => passedMs,
    goOn: (ms) => {
      passedMs += ms;
    },
  };
}
