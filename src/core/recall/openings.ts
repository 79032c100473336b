import type { RequestView } from '../conversation/view.ts';
import { isAnswer, ownWordsOf } from './own-words.ts';

/** Tells a new session from a continued one, by signs in a request. */

/**
 * Says whether the prompt is the first one of a new session that may name a subject: each prompt before it only answers
 * the agent ("14"). The requests of a resumed or forked session contain other prompts, those of a compacted session
 * contain a summary.
 */
export function isOpening({ items }: RequestView): boolean {
  let first = items.at(-1)?.soFar.humans;
  if (first === undefined) return false;
  while (first.before !== undefined) {
    first = first.before;
    if (!isAnswer(ownWordsOf(items[first.index]?.humanText ?? ''))) return false;
  }
  const { index } = first;
  return !items.some(
    ({ role, hasReasoning, isReference, isSummary }, at) =>
      isReference ||
      isSummary === true ||
      (at < index && (role === 'assistant' || role === 'tool' || hasReasoning)),
  );
}
