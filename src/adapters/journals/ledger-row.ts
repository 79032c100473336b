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

/** Undefined for a row that does not say what an entry of this address says. */
export function entryOf(row: LedgerRow, address: LedgerAddress): LedgerEntry | undefined {
  const { at } = row;
  switch (address.kind) {
    case 'own-block':
    case 'shared-block':
    case 'answered-block':
      return { ...address, ...blockFact(row), at };
    case 'own-batch':
    case 'shared-batch':
      return { ...address, leftOut: leftOutOf(row.block), at };
    case 'provider-count': {
      const [counted = Number.NaN, estimated = Number.NaN] = row.block.split(' ').map(Number);
      return { ...address, counted, estimated, at };
    }
    case 'verdict': {
      const verdict = VERDICTS.find((known) => known === row.block);
      return verdict === undefined ? undefined : { ...address, verdict, at };
    }
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

const VERDICTS = ['no_more', 'send_all'] as const;

/** In the place of a batch: from here on nothing is left out any more. */
const WHOLE = 'whole';

function saidBy(entry: LedgerEntry): Said {
  switch (entry.kind) {
    case 'own-block':
    case 'shared-block':
    case 'answered-block':
      return blockFact(entry);
    case 'own-batch':
    case 'shared-batch':
      return plain(textOf(entry.leftOut));
    case 'provider-count':
      return plain(`${entry.counted} ${entry.estimated}`);
    case 'verdict':
      return plain(entry.verdict);
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

/** Before the form of the stubs. No mark of an output or exchange begins so. */
const FORM = '!';
/** The form of a row that names none, as the first release wrote them. */
const FIRST_FORM = 1;

function textOf(leftOut: LeftOut): string {
  if (leftOut === 'nothing') return WHOLE;
  const { before, stubForm, marks } = leftOut;
  return [
    String(before),
    ...(stubForm === FIRST_FORM ? [] : [`${FORM}${stubForm}`]),
    ...marks,
  ].join(' ');
}

function leftOutOf(text: string): LeftOut {
  if (text === WHOLE) return 'nothing';
  const [before, ...marks] = text.split(' ');
  const named = marks[0]?.startsWith(FORM) === true ? marks.shift() : undefined;
  const stubForm = named === undefined ? FIRST_FORM : Number(named.slice(FORM.length));
  return { before: Number(before), stubForm, marks };
}
