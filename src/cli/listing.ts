import { CliError } from './cli-error.ts';

/** The common part of the commands that list things. */

/** `--limit` as a number. Throws CliError for anything else. */
export function limitOf(
  text: string | undefined,
  range: {
    readonly fallback: number;
    readonly min?: number;
    readonly max: number;
    readonly name?: string;
  },
): number {
  if (text === undefined) return range.fallback;
  const min = range.min ?? 1;
  const limit = /^\d{1,6}$/.test(text) ? Number(text) : -1;
  if (limit >= min && limit <= range.max) return limit;
  throw new CliError(
    `${range.name ?? '--limit'}: expected a whole number from ${min} to ${range.max}.`,
    `Try ${range.name ?? '--limit'} ${range.fallback}`,
    2,
  );
}

/** `1 line`, `2 lines` */
export function count(number: number, noun: string, nouns = `${noun}s`): string {
  return `${number} ${number === 1 ? noun : nouns}`;
}

/** Local time to the second: `2026-11-20 16:45:02`. */
export function timeText(at: number): string {
  const time = new Date(at);
  if (Number.isNaN(time.getTime())) return '?';
  const day = [time.getFullYear(), two(time.getMonth() + 1), two(time.getDate())].join('-');
  return `${day} ${[time.getHours(), time.getMinutes(), time.getSeconds()].map(two).join(':')}`;
}

function two(value: number): string {
  return String(value).padStart(2, '0');
}

/** `16:45:02` */
export function clockText(at: number): string {
  return timeText(at).slice(11);
}
