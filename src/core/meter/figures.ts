import type { Usage } from '../dialects/dialect-answer.ts';

/** Computes and writes figures of requests for the commands and the page. */

/** Writes a number in short form: 950, 1.2k, 85k, 1.3M. */
export function short(value: number): string {
  const size = Math.abs(value);
  if (size < 1000) return String(Math.round(value));
  const [scaled, unit] = size < 999_500 ? [value / 1000, 'k'] : [value / 1_000_000, 'M'];
  return `${Math.abs(scaled) < 9.95 ? scaled.toFixed(1) : Math.round(scaled)}${unit}`;
}

/** Writes an amount such as $0.12. */
export function dollars(value: number): string {
  return `$${value.toFixed(2)}`;
}

/** Writes at least two digits, as for hours and minutes. */
export function two(value: number): string {
  return String(value).padStart(2, '0');
}

/** Writes the day in local time, such as 2026-11-20: the form of the days in the request log's sums. */
export function dayName(at: number): string {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return '?';
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/** Returns the share of input tokens that the provider read from its cache; undefined without input. */
export function cacheShare(rows: readonly { readonly usage?: Usage }[]): number | undefined {
  let [read, all] = [0, 0];
  for (const { usage } of rows) {
    if (usage === undefined) continue;
    const { input, cacheRead, cacheWrite } = usage;
    read += cacheRead;
    all += input + cacheRead + cacheWrite;
  }
  return all === 0 ? undefined : read / all;
}

export function tookMs({ ms }: { readonly ms: Readonly<Record<string, number>> }): number {
  return Object.values(ms).reduce((sum, one) => sum + one, 0);
}
