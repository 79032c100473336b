import type { Trial } from './hold-out.ts';

/** Compares the two groups of the hold-out experiment (see hold-out.ts). */

/** Sums over one conversation. */
export interface TrialConversation {
  readonly trial: Trial;
  readonly requests: number;
  /** Input and output tokens as the provider counted them. */
  readonly tokens: number;
  readonly corrections: number;
  /** The price of the input, in input tokens at full price. */
  readonly paid: number;
}

const TRIAL_MEASURES = ['requests', 'tokens', 'corrections', 'paid'] as const;
export type TrialMeasure = (typeof TRIAL_MEASURES)[number];

export interface TrialResult {
  readonly measure: TrialMeasure;
  /** Means per conversation. */
  readonly with: number;
  readonly without: number;
  /** The change by svc as a 95 % interval: -0.2 is a fifth less. Undefined while there are too few conversations. */
  readonly change?: { readonly low: number; readonly high: number };
}

export interface TrialReport {
  readonly conversations: Readonly<Record<Trial, number>>;
  readonly results: readonly TrialResult[];
}

/** Fewest conversations in each group for an interval, because single conversations differ by a factor of a hundred. */
const CONVERSATIONS_MIN = 30;

export function reportTrial(all: readonly TrialConversation[]): TrialReport {
  const groups = {
    with: all.filter(({ trial }) => trial === 'with'),
    without: all.filter(({ trial }) => trial === 'without'),
  };
  const isEnough = Math.min(groups.with.length, groups.without.length) >= CONVERSATIONS_MIN;
  const results = TRIAL_MEASURES.map((measure) => {
    const one = groups.with.map((conversation) => conversation[measure]);
    const other = groups.without.map((conversation) => conversation[measure]);
    const change = isEnough ? changeOf(one, other) : undefined;
    const means = { with: meanOf(one), without: meanOf(other) };
    return { measure, ...means, ...(change === undefined ? {} : { change }) };
  });
  return {
    conversations: { with: groups.with.length, without: groups.without.length },
    results,
  };
}

function meanOf(values: readonly number[]): number {
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Number of random divisions of the conversations into two groups. More divisions hardly change the interval. */
const DIVISIONS = 999;
/** The share beyond each end of a 95 % interval. */
const TAIL = 0.025;

/**
 * Returns the 95 % interval of the quotient of both means, minus one. A few conversations are a hundred times as long
 * as most, so the factor 1.96 of the normal distribution would be too small. Instead the factors come from random
 * divisions of the same conversations, between which there is no real difference (a studentized permutation test).
 */
function changeOf(one: readonly number[], other: readonly number[]): TrialResult['change'] {
  const found = quotientOf(momentsOf(one), momentsOf(other));
  if (found === undefined) return undefined;
  const all = [...one, ...other];
  const total = momentsOf(all);
  const random = randomNumbers();
  const divided: number[] = [];
  for (let time = 0; time < DIVISIONS; time += 1) {
    const part = momentsOf(drawnFirst(all, other.length, random));
    const rest = {
      count: one.length,
      sum: total.sum - part.sum,
      squares: total.squares - part.squares,
    };
    const quotient = quotientOf(rest, part);
    if (quotient === undefined) return undefined;
    divided.push(quotient.log / quotient.error);
  }
  divided.sort((first, second) => first - second);
  const at = Math.floor(TAIL * (DIVISIONS + 1)) - 1;
  const [least = 0, most = 0] = [divided[at], divided[DIVISIONS - 1 - at]];
  return {
    low: Math.exp(found.log - most * found.error) - 1,
    high: Math.exp(found.log - least * found.error) - 1,
  };
}

interface Moments {
  readonly count: number;
  readonly sum: number;
  readonly squares: number;
}

function momentsOf(values: readonly number[]): Moments {
  let [sum, squares] = [0, 0];
  for (const value of values) {
    sum += value;
    squares += value * value;
  }
  return { count: values.length, sum, squares };
}

/**
 * Returns the logarithm of the quotient of two means with its standard error. Undefined if a mean or the error is 0.
 */
function quotientOf(
  one: Moments,
  other: Moments,
): { readonly log: number; readonly error: number } | undefined {
  const error = Math.sqrt(relativeVariance(one) + relativeVariance(other));
  const log = Math.log(one.sum / one.count) - Math.log(other.sum / other.count);
  return Number.isFinite(log) && error > 0 ? { log, error } : undefined;
}

/** Returns the variance of a mean, as a share of that mean's square. */
function relativeVariance({ count, sum, squares }: Moments): number {
  return sum === 0 ? 0 : Math.max(0, (squares * count) / (sum * sum) - 1) / (count - 1);
}

/** Draws `count` random values: shuffles the beginning of the list and returns it. */
function drawnFirst(values: number[], count: number, random: () => number): readonly number[] {
  for (let at = 0; at < count; at += 1) {
    const from = at + Math.floor(random() * (values.length - at));
    const [here = 0, there = 0] = [values[at], values[from]];
    values[at] = there;
    values[from] = here;
  }
  return values.slice(0, count);
}

/** Returns a generator with the same numbers at each call (mulberry32), so that the same log gives the same report. */
function randomNumbers(): () => number {
  let state = 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
