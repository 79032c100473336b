import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { INTERFACE_ROWS } from './interface-rows.ts';

const root = join(import.meta.dirname, '..', '..');

/** `[4.4-health]` in a test's name, or `// spec: 4.4-health, 4.4-livez` beside the test. */
const IN_NAME = /(?<=['"`\s\]])\[([1-9](?:\.\d+)?-[\w-]+)\]/g;
const IN_COMMENT = /\/\/ spec: ([\w., -]+)$/gm;

const cited = new Set(
  ['test', 'service/test'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((path) => /\.(?:test|fuzz)\.ts$/.test(path) && !path.startsWith('spec'))
      .flatMap((path) => citationsIn(readFileSync(join(root, folder, path), 'utf8'))),
  ),
);

test('every statement of the interface is cited by a test', () => {
  const uncited = Object.entries(INTERFACE_ROWS)
    .filter(([id]) => !cited.has(id))
    .map(([id, { statement, keeper }]) => `${id} (${keeper}): ${statement}`);
  expect(uncited).toEqual([]);
});

test('every keeper is a file or folder of src, or of the service', () => {
  const isThere = (keeper: string): boolean =>
    ['', '.ts'].some((end) => {
      const path = keeper.startsWith('service/') ? keeper : join('src', keeper);
      return existsSync(join(root, `${path}${end}`));
    });
  const missing = Object.values(INTERFACE_ROWS)
    .filter(({ keeper }) => keeper !== 'package.json')
    .filter(({ keeper }) => !isThere(keeper));
  expect(missing).toEqual([]);
});

test('tests cite only statements that the interface has', () => {
  expect([...cited].filter((id) => INTERFACE_ROWS[id] === undefined)).toEqual([]);
});

function citationsIn(text: string): string[] {
  const names = [...text.matchAll(IN_NAME)].map(([, id]) => id ?? '');
  const comments = [...text.matchAll(IN_COMMENT)].flatMap(([, ids]) => (ids ?? '').split(','));
  return [...names, ...comments.map((id) => id.trim())];
}
