import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { readRecord } from '../../src/core/memory/record.ts';
import { rowFrom } from '../../src/adapters/state/ledger-row.ts';
import { time } from '../../src/core/memory-api/shape.ts';
import { readLine, writeLine } from '../../src/core/memory/memory-lines.ts';
import { isoTime, isTime } from '../../src/core/memory/times.ts';
import { datesOf } from '../../src/core/recall/dates.ts';
import { writeRecallBlock } from '../../src/core/recall/recall-block.ts';
import { recordOf } from '../support/records.ts';

const OUTSIDE = [
  8.64e15,
  8.64e15 + 1,
  -8.64e15,
  253_402_300_800_000,
  -62_167_219_200_001,
  Number.MAX_SAFE_INTEGER,
  1e300,
  0.5,
  Number.NaN,
  Number.POSITIVE_INFINITY,
];

test('a time outside of the calendar is none, and writing any number never throws', () => {
  for (const at of OUTSIDE) expect(isTime(at)).toBe(false);
  for (const at of [0, -1, 253_402_300_799_999, -62_167_219_200_000, Date.now()]) {
    expect(isTime(at)).toBe(true);
    expect(Date.parse(isoTime(at))).toBe(at);
  }
  fc.assert(
    fc.property(fc.double(), (at) => {
      expect(isoTime(at)).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
      datesOf(at);
    }),
  );
});

test('a memory with such a time is written into a block and an export all the same', () => {
  for (const at of OUTSIDE) {
    const record = recordOf('We deploy on Tuesdays.', { at });
    const { text } = writeRecallBlock([{ ...record, client: 'codex' }], 512);
    expect(text).toContain('\n1970-01-01 (codex):\n- We deploy on Tuesdays.');
    expect(writeLine(record)).toContain('"at":"1970-01-01T00:00:00.000Z"');
  }
});

test('no entrance takes it: an import, a journal, an answer of a memory service', () => {
  for (const at of OUTSIDE) {
    const line = { text: 'We deploy on Tuesdays.', space: 'a', at };
    // JSON has no such numbers, and says null for them.
    if (Number.isFinite(at)) expect(readLine(JSON.stringify(line), { now: 0 }).kind).toBe('wrong');
    expect(readRecord(recordOf('We deploy on Tuesdays.', { at }))).toBeUndefined();
    const row = { key: 'k', block: '', form: 'text' };
    expect(rowFrom({ ...row, at: 1 })).toBeDefined();
    expect(rowFrom({ ...row, at })).toBeUndefined();
  }
  expect(readRecord(recordOf('We deploy on Tuesdays.'))).toBeDefined();
  for (const text of [
    '+275760-09-13T00:00:00Z',
    '9999-12-31T23:59:59-00:01',
    '2026-13-01T00:00:00Z',
  ]) {
    expect(readLine(JSON.stringify({ text: 'a b', space: 'a', at: text }), { now: 0 }).kind).toBe(
      'wrong',
    );
    expect(time(text, { path: 'at', problems: [] })).toBeUndefined();
  }
});

test('a day that its month does not have is no date in a call, though Date.parse() takes it', () => {
  const isTaken = (text: string): boolean => time(text, { path: 'at', problems: [] }) === text;
  expect(isTaken('2028-02-29T23:59:59+02:00')).toBe(true);
  for (const text of ['2026-02-29T00:00:00Z', '2026-04-31T12:00:00Z', '2026-05-01T24:00:00Z']) {
    expect([text, isTaken(text)]).toEqual([text, false]);
  }
});
