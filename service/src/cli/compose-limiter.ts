import { hostname } from 'node:os';
import { ProcessLimiter } from '../adapters/limiter/process-limiter.ts';
import { isOwnMachine } from '../../../src/core/settings/own-machine.ts';
import type { Limiter } from '../ports/limiter.ts';
import { systemClock } from '../../../src/cli/compose-common.ts';
import { redisUrlOf, type ServicePlace } from './compose-store.ts';

/** Chooses where the limits of a service are counted. */

const REDIS_PORT = 6379;

export interface OpenedLimiter {
  readonly limiter: Limiter;
  /**
   * Where it counts: equal for processes that count together. Holds no password. Undefined: in this
   * process.
   */
  readonly place: string | undefined;
  close(): Promise<void>;
}

/** In Redis if an address is given, else in this process. */
export async function openLimiter(
  place: ServicePlace,
  report: (line: string) => void,
): Promise<OpenedLimiter> {
  const url = await redisUrlOf(place);
  if (url === undefined) {
    const limiter = new ProcessLimiter(systemClock);
    return { limiter, place: undefined, close: async () => undefined };
  }
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
  readonly where: 'Redis' | 'its own process';
  readonly isThere: boolean;
}> {
  const url = await redisUrlOf(place);
  if (url === undefined) return { where: 'its own process', isThere: true };
  const { RedisLimiter } = await import('../adapters/limiter/redis-limiter.ts');
  const limiter = new RedisLimiter({ url, report: () => undefined });
  const isThere = await limiter.ping().then(
    () => true,
    () => false,
  );
  await limiter.close();
  return { where: 'Redis', isThere };
}
