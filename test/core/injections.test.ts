import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  entriesFor,
  humanItems,
  replayBlocks,
  roomForBlock,
  SERVICE_BLOCK_MS,
  unansweredItem,
} from '../../src/core/recall/injections.ts';
import type { BlockFact, LedgerEntry } from '../../src/core/ledger/entries.ts';
import { FoundEntries } from '../../src/core/ledger/found-entries.ts';
import { viewRequest } from '../../src/core/request/request-view.ts';
import type { RequestView } from '../../src/core/conversation/view.ts';

const place = { tenant: 'local', space: 'default', conversation: 'c1', isStated: true };
const HOUR_MS = 3_600_000;
const BLOCK: BlockFact = { block: 'block one', form: 'text', dropsEarlier: false };

type Message = readonly [role: 'user' | 'assistant', text: string];

function viewOf(...messages: readonly Message[]): RequestView {
  const body = { model: 'm', messages: messages.map(([role, content]) => ({ role, content })) };
  const view = viewRequest(Buffer.from(JSON.stringify(body)), 'anthropic_messages');
  if (view === undefined) throw new Error('The body of this test is not a request.');
  return view;
}

function ledgerOf(entries: readonly LedgerEntry[]): FoundEntries {
  return new FoundEntries(entries);
}

function placed(
  view: RequestView,
  block: string,
  options: Partial<BlockFact & { at: number }> = {},
) {
  const human = humanItems(view, place).at(-1);
  if (human === undefined) throw new Error('The view of this test has no human item.');
  return entriesFor(human, { block, form: 'text', dropsEarlier: false, at: 0, ...options });
}

test('a new prompt is unanswered; inside a tool loop and after an answer nothing is', () => {
  expect(unansweredItem(viewOf(['user', 'a']))?.humanText).toBe('a');
  expect(unansweredItem(viewOf(['user', 'a'], ['assistant', 'b']))).toBeUndefined();
  expect(unansweredItem(viewOf(['user', 'a'], ['assistant', 'b'], ['user', 'c']))?.humanText).toBe(
    'c',
  );
  const loop = viewRequest(
    Buffer.from(
      JSON.stringify({
        messages: [
          { role: 'user', content: 'a' },
          { role: 'assistant', content: [{ type: 'tool_use', id: 't1', name: 'x', input: {} }] },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't1', content: 'r' }] },
        ],
      }),
    ),
    'anthropic_messages',
  );
  expect(loop && unansweredItem(loop)).toBeUndefined();
});

test('R26: a block of a service comes back for a week, and a prompt of then is recalled for anew', () => {
  const first = viewOf(['user', 'a']);
  const entries = ledgerOf(placed(first, 'block one'));
  const later = viewOf(['user', 'a'], ['assistant', 'b'], ['user', 'c']);
  const facts = { recalledTokensMax: 512, isStated: true, blockAgeMaxMs: SERVICE_BLOCK_MS };
  const at = (view: RequestView, now: number) => {
    const unanswered = unansweredItem(view);
    return replayBlocks(humanItems(view, place), entries, { ...facts, unanswered, now });
  };
  expect(at(later, SERVICE_BLOCK_MS).placements).toHaveLength(1);
  expect(at(later, SERVICE_BLOCK_MS + 1)).toMatchObject({ placements: [], pins: [] });
  expect(at(first, SERVICE_BLOCK_MS).isSettled).toBe(true);
  expect(at(first, SERVICE_BLOCK_MS + 1).isSettled).toBe(false);
});

test('a block comes back on every later request that still holds its message', () => {
  const first = viewOf(['user', 'a']);
  const entries = ledgerOf(placed(first, 'block one'));
  const later = viewOf(['user', 'a'], ['assistant', 'b'], ['user', 'c']);
  const facts = {
    recalledTokensMax: 512,
    unanswered: unansweredItem(later),
    isStated: true,
    now: 30 * HOUR_MS,
  };
  const replay = replayBlocks(humanItems(later, place), entries, facts);
  expect(replay.placements.map(({ block }) => block)).toEqual(['block one']);
  expect(replay.isSettled).toBe(false);
});

test('a fork under a new id replays the history but asks anew for its own prompt', () => {
  const first = viewOf(['user', 'a']);
  const entries = ledgerOf(placed(first, 'block one'));
  const elsewhere = { ...place, conversation: 'c2' };
  const facts = { recalledTokensMax: 512, isStated: true, now: 0 };
  const fork = viewOf(['user', 'a'], ['assistant', 'b'], ['user', 'c']);
  expect(
    replayBlocks(humanItems(fork, elsewhere), entries, {
      ...facts,
      unanswered: unansweredItem(fork),
    }).placements,
  ).toHaveLength(1);
  expect(
    replayBlocks(humanItems(first, elsewhere), entries, {
      ...facts,
      unanswered: unansweredItem(first),
    }).isSettled,
  ).toBe(false);
});

test('an answered item without an entry stays without a block when another conversation gets one there', () => {
  // The person edited the first message, so it was never the newest one of this conversation.
  const edited = viewOf(['user', 'a'], ['assistant', 'b'], ['user', 'c']);
  const facts = { recalledTokensMax: 512, isStated: true, now: 7 };
  const { pins } = replayBlocks(humanItems(edited, place), ledgerOf([]), {
    ...facts,
    unanswered: unansweredItem(edited),
  });
  expect(pins.map(({ kind, block, at }) => [kind, block, at])).toEqual([
    ['own-block', '', 7],
    ['answered-block', '', 7],
  ]);
  const opening = viewOf(['user', 'a']);
  const strange = humanItems(opening, { ...place, conversation: 'c2' })[0];
  const other = strange === undefined ? [] : entriesFor(strange, { ...BLOCK, at: 8 });
  expect(other).toHaveLength(2);
  const entries = ledgerOf([...pins, ...other]);
  for (const isStated of [true, false]) {
    const replay = replayBlocks(humanItems(edited, place), entries, {
      ...facts,
      isStated,
      unanswered: unansweredItem(edited),
    });
    expect(replay.placements).toEqual([]);
  }
});

test('R25: an entry of one space is unknown in another', () => {
  const view = viewOf(['user', 'a'], ['assistant', 'b']);
  const entries = ledgerOf(placed(view, 'block one'));
  const other = humanItems(view, { ...place, space: 'project/other' });
  const facts = { recalledTokensMax: 512, unanswered: undefined, isStated: true, now: 0 };
  expect(replayBlocks(other, entries, facts).placements).toEqual([]);
});

test('the same first words an hour later are a new conversation when the client states no id', () => {
  const view = viewOf(['user', 'a']);
  const entries = ledgerOf(placed(view, ''));
  const at = (now: number, isStated: boolean) =>
    replayBlocks(humanItems(view, place), entries, {
      unanswered: unansweredItem(view),
      isStated,
      now,
      recalledTokensMax: 512,
    }).isSettled;
  expect(at(HOUR_MS, false)).toBe(true);
  expect(at(HOUR_MS + 1, false)).toBe(false);
  expect(at(HOUR_MS + 1, true)).toBe(true);
});

test('an entry that drops the earlier ones does so in every later request, and not in a rewind', () => {
  const one = viewOf(['user', 'a']);
  const two = viewOf(['user', 'a'], ['assistant', 'b'], ['user', 'c']);
  const three = viewOf(
    ['user', 'a'],
    ['assistant', 'b'],
    ['user', 'c'],
    ['assistant', 'd'],
    ['user', 'e'],
  );
  const entries = ledgerOf([...placed(one, 'one'), ...placed(two, 'two', { dropsEarlier: true })]);
  const blocksOf = (view: RequestView) =>
    replayBlocks(humanItems(view, place), entries, {
      unanswered: unansweredItem(view),
      isStated: true,
      recalledTokensMax: 512,
      now: 0,
    }).placements.map(({ block }) => block);
  expect(blocksOf(one)).toEqual(['one']);
  expect(blocksOf(two)).toEqual(['two']);
  expect(blocksOf(three)).toEqual(['two']);
});

test('older blocks make way when too little room is left, where that is cheap', () => {
  const long = viewOf(['user', 'a'], ['assistant', 'word '.repeat(8_000)], ['user', 'c']);
  const short = viewOf(['user', 'a'], ['assistant', 'b'], ['user', 'c']);
  const used = (view: RequestView, tokens: number) => {
    const item = view.items[0];
    return item === undefined ? [] : [{ item, block: 'x', form: 'text' as const, tokens }];
  };
  const facts = { recalledTokensMax: 512, isCacheCold: false };
  expect(roomForBlock(short, [], facts)).toEqual({ tokensMax: 512, dropsEarlier: false });
  expect(roomForBlock(short, used(short, 384), facts)).toEqual({
    tokensMax: 128,
    dropsEarlier: false,
  });
  expect(roomForBlock(short, used(short, 385), facts)).toEqual({
    tokensMax: 512,
    dropsEarlier: true,
  });
  expect(roomForBlock(long, used(long, 385), facts)).toBeUndefined();
  expect(roomForBlock(long, used(long, 385), { ...facts, isCacheCold: true })?.dropsEarlier).toBe(
    true,
  );
});

test('law 6: the same request and the same ledger give the same placements', () => {
  const texts = fc.array(
    fc.tuple(fc.constantFrom('user', 'assistant'), fc.stringMatching(/^[a-z]{1,8}$/)),
    {
      minLength: 1,
      maxLength: 8,
    },
  );
  fc.assert(
    fc.property(texts, fc.array(fc.boolean(), { maxLength: 8 }), (messages, drops) => {
      const view = viewOf(...(messages as Message[]));
      const humans = humanItems(view, place);
      const entries = ledgerOf(
        humans.flatMap((human, at) =>
          entriesFor(human, {
            block: `b${at}`,
            form: 'text',
            dropsEarlier: drops[at] ?? false,
            at: 0,
          }),
        ),
      );
      const facts = {
        recalledTokensMax: 512,
        unanswered: unansweredItem(view),
        isStated: true,
        now: 5,
      };
      const again = viewOf(...(messages as Message[]));
      const placements = (v: RequestView) =>
        replayBlocks(humanItems(v, place), entries, {
          ...facts,
          unanswered: unansweredItem(v),
        }).placements.map(({ item, block }) => [item.start, block]);
      expect(placements(again)).toEqual(placements(view));
    }),
  );
});
