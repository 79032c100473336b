import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { canonicalJson } from '../../../src/core/memory-api/canonical.ts';

// The examples of RFC 8785 itself: section 3.2.2, 3.2.3 and appendix B.

test('RFC 8785, 3.2.2: numbers, escapes and literals', () => {
  const given = `{
    "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
    "string": "\\u20ac$\\u000F\\u000aA'\\u0042\\u0022\\u005c\\\\\\"\\/",
    "literals": [null, true, false]
  }`;
  const expected =
    '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],' +
    '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}';
  expect(canonicalJson(JSON.parse(given))).toBe(expected);
});

test('RFC 8785, 3.2.3: members are sorted by UTF-16 units', () => {
  const given = {
    '\u20ac': 'Euro Sign',
    '\r': 'Carriage Return',
    '\ufb33': 'Hebrew Letter Dalet With Dagesh',
    '1': 'One',
    '\ud83d\ude00': 'Emoji: Grinning Face',
    '\u0080': 'Control',
    '\u00f6': 'Latin Small Letter O With Diaeresis',
  };
  const names = Object.values(JSON.parse(canonicalJson(given) ?? '') as object);
  // Numbers come first in every object of JavaScript, and do not here.
  expect(canonicalJson(given)?.indexOf('Carriage')).toBeLessThan(
    canonicalJson(given)?.indexOf('"One"') ?? 0,
  );
  expect(names).toHaveLength(7);
  expect((canonicalJson(given) ?? '').match(/:"[^"]+"/g)).toEqual([
    ':"Carriage Return"',
    ':"One"',
    ':"Control"',
    ':"Latin Small Letter O With Diaeresis"',
    ':"Euro Sign"',
    ':"Emoji: Grinning Face"',
    ':"Hebrew Letter Dalet With Dagesh"',
  ]);
});

test.each([
  ['0000000000000000', '0'],
  ['8000000000000000', '0'],
  ['0000000000000001', '5e-324'],
  ['8000000000000001', '-5e-324'],
  ['7fefffffffffffff', '1.7976931348623157e+308'],
  ['ffefffffffffffff', '-1.7976931348623157e+308'],
  ['4340000000000000', '9007199254740992'],
  ['c340000000000000', '-9007199254740992'],
  ['4430000000000000', '295147905179352830000'],
  ['44b52d02c7e14af5', '9.999999999999997e+22'],
  ['44b52d02c7e14af6', '1e+23'],
  ['44b52d02c7e14af7', '1.0000000000000001e+23'],
  ['444b1ae4d6e2ef4e', '999999999999999700000'],
  ['444b1ae4d6e2ef4f', '999999999999999900000'],
  ['444b1ae4d6e2ef50', '1e+21'],
  ['3eb0c6f7a0b5ed8c', '9.999999999999997e-7'],
  ['3eb0c6f7a0b5ed8d', '0.000001'],
  ['41b3de4355555553', '333333333.3333332'],
  ['41b3de4355555554', '333333333.33333325'],
  ['41b3de4355555555', '333333333.3333333'],
  ['41b3de4355555556', '333333333.3333334'],
  ['41b3de4355555557', '333333333.33333343'],
  ['becbf647612f3696', '-0.0000033333333333333333'],
  ['43143ff3c1cb0959', '1424953923781206.2'],
])('RFC 8785, appendix B: the double %s is written %s', (hex, expected) => {
  const value = Buffer.from(hex, 'hex').readDoubleBE();
  expect(canonicalJson(value)).toBe(expected);
});

test.each([[Number.NaN], [Infinity], [-Infinity], ['\ud800'], [undefined], [() => 1]])(
  'RFC 8785: %s has no canonical form, nor has anything that holds it',
  (value) => {
    expect(canonicalJson(value)).toBe(undefined);
    expect(canonicalJson({ a: [value] })).toBe(undefined);
  },
);

test('any value is written as member by member, whatever the order of its names', () => {
  const names = fc.string({ unit: 'binary', maxLength: 3 });
  const values = fc.anything({ key: names, withDate: true, withSparseArray: true, maxDepth: 3 });
  const ordered = fc.jsonValue({ stringUnit: 'binary' });
  fc.assert(
    fc.property(fc.oneof(values, ordered, ordered.map(inOrder)), (value) => {
      expect(canonicalJson(value)).toBe(memberByMember(value));
    }),
    { numRuns: 500 },
  );
  const long = Array.from({ length: 12 }, (_, at) => at);
  expect(canonicalJson({ a: long, b: '\\ud800' })).toBe(`{"a":[${String(long)}],"b":"\\\\ud800"}`);
  expect(canonicalJson({ a: { toJSON: () => 1 } })).toBe(undefined);
});

/** As the RFC describes it. */
function memberByMember(value: unknown): string | undefined {
  if (typeof value === 'number') return Number.isFinite(value) ? JSON.stringify(value) : undefined;
  if (typeof value === 'string')
    return !/\p{Surrogate}/u.test(value) ? JSON.stringify(value) : undefined;
  if (value === null || typeof value === 'boolean') return String(value);
  if (typeof value !== 'object') return undefined;
  const parts = Array.isArray(value)
    ? Array.from(value, memberByMember)
    : Object.keys(value)
        .toSorted()
        .map((name) => joined(name, Reflect.get(value, name)));
  if (parts.includes(undefined)) return undefined;
  return Array.isArray(value) ? `[${parts.join(',')}]` : `{${parts.join(',')}}`;
}

function joined(name: string, value: unknown): string | undefined {
  const [key, member] = [memberByMember(name), memberByMember(value)];
  return key === undefined || member === undefined ? undefined : `${key}:${member}`;
}

function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(members.map(([name, member]) => [name, inOrder(member)]));
}
