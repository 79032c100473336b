import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  meter,
  type MeteredRequest,
  type MeterState,
  type Verdict,
} from '../../src/core/shortening/meter.ts';
import { cachePrices } from '../../src/core/shortening/pricing.ts';

/**
 * Sessions against a provider whose cache is simulated: what was sent before is read again, what is
 * new or changed is written, and only the system prompt survives a change further up.
 */

const PRICES = cachePrices('anthropic_messages');
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
  const verdicts: Verdict[] = [];
  for (const request of requests) {
    const metered = meter(state, request);
    state = metered.state;
    paid += metered.price.paid;
    direct += metered.price.direct;
    verdicts.push(state.verdict);
  }
  return { state, paid, direct, verdicts, verdict: verdicts.at(-1) };
}

test('what is not shortened costs what direct costs, with and without a cache, warm and cold', () => {
  for (const other of [
    {},
    { gap: 20 },
    { hasCache: false },
    { misses: (at: number) => at === 9 },
  ]) {
    const { paid, direct, verdict } = run(simulate({ requests: 40, ...other }));
    expect(direct).toBeCloseTo(paid, 5);
    expect(verdict).toBe('goes_on');
  }
});

test('direct is priced as the simulated provider would price it', () => {
  const shortened = run(simulate({ requests: 60, batches: [20, 40] }));
  const direct = run(simulate({ requests: 60 }));
  expect(shortened.direct / direct.paid).toBeGreaterThan(0.97);
  expect(shortened.direct / direct.paid).toBeLessThan(1.03);
  expect(shortened.paid).toBeLessThan(shortened.direct);
});

test('law 3: batches that pay are never held against a conversation, whatever the provider forgets by itself', () => {
  fc.assert(
    fc.property(
      fc.record({
        requests: fc.integer({ min: 30, max: 160 }),
        added: fc.integer({ min: 500, max: 6_000 }),
        every: fc.integer({ min: 15, max: 50 }),
        share: fc.double({ min: 0.45, max: 0.8, noNaN: true }),
        error: fc.double({ min: 0.92, max: 1.08, noNaN: true }),
        missed: fc.uniqueArray(fc.nat(159), { maxLength: 3 }),
        gap: fc.constantFrom(1, 1, 1, 7),
        hasCache: fc.constantFrom(true, true, true, false),
      }),
      ({ every, missed, ...other }) => {
        const batches = [1, 2, 3, 4, 5, 6].map((time) => time * every);
        const misses = (at: number): boolean => missed.includes(at);
        expect(run(simulate({ ...other, batches, misses })).verdict).toBe('goes_on');
      },
    ),
    { numRuns: 300 },
  );
});

test('a provider that caches nothing of what is shortened is noticed, and all is sent again', () => {
  const { verdicts } = run(simulate({ requests: 60, batches: [15], missesShortened: true }));
  const at = verdicts.indexOf('send_all');
  expect(at).toBeGreaterThanOrEqual(15 + 20);
  expect(at).toBeLessThan(15 + 30);
  expect(verdicts).not.toContain('no_more');
  // It stays: the conversation is cheap again, because nothing is left out.
  expect(verdicts.slice(at)).toEqual(verdicts.slice(at).map(() => 'send_all'));
});

test('batches that come too often to pay are stopped, and what is out stays out', () => {
  const batches = Array.from({ length: 40 }, (_, time) => 10 + 3 * time);
  const { verdicts } = run(simulate({ requests: 80, batches, share: 0.1 }));
  const at = verdicts.findIndex((verdict) => verdict !== 'goes_on');
  expect(at).toBeGreaterThanOrEqual(10 + 20);
  expect(verdicts[at]).toBe('no_more');
});

test('nothing is said before 20 requests, nor after fewer than 5 dear ones in a row', () => {
  const requests = simulate({ requests: 60, batches: [15], missesShortened: true });
  expect(run(requests.slice(0, 15 + 19 + 4)).verdict).toBe('goes_on');
  const { verdicts } = run(requests);
  expect(verdicts.filter((verdict) => verdict === 'goes_on').length).toBeGreaterThanOrEqual(38);
});

test('a provider that misses as often before the first batch is not blamed on shortening', () => {
  const misses = (at: number): boolean => at % 3 === 0;
  const { verdict } = run(simulate({ requests: 90, batches: [30, 60], misses }));
  expect(verdict).toBe('goes_on');
});

test('a large batch has the requests to pay itself back that the price model counted on', () => {
  const requests = simulate({ requests: 60, batches: [15], share: 0.1 });
  const again = simulate({ requests: 60, batches: [15, 40], share: 0.3, added: 3_000 });
  expect(run(requests).verdict).toBe('goes_on');
  const { verdict, state } = run(again.slice(0, 46));
  // Dearer so far, and not held against it yet.
  expect(state?.paid).toBeGreaterThan(1.1 * (state?.direct ?? 0));
  expect(verdict).toBe('goes_on');
});

test('without a cache a batch costs nothing, and direct the whole', () => {
  const requests = simulate({ requests: 21, batches: [20], hasCache: false });
  const last = requests.at(-1) ?? first();
  const { price } = meter(run(requests.slice(0, -1)).state, last);
  expect(price).toEqual({ paid: last.forwardedTokens, direct: last.originalTokens });
});

test('a verdict stays when the conversation has become cheap again', () => {
  const dear = simulate({ requests: 60, batches: [15], missesShortened: true });
  const cheap = simulate({ requests: 200 }).slice(60);
  const { verdicts } = run([...dear, ...cheap]);
  expect(verdicts.slice(60)).toEqual(cheap.map(() => 'send_all'));
});

test('batches after pauses are not held against a conversation, however often they come', () => {
  const isThird = (at: number): boolean => at >= 10 && at % 3 === 0;
  const batches = Array.from({ length: 80 }, (_, at) => at).filter(isThird);
  const rested = simulate({ requests: 80, batches, share: 0.02, pauses: isThird });
  expect(run(rested).verdict).toBe('goes_on');
  expect(run(simulate({ requests: 80, batches, share: 0.02 })).verdict).toBe('no_more');
});

test.each([
  [0.95, 'goes_on'],
  [0.8, 'no_more'],
])(
  'a little dearer than direct is within what estimates are wrong by: originals of %f of what is sent, %s',
  (share, wanted) => {
    // What was added is more than what was left out: every request is dearer, by a little or by more.
    const requests = simulate({ requests: 60 }).map((request) => ({
      ...request,
      elidedTokens: 1_000,
      originalTokens: request.forwardedTokens * share,
    }));
    const { paid, direct, verdict } = run(requests);
    expect(paid).toBeGreaterThan(1.01 * direct);
    expect(verdict).toBe(wanted);
  },
);

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

test('read again from the log the same requests give the same verdict', () => {
  const requests = simulate({ requests: 60, batches: [15], missesShortened: true });
  const half = run(requests.slice(0, 30)).state;
  const again = run(JSON.parse(JSON.stringify(requests.slice(0, 30))) as MeteredRequest[]).state;
  expect(again).toEqual(half);
});

test('numbers that a provider may send make no price that is no number', () => {
  const nothing = { input: 0, cacheRead: 0, cacheWrite: 0, output: 0 };
  for (const usage of [nothing, { ...nothing, input: Number.MAX_SAFE_INTEGER }]) {
    const empty = { ...first(), usage, forwardedTokens: 0, originalTokens: 0 };
    const { price, state } = meter(meter(undefined, empty).state, empty);
    expect([price.paid, price.direct, state.directTotal].every(Number.isFinite)).toBe(true);
  }
});
