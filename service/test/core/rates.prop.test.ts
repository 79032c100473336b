import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { addressBlock, forwardedAddress, takeTurn } from '../../src/core/rates.ts';

const rates = fc.record({
  perMinute: fc.integer({ min: 1, max: 6000 }),
  burst: fc.integer({ min: 1, max: 100 }),
});
const pauses = fc.array(fc.integer({ min: 0, max: 5000 }), { maxLength: 300 });

test('in no stretch of time more pass than the burst and the rate allow', () => {
  fc.assert(
    fc.property(rates, pauses, (rate, waits) => {
      let [now, due] = [0, undefined as number | undefined];
      const passed: number[] = [];
      for (const wait of waits) {
        now += wait;
        const turn = takeTurn(rate, due, now);
        due = turn.dueAt;
        if (turn.waitMs === 0) passed.push(now);
      }
      for (const [first, from] of passed.entries()) {
        for (const [last, to] of passed.entries()) {
          if (last < first) continue;
          const allowed = rate.burst + ((to - from) * rate.perMinute) / 60_000;
          expect(last - first + 1).toBeLessThanOrEqual(allowed + 1e-6);
        }
      }
    }),
  );
});

test.each([
  ['203.0.113.7', '203.0.113.7'],
  [' 203.0.113.7:50111 ', '203.0.113.7'],
  ['2001:db8::1', '2001:db8::1'],
  ['[2001:db8::1]', '2001:db8::1'],
  ['"[2001:db8::1]:443"', '2001:db8::1'],
  ['::ffff:192.0.2.1', '::ffff:192.0.2.1'],
  ['fe80::1%eth0', 'fe80::1%eth0'],
  ['unknown', undefined],
  ['_hidden:80', undefined],
  ['', undefined],
])('the address of the entry %j is %j', (entry, address) => {
  expect(forwardedAddress(entry)).toBe(address);
});

test('whoever waits as long as it was told passes', () => {
  fc.assert(
    fc.property(rates, pauses, (rate, waits) => {
      let [now, due] = [0, undefined as number | undefined];
      for (const wait of waits) {
        now += wait;
        const turn = takeTurn(rate, due, now);
        due = turn.dueAt;
        if (turn.waitMs === 0) continue;
        now += turn.waitMs;
        const next = takeTurn(rate, due, now);
        expect(next.waitMs).toBeLessThan(1e-6);
        due = next.dueAt;
      }
    }),
  );
});

test('a refused call does not push the next one back', () => {
  const rate = { perMinute: 60, burst: 1 };
  const first = takeTurn(rate, undefined, 0);
  const refused = takeTurn(rate, first.dueAt, 10);
  expect(refused).toEqual({ dueAt: first.dueAt, waitMs: 990 });
});

test.each([
  ['192.0.2.7', '192.0.2.7'],
  ['::ffff:192.0.2.7', '192.0.2.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8:1:2::9', '2001:db8:1:2::/64'],
  ['2001:db8::9', '2001:db8:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ['', ''],
])('%s belongs to %s', (address, block) => {
  expect(addressBlock(address)).toBe(block);
});
