import { asList, asRecord } from '../bytes/json-fields.ts';

/** Reads the lifetimes in cache marks: how long the provider shall keep the prefix in its cache. */

/** Milliseconds that a cache entry lives if the request states no lifetime: Anthropic, and OpenAI's older models. */
export const CACHE_DEFAULT_MS = 5 * 60_000;

const UNIT_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000 };
const LIFETIME = /^(\d{1,6})([smh])$/;

/** Reads a lifetime in s, m or h, such as `30m`, as milliseconds; 0 for anything else. */
export function lifetimeMs(value: unknown): number {
  const [, count = '', unit = ''] = typeof value === 'string' ? (LIFETIME.exec(value) ?? []) : [];
  return Number(count) * (UNIT_MS[unit] ?? 0);
}

/** Returns the longest lifetime that a cache mark of an item or of its content states, in milliseconds; 0 for none. */
export function markedMs(value: unknown): number {
  const { content, cache_control: mark } = asRecord(value);
  let longest = mark === undefined ? 0 : lifetimeMs(asRecord(mark)['ttl']);
  for (const part of asList(content)) longest = Math.max(longest, markedMs(part));
  return longest;
}
