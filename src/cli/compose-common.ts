import { randomUUID } from 'node:crypto';
import type { Clock } from '../ports/clock.ts';
import type { Report } from '../ports/report.ts';
import type { Terminal } from './terminal.ts';

/** Adapters that both listeners use. */

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
};

// Makes an id of 92 random bits. Node keeps random bytes for UUIDs in advance; requesting single ones costs 20 us.
export function newRequestId(): string {
  return `req_${randomUUID().replaceAll('-', '').slice(0, 24)}`;
}

/** Prints report lines as warnings: `ACCEPT_FAILED openRequests=12`. */
export function reportTo(terminal: Terminal): Report {
  return ({ code, fields = {} }) => {
    const pairs = Object.entries(fields).map(([name, value]) => `${name}=${String(value)}`);
    terminal.warn([code, ...pairs].join(' '));
  };
}
