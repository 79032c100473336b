import type { RequestView } from '../conversation/view.ts';

/**
 * Signs in a request that distinguish an agent from a chat, and a new session from a continued one.
 */

export function offersTools({ shell: { value } }: RequestView): boolean {
  return [value['tools'], value['functions']].some(
    (list) => Array.isArray(list) && list.length > 0,
  );
}

/**
 * The first prompt of a new session: it has no answer, and nothing was said before. A resumed or
 * forked session holds earlier prompts, a compacted one a summary.
 */
export function isOpening({ items }: RequestView): boolean {
  const humans = items.at(-1)?.soFar.humans;
  if (humans === undefined || humans.before !== undefined) return false;
  return !items.some(
    ({ role, hasReasoning, isReference, isSummary }) =>
      role === 'assistant' || role === 'tool' || hasReasoning || isReference || isSummary === true,
  );
}
