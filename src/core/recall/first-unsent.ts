import type { FoundEntries } from '../ledger/entries.ts';
import type { BlockItem } from './injections.ts';

/**
 * The index of the first item that no earlier request of this space brought; undefined where one
 * brought all, as far as the ledger shows. A client that edits its history sends items that are old to
 * the person and new to the provider.
 *
 * The ledger has an entry for each prompt of each request, and one for each prompt with its answer. It
 * has none for a round, so a tool loop counts as sent with its prompt. `found`: the entries of these
 * prompts from before this request, with none missing.
 */
export function firstUnsentItem(
  humans: readonly BlockItem[],
  found: FoundEntries,
): number | undefined {
  const last = humans.findLastIndex((human) => wasBrought(human, found));
  const [brought, next] = [humans[last], humans[last + 1]];
  const isAnswerNew = brought?.answered !== undefined && !found.has(brought.answered);
  if (isAnswerNew) return brought.index + 1;
  return next?.index;
}

function wasBrought({ own, answered, spoken, shared }: BlockItem, found: FoundEntries): boolean {
  return [own, answered, spoken, shared].some(
    (address) => address !== undefined && found.has(address),
  );
}
