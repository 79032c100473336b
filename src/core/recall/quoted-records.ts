import type { QuotedRecord } from '../ledger/entries.ts';
import type { RecalledPassage } from '../memory/record.ts';
import type { RecalledExchange, RecalledSession } from './agent-facts.ts';
import { lineOf, quoteOf } from './recall-block.ts';

/**
 * Returns those of the recalled records that a block quotes. The ledger stores their references with the block, so that
 * svc finds the block when the user forgets a record.
 */
export function quotedRecords(
  block: string,
  { passages, exchanges = [], sessions = [] }: Recalled,
): readonly QuotedRecord[] {
  const quoted = [
    ...passages
      .filter(
        (passage) =>
          block.includes(lineOf(passage)) || block.includes(`, the user: ${quoteOf(passage.text)}`),
      )
      .map(({ space, ref }) => ({ space, records: [ref] })),
    ...exchanges.filter(({ ref }) => block.includes(ref)),
    ...sessions.filter(({ title }) => block.includes(quoteOf(title))),
  ];
  const records = quoted.flatMap(({ space, records: refs }) => refs.map((ref) => ({ ref, space })));
  return [...new Map(records.map((one) => [[one.ref, one.space].join(' '), one])).values()];
}

interface Recalled {
  readonly passages: readonly RecalledPassage[];
  readonly exchanges?: readonly RecalledExchange[];
  readonly sessions?: readonly RecalledSession[];
}
