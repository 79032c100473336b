import {
  type BlockFact,
  isWrittenOnce,
  keyOf,
  type LedgerAddress,
  type LedgerEntry,
  type LeftOut,
  type ThoughtFact,
} from '../../core/ledger/entries.ts';
import { isTime } from '../../core/memory/times.ts';
import type { LedgerRow } from '../../ports/ledger.ts';

/** Only this file knows the meaning of each column of a stored entry. */

type Said = Pick<LedgerRow, 'block' | 'form'>;

/** Between the space of a block and its text. No space contains it. */
const SPACE_END = '\n';

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
function blockText({ block, form, space, isOpen }: BlockFact): Said {
  const hasText = block !== '' || isOpen === true;
  return { block: hasText ? [space, block].join(SPACE_END) : '', form };
}

function blockOf({ block: text, form }: LedgerRow): BlockFact {
  if (text === SPACE_END) return { block: '', form, space: '', isOpen: true };
  const end = text.indexOf(SPACE_END);
  return end === -1
    ? { block: '', form, space: '' }
    : { block: text.slice(end + 1), form, space: text.slice(0, end) };
}

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
