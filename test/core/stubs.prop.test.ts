import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { REFERENCES, referenceOf } from '../../src/core/memory/reference.ts';
import { gistOf, stubOf } from '../../src/core/shortening/stubs.ts';

test('a stub is a function of the output, short, one line, and names its reference and no other', () => {
  const texts = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 300 }),
    // Long enough to have names in it.
    fc
      .array(fc.string({ unit: 'binary', maxLength: 80 }), { maxLength: 8 })
      .map((names) => names.map((name) => `class ${name} {\n${'line\n'.repeat(400)}`).join('')),
  );
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), texts, (tool, text) => {
      const output = { tool, text, gist: gistOf(text), digest: 'A'.repeat(43) };
      const { text: stub, tokens } = stubOf(output);
      expect(stub).toBe(stubOf({ ...output, gist: gistOf(text) }).text);
      expect(stub).not.toMatch(/[\n\r\p{Cc}\p{Surrogate}]/u);
      expect(stub.indexOf(']')).toBe(stub.length - 1);
      expect(stub.match(REFERENCES)?.at(-1)).toBe(referenceOf(output.digest));
      expect(tokens).toBeLessThan(500);
    }),
  );
});

test('a stub says how long the text is, and of a long one where its parts are', () => {
  const stubText = (text: string) =>
    stubOf({ tool: 'Read', text, gist: gistOf(text), digest: 'A'.repeat(43) }).text;
  const ref = referenceOf('A'.repeat(43));
  expect(stubText('one\ntwo')).toBe(
    `[svc left out this Read output: 2 lines, 7 chars, "one". To read it: svc memory get ${ref}]`,
  );
  const body = '  return 1;\n'.repeat(300);
  const code = `import x\nclass Foo {\n${body}}\nexport async function bar(a) {\n${body}}\n# no heading\n`;
  expect(stubText(code)).toBe(
    '[svc left out this Read output: 606 lines, 7k chars; line 2 Foo, 304 bar. ' +
      `A part: svc memory get ${ref} --around Foo]`,
  );
  expect(stubText('2026-11-22 12:00:00 started a worker\n'.repeat(500))).toContain(
    `"2026-11-22 12:00:00 started a worker". A part: svc memory get ${ref} --lines 1-100]`,
  );
});

test.each([
  [
    'Chunk ID: 06\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\n\nfive ok',
    'five ok',
  ],
  [
    'Exit code: 1\nWall time: 2 seconds\nOutput:\nTotal output lines: 9\n\nno such file',
    'no such file',
  ],
  ['Wall time: 0.1 seconds\nOutput:\n', ''],
  ['Output:\na', 'Output:'],
  ['\n  1→package cli\n', '1→package cli'],
])('of %j a stub shows %j', (text, line) => {
  expect(gistOf(text).firstLine).toBe(line);
});
