import type { RequestView } from '../conversation/view.ts';

/** Tells an agent from a chat, and a new session from a continued one, by signs in a request. */

export function offersTools({ shell: { value } }: RequestView): boolean {
  return [value['tools'], value['functions']].some(
    (list) => Array.isArray(list) && list.length > 0,
  );
}

/**
 * Says whether the prompt opens a new session: nothing was said or answered before. A resumed or forked session
 * holds earlier prompts, a compacted one a summary.
 */
export function isOpening({ items }: RequestView): boolean {
  const humans = items.at(-1)?.soFar.humans;
  if (humans === undefined || humans.before !== undefined) return false;
  return !items.some(
    ({ role, hasReasoning, isReference, isSummary }) =>
      role === 'assistant' || role === 'tool' || hasReasoning || isReference || isSummary === true,
  );
}
