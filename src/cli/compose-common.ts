import { randomUUID } from 'node:crypto';
import type { Clock } from '../ports/clock.ts';
import type { Report } from '../ports/report.ts';
import type { Terminal } from './terminal.ts';

/** Parts with which svc and svc-service compose their programs: a clock, request ids and warnings. */

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
};

/**
 * Returns an id with 90 random bits: the beginning of a UUID, because Node makes the random bytes of many UUIDs in
 * advance, while a call for random bytes takes 20 us.
 */
export function newRequestId(): string {
  return `req_${randomUUID().replaceAll('-', '').slice(0, 24)}`;
}

/** Returns a function that prints reports as warnings, such as `ACCEPT_FAILED openRequests=12`. */
export function reportTo(terminal: Terminal): Report {
  return ({ code, fields = {} }) => {
    const pairs = Object.entries(fields).map(([name, value]) => `${name}=${String(value)}`);
    terminal.warn([code, ...pairs].join(' '));
  };
}
