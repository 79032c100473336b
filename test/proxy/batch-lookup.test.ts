import { describe, expect, test } from 'vitest';
import {
  isWrittenOnce,
  keyOf,
  LOCAL_TENANT,
  type LedgerEntry,
} from '../../src/core/ledger/entries.ts';
import { FoundEntries } from '../../src/core/ledger/found-entries.ts';
import {
  elisionEntries,
  elisionMark,
  type ElisionPlace,
  repeatedOutputs,
} from '../../src/core/shortening/elisions.ts';
import { seenOutputsOf } from '../../src/core/shortening/output-list.ts';
import { readItemTools, type ToolOutput } from '../../src/core/shortening/outputs.ts';
import type { Ledger } from '../../src/ports/ledger.ts';
import { BatchLookup } from '../../src/proxy/batch-lookup.ts';
import { ConversationState, type KnownBatches } from '../../src/proxy/conversation-state.ts';
import { manualClock } from '../support/manual-clock.ts';
import { longOutput, type Round, sessionBody } from '../support/tool-session.ts';
import { viewOf } from '../support/view-of.ts';

/** A ledger that counts what it is asked for. */
class CountingLedger implements Ledger {
  readonly #entries = new Map<string, LedgerEntry>();
  isShared = false;
  asked = 0;
  now = 1;
  whileAsked = (): void => undefined;

  generation(): number {
    return this.now;
  }

  async find(addresses: Parameters<Ledger['find']>[0]): Promise<FoundEntries> {
    this.asked += addresses.length;
    const found = addresses.flatMap((address) => this.#entries.get(keyOf(address)) ?? []);
    await Promise.resolve();
    this.whileAsked();
    return new FoundEntries(found);
  }

  async record(entries: readonly LedgerEntry[]): Promise<void> {
    for (const entry of entries) {
      const key = keyOf(entry);
      if (!isWrittenOnce(entry) || !this.#entries.has(key)) this.#entries.set(key, entry);
    }
  }

  async commit(entries: readonly LedgerEntry[]): Promise<boolean> {
    await this.record(entries);
    return true;
  }

  forgetAll(): void {
    this.#entries.clear();
    this.now += 1;
  }
}

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
  const owner = { tenant: LOCAL_TENANT, space: 's', conversation };
  return { view, owner, elision: 'real' };
}

function outputsIn({ view }: ElisionPlace): readonly ToolOutput[] {
  return seenOutputsOf(view, (item) => readItemTools(view, item));
}

function open() {
  const ledger = new CountingLedger();
  const clock = manualClock();
  const lookup = new BatchLookup(ledger, clock);
  let known: KnownBatches | undefined;
  /** How many addresses are asked for, and how many batches are found. */
  const look = async (place: ElisionPlace) => {
    ledger.asked = 0;
    const found = await lookup.find(place, known, 1000);
    known = found.known;
    return { asked: ledger.asked, batches: found.batches.length };
  };
  /** Another process records a batch, or this one when it is noted. */
  const record = async (place: ElisionPlace, first = 0, firstUnsent?: number) => {
    const batch = { batch: outputsIn(place).slice(first, first + 2), omissions: [] };
    await ledger.record(elisionEntries(batch, place, { at: 1, firstUnsent }));
  };
  return { ledger, clock, lookup, look, record };
}

test('the ledger is asked for the items that are new, however long the conversation is', async () => {
  const { look } = open();
  const first = await look(placeAfter(20));
  expect(first.asked).toBeGreaterThan(40);
  expect(await look(placeAfter(21))).toEqual({ asked: 2, batches: 0 });
  expect(await look(placeAfter(23))).toEqual({ asked: 4, batches: 0 });
});

test('a batch at a new item is found, and those before it stay known', async () => {
  const { look, record } = open();
  await record(placeAfter(8));
  expect((await look(placeAfter(8))).batches).toBe(2);
  await record(placeAfter(9));
  const { asked, batches } = await look(placeAfter(9));
  expect({ asked, batches }).toEqual({ asked: 2, batches: 3 });
});

test('a last item that a client has rewritten is asked for alone, and its batch does not count', async () => {
  const { look, record } = open();
  await record(placeAfter(7));
  expect((await look(placeAfter(7))).batches).toBe(2);
  // One at the item before is still there: a batch is recorded at both.
  expect(await look(placeAfter(7, 'other'))).toEqual({ asked: 2, batches: 1 });
  expect(await look(placeAfter(8, 'other'))).toEqual({ asked: 2, batches: 1 });
  // Back to what it was: asked for again, and found.
  expect(await look(placeAfter(7))).toEqual({ asked: 2, batches: 2 });
  // Another conversation from the beginning on.
  expect((await look(placeAfter(2))).asked).toBeGreaterThan(2);
});

test('law 6: after a batch of this process, of whatever conversation, all items are looked up', async () => {
  const { look, record, lookup } = open();
  await look(placeAfter(8));
  // A fork under another name shares its words, and so its batch.
  await record(placeAfter(8, 'r', 'fork'));
  lookup.noteRecorded();
  expect((await look(placeAfter(9))).batches).toBe(2);
});

test('law 6: a batch that is recorded while the ledger is asked is found by the next request', async () => {
  const { ledger, look, record, lookup } = open();
  ledger.whileAsked = () => {
    void record(placeAfter(8, 'r', 'fork'));
    lookup.noteRecorded();
    ledger.whileAsked = () => undefined;
  };
  expect((await look(placeAfter(8))).batches).toBe(0);
  expect((await look(placeAfter(9))).batches).toBe(2);
});

test('law 6: when the ledger was emptied no batch is known by heart', async () => {
  const { ledger, look, record } = open();
  await record(placeAfter(8));
  expect((await look(placeAfter(8))).batches).toBe(2);
  ledger.forgetAll();
  expect((await look(placeAfter(9))).batches).toBe(0);
});

test('law 6: what another process recorded is looked for once a minute', async () => {
  const { clock, look, record } = open();
  await look(placeAfter(8));
  await record(placeAfter(8));
  clock.goOn(59_000);
  expect((await look(placeAfter(9))).batches).toBe(0);
  clock.goOn(2_000);
  expect((await look(placeAfter(10))).batches).toBe(2);
});

test('law 6: a batch of what the person took back does not count', async () => {
  const { look, record } = open();
  await record(placeAfter(9));
  expect((await look(placeAfter(9))).batches).toBe(2);
  expect((await look(placeAfter(7))).batches).toBe(0);
  expect((await look(placeAfter(9))).batches).toBe(2);
  // As long as before, with other words from the seventh round on.
  expect((await look(placeAfter(10, 'other'))).batches).toBe(0);
});

test('law 6: a fork that leaves out more where another one did keeps both out', async () => {
  const { look, lookup, record } = open();
  // Both have the sixth round, which is the last anchor but one of either.
  await record(placeAfter(7, 'c', 'c'));
  const fork = placeAfter(7, 'f', 'f');
  expect((await look(fork)).batches).toBe(1);
  await record(fork, 2);
  lookup.noteRecorded();
  const next = placeAfter(8, 'f', 'f');
  const { batches } = await lookup.find(next, undefined, 1000);
  const out = repeatedOutputs(outputsIn(next), batches);
  expect([...out.keys()].map(({ callId }) => callId)).toEqual([
    'call_0',
    'call_1',
    'call_2',
    'call_3',
  ]);
});

test('law 6: in front of a batch that began its conversation, each output stays out from its item on', async () => {
  const { lookup, record } = open();
  // The calls 4 and 5, of which the request had sent nothing before.
  await record(placeAfter(12), 4, 0);
  const outIn = async (place: ElisionPlace) => {
    const { batches } = await lookup.find(place, undefined, 1000);
    return [...repeatedOutputs(outputsIn(place), batches).keys()].map(({ callId }) => callId);
  };
  expect(await outIn(placeAfter(5))).toEqual([]);
  expect(await outIn(placeAfter(6))).toEqual(['call_4']);
  // Here the sixth or the seventh call says what the fifth one said: that was never left out.
  const said = (text: string) => ({ id: `call_${text}`, output: longOutput(text, 300) });
  const elsewhere = (...texts: readonly string[]) =>
    outIn(placeWith([...roundsOf(5), ...texts.map(said)]));
  expect(await elsewhere('r4', 'newest')).toEqual(['call_4']);
  expect(await elsewhere('new', 'r4', 'newest')).toEqual(['call_4']);
  expect(await outIn(placeAfter(9))).toEqual(['call_4', 'call_5']);
});

test('law 6: where an earlier request sent the outputs, they stay out behind its items alone', async () => {
  const { look, record } = open();
  // The prompt and six rounds were sent before: 13 items.
  await record(placeAfter(12), 4, 13);
  expect((await look(placeAfter(6))).batches).toBe(0);
  expect((await look(placeAfter(7))).batches).toBe(1);
});

test('law 6: an output with the same words as the last of a batch stays whole, however many items are new', async () => {
  const { lookup, record } = open();
  const again = (at: number) => ({ id: `again_${at}`, output: longOutput('r5', 300) });
  const said = [...roundsOf(6), again(0), again(1)];
  // The prompt and all these rounds were sent before: 17 items. The calls 4 and 5 leave now.
  const more = [0, 1, 2].map((at) => ({ id: `new_${at}`, output: longOutput(`new${at}`, 300) }));
  await record(placeWith([...said, ...more]), 4, 17);
  for (const count of [1, 2, 3]) {
    const next = placeWith([...said, ...more.slice(0, count)]);
    // oxlint-disable-next-line no-await-in-loop -- One request comes behind the other.
    const { batches } = await lookup.find(next, undefined, 1000);
    const out = [...repeatedOutputs(outputsIn(next), batches).keys()];
    expect(out.map(({ callId }) => callId)).toEqual(['call_4', 'call_5']);
  }
});

test('on several nodes all items are looked up at every request', async () => {
  const { ledger, look, record } = open();
  ledger.isShared = true;
  const { asked } = await look(placeAfter(20));
  // Another node records a batch at an item that this one has asked for.
  await record(placeAfter(20));
  expect(await look(placeAfter(21))).toEqual({ asked: asked + 2, batches: 2 });
});

describe('a conversation whose mark the ledger lacked', () => {
  const markOf = (place: ElisionPlace) => {
    const mark = elisionMark(place);
    if (mark === undefined) throw new Error('The conversation has no item that could be marked.');
    return mark;
  };
  const openLacking = () => {
    const opened = open();
    const state = new ConversationState();
    const mark = markOf(placeAfter(8));
    opened.lookup.noteLacks(mark, opened.lookup.recorded, state);
    const lacks = (other = mark) => opened.lookup.lacks(other, state);
    expect(lacks()).toBe(true);
    return { ...opened, state, mark, lacks };
  };

  test('is not asked about until this process records a batch, of whatever conversation', () => {
    const { lookup, lacks } = openLacking();
    lookup.noteRecorded();
    expect(lacks()).toBe(false);
  });

  test('is asked about again where a batch was recorded while the ledger was asked', () => {
    const { lookup, lacks, mark, state } = openLacking();
    const { recorded } = lookup;
    lookup.noteRecorded();
    lookup.noteLacks(mark, recorded, state);
    expect(lacks()).toBe(false);
  });

  test('is asked about again after a minute: another process may have recorded one', () => {
    const { clock, lacks } = openLacking();
    clock.goOn(60_000);
    expect(lacks()).toBe(false);
  });

  test('is asked about again after something was forgotten', () => {
    const { ledger, lacks } = openLacking();
    ledger.forgetAll();
    expect(lacks()).toBe(false);
  });

  test('is asked about on several nodes', () => {
    const { ledger, lacks } = openLacking();
    ledger.isShared = true;
    expect(lacks()).toBe(false);
  });

  test('says nothing of another beginning or of shadow mode', () => {
    const { lacks } = openLacking();
    const body = sessionBody('anthropic_messages', [], 'Another prompt.');
    const other = { ...placeAfter(8), view: viewOf('anthropic_messages', body) };
    expect(lacks(markOf(other))).toBe(false);
    expect(lacks(markOf({ ...placeAfter(8), elision: 'shadow' }))).toBe(false);
  });
});
