import type { QuotedRecord } from '../ledger/entries.ts';
import type { RecalledPassage } from '../memory/record.ts';
import type { RecalledExchange, RecalledSession } from './agent-facts.ts';
import { ANSWER_MARK, CUT_TITLE, lineOf, quoteOf } from './recall-block.ts';

/**
 * Finds the records that a block quotes among those that it was written from. The ledger stores them with the block,
 * so that a forget of a record finds the block.
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
    ...sessions.filter(({ title }) => block.includes(quoteOf(titleText(title)))),
  ];
  const records = quoted.flatMap(({ space, records: refs }) => refs.map((ref) => ({ ref, space })));
  return [...new Map(records.map((one) => [[one.ref, one.space].join(' '), one])).values()];
}

/** Removes from a title the mark of the assistant's words and the note that it was shortened. */
function titleText(title: string): string {
  const said = title.startsWith(ANSWER_MARK) ? title.slice(ANSWER_MARK.length) : title;
  return said.replace(CUT_TITLE, '…');
}

interface Recalled {
  readonly passages: readonly RecalledPassage[];
  readonly exchanges?: readonly RecalledExchange[];
  readonly sessions?: readonly RecalledSession[];
}
