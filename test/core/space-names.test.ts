import { expect, test } from 'vitest';
import { SpaceNames } from '../../src/core/request/space-names.ts';

const SHOP = 'project/shop-0123456789';
const OTHER_SHOP = 'project/shop-9876543210';

test('a person reads the name of a project without its hash', () => {
  const names = new SpaceNames([SHOP, 'global', 'team/shared']);
  expect(
    [SHOP, 'global', 'team/shared', 'project/my-app-abcdef0123'].map((it) => names.of(it)),
  ).toEqual(['shop', 'global', 'team/shared', 'my-app']);
});

test('a report says in words that a request had no project', () => {
  const names = new SpaceNames([SHOP, 'unplaced/claude-code']);
  expect([SHOP, 'unplaced/claude-code'].map((it) => names.wordsOf(it))).toEqual([
    'shop',
    'no project (claude-code)',
  ]);
  // A command takes the name of the space.
  expect(names.of('unplaced/claude-code')).toBe('unplaced/claude-code');
});

test('two projects of one name keep their hashes, and so does one beside a space of that name', () => {
  const names = new SpaceNames([SHOP, OTHER_SHOP, 'docs', 'project/docs-0123456789']);
  expect(names.of(SHOP)).toBe(SHOP);
  expect(names.of(OTHER_SHOP)).toBe(OTHER_SHOP);
  expect(names.of('project/docs-0123456789')).toBe('project/docs-0123456789');
  expect(names.of('docs')).toBe('docs');
});

test('a typed name means the project of that name, a space of exactly that name, or several', () => {
  expect(new SpaceNames([SHOP]).find('shop')).toEqual([SHOP]);
  expect(new SpaceNames([SHOP, 'shop']).find('shop')).toEqual(['shop']);
  expect(new SpaceNames([SHOP, OTHER_SHOP]).find('shop')).toEqual([SHOP, OTHER_SHOP]);
  expect(new SpaceNames([SHOP]).find('cart')).toEqual([]);
  expect(new SpaceNames([SHOP]).find(SHOP)).toEqual([]);
});

test('a name that only looks like a hash stays', () => {
  expect(new SpaceNames([]).of('project/shop-01234')).toBe('project/shop-01234');
  expect(new SpaceNames([]).of('project/-0123456789')).toBe('project/-0123456789');
});
