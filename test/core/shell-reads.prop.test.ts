import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { filesPrinted } from '../../src/core/memory/concerned-files.ts';

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
