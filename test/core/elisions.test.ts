import { expect, test } from 'vitest';
import {
  FoundEntries,
  isWrittenOnce,
  keyOf,
  type LedgerEntry,
  LOCAL_TENANT,
} from '../../src/core/ledger/entries.ts';
import {
  batchesIn,
  batchPlaces,
  elisionEntries,
  type ElisionPlace,
  repeatedOutputs,
} from '../../src/core/shortening/elisions.ts';
import { type ToolOutput, seenOutputsOf } from '../../src/core/shortening/outputs.ts';
import { longOutput, type Round, sessionBody } from '../support/tool-session.ts';
import { viewOf } from '../support/view-of.ts';

type SaidRound = Pick<Round, 'id' | 'output'>;

function roundsOf(count: number, said = 'r'): SaidRound[] {
  return Array.from({ length: count }, (_, at) => {
    return { id: `call_${at}`, output: longOutput(`${at < 6 ? 'r' : said}${at}`, 300) };
  });
}

function placeAfter(count: number, said = 'r', conversation = 'c'): ElisionPlace {
  return placeWith(roundsOf(count, said), conversation);
}

function placeWith(said: readonly SaidRound[], conversation = 'c'): ElisionPlace {
  const rounds = said.map((round): Round => ({ ...round, tool: 'Bash', args: {} }));
  const view = viewOf('anthropic_messages', sessionBody('anthropic_messages', rounds));
  const owner = { tenant: LOCAL_TENANT, scope: 's', conversation };
  return { view, owner, elision: 'real' };
}

function outputsIn({ view }: ElisionPlace): readonly ToolOutput[] {
  return seenOutputsOf(view);
}

/** A ledger that forgets nothing. */
function openLedger() {
  const entries = new Map<string, LedgerEntry>();
  const batches = (place: ElisionPlace) =>
    batchesIn(new FoundEntries(entries.values()), batchPlaces(place));
  return {
    batchesIn: (place: ElisionPlace) => batches(place).length,
    /** The calls whose outputs are out. */
    outIn: (place: ElisionPlace) => {
      const leftOut = batches(place).map((found) => found.leftOut);
      return [...repeatedOutputs(outputsIn(place), leftOut)].map(({ callId }) => callId);
    },
    /** Two outputs leave, from the one at `first` on. */
    record: (place: ElisionPlace, first = 0, firstUnsent?: number) => {
      const batch = { batch: outputsIn(place).slice(first, first + 2), omissions: [] };
      for (const entry of elisionEntries(batch, place, { at: 1, firstUnsent })) {
        const key = keyOf(entry);
        if (!isWrittenOnce(entry) || !entries.has(key)) entries.set(key, entry);
      }
    },
  };
}

test('law 6: a batch is found at its item and in every longer request, and not where it was taken back', () => {
  const ledger = openLedger();
  ledger.record(placeAfter(9));
  expect(ledger.outIn(placeAfter(9))).toEqual(['call_0', 'call_1']);
  expect(ledger.outIn(placeAfter(12))).toEqual(['call_0', 'call_1']);
  expect(ledger.batchesIn(placeAfter(7))).toBe(0);
  // As long as before, with other words from the seventh round on.
  expect(ledger.batchesIn(placeAfter(10, 'other'))).toBe(0);
});

test('law 6: a fork that leaves out more where another one did keeps both out', () => {
  const ledger = openLedger();
  // Both have the sixth round, which is the last anchor but one of either.
  ledger.record(placeAfter(7, 'c', 'c'));
  const fork = placeAfter(7, 'f', 'f');
  expect(ledger.batchesIn(fork)).toBe(1);
  ledger.record(fork, 2);
  expect(ledger.outIn(placeAfter(8, 'f', 'f'))).toEqual(['call_0', 'call_1', 'call_2', 'call_3']);
});

test('law 6: in front of a batch that began its conversation, each output stays out from its item on', () => {
  const ledger = openLedger();
  // The calls 4 and 5, of which the request had sent nothing before.
  ledger.record(placeAfter(12), 4, 0);
  expect(ledger.outIn(placeAfter(5))).toEqual([]);
  expect(ledger.outIn(placeAfter(6))).toEqual(['call_4']);
  // Here the sixth or the seventh call says the same as the fifth one: that was never left out.
  const said = (text: string) => ({ id: `call_${text}`, output: longOutput(text, 300) });
  const elsewhere = (...texts: readonly string[]) =>
    ledger.outIn(placeWith([...roundsOf(5), ...texts.map(said)]));
  expect(elsewhere('r4', 'newest')).toEqual(['call_4']);
  expect(elsewhere('new', 'r4', 'newest')).toEqual(['call_4']);
  expect(ledger.outIn(placeAfter(9))).toEqual(['call_4', 'call_5']);
});

test('law 6: where an earlier request sent the outputs, they stay out behind its items alone', () => {
  const ledger = openLedger();
  // The prompt and six rounds were sent before: 13 items.
  ledger.record(placeAfter(12), 4, 13);
  expect(ledger.batchesIn(placeAfter(6))).toBe(0);
  expect(ledger.batchesIn(placeAfter(7))).toBe(1);
});

test('law 6: an output with the same words as the last of a batch stays whole, however many items are new', () => {
  const ledger = openLedger();
  const again = (at: number) => ({ id: `again_${at}`, output: longOutput('r5', 300) });
  const said = [...roundsOf(6), again(0), again(1)];
  // The prompt and all these rounds were sent before: 17 items. The calls 4 and 5 leave now.
  const more = [0, 1, 2].map((at) => ({ id: `new_${at}`, output: longOutput(`new${at}`, 300) }));
  ledger.record(placeWith([...said, ...more]), 4, 17);
  for (const count of [1, 2, 3]) {
    const next = placeWith([...said, ...more.slice(0, count)]);
    expect(ledger.outIn(next)).toEqual(['call_4', 'call_5']);
  }
});
