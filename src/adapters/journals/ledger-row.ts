import {
  type BlockFact,
  isWrittenOnce,
  keyOf,
  type LedgerAddress,
  type LedgerEntry,
  type LeftOut,
  type QuotedRecord,
  type ThoughtFact,
} from '../../core/ledger/entries.ts';
import { isTime } from '../../core/memory/times.ts';
import type { LedgerRow } from '../../ports/ledger.ts';

/** Only this file knows the meaning of each column of a stored entry. */

type Said = Pick<LedgerRow, 'block' | 'form'>;

/** Behind the space of a block and behind each record that it quotes. No space contains it. */
const LINE_END = '\n';

export function rowOf(entry: LedgerEntry): LedgerRow {
  const isOnce = isWrittenOnce(entry) && entry.replaces !== true;
  const once = isOnce ? ({ isOnce: true } as const) : {};
  return { key: keyOf(entry), ...saidBy(entry), at: entry.at, ...once };
}

export function entryOf(row: LedgerRow, address: LedgerAddress): LedgerEntry {
  const { at } = row;
  switch (address.kind) {
    case 'own-block':
    case 'shared-block':
    case 'answered-block':
      return { ...address, ...blockOf(row), at };
    case 'own-batch':
    case 'shared-batch':
      return { ...address, leftOut: leftOutOf(row.block), at };
    case 'long-cache': {
      const [isLong, bridged, isOver] = row.block.split(' ').map(Number);
      return { ...address, isLong: isLong === 1, bridged: bridged ?? 0, isOver: isOver === 1, at };
    }
    case 'thought':
      return { ...address, ...thoughtOf(row.block), at };
    case 'hook-note':
    case 'hook-claim':
      return { ...address, note: row.block, at };
    case 'refusal':
    case 'refusal-at':
    case 'cut-answer':
    case 'batch-mark':
    case 'last-request':
    case 'bound':
      return { ...address, at };
  }
}

/** Parses a line of a journal; undefined if it is not valid. */
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

function saidBy(entry: LedgerEntry): Said {
  switch (entry.kind) {
    case 'own-block':
    case 'shared-block':
    case 'answered-block':
      return blockText(entry);
    case 'own-batch':
    case 'shared-batch':
      return plain(textOf(entry.leftOut));
    case 'long-cache':
      return plain(`${Number(entry.isLong)} ${entry.bridged} ${Number(entry.isOver)}`);
    case 'thought':
      return plain(thoughtText(entry));
    case 'hook-note':
    case 'hook-claim':
      return plain(entry.note);
    case 'refusal':
    case 'refusal-at':
    case 'cut-answer':
    case 'batch-mark':
    case 'last-request':
    case 'bound':
      return plain('');
  }
}

function plain(block: string): Said {
  return { block, form: 'text' };
}

/** A forgotten block has no text left, so its space is gone too. */
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

/** The lines of the quoted records, behind the space. A block begins with its fence. */
const QUOTED = /(?<=^[^\n]*\n)(?:m_[a-z2-7]{16} [^\n]*\n)+/;

/** Reads which records the block of a row quotes. */
export function quotedIn({ block }: Pick<LedgerRow, 'block'>): readonly QuotedRecord[] {
  const [records = ''] = QUOTED.exec(block) ?? [];
  const lines = records.split(LINE_END).slice(0, -1);
  return lines.map((line) => ({ ref: line.slice(0, REF_CHARS), space: line.slice(REF_CHARS + 1) }));
}

const REF_CHARS = 18;

const BOUND = 'bound';

const SHORTENED = 'shortened';

function thoughtText({ isBound, isShortened, behind, blocks }: ThoughtFact): string {
  const marks = blocks.map(({ item, block }) => `${item}:${block}`);
  const states = [isBound ? BOUND : 'unbound', isShortened ? SHORTENED : 'whole'];
  return [...states, behind, ...marks].join(' ');
}

function thoughtOf(text: string): ThoughtFact {
  const [state, length, behind = '', ...marks] = text.split(' ');
  const blocks = marks.map((mark) => {
    const [item = '', block = ''] = mark.split(':');
    return { item, block };
  });
  return { isBound: state === BOUND, isShortened: length === SHORTENED, behind, blocks };
}

function textOf({ before, marks }: LeftOut): string {
  return [String(before), ...marks].join(' ');
}

function leftOutOf(text: string): LeftOut {
  const [before, ...marks] = text.split(' ');
  return { before: Number(before), marks };
}
