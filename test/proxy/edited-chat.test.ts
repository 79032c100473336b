import { expect, onTestFinished, test } from 'vitest';
import type { Dialect } from '../../src/core/conversation/view.ts';
import { DIALECTS } from '../../src/core/dialects/apis.ts';
import { requestWith, said, type WireItem } from '../support/dialect-wire.ts';
import { openProxyStage } from '../support/proxy-stage.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { longOutput } from '../support/tool-session.ts';

/**
 * A client changes a prompt of its history, and exchanges leave with this very request, so the provider
 * never saw the items behind the edit whole. Where somebody goes on from the middle of that history, the
 * two newest exchanges are kept, and the others stay as the provider has them.
 */

const OLD = 7;

function exchange(at: number): readonly WireItem[] {
  const answer = `The server falcon${at} listens on port ${6400 + at}.\n${longOutput(`f${at}`, 300)}`;
  return [
    said('user', `Which port does the server falcon${at} listen on?`),
    said('assistant', answer),
  ];
}

const HISTORY = Array.from({ length: OLD }, (_, at) => exchange(at)).flat();
const EDITED = HISTORY.with(2, said('user', 'And on which one does the server falcon1 listen?'));
const LAST = said('user', 'Remind me: which port does the server falcon0 listen on?');

async function openEdited(dialect: Dialect) {
  // A block that does not fit beside an earlier one would drop it.
  const settings = { inputBudget: 1_000, recalledTokensMax: 8_192 };
  // Nothing leaves a warm cache whose reads are next to free.
  const stage = await openProxyStage({ folder: tempFolder(), settings, cacheRead: 0.001 });
  onTestFinished(() => stage.stop());
  const send = async (history: readonly WireItem[], name = 'one') => {
    const id = name === '' ? [] : ['session-id', name];
    await stage.send(dialect, requestWith(dialect, history), id);
    await stage.settled();
    const forwarded = stage.forwarded();
    /** The exchanges that the provider got: only their answers begin so. */
    const isSent = (at: number) => forwarded.includes(`":"The server falcon${at} listens`);
    const whole = Array.from({ length: OLD }, (_, at) => at).filter(isSent);
    const list: Record<string, unknown[]> = JSON.parse(forwarded);
    const all = list[dialect === 'openai_responses' ? 'input' : 'messages'] ?? [];
    const items = all.slice(dialect === 'openai_chat_completions' ? 1 : 0);
    return { items, whole };
  };
  await send([...HISTORY, LAST]);
  const held = async (): Promise<unknown> => {
    const records = await stage.memory.list({ limit: 200 }, AbortSignal.timeout(30_000));
    const texts = new Set(records.map(({ text }) => text));
    return HISTORY.every(({ content }) => texts.has(String(content)));
  };
  await expect.poll(held, { timeout: 10_000 }).toBe(true);
  stage.setClockAhead(301_000);
  // The prompt that was edited is not stored yet.
  const edited = await send([...EDITED, LAST]);
  expect(edited.whole).toEqual([1, OLD - 1]);
  return { edited, send };
}

const CASES = DIALECTS.flatMap((dialect) =>
  ['one', 'another', ''].map((name) => ({ dialect, name })),
);

test.each(CASES)(
  'law 6, $dialect: whoever goes on from the middle under the name "$name" keeps what was sent',
  async ({ dialect, name }) => {
    const { edited, send } = await openEdited(dialect);
    for (let kept = OLD - 1; kept >= 2; kept -= 1) {
      const rewound = [...EDITED.slice(0, 2 * kept), said('user', `Paint ${kept} mountains.`)];
      // oxlint-disable no-await-in-loop -- A client waits for each answer.
      const before = await send(rewound, name);
      const more = [said('assistant', 'They are painted.'), said('user', 'Paint the sea too.')];
      const after = await send([...rewound, ...more], name);
      // oxlint-enable no-await-in-loop
      expect(before.whole).toEqual([...new Set([1, kept - 1])]);
      expect(after.whole).toEqual(before.whole);
      expect(after.items.slice(0, before.items.length - 1)).toEqual(before.items.slice(0, -1));
      // All that the provider has of the history in front of there.
      expect(before.items.slice(0, 2)).toEqual(edited.items.slice(0, 2));
    }
  },
);

test.each(DIALECTS)(
  'law 6, %s: the exchange in front of the newest prompt is kept, also where it was left out',
  async (dialect) => {
    const { edited, send } = await openEdited(dialect);
    const prompt = EDITED.slice(0, 9);
    expect((await send(prompt)).whole).toEqual([1, 3]);
    expect((await send([...EDITED, LAST])).items).toEqual(edited.items);
  },
);

test.each(DIALECTS)(
  'law 6, %s: whoever edits a prompt that was left out keeps the prefix in front of that gap from then on',
  async (dialect) => {
    const { edited, send } = await openEdited(dialect);
    const again = [...EDITED.with(8, said('user', 'Port of falcon4, please?')), LAST];
    const before = await send(again);
    // The exchange in front of the edit shows in the edited prompt alone, which no cache has.
    expect(before.whole).toEqual([1, 3, 4, 5, 6]);
    expect(before.items.slice(0, 2)).toEqual(edited.items.slice(0, 2));
    const after = await send([...again, said('assistant', 'On 6404.'), said('user', 'Thank you.')]);
    expect(after.items.slice(0, before.items.length)).toEqual(before.items);
  },
);
