import { randomBytes } from 'node:crypto';
import { expect, onTestFinished, test, vi } from 'vitest';
import { openServiceStore } from '../../src/adapters/service-store/sqlite-service-store.ts';
import { NO_LIMITS } from '../../src/core/plans.ts';
import { joinNodes, limiterOf } from '../../src/server/leases.ts';
import { noteOfTest } from '../support/service-control.ts';
import { ProcessLimiter } from '../../src/adapters/limiter/process-limiter.ts';
import { takeLimits } from '../../src/server/admission.ts';
import { rateAsk } from '../support/limits.ts';
import { systemClock } from '../../../src/cli/compose-common.ts';
import { tempFolder } from '../../../test/support/temp-folder.ts';

function openStore(isShared = true) {
  const store = openServiceStore({
    folder: tempFolder(),
    serves: true,
    creates: true,
    report: () => undefined,
  });
  onTestFinished(() => store.close());
  return { ...store, isShared };
}

test('nodes that count limits in two places are told so, once something is limited', async () => {
  const store = openStore();
  const join = (limiterPlace: string | undefined, requestsPerMinute: number | null = null) =>
    joinNodes({ store, randomBytes, limiterPlace, requestsPerMinute });
  const first = await join('Redis');
  expect(first.otherPlace).toBe(undefined);
  const same = await join('Redis', 5);
  expect(same.otherPlace).toBe(undefined);
  const unlimited = await join('another Redis');
  expect(unlimited.otherPlace).toBe(undefined);
  await unlimited.leave();
  // By the settings of the node, or by a plan of the service.
  const bySettings = await join('another Redis', 5);
  expect(bySettings.otherPlace).toBe('Redis');
  await bySettings.leave();
  const plan = { name: 'p', limits: { ...NO_LIMITS, concurrent_requests: 2 }, createdAt: 1 };
  await store.apply({ what: 'plan.put', plan, isNew: true }, noteOfTest('plan.created'));
  const byPlan = await join('another Redis');
  expect(byPlan.otherPlace).toBe('Redis');
  await byPlan.leave();
  // Those that left are counted no more.
  await first.leave();
  await same.leave();
  const alone = await join('another Redis', 5);
  expect(alone.otherPlace).toBe(undefined);
  await alone.leave();
  expect(await store.of('service').listLeases('')).toEqual([]);
});

test('a plan that only bounds rows asks for no shared limiter', async () => {
  const store = openStore();
  const plan = { name: 'p', limits: { ...NO_LIMITS, keys: 2, records: 5 }, createdAt: 1 };
  await store.apply({ what: 'plan.put', plan, isNew: true }, noteOfTest('plan.created'));
  const facts = { store, randomBytes, requestsPerMinute: null };
  const first = await joinNodes({ ...facts, limiterPlace: 'Redis' });
  const second = await joinNodes({ ...facts, limiterPlace: undefined });
  expect(second.otherPlace).toBe(undefined);
  await Promise.all([first.leave(), second.leave()]);
});

test('a service in a file has no other nodes', async () => {
  const store = openStore(false);
  const facts = { store, randomBytes, requestsPerMinute: 5 };
  await joinNodes({ ...facts, limiterPlace: undefined });
  expect(await store.of('service').listLeases('')).toEqual([]);
});

test('two nodes without a shared limiter refuse calls with a limit, until one of them leaves', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const store = openStore();
  const facts = { store, randomBytes, limiterPlace: undefined, requestsPerMinute: null };
  const heartbeat = async (isAlone: boolean) => {
    vi.advanceTimersByTime(10_000);
    await vi.waitFor(() => expect(first.countsWithAll()).toBe(isAlone));
  };
  const first = await joinNodes(facts);
  const limiter = limiterOf(first, new ProcessLimiter(systemClock));
  const call = () => takeLimits(limiter, [rateAsk('shared', 60, 5)]);
  await call();
  const second = await joinNodes(facts);
  expect(second.otherPlace).toBe(undefined);
  expect(second.countsWithAll()).toBe(false);
  await heartbeat(false);
  await expect(call()).rejects.toMatchObject({ code: 'RATE_LIMITER_UNAVAILABLE' });
  // A call without a limit does not ask.
  await takeLimits(limiter, []);
  await second.leave();
  await heartbeat(true);
  await call();
  await first.leave();
});
