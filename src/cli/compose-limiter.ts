import { ProcessLimiter } from '../adapters/limiter/process-limiter.ts';
import type { Environment } from '../core/settings/config-values.ts';
import type { Limiter } from '../ports/limiter.ts';
import { CliError } from './cli-error.ts';
import { systemClock } from './compose-common.ts';

/** Chooses where the limits of a service are counted. */

export interface OpenedLimiter {
  readonly limiter: Limiter;
  close(): Promise<void>;
}

/** In Redis where `SVC_REDIS_URL` names one, else in this process. */
export async function openLimiter(
  environment: Environment,
  report: (line: string) => void,
): Promise<OpenedLimiter> {
  const url = environment['SVC_REDIS_URL'];
  if (url === undefined || url === '') {
    return { limiter: new ProcessLimiter(systemClock), close: async () => undefined };
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

function isRedisUrl(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url !== undefined && /^rediss?:$/.test(url.protocol) && url.hostname !== '';
}
