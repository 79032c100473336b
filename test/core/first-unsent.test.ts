import { expect, test } from 'vitest';
import { FoundEntries, type LedgerEntry, LOCAL_TENANT } from '../../src/core/ledger/entries.ts';
import {
  entriesFor,
  humanItems,
  NO_BLOCK,
  replayBlocks,
  unansweredItem,
  UNBOUND,
  firstUnsentItem,
} from '../../src/core/recall/injections.ts';
import { viewOf } from '../support/view-of.ts';

/** A ledger after some requests, each a list of texts that the person and the model say in turn. */
function open() {
  const entries: LedgerEntry[] = [];
  const place = { tenant: LOCAL_TENANT, scope: 's', space: 's', conversation: 'c', isStated: true };
  const read = (texts: readonly string[], conversation: string) => {
    const messages = texts.map((content, at) => ({
      role: at % 2 === 0 ? 'user' : 'assistant',
      content,
    }));
    const view = viewOf('anthropic_messages', { messages });
    return { view, humans: humanItems(view, { ...place, conversation }) };
  };
  return {
    /** The index of the first item that is new, before the request is noted. */
    send: (texts: readonly string[], conversation = 'c'): number | undefined => {
      const { view, humans } = read(texts, conversation);
      const found = new FoundEntries(entries);
      const first = firstUnsentItem(humans, found);
      const facts = { unanswered: unansweredItem(view), isStated: true, now: 1, bond: UNBOUND };
      const { pins } = replayBlocks(humans, found, facts);
      const newest = humans.at(-1);
      entries.push(...pins);
      if (newest !== undefined) entries.push(...entriesFor(newest, { ...NO_BLOCK, at: 1 }));
      return first;
    },
  };
}

test('of a conversation that goes on, the last answer and the new prompt are new', () => {
  const { send } = open();
  expect(send(['p1'])).toBe(0);
  expect(send(['p1', 'a1', 'p2'])).toBe(1);
  expect(send(['p1', 'a1', 'p2', 'a2', 'p3'])).toBe(3);
  expect(send(['p1', 'a1', 'p2', 'a2', 'p3'])).toBe(undefined);
});

test('of an edited history all is new from the edit on, until it was sent once', () => {
  const { send } = open();
  send(['p1', 'a1', 'p2', 'a2', 'p3']);
  const edited = ['p1', 'a1', 'other', 'a2', 'p3', 'a3', 'p4'];
  expect(send(edited)).toBe(2);
  expect(send([...edited, 'a4', 'p5'])).toBe(7);
});

test('a prompt that another conversation asked too is not new, and its other answer is', () => {
  const { send } = open();
  send(['p1'], 'another');
  send(['p1', 'b1', 'q2'], 'another');
  expect(send(['p1', 'a1', 'p2', 'a2', 'p3'])).toBe(1);
  expect(send(['p1', 'b1', 'q2'])).toBe(undefined);
});

test('a history whose beginning alone is known is new behind it', () => {
  const { send } = open();
  send(['p1', 'a1', 'p2'], 'another');
  expect(send(['p1', 'a1', 'p3', 'a3', 'p4'])).toBe(2);
  expect(send(['strange', 'a1', 'p3'])).toBe(0);
});
