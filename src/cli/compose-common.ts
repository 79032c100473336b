import { randomUUID } from 'node:crypto';
import { openCatalog } from '../adapters/catalog/catalog.ts';
import type { Provider } from '../core/settings/catalog.ts';
import type { Environment } from '../core/settings/config-values.ts';
import type { Clock } from '../ports/clock.ts';
import type { Report } from '../ports/report.ts';
import type { Terminal } from './terminal.ts';

/** Adapters that the composition roots of both listeners share. */

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
};

/** The catalog of providers as it is on this machine: a command does not wait for the network. */
export async function catalogIn(
  folder: string,
  environment: Environment,
): Promise<readonly Provider[]> {
  return (await openCatalog({ folder, environment, now: Date.now })).providers();
}

// 92 random bits. Node keeps random bytes for UUIDs in stock; asking for single ones costs 20 us.
export function newRequestId(): string {
  return `req_${randomUUID().replaceAll('-', '').slice(0, 24)}`;
}

/** Safe lines as warnings: `ACCEPT_FAILED openRequests=12`. */
export function reportTo(terminal: Terminal): Report {
  return ({ code, fields = {} }) => {
    const pairs = Object.entries(fields).map(([name, value]) => `${name}=${String(value)}`);
    terminal.warn([code, ...pairs].join(' '));
  };
}
