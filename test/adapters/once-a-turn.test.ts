import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { OnceATurn } from '../../src/adapters/files/once-a-turn.ts';

function counter(): OnceATurn<number> {
  let looks = 0;
  return new OnceATurn(() => (looks += 1));
}

test('promises of one turn share a look', async () => {
  const memo = counter();
  expect(memo.get()).toBe(1);
  await Promise.resolve();
  expect(memo.get()).toBe(1);
  await (async () => Promise.resolve())();
  expect(memo.get()).toBe(1);
});

test.each([
  ['an answer, a socket or a timer', () => nextTurn()],
  ['work for which the turn makes room', () => new Promise<void>((done) => process.nextTick(done))],
])('after %s there is another look', async (_, turn) => {
  const memo = counter();
  expect(memo.get()).toBe(1);
  await turn();
  expect(memo.get()).toBe(2);
  await turn();
  expect(memo.get()).toBe(3);
});

test('a look that fails is not remembered', () => {
  let looks = 0;
  const memo = new OnceATurn(() => {
    looks += 1;
    if (looks === 1) throw new Error('not there');
    return looks;
  });
  expect(() => memo.get()).toThrow('not there');
  expect(memo.get()).toBe(2);
});
