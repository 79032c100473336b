/**
 * Times of memories, in milliseconds since 1970. A time may come from a file, another machine or an old
 * database, so it is checked at every entrance, and writing one never throws.
 */

/** The years 0 to 9999: what `YYYY-MM-DD` can say. */
const FIRST = Date.UTC(-1, 12);
const LAST = Date.UTC(10_000) - 1;

export function isTime(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= FIRST && Number(value) <= LAST;
}

/** As ISO 8601. An invalid time reads as the beginning of 1970: everything else is newer. */
export function isoTime(at: number): string {
  const time = isTime(at) ? at : 0;
  const second = Math.floor(time / 1000) * 1000;
  if (second !== lastSecond) {
    lastText = new Date(second).toISOString().slice(0, -MS_CHARS);
    lastSecond = second;
  }
  return `${lastText}${String(time - second).padStart(3, '0')}Z`;
}

/** `000Z` */
const MS_CHARS = 4;
/** Most times are of the second in which the last one was. */
let lastSecond = 0;
let lastText = '1970-01-01T00:00:00.';
