import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { REFERENCES, referenceOf } from '../../src/core/memory/reference.ts';
import { gistOf, stubTokens, writeNote, writeStub } from '../../src/core/shortening/stubs.ts';
import { longOutput } from '../support/tool-session.ts';

test('a stub is a function of the output, short, one line, and names its reference and no other', () => {
  const texts = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 300 }),
    // Long enough to have names in it.
    fc
      .array(fc.string({ unit: 'binary', maxLength: 80 }), { maxLength: 8 })
      .map((names) => names.map((name) => `class ${name} {\n${'line\n'.repeat(400)}`).join('')),
  );
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), texts, fc.constantFrom(1, 2), (tool, text, form) => {
      const output = { tool, text, gist: gistOf(text), digest: 'A'.repeat(43) };
      const stub = writeStub(output, form);
      expect(stub).toBe(writeStub({ ...output, gist: gistOf(text) }, form));
      expect(stub).not.toMatch(/[\n\r\p{Cc}\p{Surrogate}]/u);
      expect(stub.indexOf(']')).toBe(stub.length - 1);
      expect(stub.match(REFERENCES)?.at(-1)).toBe(referenceOf(output.digest));
      expect(stubTokens(output, form)).toBeLessThan(500);
    }),
  );
});

test('a stub says how long the text is, and of a long one where its parts are', () => {
  const stubOf = (text: string) =>
    writeStub({ tool: 'Read', text, gist: gistOf(text), digest: 'A'.repeat(43) }, 2);
  const ref = referenceOf('A'.repeat(43));
  expect(stubOf('one\ntwo')).toBe(
    `[svc left out this Read output: 2 lines, 7 chars, "one". To read it: svc memory get ${ref}]`,
  );
  const body = '  return 1;\n'.repeat(300);
  const code = `import x\nclass Foo {\n${body}}\nexport async function bar(a) {\n${body}}\n# no heading\n`;
  expect(stubOf(code)).toBe(
    '[svc left out this Read output: 606 lines, 7k chars; line 2 Foo, 304 bar. ' +
      `A part: svc memory get ${ref} --around Foo]`,
  );
  expect(stubOf('2026-11-22 12:00:00 started a worker\n'.repeat(500))).toContain(
    `"2026-11-22 12:00:00 started a worker". A part: svc memory get ${ref} --lines 1-100]`,
  );
});

test('the words of a released form never change', () => {
  const text = longOutput('x', 5_000);
  const output = { tool: 'Bash', text, gist: gistOf(text), digest: 'A'.repeat(43) };
  expect(writeStub(output, 1)).toBe(
    '[svc left out this Bash output: 500 lines, "x line 0 of the parser module". ' +
      'To read it: svc memory get m_aaaaaaaaaaaaaaaa]',
  );
  expect(writeNote('/d', 1)).toBe(
    ' [svc keeps every output that it left out, word for word. A part of a long one: ' +
      'svc memory get REFERENCE --lines 1-200. Without a shell: tool memory_get, or read the file ' +
      '/d/REFERENCE.txt]',
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
