import { expect, test } from 'vitest';
import { withoutSuperseded } from '../../src/core/recall/superseded.ts';

function statement(at: number, files: Readonly<Record<string, string>>) {
  const list = Object.entries(files).map(([path, hash]) => ({ path, hash }));
  return { at, provenance: { files: list } };
}

function kept(...found: Parameters<typeof withoutSuperseded>[0] & { at: number }[]): number[] {
  return withoutSuperseded(found, (one) => one).map(({ at }) => at);
}

test('of two statements on a file that changed in between the newer wins, whatever their order', () => {
  const older = statement(1, { 'a.ts': 'x' });
  const newer = statement(2, { 'a.ts': 'y' });
  expect(kept(older, newer)).toEqual([2]);
  expect(kept(newer, older)).toEqual([2]);
});

test('two statements on the same state of a file both stay', () => {
  expect(kept(statement(1, { 'a.ts': 'x' }), statement(2, { 'a.ts': 'x', 'b.ts': 'y' }))).toEqual([
    1, 2,
  ]);
});

test('a statement on a further file stays, and one on no file does', () => {
  const older = statement(1, { 'a.ts': 'x', 'b.ts': 'x' });
  expect(kept(older, statement(2, { 'a.ts': 'y' }), { at: 3 })).toEqual([1, 2, 3]);
  expect(kept(older, statement(2, { 'a.ts': 'y' }), statement(3, { 'b.ts': 'x' }))).toEqual([2, 3]);
  expect(kept(statement(1, {}), statement(2, {}))).toEqual([1, 2]);
});
