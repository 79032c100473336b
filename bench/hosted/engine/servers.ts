import { tmpdir } from 'node:os';
import { startPostgres } from '../../../service/test/support/postgres.ts';
import { startRedis } from '../../../service/test/support/redis.ts';
import { serverCpuMs, threadsCpuMs } from './server-cpu.ts';

/** As a person's server has them. */
export const SETTINGS = [
  'fsync=on',
  'synchronous_commit=on',
  'full_page_writes=on',
  'autovacuum=on',
  'shared_buffers=256MB',
];

/** What a service of several nodes stands on. */
export async function startServers() {
  const postgres = await startPostgres({ settings: SETTINGS, within: tmpdir() });
  const redis = await startRedis();
  return {
    database: await postgres.newDatabase(),
    redis: redis.url,
    postgresCpuMs: () => serverCpuMs(postgres.pid),
    redisCpuMs: () => threadsCpuMs(redis.pid),
    stop: async () => {
      await postgres.stop();
      await redis.stop();
    },
  };
}
