import type { RequestView } from '../conversation/view.ts';

/** Tells an agent from a chat, and a new session from a continued one, by signs in a request. */

export function offersTools({ shell: { value } }: RequestView): boolean {
  return [value['tools'], value['functions']].some(
    (list) => Array.isArray(list) && list.length > 0,
  );
}

/**
 * Says whether the prompt is the first one of a new session. The requests of a resumed or forked session contain
 * earlier prompts, those of a compacted session contain a summary.
 */
export function isOpening({ items }: RequestView): boolean {
  const humans = items.at(-1)?.soFar.humans;
  if (humans === undefined || humans.before !== undefined) return false;
  return !items.some(
    ({ role, hasReasoning, isReference, isSummary }) =>
      role === 'assistant' || role === 'tool' || hasReasoning || isReference || isSummary === true,
  );
}
