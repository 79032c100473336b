import { spawnSync } from 'node:child_process';
import {
  appendFileSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { decodeLines, findOrphans, Journal } from '../../src/adapters/journals/journal.ts';
import { tempFolder } from '../support/temp-folder.ts';

function options(folder: string, bytesMax = 1_000_000) {
  return { folder, name: 'outbox', bytesMax };
}

function onlyFile(folder: string): string {
  const [file = ''] = readdirSync(folder);
  return join(folder, file);
}

/** Renames the file as if a process that is dead by now had written it. */
function orphan(folder: string): void {
  const { pid } = spawnSync(process.execPath, ['-e', '0']);
  const path = onlyFile(folder);
  renameSync(path, path.replace(`-${process.pid}-`, `-${pid}-`));
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

test('the journal of a living process is not an orphan', () => {
  const folder = tempFolder();
  const journal = new Journal(options(folder));
  journal.append(['"mine"']);
  expect(findOrphans(options(folder))).toEqual([]);
  journal.close();
});

test('the journal of a dead process is an orphan until it is removed', () => {
  const folder = tempFolder();
  const journal = new Journal(options(folder));
  journal.append(['"left behind"']);
  journal.close();
  orphan(folder);
  appendFileSync(onlyFile(folder), '0000ffff deadbeef {"torn');
  const [found] = findOrphans(options(folder));
  expect(found?.values).toEqual(['left behind']);
  found?.remove();
  expect(readdirSync(folder)).toEqual([]);
});

test('a process number that was given out again does not keep a journal for ever', () => {
  const folder = tempFolder();
  const journal = new Journal(options(folder));
  journal.append(['"before the restart"']);
  journal.close();
  // The same number, but a name from long before this process began.
  const path = onlyFile(folder);
  renameSync(path, path.replace(/-\d{13}-/, '-1500000000000-'));
  expect(findOrphans(options(folder))).toMatchObject([{ values: ['before the restart'] }]);
});

test('a journal from another machine is read, and kept while its owner may live', () => {
  const folder = tempFolder();
  const journal = new Journal(options(folder));
  journal.append(['"from afar"']);
  journal.close();
  const path = onlyFile(folder);
  renameSync(path, path.replace(/outbox-[0-9a-f]{8}-/, 'outbox-00000000-'));
  const [found] = findOrphans(options(folder));
  expect(found?.values).toEqual(['from afar']);
  found?.remove();
  expect(readdirSync(folder)).toHaveLength(1);
});

test('files with other names are none of its business', () => {
  const folder = tempFolder();
  writeFileSync(join(folder, 'other.journal'), '"x"');
  writeFileSync(join(folder, 'box'), '"x"');
  expect(findOrphans(options(folder))).toEqual([]);
});
