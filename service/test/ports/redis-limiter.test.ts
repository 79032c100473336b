import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { RedisLimiter } from '../../src/adapters/limiter/redis-limiter.ts';
import type { Clock } from '../../../src/ports/clock.ts';
import type { ServiceStore } from '../../src/ports/service-store.ts';
import type { ServiceFault } from '../../src/server/fault.ts';
import { ModelAdmission } from '../../src/server/admission.ts';
import { callerOf } from '../support/callers.ts';
import { leaseAsk, rateAsk } from '../support/limits.ts';
import { missingRedis, type RedisServer, startRedis } from '../support/redis.ts';
import { limiterSuite } from './limiter-suite.ts';

const missing = missingRedis();
const patience = (): AbortSignal => AbortSignal.timeout(30_000);

describe.skipIf(missing !== undefined)('a limiter on Redis', () => {
  let server: RedisServer | undefined;
  let opened: RedisLimiter[] = [];
  let count = 0;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterEach(async () => {
    await Promise.all(opened.map((one) => one.close()));
    opened = [];
  });
  afterAll(() => server?.stop());

  /** Limiters of one prefix are nodes of one service. */
  function open(clock?: Clock, prefix = `test${(count += 1)}`): RedisLimiter {
    const url = server?.url ?? '';
    const limiter = new RedisLimiter({
      url,
      prefix,
      report: () => undefined,
      ...(clock === undefined ? {} : { clock }),
    });
    opened.push(limiter);
    return limiter;
  }

  limiterSuite('by the clock of the test', (clock) => open(clock));

  test('two nodes let in no more than the burst together, by the clock of the server', async () => {
    const [one, other] = [open(undefined, 'shared'), open(undefined, 'shared')];
    const asked = Array.from({ length: 20 }, (_, at) =>
      (at % 2 === 0 ? one : other).take([rateAsk('a', 1, 5)], patience()),
    );
    const answers = await Promise.all(asked);
    expect(answers.filter(({ refusedBy }) => refusedBy === undefined)).toHaveLength(5);
    const waits = answers.map(({ waitMs }) => waitMs).filter((ms) => ms > 0);
    expect(Math.max(...waits)).toBeLessThanOrEqual(60_000);
    expect(Math.min(...waits)).toBeGreaterThan(30_000);
  });

  test('the places of a node that died come back, and none is taken twice', async () => {
    const [one, other] = [open(undefined, 'places'), open(undefined, 'places')];
    const short = { max: 2, ttlMs: 300 };
    const take = (limiter: RedisLimiter, id: string) =>
      limiter.take([leaseAsk(id, short)], patience());
    await take(one, 'a');
    await take(other, 'b');
    expect((await take(one, 'c')).refusedBy).toBe('places');
    await one.close();
    const until = performance.now() + 10_000;
    while ((await take(other, 'd')).refusedBy !== undefined && performance.now() < until) {
      // oxlint-disable-next-line no-await-in-loop
      await other.renew([leaseAsk('b', short)], patience());
      // oxlint-disable-next-line no-await-in-loop
      await sleep(50);
    }
    expect((await take(other, 'e')).refusedBy).toBe('places');
  });

  test('a budget survives the loss of all counts: what receipts tell is read again', async () => {
    const own = await startRedis();
    const port = Number(new URL(own.url).port);
    const limiter = new RedisLimiter({ url: own.url, report: () => undefined });
    onTestFinished(() => limiter.close());
    let stored = 0;
    const reads: number[] = [];
    const store = {
      of: () => ({ tokensSpent: async () => (reads.push(stored), stored) }),
    };
    const admission = new ModelAdmission({
      limiter,
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- It is asked for nothing else.
      store: store as unknown as ServiceStore,
      receipts: { flush: async () => true },
      clock: { now: () => Date.now(), monotonic: () => performance.now() },
      settings: { requestsPerMinute: null },
    });
    const caller = callerOf({ tokens_per_day: 1000, tokens_per_month: 5000 });
    let calls = 0;
    const admit = (inputTokens: number) =>
      admission.admit({ caller, callId: `call_${(calls += 1)}`, inputTokens });
    (await admit(600)).settle({ input: 600, output: 0 });
    stored = 600;
    const running = await admit(150);
    await own.stop();
    const again = await startRedis(port);
    onTestFinished(() => again.stop());
    const refusal = () =>
      admit(300).then(
        () => 'passed',
        (error: ServiceFault) => error.more.param ?? error.code,
      );
    // A running call has no receipt yet, and counts all the same.
    await expect.poll(refusal, { timeout: 20_000 }).toBe('tokens_per_day');
    running.settle({ input: 100, output: 0 });
    await expect.poll(refusal, { timeout: 20_000 }).toBe('passed');
    // Once for each budget at the start, and once after the loss.
    expect(reads).toHaveLength(4);
  });

  test('running calls take their places again after the loss of all counts', async () => {
    const own = await startRedis();
    const port = Number(new URL(own.url).port);
    const limiter = new RedisLimiter({ url: own.url, report: () => undefined });
    onTestFinished(() => limiter.close());
    const running = ['a', 'b'].map((id) => leaseAsk(id, { max: 2, ttlMs: 60_000 }));
    for (const lease of running) {
      // oxlint-disable-next-line no-await-in-loop
      expect((await limiter.take([lease], patience())).refusedBy).toBeUndefined();
    }
    await own.stop();
    const again = await startRedis(port);
    onTestFinished(() => again.stop());
    const renew = () =>
      limiter.renew(running, patience()).then(
        () => 'renewed',
        () => 'away',
      );
    await expect.poll(renew, { timeout: 20_000 }).toBe('renewed');
    const third = leaseAsk('c', { max: 2, ttlMs: 60_000 });
    expect((await limiter.take([third], patience())).refusedBy).toBe('places');
    await limiter.settle({ leases: running.slice(0, 1), changes: [] }, patience());
    expect((await limiter.take([third], patience())).refusedBy).toBeUndefined();
  });

  test('a limiter that is away rejects within its deadline, says so once, and comes back', async () => {
    const own = await startRedis();
    const port = Number(new URL(own.url).port);
    const lines: string[] = [];
    const limiter = new RedisLimiter({ url: own.url, report: (line) => lines.push(line) });
    onTestFinished(() => limiter.close());
    expect(await limiter.take([rateAsk('a')], patience())).toEqual({
      refusedBy: undefined,
      waitMs: 0,
    });
    await own.stop();
    const startedAt = performance.now();
    await expect(limiter.take([rateAsk('a')], patience())).rejects.toThrow();
    await expect(limiter.take([rateAsk('a')], patience())).rejects.toThrow();
    expect(performance.now() - startedAt).toBeLessThan(5000);
    // Nothing to count: nobody is asked.
    expect(await limiter.take([], patience())).toMatchObject({ waitMs: 0 });
    const again = await startRedis(port);
    onTestFinished(() => again.stop());
    await expect
      .poll(
        () =>
          limiter.take([rateAsk('a')], patience()).then(
            ({ waitMs }) => waitMs,
            () => -1,
          ),
        { timeout: 20_000 },
      )
      .toBe(0);
    expect(lines).toEqual([
      'The limiter does not answer, so calls with a limit are refused.',
      'The limiter answers again.',
    ]);
  });
});
