/**
 * Times of memories, in milliseconds since 1970. A time may come from a file, another machine or an old database, so
 * every entry point checks it, and writing one never throws.
 */

/** The range of `YYYY-MM-DD`: the years 0 to 9999. */
const FIRST = Date.UTC(-1, 12);
const LAST = Date.UTC(10_000) - 1;

export function isTime(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= FIRST && Number(value) <= LAST;
}

/** Returns the time in ISO 8601. An invalid time becomes the beginning of 1970, so that everything else is newer. */
export function isoTime(at: number): string {
  const time = isTime(at) ? at : 0;
  const second = Math.floor(time / 1000) * 1000;
  if (second !== lastSecond) {
    lastText = new Date(second).toISOString().slice(0, -MS_CHARS);
    lastSecond = second;
  }
  return `${lastText}${String(time - second).padStart(3, '0')}Z`;
}

/** Returns the day in UTC: `2026-11-20`. */
export function isoDay(at: number): string {
  return isoTime(at).slice(0, 'YYYY-MM-DD'.length);
}

/** Length of `000Z`. */
const MS_CHARS = 4;
/** Cache of the last second's text: consecutive times are mostly in the same second. */
let lastSecond = 0;
let lastText = '1970-01-01T00:00:00.';
