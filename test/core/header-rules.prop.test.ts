import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { forwardHeaders, headerCount } from '../../src/core/http/header-rules.ts';

const SECRET_NAMES = [
  'authorization',
  'x-api-key',
  'cookie',
  'x-svc-memory-mode',
  'x-forwarded-for',
];

/** Any spelling that a lenient server would read as this name. */
function spelling(name: string): fc.Arbitrary<string> {
  const letters = name
    .split('')
    .map((letter) => fc.constantFrom(letter, letter.toUpperCase(), letter === '-' ? '_' : letter));
  return fc.tuple(...letters).map((parts) => parts.join(''));
}

const harmless = fc.tuple(
  fc.stringMatching(/^z-[a-zA-Z0-9_-]{1,12}$/),
  fc.stringMatching(/^[ -~\u00a0-\u00ff]{0,20}$/),
);
const secret = fc
  .tuple(fc.constantFrom(...SECRET_NAMES).chain(spelling), fc.constant('LOCAL-SECRET'))
  .map(([name, value]): [string, string] => [name, value]);

test('R14: no spelling of a dropped name crosses, and everything else does, in order', () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(harmless, secret)), (pairs) => {
      const upstream = { auth: 'bearer', providerKey: 'key', headers: {} } as const;
      const forwarded = forwardHeaders(pairs.flat(), upstream);
      const kept = pairs.filter(([, value]) => value !== 'LOCAL-SECRET').flat();
      expect(forwarded.slice(0, kept.length)).toEqual(kept);
      expect(forwarded).not.toContain('LOCAL-SECRET');
      expect(forwarded.slice(-2)).toEqual(['authorization', 'Bearer key']);
      expect(headerCount(forwarded, 'authorization')).toBe(1);
    }),
  );
});
