import { TEXTS } from '../../src/adapters/texts.ts';
import { expect, test } from 'vitest';
import { groupExchanges } from '../../src/core/conversation/exchanges.ts';
import { FoundEntries, LOCAL_TENANT } from '../../src/core/ledger/entries.ts';
import {
  batchesIn,
  batchPlaces,
  type BatchMoment,
  elisionEntries,
  type ElisionPlace,
  repeatedOmissions,
} from '../../src/core/shortening/elisions.ts';
import {
  findOmissions,
  type Omission,
  readExchangeTexts,
} from '../../src/core/shortening/omissions.ts';
import { plainItem } from '../support/plain-chat.ts';
import { viewOf } from '../support/view-of.ts';

/** A chat of plain exchanges; equal numbers are equal words. A pair has an answer of its own. */
function chatOf(exchanges: readonly (number | readonly [prompt: number, answer: number])[]) {
  const messages = exchanges.flatMap((one) => {
    const [prompt, answer] = typeof one === 'number' ? [one, one] : one;
    return [
      plainItem('anthropic_messages', 'user', `Which port does server number ${prompt} listen on?`),
      plainItem('anthropic_messages', 'assistant', `It listens on port ${6000 + answer}.`),
    ];
  });
  const view = viewOf('anthropic_messages', { messages });
  const omissions = findOmissions(view, groupExchanges(view.items), (it) =>
    readExchangeTexts(view, it, TEXTS),
  );
  const owner = { tenant: LOCAL_TENANT, scope: 'test', conversation: 'c1' };
  return { place: { view, owner, elision: 'real' } as const, omissions };
}

/** What a conversation repeats where these exchanges of another one have left. */
function repeatedOf(
  { place, omissions }: ReturnType<typeof chatOf>,
  left: { readonly place: ElisionPlace; readonly omissions: readonly Omission[] },
  moment: BatchMoment,
): readonly Omission[] {
  const batch = { batch: [], omissions: left.omissions };
  const found = new FoundEntries(elisionEntries(batch, left.place, moment));
  const batches = batchesIn(found, batchPlaces(place)).map(({ leftOut }) => leftOut);
  return [...repeatedOmissions(omissions, batches)];
}

test('the ledger knows an exchange by its place, not by its words', () => {
  const chat = chatOf([0, 0, 1, 2]);
  const [first, second] = chat.omissions;
  if (first === undefined || second === undefined) throw new Error('Two may go.');
  expect(first.texts).toEqual(second.texts);
  expect(repeatedOf(chat, { ...chat, omissions: [second] }, { at: 0 })).toEqual([second]);
});

test('an exchange that was never sent stays out behind its own next prompt, not behind another prompt', () => {
  const left = chatOf([0, 1, 2, 3, 4, 5]);
  expect(left.omissions).toHaveLength(4);
  // No request sent any of the items before.
  const moment = { at: 0, firstUnsent: 0 };
  for (const kept of [1, 2, 3, 4, 5]) {
    const other = chatOf([...[0, 1, 2, 3, 4].slice(0, kept), 7, 8]);
    const out = repeatedOf(other, left, moment);
    expect(out).toEqual(other.omissions.slice(0, kept - 1));
  }
});

test('an exchange that went with the prompt behind it stays where that prompt got another answer', () => {
  const left = chatOf([0, 1, 2, 3, 4, 5]);
  const moment = { at: 0, firstUnsent: 0 };
  // The last exchange of the batch was one of the two newest when prompt 4 was asked, and so it went whole.
  const other = chatOf([0, 1, 2, 3, [4, 9], 5]);
  expect(repeatedOf(other, left, moment)).toEqual(other.omissions.slice(0, 3));
  const same = chatOf([0, 1, 2, 3, 4, 9]);
  expect(repeatedOf(same, left, moment)).toEqual(same.omissions);
});
