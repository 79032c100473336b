import * as fc from 'fast-check';
import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import {
  hashKey,
  isSpaceGlob,
  mayUse,
  modeOf,
  refuseKey,
  rotateKey,
  type StoredKey,
} from '../../../src/core/memory-api/keys.ts';

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

test('a secret that was replaced is good until its grace is over, then stale, and never again good', () => {
  const secret = fc.integer({ min: 0, max: 4 });
  const rotation = fc.record({ after: fc.nat({ max: 50 }), graceMs: fc.nat({ max: 60 }) });
  fc.assert(
    fc.property(
      fc.array(rotation, { maxLength: 4 }),
      secret,
      fc.nat({ max: 300 }),
      (all, n, at) => {
        let key: StoredKey = { ...KEY, hash: hashKey(pepper, 'secret 0') };
        const until: number[] = [Infinity];
        let now = 0;
        for (const [index, { after, graceMs }] of all.entries()) {
          now += after;
          key = rotateKey(key, { hash: hashKey(pepper, `secret ${index + 1}`), at: now, graceMs });
          // The oracle: each rotation ends every secret so far no later than its own grace.
          for (const [place, end] of until.entries()) until[place] = Math.min(end, now + graceMs);
          until.push(Infinity);
        }
        const asked = now + at;
        const end = until[n];
        const expected =
          end === undefined ? 'AUTH_INVALID' : asked < end ? undefined : 'AUTH_STALE';
        expect(refuseKey(key, hashKey(pepper, `secret ${n}`), asked)).toBe(expected);
      },
    ),
  );
});

test('a revoked or expired key says so, with any of its secrets', () => {
  const key = rotateKey(KEY, { hash: hashKey(pepper, 'new'), at: 1, graceMs: 0 });
  const old = hashKey(pepper, 'the key');
  expect(refuseKey({ ...key, revokedAt: 2 }, old, 5)).toBe('AUTH_REVOKED');
  expect(refuseKey({ ...key, expiresAt: 2 }, old, 5)).toBe('AUTH_EXPIRED');
});

test('secrets older than sixteen rotations are unknown, and take no room', () => {
  let key = KEY;
  for (let at = 1; at <= 20; at += 1) key = rotateKey(key, { hash: `h${at}`, at, graceMs: 9e9 });
  expect(key.retired).toHaveLength(16);
});
