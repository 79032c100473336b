import { expect, test } from 'vitest';
import { ProxyError } from '../../src/core/errors.ts';
import { folderSpace, spaceOf } from '../../src/core/request/space.ts';
import { isUnplaced } from '../../src/core/request/space-names.ts';

const spaceIn = (headers: readonly string[], folder: string | undefined, statesFolder = false) =>
  spaceOf(headers, statesFolder ? 'claude-code' : 'unknown', folder);

test('a stated space wins over the project folder, and the folder over the default', () => {
  expect(spaceIn(['X-Svc-Memory-Space', 'team/a'], '/home/user/project')).toBe('team/a');
  expect(spaceIn([], '/home/user/project')).toMatch(/^project\/project-[0-9a-f]{10}$/);
  expect(spaceIn([], undefined)).toBe('default');
  expect(spaceIn([], '')).toBe('default');
});

test('a client that always states a folder and states none gets a space that nothing recalls from', () => {
  const space = spaceIn([], undefined, true);
  expect(isUnplaced(space)).toBe(true);
  expect(space).toBe('unplaced/claude-code');
  expect(isUnplaced(spaceIn(['x-svc-memory-space', 'team/a'], undefined, true))).toBe(false);
  expect(isUnplaced(spaceIn([], '/home/user/project', true))).toBe(false);
});

test('R25: two projects with the same folder name have different spaces', () => {
  expect(folderSpace('/home/a/app')).not.toBe(folderSpace('/home/b/app'));
  expect(folderSpace('/home/a/app/')).toBe(folderSpace('/home/a/app'));
});

test('any folder name makes a space that the memory service accepts', () => {
  for (const folder of [
    '/',
    'C:\\Users\\Ü ser\\Mein Projekt',
    '/x/日本語',
    '/x/...',
    '/x/' + 'a'.repeat(500),
  ]) {
    expect(folderSpace(folder)).toMatch(/^[a-z0-9][a-z0-9._/-]{0,127}$/);
  }
});

test('R8: a space header that is no space, or that is repeated, is refused', () => {
  for (const value of ['', ' ', '../x', 'A', 'a b', 'a'.repeat(129)]) {
    expect(() => spaceIn(['x-svc-memory-space', value], undefined)).toThrow(ProxyError);
  }
  expect(() => spaceIn(['x-svc-memory-space', 'a', 'x-svc-memory-space', 'a'], undefined)).toThrow(
    ProxyError,
  );
});
