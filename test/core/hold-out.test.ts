import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isCorrection, modesWithout, type Trial, trialOf } from '../../src/core/meter/hold-out.ts';
import {
  reportTrial,
  type TrialConversation,
  type TrialResult,
} from '../../src/core/meter/trial-report.ts';

test('one in ten conversations is held out, always the same ones, with the agents of its session', () => {
  const keys = Array.from({ length: 4_000 }, (_, at) => `session-${at}`);
  const out = keys.filter((key) => trialOf(key) === 'without');
  expect(out.length / keys.length).toBeGreaterThan(0.08);
  expect(out.length / keys.length).toBeLessThan(0.12);
  for (const key of keys) expect(trialOf(`${key}/agent-1`)).toBe(trialOf(key));
});

test('a held-out conversation is stored, and neither recalled for nor shortened', () => {
  const modes = {
    memory: 'read-write',
    reads: true,
    writes: true,
    compression: 'deterministic',
  } as const;
  const without = { memory: 'write', reads: false, writes: true, compression: 'passthrough' };
  expect(modesWithout(modes)).toEqual(without);
  expect(modesWithout({ ...modes, writes: false })).toMatchObject({ memory: 'off', writes: false });
});

test.each([
  ['No, the port is 6431.', true],
  ['that’s not what I asked', true],
  ['Undo that.', true],
  ['Now add a test for it.', false],
  ['Nothing else; thanks', false],
])('%j is a correction: %s', (text, expected) => {
  expect(isCorrection(text)).toBe(expected);
});

/** A few conversations are a hundred times as long as most. `nth`: of the draw. */
function group(trial: Trial, count: number, { nth, factor = 1 }: Draw): TrialConversation[] {
  const random = fc.sample(
    fc.array(fc.integer({ min: 1, max: 9_999 }), {
      minLength: count,
      maxLength: count,
      size: 'max',
    }),
    {
      numRuns: 1,
      seed: 7 * nth + (trial === 'with' ? 1 : 2),
    },
  )[0];
  return (random ?? []).map((drawn, at) => {
    const length = factor * Math.exp(1.2 * logit(drawn / 10_000));
    return {
      trial,
      requests: 1 + Math.floor(9 * length),
      tokens: 100_000 * length,
      corrections: at % 2,
      paid: 50_000 * length,
    };
  });
}

interface Draw {
  readonly nth: number;
  readonly factor?: number;
}

/** Turns a share into a number without bounds. */
function logit(share: number): number {
  return Math.log(share / (1 - share)) / 1.8;
}

function changesOf(nth: number, factor: number): readonly (TrialResult['change'] | undefined)[] {
  const rows = [...group('with', 270, { nth, factor }), ...group('without', 30, { nth })];
  return reportTrial(rows).results.map(({ change }) => change);
}

describe('the report', () => {
  test('gives an interval that holds the true difference in some 95 of 100 logs', () => {
    const DRAWS = 60;
    for (const factor of [1, 0.6]) {
      const held = Array.from({ length: DRAWS }, (_, nth) => {
        const [, tokens] = changesOf(nth, factor);
        return tokens !== undefined && tokens.low <= factor - 1 && tokens.high >= factor - 1;
      }).filter(Boolean).length;
      // Of 60 draws at 95 %, fewer than 51 come once in 1,300.
      expect(held).toBeGreaterThanOrEqual(51);
    }
  }, 60_000);

  test('finds a large difference, and gives the same interval each time', () => {
    const [, tokens] = changesOf(1, 0.3);
    expect(tokens?.high).toBeLessThan(0);
    expect(tokens?.low).toBeGreaterThan(-1);
    expect(changesOf(1, 0.3)[1]).toEqual(tokens);
  });

  test('gives none where one group is small or the numbers are all the same', () => {
    const few = reportTrial([
      ...group('with', 300, { nth: 1, factor: 0.1 }),
      ...group('without', 29, { nth: 1 }),
    ]);
    for (const result of few.results) expect(result).not.toHaveProperty('change');
    const same = [...group('with', 40, { nth: 1 }), ...group('without', 40, { nth: 1 })].map(
      (one) => ({ ...one, requests: 5, corrections: 0 }),
    );
    const { conversations, results } = reportTrial(same);
    expect(conversations).toEqual({ with: 40, without: 40 });
    const told = results.filter(({ change }) => change !== undefined).map(({ measure }) => measure);
    expect(told).toEqual(['tokens', 'paid']);
    expect(reportTrial([]).conversations).toEqual({ with: 0, without: 0 });
  });
});
