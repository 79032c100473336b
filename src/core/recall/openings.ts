import type { RequestView } from '../conversation/view.ts';
import { isAnswer, ownWordsOf } from './own-words.ts';

/** Distinguishes a new session from a continued one by what a request contains. */

/**
 * Says whether the newest prompt is the first of its session that may name a subject. All earlier prompts must be mere
 * answers to the agent, such as "14". It is false for a resumed or forked session, which has other earlier prompts, and
 * for a compacted one, which has a summary.
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
