import { asRecord, parseJson } from '../../core/bytes/json-fields.ts';
import {
  type AddressOf,
  type BlockFact,
  type BlockKind,
  isWrittenOnce,
  keyOf,
  type LedgerAddress,
  type LedgerEntry,
  type QuotedRecord,
} from '../../core/ledger/entries.ts';
import { isTime } from '../../core/memory/times.ts';
import type { LedgerRow } from '../../ports/ledger.ts';

/** Converts ledger entries to stored rows and back. */

type Content = Pick<LedgerRow, 'block' | 'form'>;

/** Separates a block's space, its quoted records, and its text. Neither a space nor a reference contains a line end. */
const LINE_END = '\n';

/** Estimated bytes of a row in memory without its texts. */
export const ROW_BYTES = 200;

export function bytesOf({ key, block }: LedgerRow): number {
  return ROW_BYTES + key.length + block.length;
}

export function rowOf(entry: LedgerEntry): LedgerRow {
  const isOnce = isWrittenOnce(entry) && entry.replaces !== true;
  const once = isOnce ? ({ isOnce: true } as const) : {};
  return { key: keyOf(entry), ...contentOf(entry), at: entry.at, ...once };
}

export function entryOf(row: LedgerRow, address: LedgerAddress): LedgerEntry {
  const facts = isBlock(address) ? blockOf(row) : asRecord(parseJson(row.block));
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Only rowOf() writes facts, under the key of their kind.
  return { ...address, ...facts, at: row.at } as LedgerEntry;
}

/** Checks a parsed row; undefined if it is invalid. */
export function rowFrom(value: unknown): LedgerRow | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const fields = value as Partial<LedgerRow>;
  const isWhole =
    typeof fields.key === 'string' &&
    typeof fields.block === 'string' &&
    (fields.form === 'text' || fields.form === 'part') &&
    isTime(fields.at);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Every member is checked above.
  return isWhole ? (fields as LedgerRow) : undefined;
}

/**
 * Returns an entry's stored content. For a block it is a text with one line for the space and one for each quoted
 * record, before the block itself, so that SQL can find the blocks that quote a record. For other entries it is JSON.
 */
function contentOf(entry: LedgerEntry): Content {
  return isBlock(entry) ? blockText(entry) : { block: JSON.stringify(entry, FACTS), form: 'text' };
}

/**
 * The members of entries that are not part of an address, and the members of the objects in them; see `Facts` in
 * core/ledger/entries.ts.
 */
const FACTS =
  'leftOut before marks isLong bridged isOver isBound isShortened batches whole behind blocks item block note'.split(
    ' ',
  );

function isBlock<One extends LedgerAddress>(one: One): one is One & AddressOf<BlockKind> {
  return BLOCKS.has(one.kind);
}

const BLOCKS: ReadonlySet<string> = new Set<BlockKind>([
  'own-block',
  'shared-block',
  'answered-block',
  'placed-block',
]);

/** Returns a block's stored content: '' for a forgotten block. */
function blockText({ block, form, space, quoted = [], isOpen }: BlockFact): Content {
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

/** Matches the lines of quoted records, which follow the line of the space. The next line begins the block's text. */
const QUOTED = /(?<=^[^\n]*\n)(?:m_[a-z2-7]{16} [^\n]*\n)+/;

export function quotedIn({ block }: Pick<LedgerRow, 'block'>): readonly QuotedRecord[] {
  const [records = ''] = QUOTED.exec(block) ?? [];
  const lines = records.split(LINE_END).slice(0, -1);
  return lines.map((line) => ({ ref: line.slice(0, REF_CHARS), space: line.slice(REF_CHARS + 1) }));
}

const REF_CHARS = 18;
