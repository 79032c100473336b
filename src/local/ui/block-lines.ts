import { isReferenceStart } from '../../core/memory/reference.ts';
import { EXCHANGE_HEAD } from '../../core/recall/own-blocks.ts';
import { quoteOf } from '../../core/recall/recall-block.ts';
import type { Memory, StoredRecord } from '../../ports/memory.ts';
import type { BlockLine, MemoryOrigin } from '../../ports/ui-api.ts';
import { deadline } from './ui-routes.ts';

/**
 * The lines of a recalled block, each with the memory that it quotes. A block for an agent names its
 * exchanges; a line of another block is looked up by its words, and counts only where the memory holds
 * it word for word.
 */

/** A block of 512 tokens has fewer. */
const LINES_MAX = 80;
const SEARCHED_MAX = 12;
const WORDS_CHARS = 200;
/** How the speaker, the day or the mark is written before a quote. */
const MARK = /^(?:user|assistant|unverified|\d{4}-\d\d-\d\d): /;

interface Quote {
  readonly lines: readonly string[];
  readonly ref: string | undefined;
}

export async function blockLines(
  block: string,
  { memory, space }: { readonly memory: Memory; readonly space: string },
): Promise<readonly BlockLine[]> {
  const quotes = quotesOf(block.split('\n').slice(0, LINES_MAX));
  let searched = 0;
  const found = await Promise.all(
    quotes.map(async ({ lines, ref }) => {
      const isQuote = lines[0]?.startsWith('- ') === true;
      if (!isQuote) return undefined;
      if (ref !== undefined) return memory.retrieve({ ref }, deadline());
      searched += 1;
      return searched > SEARCHED_MAX
        ? undefined
        : findQuoted(lines.join('\n').slice(2), memory, space);
    }),
  ).catch(() => []);
  return quotes.map(({ lines }, at) => {
    const record = found[at];
    const text = lines.join('\n');
    const origin = record === undefined ? undefined : originOf(record);
    return origin === undefined ? { text } : { text, memory: origin };
  });
}

/** Undefined for an output. */
function originOf(record: StoredRecord): MemoryOrigin | undefined {
  const { ref, at, client, conversation, space, role } = record;
  return role === 'tool' ? undefined : { ref, at, client, conversation, space, role };
}

/** A quote and its indented lines are one; an exchange's head comes before its quotes. */
function quotesOf(lines: readonly string[]): readonly Quote[] {
  const quotes: { lines: string[]; ref: string | undefined }[] = [];
  let ref: string | undefined;
  for (const line of lines) {
    const last = quotes.at(-1);
    if (line.startsWith('  ') && last !== undefined) {
      last.lines.push(line);
      continue;
    }
    const [, named] = [...line.matchAll(EXCHANGE_HEAD)][0] ?? [];
    if (!line.startsWith('- '))
      ref = named !== undefined && isReferenceStart(named) ? named : undefined;
    quotes.push({ lines: [line], ref });
  }
  return quotes;
}

async function findQuoted(
  quote: string,
  memory: Memory,
  space: string,
): Promise<StoredRecord | undefined> {
  const text = quote.replace(MARK, '');
  const words = text.slice(0, WORDS_CHARS);
  for (const place of [space, 'global']) {
    // oxlint-disable-next-line no-await-in-loop -- The second place only where the first has nothing.
    const records = await memory.list({ space: place, words, limit: 20 }, deadline());
    const record = records.find((one) => quoteOf(one.text).includes(text));
    if (record !== undefined) return record;
  }
  return undefined;
}
