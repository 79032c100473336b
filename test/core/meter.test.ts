import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  longFactor,
  meter,
  type MeteredRequest,
  type MeterState,
} from '../../src/core/shortening/meter.ts';
import { cachePrices } from '../../src/core/shortening/pricing.ts';
import { factsOfModel } from '../../src/core/settings/model-facts.ts';
import { moneyOf } from '../../src/core/settings/money.ts';

/**
 * Sessions against a provider whose cache is simulated: what was sent before is read again, what is
 * new or changed is written, and only the system prompt survives a change further up.
 */

const PRICES = cachePrices({ dialect: 'anthropic_messages', facts: undefined });
const SYSTEM = 20_000;
const CACHE_MS = 300_000;

interface Simulation {
  readonly requests: number;
  /** Tokens that each request adds. */
  readonly added?: number;
  /** Requests at which a batch takes so large a share of the messages out. */
  readonly batches?: readonly number[];
  readonly share?: number;
  /** Whether the provider forgets the conversation at this request, without a reason. */
  readonly misses?: (request: number) => boolean;
  /** The same, where something is left out. */
  readonly missesShortened?: boolean;
  readonly hasCache?: boolean;
  /** Estimates are so much larger than the truth, for what is left out. */
  readonly error?: number;
  /** Minutes between requests. */
  readonly gap?: number;
  /** Before this request nobody asked anything for longer than the cache lives. */
  readonly pauses?: (request: number) => boolean;
}

function simulate(simulation: Simulation): MeteredRequest[] {
  const { added = 2_000, share = 0.6, error = 1, gap = 1 } = simulation;
  const requests: MeteredRequest[] = [];
  let elided = 0;
  let total = 0;
  let now = 0;
  for (let at = 0; at < simulation.requests; at += 1) {
    const messages = added * (at + 1);
    const isBatch = simulation.batches?.includes(at) === true;
    if (isBatch) elided += Math.round((messages - elided) * share);
    const before = total;
    const isPaused = simulation.pauses?.(at) === true;
    now += gap * 60_000 + (isPaused ? CACHE_MS : 0);
    total = SYSTEM + messages - elided;
    const isMissed =
      isBatch ||
      gap * 60_000 > CACHE_MS ||
      isPaused ||
      simulation.misses?.(at) === true ||
      (simulation.missesShortened === true && elided > 0);
    const kept = at === 0 ? 0 : isMissed ? SYSTEM : before;
    const cacheRead = simulation.hasCache === false ? 0 : kept;
    const fresh = total - cacheRead;
    const isCached = simulation.hasCache !== false;
    requests.push({
      at: now,
      originalTokens: total + Math.round(elided * error),
      forwardedTokens: total,
      elidedTokens: elided,
      usage: {
        input: isCached ? 0 : fresh,
        cacheRead,
        cacheWrite: isCached ? fresh : 0,
        output: 100,
      },
      prices: PRICES,
      list: undefined,
      cacheMs: CACHE_MS,
    });
  }
  return requests;
}

function first(): MeteredRequest {
  const [request] = simulate({ requests: 1 });
  if (request === undefined) throw new Error('nothing was simulated');
  return request;
}

function run(requests: readonly MeteredRequest[]) {
  let state: MeterState | undefined;
  let [paid, direct] = [0, 0];
  for (const request of requests) {
    const metered = meter(state, request);
    state = metered.state;
    paid += metered.price.paid;
    direct += metered.price.direct;
  }
  return { state, paid, direct };
}

test('what is not shortened costs what direct costs, with and without a cache, warm and cold', () => {
  for (const other of [
    {},
    { gap: 20 },
    { hasCache: false },
    { misses: (at: number) => at === 9 },
  ]) {
    const { paid, direct } = run(simulate({ requests: 40, ...other }));
    expect(direct).toBeCloseTo(paid, 5);
  }
});

test('direct is priced as the simulated provider would price it', () => {
  const shortened = run(simulate({ requests: 60, batches: [20, 40] }));
  const direct = run(simulate({ requests: 60 }));
  expect(shortened.direct / direct.paid).toBeGreaterThan(0.97);
  expect(shortened.direct / direct.paid).toBeLessThan(1.03);
  expect(shortened.paid).toBeLessThan(shortened.direct);
});

test('law 3: batches that pay are shown as cheaper than direct, whatever the provider forgets by itself', () => {
  fc.assert(
    fc.property(
      fc.record({
        requests: fc.integer({ min: 60, max: 160 }),
        added: fc.integer({ min: 500, max: 6_000 }),
        every: fc.integer({ min: 15, max: 30 }),
        share: fc.double({ min: 0.45, max: 0.8, noNaN: true }),
        missed: fc.uniqueArray(fc.nat(159), { maxLength: 3 }),
        gap: fc.constantFrom(1, 1, 1, 7),
        hasCache: fc.constantFrom(true, true, true, false),
      }),
      ({ every, missed, ...other }) => {
        const misses = (at: number): boolean => missed.includes(at);
        const { paid, direct } = run(simulate({ ...other, batches: [every], misses }));
        expect(paid).toBeLessThan(direct);
      },
    ),
    { numRuns: 300 },
  );
});

test('misses that shortening causes are charged to svc: direct is not as dear as they are', () => {
  const { paid, direct } = run(simulate({ requests: 60, batches: [15], missesShortened: true }));
  const real = run(simulate({ requests: 60 })).paid;
  expect(paid).toBeGreaterThan(1.5 * direct);
  // A few are taken for the provider's own.
  expect(direct).toBeLessThan(1.3 * real);
});

test('without a cache a batch costs nothing, and direct the whole', () => {
  const requests = simulate({ requests: 21, batches: [20], hasCache: false });
  const last = requests.at(-1) ?? first();
  const { price } = meter(run(requests.slice(0, -1)).state, last);
  expect(price).toEqual({ paid: last.forwardedTokens, direct: last.originalTokens });
});

test('direct may have found its cache after a pause: what a batch then saves is not claimed whole', () => {
  const requests = simulate({ requests: 21, batches: [20] });
  const last = requests.at(-1) ?? first();
  const { state } = run(requests.slice(0, -1));
  const direct = (at: number): number => meter(state, { ...last, at }).price.direct;
  const [warm, rested] = [direct(last.at), direct(last.at + CACHE_MS)];
  const gone = (run([last]).paid * last.originalTokens) / last.forwardedTokens;
  expect(rested).toBeGreaterThan(warm);
  expect(rested).toBeLessThan(gone);
});

test('a compaction of the client is a new beginning for direct too', () => {
  const { state } = run(simulate({ requests: 50, batches: [20] }));
  const after = meter(state, { ...first(), at: 50 * 60_000 });
  expect(after.price.direct).toBeCloseTo(after.price.paid, 5);
});

test('numbers that a provider may send make no price that is no number', () => {
  const nothing = { input: 0, cacheRead: 0, cacheWrite: 0, output: 0 };
  for (const usage of [nothing, { ...nothing, input: Number.MAX_SAFE_INTEGER }]) {
    const empty = { ...first(), usage, forwardedTokens: 0, originalTokens: 0 };
    const { price, state } = meter(meter(undefined, empty).state, empty);
    expect([price.paid, price.direct, state.directTotal].every(Number.isFinite)).toBe(true);
  }
});

// Prices of both providers' pages, read on 2026-11-30: dollars per million tokens, above the limit and up to it.
describe.each([
  ['claude-haiku-5-5', 100_000, [0.5, 2.5, 0.05, 0.625], [0.1, 0.5, 0.01, 0.125]],
  ['gpt-6.2-sol', 272_000, [4, 15, 0.2, 5], [2, 10, 0.1, 2.5]],
] as const)('a long request to %s', (model, limit, long, usual) => {
  const facts = factsOfModel(model);
  const prices = cachePrices({ dialect: 'openai_responses', facts });

  function dollarsOf(tokens: number, leftOut = 0) {
    const usage = { input: 1_000, cacheRead: tokens - 3_000, cacheWrite: 2_000, output: 4_000 };
    const { price } = meter(undefined, {
      at: 1,
      originalTokens: tokens + leftOut,
      forwardedTokens: tokens,
      elidedTokens: leftOut,
      usage,
      prices,
      list: facts?.price,
      cacheMs: CACHE_MS,
    });
    return { ...moneyOf(model, price, usage), usage };
  }

  function expected(
    { input, cacheRead, cacheWrite, output }: ReturnType<typeof dollarsOf>['usage'],
    [ofInput, ofOutput, ofRead, ofWrite]: readonly [number, number, number, number],
  ): number {
    const sum = input * ofInput + output * ofOutput + cacheRead * ofRead + cacheWrite * ofWrite;
    return sum / 1e6;
  }

  test('costs its higher price as a whole, with its answer', () => {
    const { paid, direct, usage } = dollarsOf(limit + 1);
    expect(paid).toBeCloseTo(expected(usage, long), 9);
    expect(direct).toBeCloseTo(expected(usage, long), 9);
    expect(longFactor(usage, facts?.price)).toBe(long[0] / usual[0]);
  });

  test('has the usual price up to its limit', () => {
    const { paid, usage } = dollarsOf(limit);
    expect(paid).toBeCloseTo(expected(usage, usual), 9);
    expect(longFactor(usage, facts?.price)).toBe(1);
  });

  test('that would be long without svc is compared with the higher price', () => {
    const { paid = 0, direct = 0, usage } = dollarsOf(limit, limit);
    expect(paid).toBeCloseTo(expected(usage, usual), 9);
    // Twice the input, and an answer of the same length.
    const answer = (4_000 * long[1]) / 1e6;
    expect(direct).toBeCloseTo(2 * (expected(usage, long) - answer) + answer, 6);
  });
});

test('where a model has one price for all lengths, nothing is added', () => {
  const usage = { input: 900_000, cacheRead: 0, cacheWrite: 0, output: 1 };
  expect(longFactor(usage, factsOfModel('claude-opus-5-5')?.price)).toBe(1);
  expect(longFactor(usage, undefined)).toBe(1);
});
