import type { RequestView } from '../conversation/view.ts';
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

/**
 * Most bytes that are searched for the client's instructions in each of two places: before the first answer, and behind
 * the messages.
 */
const STATED_BYTES_MAX = 256 * 1024;
/** Least characters of a text that is searched for in the instructions. A shorter one may occur by chance. */
const STATED_CHARS_MIN = 12;

/**
 * Returns a function that says whether a text stands where clients put instructions, such as CLAUDE.md, AGENTS.md and
 * memory files: before the request's first answer, or behind its messages. A full stop or an exclamation mark at the
 * text's end does not count.
 */
export function statedIn({ bytes, items, list }: RequestView): (text: string) => boolean {
  const first = items.find(({ role }) => role === 'assistant')?.start ?? list.end;
  const places = [
    bytes.subarray(0, Math.min(first, STATED_BYTES_MAX)),
    bytes.subarray(list.end, list.end + STATED_BYTES_MAX),
  ];
  return (text) => {
    const escaped = JSON.stringify(text.replace(/[.!]$/, '')).slice(1, -1);
    return escaped.length >= STATED_CHARS_MIN && places.some((place) => place.includes(escaped));
  };
}
