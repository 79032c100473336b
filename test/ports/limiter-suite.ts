import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { LimitAsk, Limiter } from '../../src/ports/limiter.ts';
import { type ManualClock, manualClock } from '../support/manual-clock.ts';

const patience = (): AbortSignal => AbortSignal.timeout(30_000);
const ask = (bucket: string, perMinute = 60, burst = 2): LimitAsk => ({
  name: `limit of ${bucket}`,
  bucket,
  rate: { perMinute, burst },
});

/** What every limiter owes the service, whatever it counts in. */
export function limiterSuite(name: string, open: (clock: ManualClock) => Limiter): void {
  describe(name, () => {
    test('a burst passes, then the wait is told, and whoever waits so long passes', async () => {
      const clock = manualClock();
      const limiter = open(clock);
      const take = () => limiter.take([ask('a')], patience());
      const passed = { refusedBy: undefined, waitMs: 0 };
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

    test('nothing is asked: it may pass', async () => {
      const limiter = open(manualClock());
      expect(await limiter.take([], patience())).toEqual({ refusedBy: undefined, waitMs: 0 });
    });
  });
}
