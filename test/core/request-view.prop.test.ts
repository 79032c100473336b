import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Dialect } from '../../src/core/conversation/view.ts';
import { DIALECTS } from '../../src/core/dialects/apis.ts';
import { dialectOf } from '../../src/core/dialects/dialects.ts';
import { viewRequest } from '../support/view-of.ts';
import { isUnderstandable } from '../support/json-oracle.ts';
import { type BodyParts, bodyOf, bodyParts, itemText, valueText } from '../support/json-texts.ts';

const RUNS = 300;

describe.each(DIALECTS)('%s', (dialect) => {
  test('an item stands exactly where the element of the list stands', () => {
    fc.assert(
      fc.property(bodyParts(dialect), (parts) => {
        const bytes = bodyOf(parts);
        const view = viewRequest(bytes, dialect);
        expect(view?.items.map(({ start, end }) => bytes.toString('utf8', start, end))).toEqual(
          parts.items,
        );
        expect(view?.shell.value).toEqual({
          ...JSON.parse(bytes.toString()),
          [dialectOf(dialect).listKey]: [],
        });
      }),
      { numRuns: RUNS },
    );
  });

  test('a view from an earlier view is the view from nothing, however the body changed', () => {
    fc.assert(
      fc.property(pairOfBodies(dialect), ([one, other]) => {
        const fresh = viewRequest(other, dialect);
        const reused = viewRequest(other, dialect, viewRequest(one, dialect));
        expect(reused?.bytes).toBe(fresh?.bytes);
        expect({ ...reused, bytes: undefined }).toEqual({ ...fresh, bytes: undefined });
      }),
      { numRuns: 2 * RUNS },
    );
  });

  test('a body with any byte changed is understood when it is still JSON, and only then', () => {
    fc.assert(
      fc.property(pairOfBodies(dialect), ([, bytes]) => {
        const isViewed = viewRequest(bytes, dialect) !== undefined;
        expect(isViewed).toBe(isUnderstandable(bytes.toString(), dialectOf(dialect).listKey));
      }),
      { numRuns: 2 * RUNS },
    );
  });
});

function pairOfBodies(dialect: Dialect): fc.Arbitrary<[Buffer, Buffer]> {
  const parts = bodyParts(dialect);
  return fc.oneof(
    fc
      .tuple(parts, nextParts)
      .map(([one, next]): [Buffer, Buffer] => [bodyOf(one), bodyOf(next(one))]),
    fc
      .tuple(parts, nextBytes)
      .map(([one, next]): [Buffer, Buffer] => [bodyOf(one), next(bodyOf(one))]),
    fc.tuple(parts.map(bodyOf), parts.map(bodyOf)),
  );
}

/** What clients do to a conversation: go on, rewind, change an item, change the settings. */
const nextParts: fc.Arbitrary<(parts: BodyParts) => BodyParts> = fc.oneof(
  fc.array(itemText, { maxLength: 3 }).map((more) => (parts: BodyParts) => ({
    ...parts,
    items: [...parts.items, ...more],
  })),
  fc
    .nat(5)
    .map((count) => (parts: BodyParts) => ({ ...parts, items: parts.items.slice(0, count) })),
  fc.tuple(fc.nat(5), itemText).map(([at, item]) => (parts: BodyParts) => ({
    ...parts,
    items: parts.items.map((old, index) => (index === at ? item : old)),
  })),
  valueText.map((value) => (parts: BodyParts) => ({ ...parts, after: `,"other":${value}` })),
  valueText.map((value) => (parts: BodyParts) => ({ ...parts, before: `"other":${value},` })),
  fc.constant((parts: BodyParts) => ({ ...parts, after: `${parts.after},${parts.key}:[]` })),
);

/** What happens to bytes: cut anywhere, in a string, an escape or a character; a few replaced. */
const nextBytes: fc.Arbitrary<(bytes: Buffer) => Buffer> = fc.oneof(
  fc
    .double({ min: 0, max: 1, noNaN: true })
    .map((part) => (bytes: Buffer) => bytes.subarray(0, Math.floor(part * bytes.length))),
  fc
    .record({
      part: fc.double({ min: 0, max: 1, noNaN: true }),
      cut: fc.nat(3),
      put: fc.oneof(
        fc.uint8Array({ maxLength: 3 }),
        fc
          .constantFrom(' ', '1', ',', '"', '\\', '[', '}', ']', ',{}', 'é')
          .map((it) => Buffer.from(it)),
      ),
    })
    .map(({ part, cut, put }) => (bytes: Buffer) => {
      const at = Math.floor(part * bytes.length);
      return Buffer.concat([bytes.subarray(0, at), put, bytes.subarray(at + cut)]);
    }),
);
