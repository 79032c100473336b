import * as fc from 'fast-check';
import { randomBytes } from 'node:crypto';
import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import {
  fingerprintOf,
  type MasterKey,
  openText,
  rewrapText,
  type SealedText,
  sealText,
  Secret,
  type SecretContext,
} from '../../src/core/envelope.ts';

const master: MasterKey = { id: 'mk_00000001', key: randomBytes(32) };
const other: MasterKey = { id: 'mk_00000002', key: randomBytes(32) };
const word = fc.stringMatching(/^[a-z0-9_-]{1,12}$/);
const context: fc.Arbitrary<SecretContext> = fc.record({
  tenant: word,
  secretId: word,
  owner: word,
  purpose: word,
  version: fc.nat(),
});
const seal = (text: string, place: SecretContext): SealedText =>
  sealText(text, place, { master, randomBytes });

test('a sealed text opens in its own place under its own key, and two seals never look alike', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), context, (text, place) => {
      const [one, two] = [seal(text, place), seal(text, place)];
      expect(openText(one, place, master)).toBe(Buffer.from(text, 'utf8').toString('utf8'));
      expect(Buffer.from(one.ciphertext).equals(two.ciphertext)).toBe(false);
      expect(Buffer.from(one.wrapped).equals(two.wrapped)).toBe(false);
    }),
  );
});

test('moved to any other place, key or byte it does not open', () => {
  fc.assert(
    fc.property(context, context, fc.nat(), (place, elsewhere, pick) => {
      const sealed = seal('the secret', place);
      for (const part of ['tenant', 'secretId', 'owner', 'purpose', 'version'] as const) {
        const moved = { ...place, [part]: elsewhere[part] };
        const isSame = moved[part] === place[part];
        expect(openText(sealed, moved, master)).toBe(isSame ? 'the secret' : undefined);
      }
      for (const part of ['tenant', 'secretId'] as const) {
        const moved = { ...place, [part]: elsewhere[part] };
        const again = rewrapText(sealed, moved, { from: master, to: other, randomBytes });
        expect(again === undefined).toBe(moved[part] !== place[part]);
      }
      expect(openText(sealed, place, other)).toBe(undefined);
      expect(openText(sealed, place, { ...other, key: master.key })).toBe(undefined);
      for (const part of ['wrapped', 'ciphertext'] as const) {
        const bytes = Buffer.from(sealed[part]);
        const at = pick % bytes.length;
        bytes[at] = (bytes[at] ?? 0) ^ 1;
        expect(openText({ ...sealed, [part]: bytes }, place, master)).toBe(undefined);
        expect(openText({ ...sealed, [part]: bytes.subarray(0, at) }, place, master)).toBe(
          undefined,
        );
      }
    }),
  );
});

test('under another master key only the wrapped key changes, and the old one opens it no more', () => {
  fc.assert(
    fc.property(fc.string(), context, (text, place) => {
      const sealed = seal(text, place);
      const again = rewrapText(sealed, place, { from: master, to: other, randomBytes });
      expect(again?.ciphertext).toBe(sealed.ciphertext);
      expect(again && openText(again, place, other)).toBe(Buffer.from(text).toString('utf8'));
      expect(again && openText(again, place, master)).toBe(undefined);
      expect(rewrapText(sealed, place, { from: other, to: other, randomBytes })).toBe(undefined);
    }),
  );
});

test('a bar in a name cannot make one context of two places', () => {
  const place = { tenant: 'a|b', secretId: 'c', owner: 'o', purpose: 'p', version: 1 };
  expect(() => seal('x', place)).toThrow(TypeError);
});

test('a fingerprint tells equal secrets of one tenant, and nothing across tenants or of its text', () => {
  const pepper = randomBytes(32);
  expect(fingerprintOf(pepper, 'acme', 'sk-1')).toMatch(/^fp_[0-9a-z]{8}$/);
  expect(fingerprintOf(pepper, 'acme', 'sk-1')).toBe(fingerprintOf(pepper, 'acme', 'sk-1'));
  expect(fingerprintOf(pepper, 'acme', 'sk-1')).not.toBe(fingerprintOf(pepper, 'globex', 'sk-1'));
  expect(fingerprintOf(pepper, 'acme', 'sk-1')).not.toBe(fingerprintOf(pepper, 'acme', 'sk-2'));
});

test('R29: a secret prints as [secret], however it is printed', () => {
  const secret = new Secret('sk-CANARY');
  const printed = [
    String(secret),
    JSON.stringify({ secret }),
    inspect(secret),
    inspect({ deep: { secret } }, { showHidden: true, depth: 9 }),
    JSON.stringify(Object.entries(secret)),
  ].join('\n');
  expect(printed).not.toContain('CANARY');
  expect(secret.reveal()).toBe('sk-CANARY');
});
