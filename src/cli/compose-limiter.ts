import { ProcessLimiter } from '../adapters/limiter/process-limiter.ts';
import type { Environment } from '../core/settings/config-values.ts';
import type { Limiter } from '../ports/limiter.ts';
import { CliError } from './cli-error.ts';
import { systemClock } from './compose-common.ts';
import { serverOf } from './compose-database.ts';

/** Chooses where the limits of a service are counted. */

/** Beside the 10 of the store: a count takes 2 ms. */
const CONNECTIONS_MAX = 4;

export interface OpenedLimiter {
  readonly limiter: Limiter;
  close(): Promise<void>;
}

/** In Redis where `SVC_REDIS_URL` names one, else where the data are: in PostgreSQL, or in this process. */
export async function openLimiter(
  environment: Environment,
  report: (line: string) => void,
): Promise<OpenedLimiter> {
  const url = environment['SVC_REDIS_URL'];
  if (url === undefined || url === '') {
    return openBeside(environment);
  }
  if (!isRedisUrl(url)) {
    const hint = 'Write redis://host:6379 or, with TLS, rediss://user:password@host:6379.';
    throw new CliError('SVC_REDIS_URL is not an address of Redis.', hint);
  }
  // 190 kB that a service without Redis never reads.
  const { RedisLimiter } = await import('../adapters/limiter/redis-limiter.ts');
  const limiter = new RedisLimiter({ url, report });
  return { limiter, close: () => limiter.close() };
}

async function openBeside(environment: Environment): Promise<OpenedLimiter> {
  const server = serverOf(environment);
  if (server === undefined) {
    return { limiter: new ProcessLimiter(systemClock), close: async () => undefined };
  }
  const { PostgresLimiter } = await import('../adapters/limiter/postgres-limiter.ts');
  const limiter = new PostgresLimiter({ server, connectionsMax: CONNECTIONS_MAX });
  return { limiter, close: () => limiter.close() };
}

function isRedisUrl(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url !== undefined && /^rediss?:$/.test(url.protocol) && url.hostname !== '';
}
