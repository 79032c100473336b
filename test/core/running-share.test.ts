import { expect, test } from 'vitest';
import { quietShareAt, SIGNALS_MAX, speaks } from '../../src/core/recall/running-share.ts';

const earlier = Array.from({ length: 100 }, (_, place) => place + 1);

test('recall speaks for the share of prompts that is loudest in its project, however loud that is', () => {
  for (const scale of [0.01, 1, 50]) {
    const scaled = earlier.map((one) => one * scale);
    const loud = earlier.filter((one) => speaks((one + 0.5) * scale, scaled, 0.7));
    expect(loud).toHaveLength(31);
  }
});

test('a prompt that shares nothing gets silence, and a share of 0 lets all others through', () => {
  expect(speaks(0, earlier, 0)).toBe(false);
  expect(speaks(0.1, earlier, 0)).toBe(true);
  expect(speaks(0.1, [], 0)).toBe(true);
});

test('a young project has no share of its own yet: a fixed signal decides', () => {
  expect(speaks(1, [], 0.7)).toBe(false);
  expect(speaks(9, [], 0.7)).toBe(true);
  expect(SIGNALS_MAX).toBe(200);
});

test('a session begins with a lower share than the setting, and goes on with a higher one', () => {
  const shares = [0, 1, 2, 5, 20].map((prompts) => quietShareAt(0.5, prompts));
  expect(shares).toEqual(shares.toSorted((a, b) => a - b));
  expect(shares[0]).toBe(0.25);
  expect(shares[1]).toBeLessThan(0.5);
  expect(shares[2]).toBeGreaterThan(0.5);
  expect(shares[4]).toBeLessThan(1);
});

test('never and always stay what they are at every prompt of a session', () => {
  for (const prompts of [0, 1, 7, 1000]) {
    expect(quietShareAt(0, prompts)).toBe(0);
    expect(quietShareAt(1, prompts)).toBe(1);
  }
});
