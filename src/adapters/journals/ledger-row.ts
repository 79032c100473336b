import {
  type BlockFact,
  isWrittenOnce,
  keyOf,
  type LedgerAddress,
  type LedgerEntry,
  type LeftOut,
} from '../../core/ledger/entries.ts';
import { isTime } from '../../core/memory/times.ts';
import type { LedgerRow } from '../../ports/ledger.ts';

/** Only this file knows the meaning of each column of a stored entry. */

type Said = Pick<LedgerRow, 'block' | 'form' | 'dropsEarlier'>;

export function rowOf(entry: LedgerEntry): LedgerRow {
  const once = isWrittenOnce(entry) ? ({ isOnce: true } as const) : {};
  return { key: keyOf(entry), ...saidBy(entry), at: entry.at, ...once };
}

export function entryOf(row: LedgerRow, address: LedgerAddress): LedgerEntry {
  const { at } = row;
  switch (address.kind) {
    case 'own-block':
    case 'shared-block':
    case 'answered-block':
      return { ...address, ...blockFact(row), at };
    case 'own-batch':
    case 'shared-batch':
      return { ...address, leftOut: leftOutOf(row.block), at };
    case 'long-cache': {
      const [isLong, bridged, isOver] = row.block.split(' ').map(Number);
      return { ...address, isLong: isLong === 1, bridged: bridged ?? 0, isOver: isOver === 1, at };
    }
    case 'refusal':
    case 'refusal-at':
    case 'cut-answer':
    case 'batch-mark':
    case 'last-request':
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
    typeof fields.dropsEarlier === 'boolean' &&
    isTime(fields.at);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Every field was looked at.
  return isWhole ? (fields as LedgerRow) : undefined;
}

function saidBy(entry: LedgerEntry): Said {
  switch (entry.kind) {
    case 'own-block':
    case 'shared-block':
    case 'answered-block':
      return blockFact(entry);
    case 'own-batch':
    case 'shared-batch':
      return plain(textOf(entry.leftOut));
    case 'long-cache':
      return plain(`${Number(entry.isLong)} ${entry.bridged} ${Number(entry.isOver)}`);
    case 'refusal':
    case 'refusal-at':
    case 'cut-answer':
    case 'batch-mark':
    case 'last-request':
      return plain('');
  }
}

function plain(block: string): Said {
  return { block, form: 'text', dropsEarlier: false };
}

function blockFact({ block, form, dropsEarlier }: BlockFact): BlockFact {
  return { block, form, dropsEarlier };
}

function textOf({ before, marks }: LeftOut): string {
  return [String(before), ...marks].join(' ');
}

function leftOutOf(text: string): LeftOut {
  const [before, ...marks] = text.split(' ');
  return { before: Number(before), marks };
}
