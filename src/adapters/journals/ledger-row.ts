import { asRecord, parseJson } from '../../core/bytes/json-fields.ts';
import {
  type AddressOf,
  type BlockFact,
  isWrittenOnce,
  keyOf,
  type LedgerAddress,
  type LedgerEntry,
  type QuotedRecord,
} from '../../core/ledger/entries.ts';
import { isTime } from '../../core/memory/times.ts';
import type { LedgerRow } from '../../ports/ledger.ts';

/** Converts ledger entries to stored rows and back. Only this file knows what each column means. */

type Said = Pick<LedgerRow, 'block' | 'form'>;

/** Separates the space of a block and the records that it quotes. No space contains a line end. */
const LINE_END = '\n';

export function rowOf(entry: LedgerEntry): LedgerRow {
  const isOnce = isWrittenOnce(entry) && entry.replaces !== true;
  const once = isOnce ? ({ isOnce: true } as const) : {};
  return { key: keyOf(entry), ...saidBy(entry), at: entry.at, ...once };
}

export function entryOf(row: LedgerRow, address: LedgerAddress): LedgerEntry {
  const facts = isBlock(address) ? blockOf(row) : asRecord(parseJson(row.block));
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Only rowOf() writes facts, under the key of their kind.
  return { ...address, ...facts, at: row.at } as LedgerEntry;
}

/** Parses a line of a journal; undefined if it is invalid. */
export function rowFrom(value: unknown): LedgerRow | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const fields = value as Partial<LedgerRow>;
  const isWhole =
    typeof fields.key === 'string' &&
    typeof fields.block === 'string' &&
    (fields.form === 'text' || fields.form === 'part') &&
    isTime(fields.at);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Every field was looked at.
  return isWhole ? (fields as LedgerRow) : undefined;
}

/**
 * Returns an entry's stored form. A block is stored as text, because blocks that quote a record must be found; other
 * entries as JSON.
 */
function saidBy(entry: LedgerEntry): Said {
  return isBlock(entry) ? blockText(entry) : { block: JSON.stringify(entry, FACTS), form: 'text' };
}

/** Members of entries that are not part of an address: see `Facts` of core/ledger/entries.ts. */
const FACTS =
  'leftOut before marks isLong bridged isOver isBound isShortened batches whole behind blocks item block note'.split(
    ' ',
  );

function isBlock<One extends LedgerAddress>(
  one: One,
): one is One & AddressOf<'own-block' | 'shared-block' | 'answered-block'> {
  return BLOCKS.has(one.kind);
}

const BLOCKS: ReadonlySet<string> = new Set(['own-block', 'shared-block', 'answered-block']);

/** Writes a block. A forgotten block has no text, so its space is dropped too. */
function blockText({ block, form, space, quoted = [], isOpen }: BlockFact): Said {
  if (block === '' && isOpen !== true) return { block: '', form };
  const records = quoted.map((one) => [one.ref, one.space].join(' '));
  return { block: [space, ...records, block].join(LINE_END), form };
}

function blockOf({ block: text, form }: LedgerRow): BlockFact {
  if (text === LINE_END) return { block: '', form, space: '', isOpen: true };
  const end = text.indexOf(LINE_END);
  if (end === -1) return { block: '', form, space: '' };
  const [records = ''] = QUOTED.exec(text) ?? [];
  const quoted = records === '' ? {} : { quoted: quotedIn({ block: text }) };
  return {
    block: text.slice(end + records.length + 1),
    form,
    space: text.slice(0, end),
    ...quoted,
  };
}

/** Matches the lines of quoted records after the space. A block begins with its fence. */
const QUOTED = /(?<=^[^\n]*\n)(?:m_[a-z2-7]{16} [^\n]*\n)+/;

export function quotedIn({ block }: Pick<LedgerRow, 'block'>): readonly QuotedRecord[] {
  const [records = ''] = QUOTED.exec(block) ?? [];
  const lines = records.split(LINE_END).slice(0, -1);
  return lines.map((line) => ({ ref: line.slice(0, REF_CHARS), space: line.slice(REF_CHARS + 1) }));
}

const REF_CHARS = 18;
