import { two } from '../core/meter/figures.ts';

/** Formats numbers, shares, sizes and times for the page. All days and times are local. */

/** Returns a whole number: "71,240". */
export function whole(value: number): string {
  return grouped(String(Math.round(value)));
}

/** Inserts commas between groups of three digits in the whole part. */
function grouped(digits: string): string {
  return digits.replaceAll(/\B(?=(?:\d{3})+(?!\d))/g, ',');
}

/** A no-break space, so that a number and its unit stay on one line. */
const SPACE = '\u00A0';

/** Returns a share with its sign: `−24 %`, `+3 %`, `0 %`; a dash if the share is unknown. */
export function signedPercent(share: number | undefined): string {
  if (share === undefined || !Number.isFinite(share)) return '–';
  const rounded = Math.round(share * 100);
  const sign = rounded > 0 ? '+' : '';
  return `${rounded < 0 ? '−' : sign}${Math.abs(rounded)}${SPACE}%`;
}

export function percent(share: number | undefined): string {
  return share === undefined || !Number.isFinite(share)
    ? '–'
    : `${Math.round(share * 100)}${SPACE}%`;
}

export function bytes(value: number): string {
  if (value < 1_000_000) return `${Math.max(1, Math.round(value / 1000))} kB`;
  return `${(value / 1_000_000).toFixed(1)} MB`;
}

export function milliseconds(value: number): string {
  return value < 1000 ? `${withTenth(value)} ms` : `${withTenth(value / 1000)} s`;
}

export function withTenth(value: number): string {
  return grouped(value.toFixed(1));
}

/** Returns a duration: 6 s, 24 min, 3 h. */
export function span(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${Math.round(seconds / 3600)} h`;
}

// These names replace the browser's date formatters: to make one takes a tenth of the time in which the page opens.
const MONTHS =
  'January February March April May June July August September October November December'.split(
    ' ',
  );
const WEEKDAYS = 'Sunday Monday Tuesday Wednesday Thursday Friday Saturday'.split(' ');

/** Returns a time: "14:32". */
export function clock(at: number): string {
  const date = new Date(at);
  return `${two(date.getHours())}:${two(date.getMinutes())}`;
}

export function clockSeconds(at: number): string {
  return `${clock(at)}:${two(new Date(at).getSeconds())}`;
}

/** Returns a day: "4 Nov", with the year if it is not this year. */
export function day(at: number): string {
  const date = new Date(at);
  const year = date.getFullYear();
  const text = `${date.getDate()} ${monthOf(date).slice(0, 3)}`;
  return year === new Date().getFullYear() ? text : `${text} ${year}`;
}

/** Returns a day: "Thursday 19 November". */
export function longDay(at: number): string {
  const date = new Date(at);
  return `${weekdayOf(date)} ${date.getDate()} ${monthOf(date)}`;
}

/** Returns a day: "Thu 19". */
export function narrowDay(at: number): string {
  const date = new Date(at);
  return `${weekdayOf(date).slice(0, 3)} ${date.getDate()}`;
}

function monthOf(date: Date): string {
  return MONTHS[date.getMonth()] ?? '';
}

function weekdayOf(date: Date): string {
  return WEEKDAYS[date.getDay()] ?? '';
}

/** Returns a time with its day: "Today 14:32", or "4 Nov 14:32". */
export function moment(at: number): string {
  const isToday = new Date(at).toDateString() === new Date().toDateString();
  return isToday ? `Today ${clock(at)}` : `${day(at)} ${clock(at)}`;
}

/** Returns when a day such as 2026-11-20 begins, in milliseconds since 1970. */
export function atOfDay(key: string): number {
  const [year = 0, month = 1, date = 1] = key.split('-').map(Number);
  return new Date(year, month - 1, date).getTime();
}

/** Returns when the first day begins and when the last one ends; an empty object without a day. */
export function daySpan(
  first: string | undefined,
  last = first,
): { readonly since?: number; readonly until?: number } {
  if (first === undefined || last === undefined) return {};
  const end = new Date(atOfDay(last));
  end.setDate(end.getDate() + 1);
  return { since: atOfDay(first), until: end.getTime() - 1 };
}

export function count(value: number, one: string, many = `${one}s`): string {
  return `${whole(value)} ${value === 1 ? one : many}`;
}
