/**
 * Times of memories, in milliseconds since 1970. A time may come from a file, another machine or an old database. So
 * every entry point checks its times, and isoTime() never throws.
 */

/** The range of `YYYY-MM-DD`: the years 0 to 9999. */
const FIRST = Date.UTC(-1, 12);
const LAST = Date.UTC(10_000) - 1;

export function isTime(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= FIRST && Number(value) <= LAST;
}

/** Says whether `YYYY-MM-DD` is a day: Date.parse() takes the 30th of February for the 1st or 2nd of March. */
export function isDay(text: string): boolean {
  return isoDay(Date.parse(text)) === text;
}

/** Returns the time in ISO 8601. An invalid time becomes the beginning of 1970, so that everything else is newer. */
export function isoTime(at: number): string {
  return new Date(isTime(at) ? at : 0).toISOString();
}

/** Returns the day in UTC: `2026-11-20`. */
export function isoDay(at: number): string {
  return isoTime(at).slice(0, 'YYYY-MM-DD'.length);
}
