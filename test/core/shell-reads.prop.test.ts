import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { FileNames, filesPrinted } from '../../src/core/shortening/shell-reads.ts';

test.each([
  ['cat a.ts b.ts', ['a.ts', 'b.ts']],
  ['cd x && /bin/cat "my file.ts"; make', ['my file.ts']],
  ["sed -n '1,80p' src/a.ts | head -20", ['src/a.ts']],
  ["sed 's/a/b/' a.ts", []],
  ['head -n 20 -q a.ts', ['a.ts']],
  ['cat a.ts > b.ts 2>&1', ['a.ts']],
  ['cat < a.ts', ['a.ts']],
  ['echo cat a.ts', []],
  ['', []],
])('%s prints %j', (command, files) => {
  expect(filesPrinted(command)).toEqual(files);
});

test('any text is read, and what is found stands in it', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const command = `cat ${text}`;
      for (const file of filesPrinted(command)) expect(command).toContain(file);
    }),
  );
});

/** Whether both names can be the same file: one may be relative to an unknown folder. */
function isSameFile(one: string, other: string): boolean {
  const [short = '', long = ''] = [one, other]
    .map((path) => path.replace(/^\.\//, ''))
    .toSorted((first, second) => first.length - second.length);
  return short !== '' && (short === long || (!short.startsWith('/') && long.endsWith(`/${short}`)));
}

function namesOf(...paths: readonly string[]): FileNames {
  const names = new FileNames();
  for (const path of paths) names.add(path);
  return names;
}

test('a file is found among many exactly where it is the same as one of them', () => {
  const drawn = fc.array(fc.constantFrom('a', 'b', '/', './', '.ts', 'x')).map((it) => it.join(''));
  const paths = fc.oneof(fc.constantFrom('a.ts', './a.ts', '/x/a.ts', 'xa.ts', '', '/'), drawn);
  fc.assert(
    fc.property(fc.array(paths), paths, (known, path) => {
      expect(namesOf(...known).has(path)).toBe(known.some((other) => isSameFile(other, path)));
    }),
  );
  expect(namesOf('./a.ts').has('/x/a.ts')).toBe(true);
  expect(namesOf('xa.ts').has('a.ts')).toBe(false);
});

test('a name longer than any file has is no file', () => {
  const path = 'a/'.repeat(2_048);
  expect(namesOf(`${path}b`).has(`${path}b`)).toBe(false);
  expect(namesOf(path).has(path)).toBe(true);
});
