import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { Recent } from '../../src/core/bytes/recent.ts';

const MAX = 6;

/** The same rules in a list: the oldest first. */
class Model {
  entries: (readonly [string, number])[] = [];

  get(key: string): number | undefined {
    const found = this.entries.find(([name]) => name === key);
    if (found !== undefined) this.entries = [...this.entries.filter((one) => one !== found), found];
    return found?.[1];
  }

  set(key: string, value: number): void {
    this.delete(key);
    this.entries.push([key, value]);
    while (this.entries.reduce((sum, [, size]) => sum + size, 0) > MAX) this.entries.shift();
  }

  delete(key: string): void {
    this.entries = this.entries.filter(([name]) => name !== key);
  }
}

const KEY = fc.constantFrom('a', 'b', 'c', 'd');
const STEP = fc.oneof(
  fc.record({ act: fc.constant('get' as const), key: KEY }),
  fc.record({ act: fc.constant('set' as const), key: KEY, value: fc.integer({ min: 1, max: 8 }) }),
  fc.record({ act: fc.constant('delete' as const), key: KEY }),
  fc.record({ act: fc.constant('clear' as const), key: KEY }),
);

test('a map of recent entries forgets those that were used longest ago, and no others', () => {
  fc.assert(
    fc.property(fc.array(STEP, { maxLength: 40 }), (steps) => {
      const model = new Model();
      const recent = new Recent<string, number>(MAX, (value) => value);
      for (const step of steps) {
        if (step.act === 'get') expect(recent.get(step.key)).toBe(model.get(step.key));
        if (step.act === 'set') {
          recent.set(step.key, step.value);
          model.set(step.key, step.value);
        }
        if (step.act === 'delete') {
          recent.delete(step.key);
          model.delete(step.key);
        }
        if (step.act === 'clear') {
          recent.clear();
          model.entries = [];
        }
        expect(recent.values()).toEqual(model.entries.map(([, value]) => value));
        expect(recent.size).toBe(model.entries.length);
      }
    }),
    { numRuns: 500 },
  );
});
