import { field, isObject, listField, roughTokens } from './loose-json.ts';

/** What a provider charges for a request, in tokens: in full, from its cache, written to it. */
export interface PromptUsage {
  readonly input: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  /** The part of `cacheWrite` that stays for an hour. */
  readonly cacheWriteHour?: number;
}

/** No cache: everything in full. */
export function uncached(request: unknown): PromptUsage {
  return { input: roughTokens(request), cacheRead: 0, cacheWrite: 0 };
}

/**
 * A prompt cache that never forgets: a request reads what an earlier one ended with, when it begins
 * with all of it, else the system prompt and tools alone. Everything else is written.
 */
export function promptCache(): (request: unknown) => PromptUsage {
  const seen: string[][] = [];
  return (request) => {
    const items = [headOf(request), ...itemsOf(request).map(saidBy)];
    const reads = seen.map((earlier) => {
      const isWhole = earlier.every((item, at) => item === items[at]);
      return isWhole ? earlier.length : earlier[0] === items[0] ? 1 : 0;
    });
    const read = Math.max(0, ...reads);
    seen.push(items);
    const tokensOf = (list: readonly string[]): number =>
      list.reduce((sum, item) => sum + roughTokens(item), 0);
    return {
      input: 0,
      cacheRead: tokensOf(items.slice(0, read)),
      cacheWrite: tokensOf(items.slice(read)),
    };
  };
}

function itemsOf(request: unknown): readonly unknown[] {
  return [...listField(request, 'messages'), ...listField(request, 'input')];
}

function headOf(request: unknown): string {
  const { system, tools, instructions } = isObject(request) ? request : {};
  return saidBy({ system, tools, instructions });
}

/** Cache marks and string-or-one-block form do not count. */
function saidBy(item: unknown): string {
  return JSON.stringify(item, (key, value: unknown) => {
    if (key === 'cache_control') return undefined;
    return key === 'content' && typeof value === 'string' && field(item, 'role') !== undefined
      ? [{ type: 'text', text: value }]
      : value;
  });
}
