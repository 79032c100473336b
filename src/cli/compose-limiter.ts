import { ProcessLimiter } from '../adapters/limiter/process-limiter.ts';
import type { Limiter } from '../ports/limiter.ts';
import { systemClock } from './compose-common.ts';
import { redisUrlOf, serverOf, type ServicePlace } from './compose-database.ts';

/** Chooses where the limits of a service are counted. */

/** Beside the 10 of the store: a count takes 2 ms. */
const CONNECTIONS_MAX = 4;

export interface OpenedLimiter {
  readonly limiter: Limiter;
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
  return { limiter, close: () => limiter.close() };
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
    return { limiter: new ProcessLimiter(systemClock), close: async () => undefined };
  }
  const { PostgresLimiter } = await import('../adapters/limiter/postgres-limiter.ts');
  const limiter = new PostgresLimiter({ server: server.address, connectionsMax: CONNECTIONS_MAX });
  return { limiter, close: () => limiter.close() };
}
