import { appendFileSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { decodeLines, Journal, takeJournals } from '../../src/adapters/journals/journal.ts';
import { tempFolder } from '../../../test/support/temp-folder.ts';

function options(folder: string, bytesMax = 1_000_000) {
  return { folder, name: 'outbox', bytesMax };
}

function onlyFile(folder: string): string {
  const [file = ''] = readdirSync(folder);
  return join(folder, file);
}

test('what was appended is read back, whatever is in it', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'binary' }), { maxLength: 8 }), (values) => {
      const folder = tempFolder();
      const journal = new Journal(options(folder));
      journal.append(values.map((value) => JSON.stringify(value)));
      expect(decodeLines(readFileSync(onlyFile(folder)))).toEqual(values);
      journal.close();
    }),
    { numRuns: 100 },
  );
});

test('R27: a torn tail is ignored, at whatever byte it was torn', () => {
  const folder = tempFolder();
  const journal = new Journal(options(folder));
  journal.append(['{"a":1}', '{"b":"\u00e4\\n"}']);
  const bytes = readFileSync(onlyFile(folder));
  const first = 18 + 7 + 1;
  for (let length = 0; length <= bytes.length; length += 1) {
    const whole = length === bytes.length ? 2 : length >= first ? 1 : 0;
    expect(decodeLines(bytes.subarray(0, length))).toHaveLength(whole);
  }
  journal.close();
});

test('a line with a flipped bit is left out and the others are read', () => {
  const folder = tempFolder();
  const journal = new Journal(options(folder));
  journal.append(['"one"', '"two"', '"three"']);
  const bytes = readFileSync(onlyFile(folder));
  for (let at = 0; at < bytes.length; at += 1) {
    const damaged = Buffer.from(bytes);
    damaged[at] = (damaged[at] ?? 0) ^ 4;
    expect(decodeLines(damaged).length).toBeGreaterThanOrEqual(1);
    expect(
      decodeLines(damaged).every((value) => ['one', 'two', 'three'].includes(String(value))),
    ).toBe(true);
  }
  journal.close();
});

test('R27: the file is bounded, and what does not fit leaves it as it was', () => {
  const folder = tempFolder();
  const journal = new Journal(options(folder, 100));
  journal.append(['"fits"']);
  expect(() => journal.append([JSON.stringify('x'.repeat(100))])).toThrow(RangeError);
  expect(decodeLines(readFileSync(onlyFile(folder)))).toEqual(['fits']);
  journal.close();
});

test('R27: a reset takes the text off the disk, and closing an empty journal removes it', () => {
  const folder = tempFolder();
  const journal = new Journal(options(folder));
  journal.append(['"text"']);
  expect(statSync(onlyFile(folder)).mode & 0o777).toBe(0o600);
  journal.reset();
  expect(statSync(onlyFile(folder)).size).toBe(0);
  journal.close();
  expect(readdirSync(folder)).toEqual([]);
});

test('replacing keeps only the given lines, in a new file', () => {
  const folder = tempFolder();
  const journal = new Journal(options(folder));
  journal.append(['"one"', '"two"']);
  journal.replace(['"two"']);
  journal.append(['"three"']);
  expect(decodeLines(readFileSync(onlyFile(folder)))).toEqual(['two', 'three']);
  journal.close();
});

test('the journal of an ended process is read until it is removed', () => {
  const folder = tempFolder();
  const journal = new Journal(options(folder));
  journal.append(['"left behind"']);
  journal.close();
  appendFileSync(onlyFile(folder), '0000ffff deadbeef {"torn');
  const [found] = takeJournals(options(folder));
  expect(found?.values).toEqual(['left behind']);
  found?.remove();
  expect(readdirSync(folder)).toEqual([]);
});

test('files with other names are none of its business', () => {
  const folder = tempFolder();
  writeFileSync(join(folder, 'other.journal'), '"x"');
  writeFileSync(join(folder, 'box'), '"x"');
  expect(takeJournals(options(folder))).toEqual([]);
});
