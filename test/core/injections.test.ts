import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  type Bond,
  entriesFor,
  humanItems,
  placedMarks,
  replayBlocks,
  roomForBlock,
  roomForLook,
  SERVICE_BLOCK_MS,
  unansweredItem,
  UNBOUND,
} from '../../src/core/recall/injections.ts';
import {
  type BlockFact,
  FoundEntries,
  keyOf,
  type LedgerEntry,
  LOCAL_TENANT,
} from '../../src/core/ledger/entries.ts';
import { viewRequest } from '../support/view-of.ts';
import type { RequestView } from '../../src/core/conversation/view.ts';

const place = {
  tenant: 'local',
  scope: 'default',
  space: 'default',
  conversation: 'c1',
  isStated: true,
};
const HOUR_MS = 3_600_000;
const BLOCK: BlockFact = { block: 'block one', form: 'text', space: 'default' };

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
  return entriesFor(human, { block, form: 'text', space: 'default', at: 0, ...options });
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
  const facts = { bond: UNBOUND, isStated: true, blockAgeMaxMs: SERVICE_BLOCK_MS };
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
    bond: UNBOUND,
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
  const facts = { bond: UNBOUND, isStated: true, now: 0 };
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
  const facts = { bond: UNBOUND, isStated: true, now: 7 };
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
  expect(other).toHaveLength(3);
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

test('R25: conversations that share words share no block across what their clients state', () => {
  const view = viewOf(['user', 'a'], ['assistant', 'b']);
  const entries = ledgerOf(placed(view, 'block one'));
  const other = { ...place, conversation: 'c2', scope: 'project/other' };
  const facts = { bond: UNBOUND, unanswered: undefined, isStated: true, now: 0 };
  expect(replayBlocks(humanItems(view, other), entries, facts).placements).toEqual([]);
});

test('R25: two folders never have one key, however their names are written', () => {
  const keys = ['/a:b', '/a%3Ab', '/a%253Ab', '/a%b'].map((scope) =>
    keyOf({ kind: 'shared-block', tenant: LOCAL_TENANT, scope, fingerprint: 'f' }),
  );
  expect(new Set(keys).size).toBe(keys.length);
});

test('a block is found again when its project is found late, moves or is renamed', () => {
  const view = viewOf(['user', 'a'], ['assistant', 'b']);
  const entries = ledgerOf(placed(view, 'block one'));
  const renamed = humanItems(view, { ...place, space: 'project/other' });
  const facts = { bond: UNBOUND, unanswered: undefined, isStated: true, now: 0 };
  expect(replayBlocks(renamed, entries, facts).placements).toHaveLength(1);
});

test('a key that may not read the space of a block never gets it', () => {
  const view = viewOf(['user', 'a'], ['assistant', 'b']);
  const entries = ledgerOf(placed(view, 'block one'));
  const facts = { bond: UNBOUND, unanswered: undefined, isStated: true, now: 0 };
  const mayRead = (space: string): boolean => space !== 'default';
  const replay = replayBlocks(humanItems(view, place), entries, { ...facts, mayRead });
  expect(replay).toMatchObject({ placements: [], isDenied: true });
});

/** After two prompts with a block each, with thinking behind the second one. */
function boundHistory() {
  const one = viewOf(['user', 'a']);
  const two = viewOf(['user', 'a'], ['assistant', 'b'], ['user', 'c']);
  const three = viewOf(
    ['user', 'a'],
    ['assistant', 'b'],
    ['user', 'c'],
    ['assistant', 'd'],
    ['user', 'e'],
  );
  const entries = ledgerOf([...placed(one, 'one'), ...placed(two, 'two')]);
  const facts = { unanswered: unansweredItem(three), isStated: true, now: 0 };
  const replay = (bond: Bond) =>
    replayBlocks(humanItems(three, place), entries, { ...facts, bond });
  const sent = replayBlocks(humanItems(three, place), entries, { ...facts, bond: UNBOUND });
  return { replay, sent: placedMarks(sent.placements) };
}

test('in front of bound thinking exactly those blocks come back that it was made with', () => {
  const { replay, sent } = boundHistory();
  const blocks = (bond: Bond) => replay(bond).placements.map(({ block }) => block);
  const bond = { isBound: true, thoughtAt: 3 };
  expect(blocks({ ...bond, placed: sent })).toEqual(['one', 'two']);
  expect(blocks({ ...bond, placed: sent.slice(1) })).toEqual(['two']);
  expect(blocks({ ...bond, placed: [] })).toEqual([]);
  // A block of another text was sent there: that text is not known any more.
  const other = sent.map((mark) => ({ ...mark, block: 'x' }));
  expect(blocks({ ...bond, placed: other })).toEqual([]);
  // What stands behind the thinking is found by its own entry.
  expect(blocks({ ...bond, thoughtAt: 1, placed: [] })).toEqual(['two']);
});

test('a conversation that was continued without svc loses its blocks for good', () => {
  const { replay } = boundHistory();
  const foreign = replay({ isBound: true, thoughtAt: 3, placed: 'foreign' });
  expect(foreign).toMatchObject({ placements: [], isForeign: true });
  expect(foreign.pins.map(({ kind, block }) => [kind, block])).toEqual([
    ['own-block', ''],
    ['own-block', ''],
  ]);
});

test('the same first words an hour later are a new conversation when the client states no id', () => {
  const view = viewOf(['user', 'a']);
  const entries = ledgerOf(placed(view, ''));
  const at = (now: number, isStated: boolean) =>
    replayBlocks(humanItems(view, place), entries, {
      unanswered: unansweredItem(view),
      isStated,
      now,
      bond: UNBOUND,
    }).isSettled;
  expect(at(HOUR_MS, false)).toBe(true);
  expect(at(HOUR_MS + 1, false)).toBe(false);
  expect(at(HOUR_MS + 1, true)).toBe(true);
});

test('a new block gets what the older ones leave, and too little room is none', () => {
  const [item] = viewOf(['user', 'a']).items;
  const used = (tokens: number) =>
    item === undefined ? [] : [{ item, block: 'x', form: 'text' as const, tokens }];
  expect(roomForBlock([], 512)).toBe(384);
  expect(roomForBlock(used(281), 512)).toBe(103);
  expect(roomForBlock(used(282), 512)).toBeUndefined();
  expect(roomForBlock([], 0)).toBeUndefined();
});

test('a quarter of the room is for second looks, and they take no room of the prompts until all is used', () => {
  const view = viewRequest(
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
  const [prompt, , result] = view?.items ?? [];
  if (prompt === undefined || result === undefined) throw new Error('The body has no items.');
  const used = (ofPrompts: number, ofLooks: number) => [
    { item: prompt, block: 'x', form: 'text' as const, tokens: ofPrompts },
    { item: result, block: 'y', form: 'text' as const, tokens: ofLooks },
  ];
  expect(roomForLook(used(384, 0), 512)).toBe(128);
  expect(roomForLook(used(384, 60), 512)).toBe(68);
  expect(roomForLook(used(384, 69), 512)).toBeUndefined();
  expect(roomForBlock(used(0, 128), 512)).toBe(384);
  expect(roomForBlock(used(128, 256), 512)).toBe(128);
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
    fc.property(texts, (messages) => {
      const view = viewOf(...(messages as Message[]));
      const humans = humanItems(view, place);
      const entries = ledgerOf(
        humans.flatMap((human, at) =>
          entriesFor(human, {
            block: `b${at}`,
            form: 'text',
            space: 'default',
            at: 0,
          }),
        ),
      );
      const facts = {
        bond: UNBOUND,
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
