import { createHmac } from 'node:crypto';
import { assert, constantFrom, jsonValue, nat, property, tuple, uint8Array } from 'fast-check';
import { expect, test } from 'vitest';
import { contentRecord, textOfRecord } from '../../../src/core/memory-api/records.ts';
import { contentDigest, contentReference, textDigest } from '../../../src/core/memory/reference.ts';
import {
  formatServiceKey,
  parseServiceKey,
  PUBLIC_BYTES,
  SECRET_BYTES,
} from '../../../src/core/memory-api/service-key.ts';
import { parseShape } from '../../../src/core/memory-api/shape.ts';
import {
  proofOf,
  canonicalJson,
  recordBytes,
  recordOfText,
} from '../../../src/core/memory-api/canonical.ts';
import { contract } from '../../support/memory-api.ts';

test('canonical JSON: the examples of RFC 8785', () => {
  // Section 3.2.2 (numbers, strings, literals) and 3.2.3 (order of names).
  const literals = JSON.parse(
    '{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],"string":"\\u20ac$\\u000F\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/","literals":[null,true,false]}',
  );
  expect(canonicalJson(literals)).toBe(
    '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
  );
  const names = JSON.parse(
    '{"\\u20ac":1,"\\r":2,"\\ufb33":3,"1":4,"\\ud83d\\ude00":5,"\\u0080":6,"\\u00f6":7}',
  );
  expect(canonicalJson(names)).toBe('{"\\r":2,"1":4,"\u0080":6,"ö":7,"€":1,"😀":5,"\ufb33":3}');
});

test('canonical JSON reads back as the same value, in one order of names', () => {
  assert(
    property(jsonValue(), (value) => {
      const json = canonicalJson(value);
      if (json === undefined) expect(JSON.stringify(value)).toMatch(/\\ud[89a-f]/i);
      else expect(JSON.parse(json)).toEqual(JSON.parse(JSON.stringify(value)));
    }),
  );
});

test('half a character has no canonical form, and is no record', () => {
  expect(canonicalJson('half \ud83d')).toBe(undefined);
  expect(recordBytes(recordOfText('user', 'half \ud83d'))).toBe(undefined);
});

test('digest, reference and proof of the example are those of the document', () => {
  const said = 'We pin undici 7: version 8 wants Node 22.';
  const bytes = recordBytes(recordOfText('user', said)) ?? Buffer.alloc(0);
  expect(bytes.toString()).toBe(`{"k":"exchange","m":[{"r":"user","t":["${said}"]}],"v":1}`);
  const nonce = Buffer.from('3q2-7wAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA', 'base64url');
  const digest = contentDigest(bytes);
  const document = JSON.stringify(contract);
  expect(document).toContain(digest);
  expect(document).toContain(contentReference('exchange', digest));
  expect(document).toContain(proofOf(nonce, bytes));
  expect(proofOf(nonce, bytes)).toBe(createHmac('sha256', nonce).update(bytes).digest('base64url'));
});

test('what one said is a record of one text, and comes out of it again', () => {
  for (const role of ['user', 'assistant', 'tool'] as const) {
    const record = recordOfText(role, 'Ω said');
    expect(parseShape(contentRecord, record)).toEqual({ value: record });
    expect(textOfRecord(record)).toEqual({ role, said: 'Ω said' });
  }
  expect(textOfRecord({ k: 'tool_output', v: 1, t: ['one', 'two'] })).toBe(undefined);
  expect(textDigest('user', 'x')).not.toBe(textDigest('assistant', 'x'));
});

test('a key has its form and its checksum; one wrong character makes it none', () => {
  const bytes = { minLength: PUBLIC_BYTES, maxLength: PUBLIC_BYTES };
  const secret = { minLength: SECRET_BYTES, maxLength: SECRET_BYTES };
  assert(
    property(
      tuple(uint8Array(bytes), uint8Array(secret)),
      nat({ max: 73 }),
      constantFrom('0', 'Z', '_'),
      ([publicBytes, secretBytes], at, other) => {
        const key = formatServiceKey(publicBytes, secretBytes);
        expect(key).toMatch(/^svc_live_[0-9A-Za-z]{12}_[0-9A-Za-z]{43}_[0-9A-Za-z]{7}$/);
        expect(parseServiceKey(key)).toEqual({
          publicId: key.slice(9, 21),
          secret: key.slice(22, 65),
        });
        const wrong = key.slice(0, at) + other + key.slice(at + 1);
        if (wrong !== key) expect(parseServiceKey(wrong)).toBe(undefined);
      },
    ),
  );
});

test('different secrets are different keys', () => {
  const zero = new Uint8Array(SECRET_BYTES);
  const one = zero.with(SECRET_BYTES - 1, 1);
  const head = new Uint8Array(PUBLIC_BYTES);
  expect(formatServiceKey(head, zero)).not.toBe(formatServiceKey(head, one));
});
