import { termsOf } from '../../core/recall/terms.ts';
import { referenceOf } from '../../core/memory/reference.ts';
import type { ForgetFilter, MemoryRecord } from '../../ports/memory.ts';
import { readJournals } from '../journals/journal.ts';
import { readRecord } from '../../core/memory/record.ts';
import { listTerms } from './records.ts';

/**
 * The captures in the outbox of any process on the folder that match a filter: a record to forget
 * may still be on its way.
 */
export function waitingRecords(
  place: { readonly folder: string; readonly name: string },
  filter: ForgetFilter,
): readonly MemoryRecord[] {
  const isMeant = matcherOf(filter);
  return readJournals(place)
    .flatMap((value) => readRecord(value) ?? [])
    .filter((record) => isMeant(record));
}

/** As the store's tables are searched: every word, in any order. */
function matcherOf(filter: ForgetFilter): (record: MemoryRecord) => boolean {
  const isInSpace = ({ space }: MemoryRecord): boolean => space === (filter.space ?? space);
  if ('refs' in filter) {
    const refs = new Set(filter.refs);
    return (record) => isInSpace(record) && refs.has(referenceOf(record.digest));
  }
  if (!('words' in filter)) return isInSpace;
  const terms = listTerms(filter.words);
  return (record) => {
    if (!isInSpace(record) || terms.length === 0) return false;
    const held = new Set(termsOf(record.text));
    return terms.every((term) => held.has(term));
  };
}
