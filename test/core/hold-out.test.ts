import { describe, expect, test } from 'vitest';
import {
  isCorrection,
  modesWithout,
  reportTrial,
  type Trial,
  type TrialConversation,
  trialOf,
} from '../../src/core/meter/hold-out.ts';

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

function group(trial: Trial, count: number, tokens: number): TrialConversation[] {
  return Array.from({ length: count }, (_, at) => ({
    trial,
    requests: 10,
    tokens: tokens * (1 + (at % 5) / 10),
    corrections: at % 2,
    paid: 100,
  }));
}

describe('the report', () => {
  test('gives an interval that holds the true difference', () => {
    const { conversations, results } = reportTrial([
      ...group('with', 300, 800),
      ...group('without', 40, 1_000),
    ]);
    expect(conversations).toEqual({ with: 300, without: 40 });
    const { change } = results.find(({ measure }) => measure === 'tokens') ?? {};
    expect(change?.low).toBeLessThan(-0.2);
    expect(change?.high).toBeGreaterThan(-0.2);
    expect(change?.high).toBeLessThan(-0.1);
  });

  test('does not tell where one group is small, or the interval holds nothing', () => {
    const few = reportTrial([...group('with', 300, 500), ...group('without', 29, 1_000)]);
    for (const result of few.results) expect(result).not.toHaveProperty('change');
    const same = reportTrial([...group('with', 300, 1_000), ...group('without', 40, 1_000)]);
    for (const result of same.results) expect(result).not.toHaveProperty('change');
    expect(reportTrial([]).conversations).toEqual({ with: 0, without: 0 });
  });
});
