import { termsOf } from '../../core/recall/terms.ts';
import { referenceOf } from '../../core/memory/reference.ts';
import type { ForgetFilter, MemoryRecord } from '../../ports/memory.ts';
import { readRecord } from '../../core/memory/record.ts';
import { STORE_TARGET } from '../state/outbox.ts';
import { listTerms } from './records.ts';
import type { Statements } from './statements.ts';

interface WaitingRow {
  readonly n: number;
  readonly record: string;
}

export interface WaitingRecord {
  /** The number of its row. */
  readonly n: number;
  readonly record: MemoryRecord;
}

/** The captures on their way to the store that `isMeant` knows: a record to forget may be one of them. */
export function waitingRecords(
  rows: Statements,
  isMeant: (record: MemoryRecord) => boolean,
): readonly WaitingRecord[] {
  return rows
    .all<WaitingRow>('SELECT n, record FROM outbox WHERE target = ? ORDER BY n', STORE_TARGET)
    .flatMap(({ n, record: text }) => {
      const record = readRecord(JSON.parse(text));
      return record !== undefined && isMeant(record) ? [{ n, record }] : [];
    });
}

/** As the store's tables are searched: every word, in any order. */
export function matcherOf(filter: ForgetFilter): (record: MemoryRecord) => boolean {
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
