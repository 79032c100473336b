import { expect, test } from 'vitest';
import { TermKeys } from '../../src/adapters/postgres-store/term-keys.ts';
import { termsOf } from '../../../src/core/recall/terms.ts';

const SECRET = Buffer.alloc(32, 7);

/** As `array_send` of PostgreSQL writes a bigint array. */
function sent(keys: readonly string[]): Buffer {
  const head = Buffer.alloc(20);
  head.writeInt32BE(keys.length === 0 ? 0 : 1, 0);
  const elements = keys.map((key) => {
    const element = Buffer.alloc(12);
    element.writeInt32BE(8, 0);
    element.writeBigInt64BE(BigInt(key), 4);
    return element;
  });
  return Buffer.concat([keys.length === 0 ? head.subarray(0, 12) : head, ...elements]);
}

test('a passage gives its terms in order and with repeats, with letters where they are expected', () => {
  const keys = new TermKeys(SECRET).of('acme');
  const terms = termsOf('In March 2026 the marmalade port was 6543, the port of marmalade.');
  keys.expect(['marmalad', 'port']);
  const read = keys.termsOf(3, sent(terms.map((term) => keys.keyOf(3, term))));
  expect(read).toHaveLength(terms.length);
  // Words of time are always known by their letters: the ranking looks at them.
  const known = new Set(['marmalad', 'port', 'march', '2026']);
  expect(read.filter((term) => known.has(term))).toEqual(terms.filter((term) => known.has(term)));
  // The same unknown words are the same, and others are others.
  const places = (list: readonly string[]) => list.map((term) => list.indexOf(term));
  expect(places(read)).toEqual(places(terms));
  expect(keys.termsOf(3, sent([]))).toEqual([]);
});

test('the same words have one token in all spaces of a tenant, and another key in each', () => {
  const keys = new TermKeys(SECRET).of('acme');
  const [one, other] = [1, 2].map((space) => keys.keyOf(space, 'marmalad'));
  expect(one).not.toBe(other);
  expect(keys.termsOf(1, sent([one ?? '']))).toEqual(keys.termsOf(2, sent([other ?? ''])));
});

test('two tenants, and two services, have nothing in common', () => {
  const all = new TermKeys(SECRET);
  const key = (keys: TermKeys, tenant: string) => keys.of(tenant).keyOf(1, 'marmalad');
  const other = new TermKeys(Buffer.alloc(32, 8));
  expect(new Set([key(all, 'acme'), key(all, 'globex'), key(other, 'acme')]).size).toBe(3);
  // A restart gives the same keys: the database holds the secret.
  expect(key(new TermKeys(SECRET), 'acme')).toBe(key(all, 'acme'));
});
