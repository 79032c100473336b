import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { runServiceCli, tempFolder } from '../../../test/support/cli.ts';
import { callService } from '../support/memory-service.ts';
import { missingRedis, startRedis } from '../support/redis.ts';
import { initService, makeServiceKey, runServiceWith } from '../support/service-process.ts';

const missing = missingRedis();
const SETTINGS = '.local/share/svc/service/service.json';

describe.skipIf(missing !== undefined)('limits in Redis', () => {
  test('outlive a restart, and a Redis that is away blocks the calls that they limit', async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.stop());
    const environment = { SVC_REDIS_URL: redis.url };
    const home = tempFolder();
    await initService(home);
    const file = join(home, SETTINGS);
    const settings = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
    writeFileSync(file, JSON.stringify({ ...settings, requestsPerMinute: 1 }));
    const key = await makeServiceKey(home);
    const first = await runServiceWith(home, environment);
    const ask = async (url: string) => (await callService(url, '/v1/svc/whoami', { key })).status;
    expect([await ask(first.url), await ask(first.url)]).toEqual([200, 429]);
    await first.end('SIGTERM');
    const again = await runServiceWith(home, environment);
    expect(await ask(again.url)).toBe(429);
    const limiter = async () =>
      /(Limiter.*)/.exec((await runServiceCli(['doctor'], { home, env: environment })).stdout)?.[1];
    expect(await limiter()).toContain('limits are counted in Redis');
    await redis.stop();
    expect(await limiter()).toContain('Redis does not answer');
    const { status, json } = await callService(again.url, '/v1/svc/whoami', { key });
    expect([status, json.error.code]).toEqual([503, 'RATE_LIMITER_UNAVAILABLE']);
    expect(again.stderr()).toContain('The limiter does not answer');
    expect(again.stderr()).not.toContain(redis.url);
    expect(await again.end('SIGTERM')).toBe(0);
  }, 120_000);
});

test('R29: an address that is none of Redis is refused without repeating it', async () => {
  const home = tempFolder();
  await initService(home);
  const env = { SVC_REDIS_URL: 'http://user:CANARY@host' };
  const { code, stderr } = await runServiceCli(['start'], { home, env });
  expect(code).not.toBe(0);
  expect(stderr).toContain('SVC_REDIS_URL is not an address of Redis.');
  expect(stderr).not.toContain('CANARY');
}, 60_000);
