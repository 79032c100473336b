import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { batchProfit, type BatchPrice, cachePrices } from '../../src/core/shortening/pricing.ts';

const prices = cachePrices('anthropic_messages');

const batches = fc.record({
  gain: fc.integer({ min: 1, max: 200_000 }),
  messages: fc.integer({ min: 1, max: 400_000 }),
  requests: fc.integer({ min: 1, max: 300 }),
  growthLeft: fc.oneof(fc.constant(Infinity), fc.double({ min: 0, max: 20, noNaN: true })),
  comingBack: fc.constant(0),
  isFirst: fc.boolean(),
});

function profit(batch: Omit<BatchPrice, 'prices' | 'waited'>, waited = 0): number {
  return batchProfit({ ...batch, waited, prices });
}

test('a first batch counts on having waited, and less than a later one', () => {
  fc.assert(
    fc.property(batches, fc.integer({ min: 1, max: 1e7 }), (batch, waited) => {
      const first = { ...batch, isFirst: true };
      expect(profit(first, waited)).toBeGreaterThan(profit(first));
      expect(profit(first, waited)).toBeLessThan(profit({ ...batch, isFirst: false }, waited));
    }),
  );
});

test('a batch counts on a third of the requests so far, and on no more than its provider says', () => {
  fc.assert(
    fc.property(batches, (batch) => {
      const roomy = { ...batch, growthLeft: 1e9 };
      const costs = profit({ ...roomy, requests: 0 });
      const saved = profit(roomy) - costs;
      const counted = saved / (prices.read * batch.gain);
      expect(counted).toBeCloseTo(Math.min(batch.requests / 3, prices.requestsAhead), 6);
    }),
  );
});

test('the longer a batch has waited, the more it pays', () => {
  fc.assert(
    fc.property(batches, fc.nat(1e7), fc.nat(1e7), (batch, waited, more) => {
      expect(profit(batch, waited + more)).toBeGreaterThanOrEqual(profit(batch, waited));
    }),
  );
});

test('waiting makes no batch pay more than a share of what it has cost', () => {
  fc.assert(
    fc.property(batches, fc.nat(1e7), (batch, waited) => {
      const share = profit(batch, waited) - profit(batch, 0);
      expect(share).toBeLessThanOrEqual(prices.read * waited);
    }),
  );
});

test('with more to leave out, or less to write again, a batch pays more', () => {
  fc.assert(
    fc.property(batches, fc.nat(50_000), fc.nat(1e7), (batch, more, waited) => {
      const larger = { ...batch, gain: batch.gain + more };
      const longer = { ...batch, messages: batch.messages + more };
      expect(profit(larger, waited)).toBeGreaterThanOrEqual(profit(batch, waited));
      expect(profit(longer, waited)).toBeLessThanOrEqual(profit(batch, waited));
    }),
  );
});
