import { gzipSync } from 'node:zlib';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { linesOf, linesOfFile } from '../../src/adapters/files/lines.ts';
import { readTranscript } from '../../src/adapters/foreign/transcript-files.ts';
import { readLine, writeLine } from '../../src/core/memory/memory-lines.ts';
import { recordOf } from '../support/records.ts';
import { tempFolder } from '../support/temp-folder.ts';

async function all(lines: AsyncIterable<string>): Promise<string[]> {
  const found: string[] = [];
  for await (const line of lines) found.push(line);
  return found;
}

const SEPARATORS = 'before\u2028between\u2029after';

test('lines end with a line feed alone, wherever the bytes are cut', async () => {
  const line = fc.string({
    unit: fc.constantFrom('a', 'é', '😀', '\u2028', '\u2029', '\u0085', '\v'),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(line), fc.integer({ min: 1, max: 7 }), async (lines, size) => {
      const bytes = Buffer.from(lines.map((one) => `${one}\r\n`).join(''));
      const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
        bytes.subarray(at * size, (at + 1) * size),
      );
      // oxlint-disable-next-line typescript/require-await -- A stream of pieces.
      const stream = async function* () {
        yield* pieces;
      };
      expect(await all(linesOf(stream()))).toEqual(lines);
    }),
  );
});

test('a file is read in lines, packed or not, with and without a last line end', async () => {
  const folder = tempFolder();
  writeFileSync(join(folder, 'a'), `${SEPARATORS}\nlast`);
  writeFileSync(join(folder, 'b.gz'), gzipSync(`${SEPARATORS}\nlast\n`));
  for (const name of ['a', 'b.gz']) {
    // oxlint-disable-next-line no-await-in-loop -- One file after the other.
    expect(await all(linesOfFile(join(folder, name)))).toEqual([SEPARATORS, 'last']);
  }
});

test('a transcript with separators inside its texts is read whole', async () => {
  const path = join(tempFolder(), 'session.jsonl');
  const entry = (type: string, text: string) =>
    JSON.stringify({ type, uuid: text, sessionId: 's', message: { role: type, content: text } });
  writeFileSync(path, `${entry('user', SEPARATORS)}\n${entry('assistant', 'Noted: 6431.')}\n`);
  const { records } = await readTranscript('claude-code', { path, bytes: 1, changedAt: 0 });
  expect(records.map(({ text }) => text)).toEqual([SEPARATORS, 'Noted: 6431.']);
});

test('an exported line has no separator that another program ends a line at', () => {
  const line = writeLine({ ...recordOf(SEPARATORS), pin: 'never' });
  expect(line).not.toMatch(/[\u2028\u2029]/);
  expect(readLine(line, { now: 0 })).toMatchObject({
    kind: 'record',
    record: { text: SEPARATORS, pin: 'never' },
  });
  expect(readLine(line.replace('"never"', '"often"'), { now: 0 })).toMatchObject({ kind: 'wrong' });
});
