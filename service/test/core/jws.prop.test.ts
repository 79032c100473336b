import * as fc from 'fast-check';
import { CompactSign, flattenedVerify, importJWK, calculateJwkThumbprint } from 'jose';
import { generateKeyPairSync } from 'node:crypto';
import { expect, test } from 'vitest';
import { canonicalJson } from '../../../src/core/memory-api/canonical.ts';
import { publicJwk, publicPartOf, objectSigner, verifyObject } from '../../src/core/jws.ts';

// jose, which knows nothing of svc, is the oracle of every signature.

function newKey() {
  const { privateKey } = generateKeyPairSync('ed25519');
  const text = privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64');
  return { privateKey: text, jwk: publicJwk(publicPartOf(text)) };
}

const key = newKey();
const object = fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 6 });
const canonical = object.filter(
  (value) => !('signature' in value) && canonicalJson(value) !== undefined,
);

test('an independent library verifies each signature and computes the same key id', async () => {
  const { jwk, privateKey } = key;
  const publicKey = await importJWK({ ...jwk }, 'Ed25519');
  expect(jwk.kid).toBe(await calculateJwkThumbprint({ ...jwk }));
  await fc.assert(
    fc.asyncProperty(canonical, async (value) => {
      const signer = objectSigner({ kid: jwk.kid, privateKey });
      const signed = signer.sign(value);
      const [header = '', , signature = ''] = signed.signature.jws.split('.');
      const { signature: _, ...rest } = signed;
      const payload = Buffer.from(canonicalJson(rest) ?? '').toString('base64url');
      const told = await flattenedVerify({ protected: header, payload, signature }, publicKey);
      expect(told.protectedHeader).toEqual({ alg: 'Ed25519', kid: jwk.kid });
      expect(verifyObject(signed, [jwk])).toBe('valid');
      if (Object.keys(value).length === 0) return;
      const text = signer.signText(canonicalJson(value) ?? '');
      expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(signed)));
    }),
    { numRuns: 50 },
  );
});

test('a member altered, added or removed, a swapped key and another header are each found', () => {
  const stranger = newKey();
  fc.assert(
    fc.property(canonical, fc.string(), fc.jsonValue(), (value, name, change) => {
      const signed = objectSigner({ kid: key.jwk.kid, privateKey: key.privateKey }).sign(value);
      const isSame = canonicalJson({ ...value, [name]: change }) === canonicalJson(value);
      const outcome = verifyObject({ ...signed, [name]: change }, [key.jwk]);
      if (name !== 'signature' && canonicalJson(change) !== undefined) {
        expect(outcome).toBe(isSame ? 'valid' : 'invalid');
      }
      for (const member of Object.keys(value)) {
        const { [member]: _, ...less } = { ...signed } as Record<string, unknown>;
        expect(verifyObject(less, [key.jwk])).toBe('invalid');
      }
      expect(verifyObject(signed, [stranger.jwk])).toBe('unknown_key');
      const swapped = { ...stranger.jwk, kid: key.jwk.kid };
      expect(verifyObject(signed, [swapped])).toBe('invalid');
      expect(verifyObject(value, [key.jwk])).toBe('unsigned');
    }),
    { numRuns: 50 },
  );
});

test('R36: no other algorithm is accepted, not even one whose signature is right', async () => {
  const { jwk, privateKey } = key;
  const value = { a: 1 };
  const signed = objectSigner({ kid: jwk.kid, privateKey }).sign(value);
  const secret = new TextEncoder().encode(jwk.x.padEnd(64, '0'));
  const forged = await new CompactSign(Buffer.from(canonicalJson(value) ?? ''))
    .setProtectedHeader({ alg: 'HS256', kid: jwk.kid })
    .sign(secret);
  const [header = '', , mac = ''] = forged.split('.');
  const change = (jws: string, alg = 'Ed25519') =>
    verifyObject({ ...value, signature: { alg, kid: jwk.kid, jws } }, [jwk]);
  expect(change(`${header}..${mac}`)).toBe('invalid');
  expect(change(signed.signature.jws, 'none')).toBe('invalid');
  expect(change(signed.signature.jws.slice(0, -1))).toBe('invalid');
  expect(change(`${signed.signature.jws.split('.')[0]}..`)).toBe('invalid');
  expect(change('')).toBe('invalid');
  for (const signature of [null, 1, 'x', [], { alg: 'Ed25519', kid: 1, jws: [] }]) {
    expect(verifyObject({ ...value, signature }, [jwk])).toBe('invalid');
  }
});
