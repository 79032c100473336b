import * as fc from 'fast-check';
import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import {
  hashKey,
  isSpaceGlob,
  mayUse,
  modeOf,
  refuseKey,
  type StoredKey,
} from '../../../src/core/service/keys.ts';

const pepper = randomBytes(32);
const KEY: StoredKey = {
  tenant: 'default',
  keyId: 'abcdefghijkl',
  name: 'k',
  hash: hashKey(pepper, 'the key'),
  scopes: ['read'],
  createdAt: 0,
};

test('a key is good only with its own hash, while it is neither revoked nor expired', () => {
  const own = hashKey(pepper, 'the key');
  expect(refuseKey(KEY, own, 5)).toBe(undefined);
  expect(refuseKey(undefined, own, 5)).toBe('AUTH_INVALID');
  expect(refuseKey(KEY, hashKey(pepper, 'the kez'), 5)).toBe('AUTH_INVALID');
  expect(refuseKey(KEY, hashKey(randomBytes(32), 'the key'), 5)).toBe('AUTH_INVALID');
  expect(refuseKey(KEY, '', 5)).toBe('AUTH_INVALID');
  expect(refuseKey({ ...KEY, revokedAt: 1 }, own, 5)).toBe('AUTH_REVOKED');
  expect(refuseKey({ ...KEY, expiresAt: 5 }, own, 5)).toBe('AUTH_EXPIRED');
  expect(refuseKey({ ...KEY, expiresAt: 6 }, own, 5)).toBe(undefined);
  // Whoever does not hold the key learns nothing of its state.
  expect(refuseKey({ ...KEY, revokedAt: 1 }, hashKey(pepper, 'x'), 5)).toBe('AUTH_INVALID');
});

const letters = fc.string({ unit: fc.constantFrom('a', 'b', '/', '.'), maxLength: 10 });
const globs = fc.string({ unit: fc.constantFrom('a', 'b', '/', '.', '*'), maxLength: 8 });

test('a glob fits what the same pattern fits', () => {
  fc.assert(
    fc.property(letters, globs, (space, glob) => {
      const pattern = new RegExp(`^${glob.replaceAll('.', '\\.').replaceAll(/\*+/g, '.*')}$`);
      expect(mayUse({ ...KEY, spaces: [glob] }, space)).toBe(pattern.test(space));
    }),
    { numRuns: 2000 },
  );
});

test('a glob of many stars takes no time worth speaking of', () => {
  const glob = `${'a*'.repeat(60)}b`;
  expect(mayUse({ ...KEY, spaces: [glob] }, 'a'.repeat(128))).toBe(false);
});

test('a key without spaces may use all, one with none of them fits nothing', () => {
  expect(mayUse(KEY, 'anything')).toBe(true);
  expect(mayUse({ ...KEY, spaces: [] }, 'anything')).toBe(false);
});

test('globs have no other special characters than the star', () => {
  for (const glob of ['project/*', '*', 'global', 'a*b*c']) expect(isSpaceGlob(glob)).toBe(true);
  for (const glob of ['', 'A', '[a-z]', 'a?', '../x', "a'b", 'x'.repeat(129)]) {
    expect(isSpaceGlob(glob)).toBe(false);
  }
});

test('scopes are memory modes', () => {
  expect(modeOf(['read', 'write'])).toBe('read-write');
  expect(modeOf(['read', 'receipt:read'])).toBe('read');
  expect(modeOf(['write'])).toBe('write');
  expect(modeOf(['receipt:read'])).toBe('off');
});
