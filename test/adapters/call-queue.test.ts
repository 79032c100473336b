import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { CallQueue } from '../../src/adapters/store/call-queue.ts';

const URGENT = new Set(['recall', 'hold']);
const BOUND = 16;

function call(name: string, number: number) {
  return { name, number, input: undefined };
}

test('a recall passes captures that came before it', () => {
  const queue = new CallQueue(URGENT);
  for (const [at, name] of ['capture', 'capture', 'recall'].entries()) queue.add(call(name, at));
  expect([queue.next(), queue.next(), queue.next()].map((it) => it?.number)).toEqual([2, 0, 1]);
  expect(queue.next()).toBe(undefined);
});

test('a store that is asked without a pause still captures: one call after sixteen urgent ones', () => {
  const queue = new CallQueue(URGENT);
  for (let at = 0; at < 5; at += 1) queue.add(call('capture', at));
  const served: string[] = [];
  for (let at = 0; at < 200; at += 1) {
    queue.add(call('recall', at));
    served.push(queue.next()?.name ?? 'none');
  }
  expect(served.filter((name) => name === 'capture')).toHaveLength(5);
  expect(served.indexOf('capture')).toBe(BOUND);
});

test('a call that is put back stays in front of the other ones, and behind recalls', () => {
  const queue = new CallQueue(URGENT);
  for (const [at, name] of ['capture', 'capture'].entries()) queue.add(call(name, at));
  queue.putBack(queue.next() ?? call('none', -1));
  queue.add(call('recall', 2));
  expect([queue.next(), queue.next(), queue.next()].map((it) => it?.number)).toEqual([2, 0, 1]);
});

test('closing waits for every recall that was asked before it', () => {
  const queue = new CallQueue(URGENT);
  for (let at = 0; at < 40; at += 1) queue.add(call('recall', at));
  queue.add(call('close', 40));
  const served = Array.from({ length: 41 }, () => queue.next()?.name);
  expect(served.indexOf('close')).toBe(40);
});

test('every call is served once, each kind in its order', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom('recall', 'hold', 'capture', 'next')), (steps) => {
      const queue = new CallQueue(URGENT);
      const served: { name: string; number: number }[] = [];
      const take = () => {
        const next = queue.next();
        if (next !== undefined) served.push(next);
        return next;
      };
      for (const [at, step] of steps.entries()) {
        if (step === 'next') take();
        else queue.add(call(step, at));
      }
      while (take() !== undefined);
      expect(served).toHaveLength(steps.filter((step) => step !== 'next').length);
      for (const isUrgent of [true, false]) {
        const kind = served.filter(({ name }) => URGENT.has(name) === isUrgent);
        const numbers = kind.map(({ number }) => number);
        expect(numbers).toEqual(numbers.toSorted((one, other) => one - other));
      }
    }),
  );
});
