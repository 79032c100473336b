import { expect, test } from 'vitest';
import {
  type BatchFacts,
  decide,
  decideReading,
  type SightFacts,
} from '../../src/core/shortening/removal.ts';

// A read costs a tenth of the input price and a write a quarter more, as with most of Claude's models.
const CLAUDE = { read: 0.1, write: 1.25, writeHour: 2, isKnown: true, tokenRatio: 1 };

/** 40,000 tokens of messages, of which 20,000 could leave. */
const FACTS: BatchFacts = {
  isBound: false,
  isCacheCold: false,
  wholeTokens: 60_000,
  inputBudget: 8_192,
  room: 200_000,
  messages: 40_000,
  gain: 20_000,
  carried: 0,
  prices: CLAUDE,
};

// Writing the other 20,000 tokens anew costs 1.15 more for each than reading them.
const COST = 1.15 * 20_000;

test('old texts leave once carrying them has cost as much as leaving them out costs', () => {
  const carriedFor = (price: number): number => price / CLAUDE.read;
  expect(decide({ ...FACTS, carried: carriedFor(COST - 1) })).toBe('not_worth_it');
  expect(decide({ ...FACTS, carried: carriedFor(COST + 1) })).toBe('leaves');
});

test('that is after eleven and a half more requests where half of the messages can leave', () => {
  expect(decide({ ...FACTS, carried: 11 * FACTS.gain })).toBe('not_worth_it');
  expect(decide({ ...FACTS, carried: 12 * FACTS.gain })).toBe('leaves');
});

test('the model’s own price of a read decides: at a fortieth it is after 49 requests', () => {
  const prices = { ...CLAUDE, read: 0.025 };
  expect(decide({ ...FACTS, prices, carried: 48 * FACTS.gain })).toBe('not_worth_it');
  expect(decide({ ...FACTS, prices, carried: 49 * FACTS.gain })).toBe('leaves');
});

test('on a cold cache everything that is old leaves at once, however small above the minimum', () => {
  expect(decide({ ...FACTS, isCacheCold: true })).toBe('leaves');
  expect(decide({ ...FACTS, isCacheCold: true, gain: 1_024 })).toBe('leaves');
  expect(decide({ ...FACTS, isCacheCold: true, gain: 1_023 })).toBe('not_worth_it');
});

test('where the price of a cache read is not known, nothing leaves a warm cache', () => {
  const prices = { ...CLAUDE, isKnown: false };
  expect(decide({ ...FACTS, prices, carried: 1_000_000_000 })).toBe('not_worth_it');
  expect(decide({ ...FACTS, prices, isCacheCold: true })).toBe('leaves');
});

test('nothing leaves a request within the budget, whatever its parts', () => {
  expect(decide({ ...FACTS, isCacheCold: true, wholeTokens: 8_192 })).toBe('within_budget');
});

test('above four fifths of a known window no batch begins; an unknown window is never near', () => {
  const cold = { ...FACTS, isCacheCold: true };
  expect(decide({ ...cold, room: 50_001 })).toBe('leaves');
  expect(decide({ ...cold, room: 49_999 })).toBe('near_window');
  expect(decide({ ...cold, room: undefined, messages: 10_000_000 })).toBe('leaves');
});

test('the window is filled by the provider’s tokens, and svc’s estimates are fewer', () => {
  const prices = { ...CLAUDE, tokenRatio: 1.25 };
  expect(decide({ ...FACTS, prices, isCacheCold: true, room: 60_000 })).toBe('near_window');
});

test('what would leave a bound conversation is protected, and what would stay anyway says why', () => {
  const bound = { ...FACTS, isBound: true };
  expect(decide({ ...bound, isCacheCold: true })).toBe('protected');
  expect(decide({ ...bound, carried: 1_000_000 })).toBe('protected');
  expect(decide(bound)).toBe('not_worth_it');
  expect(decide({ ...bound, wholeTokens: 1_000 })).toBe('within_budget');
});

/** A long request of a conversation that svc has looked at before, and of which nothing has left yet. */
const SEEN: SightFacts = {
  obstacle: undefined,
  kind: 'main',
  isOverBudget: true,
  hasBatches: false,
  isLedgerRead: true,
  isReal: true,
  isRefused: false,
  isKnown: true,
  isShort: false,
};

test.each<[string, Partial<SightFacts>, ReturnType<typeof decideReading>]>([
  ['a long request of a known conversation', {}, 'reads'],
  [
    'an obstacle comes before everything else',
    { obstacle: 'memory_off', hasBatches: true },
    'memory_off',
  ],
  ['a request within the budget', { isOverBudget: false }, 'within_budget'],
  ['what left stays out within the budget too', { isOverBudget: false, hasBatches: true }, 'reads'],
  ['a compaction of which nothing has left', { kind: 'compaction' }, 'compaction'],
  ['a side call of which nothing has left', { kind: 'side' }, 'side_call'],
  ['a compaction repeats what left', { kind: 'compaction', hasBatches: true }, 'reads'],
  [
    'the provider refused a shortened request',
    { isRefused: true, hasBatches: true },
    'provider_refused',
  ],
  ['in shadow a refusal does not count', { isRefused: true, isReal: false }, 'reads'],
  ['a late ledger', { isLedgerRead: false }, 'unanswered'],
  [
    'a late ledger about what this process knows',
    { isLedgerRead: false, hasBatches: true },
    'reads',
  ],
  ['a long history at first sight', { isKnown: false }, 'not_stored'],
  ['a short one at first sight', { isKnown: false, isShort: true }, 'nothing_old'],
  ['in shadow a first sight is measured', { isKnown: false, isReal: false }, 'reads'],
])('%s', (_, facts, outcome) => {
  expect(decideReading({ ...SEEN, ...facts })).toBe(outcome);
});
