import { assert, integer, property } from 'fast-check';
import { expect, test } from 'vitest';
import {
  clock,
  clockSeconds,
  day,
  longDay,
  narrowDay,
  whole,
  withTenth,
} from '../../src/ui/format.ts';
import { short } from '../../src/core/meter/figures.ts';
import { NOW } from '../../src/ui/texts/now.ts';

/** Numbers and times read as the browser's own formatters write them, without the time to make those. */

const TIMES = integer({ min: 0, max: Date.parse('2099-12-31T23:59:59Z') });

function formatted(at: number, options: Intl.DateTimeFormatOptions): string {
  return new Intl.DateTimeFormat('en-GB', options).format(at).replace(',', '');
}

test('times read as Intl writes them', () => {
  const time = { hour: '2-digit', minute: '2-digit' } as const;
  assert(
    property(TIMES, (at) => {
      expect(clock(at)).toBe(formatted(at, time));
      expect(clockSeconds(at)).toBe(formatted(at, { ...time, second: '2-digit' }));
      expect(longDay(at)).toBe(formatted(at, { weekday: 'long', day: 'numeric', month: 'long' }));
      expect(narrowDay(at)).toBe(formatted(at, { weekday: 'short', day: 'numeric' }));
    }),
  );
});

test('a day of another year names its year', () => {
  const year = new Date().getFullYear();
  expect(day(new Date(year, 10, 4).getTime())).toBe('4 Nov');
  expect(day(new Date(year - 1, 8, 30).getTime())).toBe(`30 Sep ${year - 1}`);
});

test('numbers have a comma after every third digit', () => {
  assert(
    property(integer({ min: -1e15, max: 1e15 }), (value) => {
      expect(whole(value)).toBe(value.toLocaleString('en-US'));
    }),
  );
  expect([withTenth(1234.56), withTenth(0.04), withTenth(999)]).toEqual([
    '1,234.6',
    '0.0',
    '999.0',
  ]);
  expect([short(950), short(1234), short(85_400), short(1_300_000)]).toEqual([
    '950',
    '1.2k',
    '85k',
    '1.3M',
  ]);
});

test('a reset of today is in the middle of a line', () => {
  expect(NOW.today.window('5h', '58 %', 'Today 18:38')).toBe('5h: 58 %, resets today 18:38');
  expect(NOW.today.window('7d', '83 %', '2 Dec 10:38')).toBe('7d: 83 %, resets 2 Dec 10:38');
});
