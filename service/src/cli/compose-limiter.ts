import { hostname } from 'node:os';
import { ProcessLimiter } from '../adapters/limiter/process-limiter.ts';
import { isOwnMachine } from '../../../src/core/settings/own-machine.ts';
import type { Limiter } from '../ports/limiter.ts';
import { systemClock } from '../../../src/cli/compose-common.ts';
import { redisUrlOf, serverOf, type ServicePlace } from './compose-database.ts';

/** Chooses where the limits of a service are counted. */

/** Beside the 10 of the store: a count takes 2 ms. */
const CONNECTIONS_MAX = 4;
const REDIS_PORT = 6379;

export interface OpenedLimiter {
  readonly limiter: Limiter;
  /** Where it counts: equal for processes that count together. Holds no password. */
  readonly place: string;
  close(): Promise<void>;
}

/** In Redis where one is named, else where the data are: in PostgreSQL, or in this process. */
export async function openLimiter(
  place: ServicePlace,
  report: (line: string) => void,
): Promise<OpenedLimiter> {
  const url = await redisUrlOf(place);
  if (url === undefined) return openBeside(place);
  // 190 kB that a service without Redis never reads.
  const { RedisLimiter } = await import('../adapters/limiter/redis-limiter.ts');
  const limiter = new RedisLimiter({ url, report });
  return { limiter, place: placeOf(url), close: () => limiter.close() };
}

/** Each machine has a loopback of its own. */
function placeOf(text: string): string {
  const { hostname: host, port, pathname } = new URL(text);
  const where = isOwnMachine(host.replace(/^\[|\]$/g, '')) ? `${host} of ${hostname()}` : host;
  const database = pathname === '/' || pathname === '' ? '/0' : pathname;
  return `Redis at ${where}:${port === '' ? REDIS_PORT : port}${database}`;
}

/** Where limits are counted, and whether that answers. */
export async function lookAtLimiter(place: ServicePlace): Promise<{
  readonly where: 'Redis' | 'PostgreSQL' | 'its own process';
  readonly isThere: boolean;
}> {
  const url = await redisUrlOf(place);
  if (url === undefined) {
    const isServer = (await serverOf(place)) !== undefined;
    return { where: isServer ? 'PostgreSQL' : 'its own process', isThere: true };
  }
  const { RedisLimiter } = await import('../adapters/limiter/redis-limiter.ts');
  const limiter = new RedisLimiter({ url, report: () => undefined });
  const isThere = await limiter.ping().then(
    () => true,
    () => false,
  );
  await limiter.close();
  return { where: 'Redis', isThere };
}

async function openBeside(place: ServicePlace): Promise<OpenedLimiter> {
  const server = await serverOf(place);
  if (server === undefined) {
    return {
      limiter: new ProcessLimiter(systemClock),
      place: 'this process',
      close: async () => undefined,
    };
  }
  const { PostgresLimiter } = await import('../adapters/limiter/postgres-limiter.ts');
  const limiter = new PostgresLimiter({ server: server.address, connectionsMax: CONNECTIONS_MAX });
  return { limiter, place: 'PostgreSQL', close: () => limiter.close() };
}
