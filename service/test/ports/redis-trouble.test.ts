import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { describe, expect, onTestFinished, test } from 'vitest';
import { RedisLimiter } from '../../src/adapters/limiter/redis-limiter.ts';
import type { LimitAsk } from '../../src/ports/limiter.ts';
import type { ServiceStore } from '../../src/ports/service-store.ts';
import { ModelAdmission, takeLimits } from '../../src/server/admission.ts';
import type { ServiceFault } from '../../src/server/fault.ts';
import { callerOf } from '../support/callers.ts';
import { budgetAsk, leaseAsk, rateAsk } from '../support/limits.ts';
import { missingRedis, type RedisServer, startRedis } from '../support/redis.ts';
import { startBalancer } from '../support/tcp-balancer.ts';

/** A Redis that does not answer, refuses writes, was emptied, or is no longer the primary. */

const missing = missingRedis();
const patience = (): AbortSignal => AbortSignal.timeout(30_000);
const until = Date.now() + 86_400_000;

interface Stage {
  readonly server: RedisServer;
  readonly limiter: RedisLimiter;
  /** Sends commands of an operator. */
  readonly operator: Redis;
}

async function openStage(): Promise<Stage> {
  const server = await startRedis();
  onTestFinished(() => server.stop());
  const limiter = openLimiter(server.url);
  const operator = new Redis(server.url);
  onTestFinished(() => operator.disconnect());
  return { server, limiter, operator };
}

function openLimiter(url: string): RedisLimiter {
  const limiter = new RedisLimiter({ url, report: () => undefined });
  onTestFinished(() => limiter.close());
  return limiter;
}

/** Takes limits as a call does. Returns 'passed', the name of the limit that refuses, or the code of the fault. */
function admit(limiter: RedisLimiter, ...asks: readonly LimitAsk[]): Promise<string> {
  return takeLimits(limiter, asks).then(
    () => 'passed',
    (error: { code: string; more: { param?: string } }) => error.more.param ?? error.code,
  );
}

describe.skipIf(missing !== undefined)('a Redis in trouble', () => {
  test('a call that is refused because Redis hangs uses up nothing, also once Redis goes on', async () => {
    const { server, limiter, operator } = await openStage();
    const asks = (id: string, cost: number): LimitAsk[] => [
      rateAsk('calls', 60, 2),
      budgetAsk('tokens', { until, max: 100, cost }),
      leaseAsk(id, { max: 1 }),
    ];
    expect(await admit(limiter, budgetAsk('tokens', { until, max: 100, cost: 10 }))).toBe('passed');
    process.kill(server.pid, 'SIGSTOP');
    const refused = ['a', 'b', 'c'].map((id) => admit(limiter, ...asks(id, 50)));
    expect(await Promise.all(refused)).toEqual(Array(3).fill('RATE_LIMITER_UNAVAILABLE'));
    process.kill(server.pid, 'SIGCONT');
    await expect.poll(() => operator.ping().catch(() => ''), { timeout: 20_000 }).toBe('PONG');
    await sleep(500);
    expect(await admit(limiter, ...asks('d', 85))).toBe('passed');
  });

  test('a full Redis counts nothing, and the limiter says so', async () => {
    const { limiter, operator } = await openStage();
    await limiter.ping();
    await operator.config('SET', 'maxmemory', '1');
    expect(await admit(limiter, rateAsk('a'))).toBe('RATE_LIMITER_UNAVAILABLE');
    await expect(limiter.ping()).rejects.toThrow();
    await operator.config('SET', 'maxmemory', '0');
    await expect.poll(() => admit(limiter, rateAsk('a')), { timeout: 20_000 }).toBe('passed');
    await limiter.ping();
  });

  test('a budget survives the loss of all counts with the calls that have just ended', async () => {
    const { limiter, operator } = await openStage();
    let [waiting, stored, canStore] = [0, 0, true];
    const flush = async (): Promise<boolean> => {
      if (canStore) [stored, waiting] = [stored + waiting, 0];
      return canStore;
    };
    const admission = new ModelAdmission({
      limiter,
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- It is asked for nothing else.
      store: { of: () => ({ tokensSpent: async () => stored }) } as unknown as ServiceStore,
      receipts: { flush },
      clock: { now: () => Date.now(), monotonic: () => performance.now() },
      settings: { requestsPerMinute: null },
    });
    const caller = callerOf({ tokens_per_day: 1000 });
    const ask = (callId: string, inputTokens: number) =>
      admission.admit({ caller, callId, inputTokens });
    const refusalOf = (call: Promise<unknown>) =>
      call.then(
        () => 'passed',
        (error: ServiceFault) => error.more.param ?? error.code,
      );
    (await ask('a', 500)).settle({ input: 500, output: 100 });
    // Its receipt waits for a batch.
    waiting = 600;
    await operator.flushall();
    canStore = false;
    expect(await refusalOf(ask('b', 300))).toBe('RATE_LIMITER_UNAVAILABLE');
    canStore = true;
    expect(await refusalOf(ask('c', 500))).toBe('tokens_per_day');
    expect(await refusalOf(ask('d', 300))).toBe('passed');
  });

  test('a connection to a primary that hangs for good is replaced', async () => {
    const [former, present] = [await startRedis(), await startRedis()];
    onTestFinished(() => former.stop());
    onTestFinished(() => present.stop());
    const balancer = await startBalancer([Number(new URL(former.url).port)]);
    const limiter = openLimiter(`redis://127.0.0.1:${balancer.port}`);
    expect(await admit(limiter, rateAsk('a'))).toBe('passed');
    balancer.ports = [Number(new URL(present.url).port)];
    process.kill(former.pid, 'SIGSTOP');
    expect(await admit(limiter, rateAsk('a'))).toBe('RATE_LIMITER_UNAVAILABLE');
    // Until then a call does not wait for what has not answered the last one.
    const startedAt = performance.now();
    expect(await admit(limiter, rateAsk('a'))).toBe('RATE_LIMITER_UNAVAILABLE');
    expect(performance.now() - startedAt).toBeLessThan(500);
    await expect.poll(() => admit(limiter, rateAsk('a')), { timeout: 20_000 }).toBe('passed');
  });

  test('after a failover a connection to the former primary, now a replica, is not kept', async () => {
    const [former, present] = [await startRedis(), await startRedis()];
    onTestFinished(() => former.stop());
    onTestFinished(() => present.stop());
    const [formerPort, presentPort] = [former, present].map(({ url }) => Number(new URL(url).port));
    const balancer = await startBalancer([formerPort ?? 0]);
    const limiter = openLimiter(`redis://127.0.0.1:${balancer.port}`);
    expect(await admit(limiter, rateAsk('a'))).toBe('passed');
    balancer.ports = [presentPort ?? 0];
    const operator = new Redis(former.url);
    onTestFinished(() => operator.disconnect());
    await operator.replicaof('127.0.0.1', presentPort ?? 0);
    await expect.poll(() => admit(limiter, rateAsk('a')), { timeout: 20_000 }).toBe('passed');
  });

  test('running calls take their places again after the loss of all counts, also beside new ones', async () => {
    const { limiter, operator } = await openStage();
    const running = ['a', 'b'].map((id) => leaseAsk(id, { max: 2 }));
    for (const lease of running) {
      // oxlint-disable-next-line no-await-in-loop
      expect(await admit(limiter, lease)).toBe('passed');
    }
    await operator.flushall();
    // The first call after the loss comes before the next heartbeat.
    expect(await admit(limiter, leaseAsk('c', { max: 2 }))).toBe('passed');
    await limiter.renew(running, patience());
    await limiter.settle({ leases: [leaseAsk('c')], changes: [] }, patience());
    expect(await admit(limiter, leaseAsk('d', { max: 2 }))).toBe('places');
  });
});
