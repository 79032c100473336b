import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Dialect } from '../../src/core/conversation/view.ts';
import { DIALECTS } from '../../src/core/dialects/apis.ts';
import { dialectOf } from '../../src/core/dialects/dialects.ts';
import { viewRequest } from '../support/view-of.ts';
import { isUnderstandable } from '../support/json-oracle.ts';
import { bodyOf, bodyParts } from '../support/json-texts.ts';

// Time-boxed: locally a few seconds, in the nightly job as long as FUZZ_SECONDS says.
const seconds = Number(process.env['FUZZ_SECONDS'] ?? 5);
const forever = { numRuns: Number.MAX_SAFE_INTEGER, interruptAfterTimeLimit: seconds * 1_000 };

test('never throws and never understands what is not JSON, whatever the bytes', () => {
  const pieces = fc.constantFrom(
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"',
    '\\',
    ' ',
    '1',
    '"messages"',
    '"input"',
  );
  const soup = fc.array(pieces, { maxLength: 60 }).map((it) => Buffer.from(it.join('')));
  const noise = fc.uint8Array({ maxLength: 200 }).map((it) => Buffer.from(it));
  const listed = fc
    .tuple(soup, noise)
    .map((it) => Buffer.concat([Buffer.from('{"input":['), ...it]));
  fc.assert(
    fc.property(fc.oneof(soup, noise, listed), fc.constantFrom(...DIALECTS), judge),
    forever,
  );
});

test('understands changed JSON when it is still JSON, and only then', () => {
  const changes = fc.array(
    fc.record({
      part: fc.double({ min: 0, max: 1, noNaN: true }),
      cut: fc.nat(4),
      put: fc.oneof(
        fc.uint8Array({ maxLength: 2 }),
        fc
          .constantFrom('{', '}', '[', ']', ',', ':', '"', '\\', ' ', '1')
          .map((it) => Buffer.from(it)),
      ),
    }),
    { maxLength: 3 },
  );
  const bodies = fc.constantFrom(...DIALECTS).chain((dialect) => {
    return fc.tuple(bodyParts(dialect).map(bodyOf), fc.constant(dialect));
  });
  fc.assert(
    fc.property(bodies, changes, ([body, dialect], list) => {
      const changed = list.reduce((bytes, { part, cut, put }) => {
        const at = Math.floor(part * bytes.length);
        return Buffer.concat([bytes.subarray(0, at), put, bytes.subarray(at + cut)]);
      }, body);
      judge(changed, dialect);
      const fresh = viewRequest(changed, dialect);
      expect(viewRequest(changed, dialect, viewRequest(body, dialect))).toEqual(fresh);
    }),
    forever,
  );
});

function judge(bytes: Buffer, dialect: Dialect): void {
  const isViewed = viewRequest(bytes, dialect) !== undefined;
  expect(isViewed).toBe(isUnderstandable(bytes.toString(), dialectOf(dialect).listKey));
}
