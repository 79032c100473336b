import { createHash } from 'node:crypto';
import { isObject } from '../scripted-provider/loose-json.ts';

/**
 * The value of a piece of a request, as the prefix checks compare it: the order of keys, the formatting of
 * the JSON and cache marks do not count (preserved-thinking, "What counts as an edit", 2026-09-26).
 */
export function measure(value: unknown): { readonly digest: string; readonly tokens: number } {
  const text = canonical(value);
  const digest = createHash('sha1').update(text).digest('base64url');
  // Four characters a token: the providers' rules of thumb, and only the growth matters.
  return { digest, tokens: Math.ceil(text.length / 4) };
}

const CACHE_MARKS: ReadonlySet<string> = new Set(['cache_control', 'prompt_cache_breakpoint']);

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (!isObject(value)) return JSON.stringify(value) ?? 'null';
  const members = Object.keys(value)
    .filter((name) => !CACHE_MARKS.has(name) && value[name] !== undefined)
    .toSorted()
    .map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`);
  return `{${members.join()}}`;
}
