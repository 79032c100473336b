import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { applyEdits, type Edit } from '../../src/core/plan/item-edits.ts';

const body = fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes));

/** Edits that do not overlap, in no order. Several may insert at the same place. */
const edits = (length: number): fc.Arbitrary<Edit[]> =>
  fc
    .tuple(fc.array(fc.nat(length), { maxLength: 8 }), fc.array(fc.uint8Array({ maxLength: 4 })))
    .map(([cuts, bytes]) => {
      const sorted = cuts.toSorted((a, b) => a - b);
      return bytes.slice(0, Math.floor(sorted.length / 2)).map((put, at) => ({
        start: sorted[2 * at] ?? 0,
        end: sorted[2 * at + 1] ?? 0,
        bytes: put,
      }));
    });

test('law 1: without edits the body leaves as the very same buffer', () => {
  fc.assert(
    fc.property(body, (bytes) => {
      const pieces = applyEdits(bytes, []);
      expect(pieces).toHaveLength(1);
      expect(pieces[0]).toBe(bytes);
    }),
  );
});

test('law 1: edits change their spans and nothing else', () => {
  const pairs = body.chain((bytes) => fc.tuple(fc.constant(bytes), edits(bytes.length)));
  fc.assert(
    fc.property(pairs, ([bytes, list]) => {
      // From the last to the first, so that no edit moves the place of another.
      const expected = list.reduceRight(
        (text, edit) => text.slice(0, edit.start) + latin1(edit.bytes) + text.slice(edit.end),
        latin1(bytes),
      );
      expect(latin1(Buffer.concat(applyEdits(bytes, list)))).toBe(expected);
    }),
    { numRuns: 1000 },
  );
});

test('pieces are views into the body, not copies', () => {
  const bytes = Buffer.from('abcdef');
  const [before, put, after] = applyEdits(bytes, [{ start: 2, end: 3, bytes: Buffer.from('X') }]);
  expect([before, after].map((piece) => piece?.buffer)).toEqual([bytes.buffer, bytes.buffer]);
  expect(latin1(Buffer.concat([before ?? bytes, put ?? bytes, after ?? bytes]))).toBe('abXdef');
});

test('edits at the same place stay in the order given', () => {
  const at = (text: string) => ({ start: 1, end: 1, bytes: Buffer.from(text) });
  expect(latin1(Buffer.concat(applyEdits(Buffer.from('ab'), [at('1'), at('2'), at('3')])))).toBe(
    'a123b',
  );
});

test.each([
  [
    'overlap',
    [
      { start: 0, end: 3 },
      { start: 2, end: 4 },
    ],
  ],
  [
    'insert inside a cut',
    [
      { start: 0, end: 3 },
      { start: 2, end: 2 },
    ],
  ],
  ['start before the body', [{ start: -1, end: 0 }]],
  ['end after the body', [{ start: 5, end: 7 }]],
  ['end before they start', [{ start: 4, end: 3 }]],
])('edits that %s are refused', (_name, spans) => {
  const list = spans.map((span) => ({ ...span, bytes: Buffer.alloc(0) }));
  expect(() => applyEdits(Buffer.from('abcdef'), list)).toThrow(RangeError);
  expect(() => applyEdits(Buffer.from('abcdef'), list.toReversed())).toThrow(RangeError);
});

function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('latin1');
}
