import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { LimitAsk, Limiter } from '../../src/ports/limiter.ts';
import { BUDGET_MS, budgetAsk, leaseAsk, rateAsk } from '../support/limits.ts';
import { type ManualClock, manualClock } from '../../../test/support/manual-clock.ts';

const patience = (): AbortSignal => AbortSignal.timeout(30_000);
const ask = rateAsk;
const passed = { refusedBy: undefined, waitMs: 0 };

/** What every limiter owes the service, whatever it counts in. */
export function limiterSuite(name: string, open: (clock: ManualClock) => Limiter): void {
  describe(name, () => {
    test('a burst passes, then the wait is told, and whoever waits so long passes', async () => {
      const clock = manualClock();
      const limiter = open(clock);
      const take = () => limiter.take([ask('a')], patience());
      expect([await take(), await take()]).toEqual([passed, passed]);
      const refused = await take();
      expect(refused).toEqual({ refusedBy: 'limit of a', waitMs: 1000 });
      clock.goOn(999);
      expect((await take()).waitMs).toBeCloseTo(1);
      clock.goOn(1);
      expect(await take()).toEqual(passed);
    });

    test('a call that one limit refuses uses up nothing of the others', async () => {
      const clock = manualClock();
      const limiter = open(clock);
      const take = (...asks: readonly LimitAsk[]) => limiter.take(asks, patience());
      await take(ask('full', 60, 1));
      for (let tries = 0; tries < 5; tries += 1) {
        // oxlint-disable-next-line no-await-in-loop
        expect((await take(ask('free'), ask('full', 60, 1))).refusedBy).toBe('limit of full');
      }
      expect((await take(ask('free'))).refusedBy).toBe(undefined);
      expect((await take(ask('free'))).refusedBy).toBe(undefined);
      expect((await take(ask('free'))).refusedBy).toBe('limit of free');
    });

    test('the longest wait is told, so that one wait is enough', async () => {
      const clock = manualClock();
      const limiter = open(clock);
      const both = [ask('quick', 60, 1), ask('slow', 6, 1)];
      await limiter.take(both, patience());
      const refused = await limiter.take(both, patience());
      expect(refused).toEqual({ refusedBy: 'limit of slow', waitMs: 10_000 });
      clock.goOn(refused.waitMs);
      expect((await limiter.take(both, patience())).refusedBy).toBe(undefined);
    });

    test('buckets of two tenants never share a count, and each is bounded by its own rate', async () => {
      const step = fc.record({
        bucket: fc.constantFrom('memory:acme', 'memory:globex'),
        pauseMs: fc.nat({ max: 700 }),
      });
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
          const clocks = [manualClock(), manualClock()];
          const [together, alone] = clocks.map(open);
          for (const { bucket, pauseMs } of steps) {
            for (const clock of clocks) clock.goOn(pauseMs);
            // oxlint-disable-next-line no-await-in-loop
            const answer = await together?.take([ask(bucket)], patience());
            if (bucket !== 'memory:acme') continue;
            // oxlint-disable-next-line no-await-in-loop
            expect(await alone?.take([ask(bucket)], patience())).toEqual(answer);
          }
        }),
        { numRuns: 30 },
      );
    });

    test('a call may cost more than one; the difference to its real cost is booked at its end', async () => {
      const clock = manualClock();
      const limiter = open(clock);
      const tokens = (cost: number) => ({ ...ask('tokens', 60_000, 60_000), cost });
      const take = (cost: number) => limiter.take([tokens(cost)], patience());
      expect(await take(45_000)).toEqual(passed);
      expect((await take(16_000)).waitMs).toBe(1000);
      await limiter.settle(
        { leases: [], changes: [{ ask: tokens(45_000), more: -5000 }] },
        patience(),
      );
      expect(await take(16_000)).toEqual(passed);
      await limiter.settle(
        { leases: [], changes: [{ ask: tokens(16_000), more: 6000 }] },
        patience(),
      );
      expect((await take(1000)).waitMs).toBe(3000);
      clock.goOn(62_000);
      // More than a minute's worth passes once nothing else is owed, and is paid off after it.
      expect(await take(90_000)).toEqual(passed);
      expect((await take(60_000)).waitMs).toBe(90_000);
    });

    test('a budget ends at its maximum and is told until when; a new bucket begins anew', async () => {
      const clock = manualClock();
      const limiter = open(clock);
      const until = clock.now() + BUDGET_MS;
      const budget = (more: object = {}) => budgetAsk('day 1', { until, ...more });
      const take = (more: object = {}) => limiter.take([budget(more)], patience());
      expect(await take({ cost: 95 })).toEqual(passed);
      const refused = { refusedBy: 'budget of day 1', waitMs: BUDGET_MS };
      expect(await take({ cost: 6 })).toEqual(refused);
      await limiter.settle(
        { leases: [], changes: [{ ask: budget({ cost: 95 }), more: -40 }] },
        patience(),
      );
      expect(await take({ cost: 45 })).toEqual(passed);
      expect(await take({ cost: 0 })).toEqual(refused);
      // What earlier processes spent counts too, where it is more.
      expect(await limiter.take([budgetAsk('day 2', { until, known: 91 })], patience())).toEqual({
        refusedBy: 'budget of day 2',
        waitMs: BUDGET_MS,
      });
      expect(await limiter.take([budgetAsk('day 3', { until, known: 90 })], patience())).toEqual(
        passed,
      );
    });

    test('a budget without a count is named and takes nothing, until what is known of it is said', async () => {
      const clock = manualClock();
      const limiter = open(clock);
      const until = clock.now() + BUDGET_MS;
      const { known: _, ...budget } = budgetAsk('day', { until });
      const take = (known?: number) =>
        limiter.take(
          [ask('calls', 60, 1), known === undefined ? budget : { ...budget, known }],
          patience(),
        );
      expect(await take()).toMatchObject({ refusedBy: undefined, uncounted: ['day'] });
      // The end of a call from before the loss leaves it so: its receipt is in what is known.
      const ended = { ...budget, cost: 50 };
      await limiter.settle({ leases: [], changes: [{ ask: ended, more: -50 }] }, patience());
      expect(await take()).toMatchObject({ uncounted: ['day'] });
      expect((await take(95)).refusedBy).toBe('budget of day');
      // It is kept, so that a refused client costs no reading.
      expect((await take()).refusedBy).toBe('budget of day');
      const next = { ...budget, bucket: 'next day', name: 'budget of next day' };
      expect(await limiter.take([{ ...next, known: 85 }], patience())).toEqual(passed);
      expect((await limiter.take([next], patience())).refusedBy).toBe('budget of next day');
    });

    test('so many run at once; a place is free when it is given back, or without a heartbeat', async () => {
      const clock = manualClock();
      const limiter = open(clock);
      const take = (leaseId: string) => limiter.take([leaseAsk(leaseId)], patience());
      expect([await take('a'), await take('b')]).toEqual([passed, passed]);
      expect((await take('c')).refusedBy).toBe('places');
      await limiter.settle({ leases: [leaseAsk('a')], changes: [] }, patience());
      expect(await take('c')).toEqual(passed);
      clock.goOn(20_000);
      await limiter.renew([leaseAsk('b'), leaseAsk('gone')], patience());
      clock.goOn(20_000);
      // The one without a heartbeat is over, and a heartbeat brings none back.
      await limiter.renew([leaseAsk('c')], patience());
      await limiter.renew([leaseAsk('c')], patience());
      expect(await take('d')).toEqual(passed);
      expect((await take('e')).refusedBy).toBe('places');
      expect(await limiter.take([leaseAsk('x', { bucket: 'others' })], patience())).toEqual(passed);
    });

    test('kinds of limits are taken together or not at all', async () => {
      const clock = manualClock();
      const limiter = open(clock);
      const until = clock.now() + BUDGET_MS;
      const all = (leaseId: string) => [
        ask('calls', 60, 5),
        budgetAsk('tokens', { until, max: 20 }),
        leaseAsk(leaseId, { max: 1 }),
      ];
      expect(await limiter.take(all('a'), patience())).toEqual(passed);
      expect((await limiter.take(all('b'), patience())).refusedBy).toBe('places');
      await limiter.settle({ leases: [leaseAsk('a', { max: 1 })], changes: [] }, patience());
      expect(await limiter.take(all('b'), patience())).toEqual(passed);
      await limiter.settle({ leases: [leaseAsk('b', { max: 1 })], changes: [] }, patience());
      expect((await limiter.take(all('c'), patience())).refusedBy).toBe('budget of tokens');
      expect(await limiter.take([leaseAsk('d', { max: 1 })], patience())).toEqual(passed);
      const calls = [ask('calls', 60, 5), ask('calls', 60, 5), ask('calls', 60, 5)];
      for (const one of calls) {
        // oxlint-disable-next-line no-await-in-loop
        expect(await limiter.take([one], patience())).toEqual(passed);
      }
      expect((await limiter.take([ask('calls', 60, 5)], patience())).refusedBy).toBe(
        'limit of calls',
      );
    });

    test('nothing is asked: it may pass', async () => {
      const limiter = open(manualClock());
      expect(await limiter.take([], patience())).toEqual({ refusedBy: undefined, waitMs: 0 });
    });
  });
}
