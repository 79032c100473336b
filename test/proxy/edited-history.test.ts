import { expect, onTestFinished, test } from 'vitest';
import type { Dialect } from '../../src/core/conversation/view.ts';
import { DIALECTS } from '../../src/core/dialects/apis.ts';
import { requestWith, said, toolRound, type WireItem } from '../support/dialect-wire.ts';
import { openProxyStage } from '../support/proxy-stage.ts';
import { startTalk } from '../support/strict-talk.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { longOutput } from '../support/tool-session.ts';

/**
 * A client changes a prompt of its history, so the provider sees every item behind it for the first
 * time, and may see stubs of them at once. Whoever shares those items later must send the stubs too.
 */

const ROUNDS = 10;

/** An exchange with tools: two of them are worth a batch, one is not. */
function exchange(dialect: Dialect, name: string, prompt: string): readonly WireItem[] {
  const rounds = Array.from({ length: ROUNDS }, (_, at) =>
    toolRound(dialect, `call_${name}${at}`, longOutput(`${name}${at}`, 900)),
  );
  return [said('user', prompt), ...rounds.flat(), said('assistant', `The ${name} part is done.`)];
}

async function openHistory(dialect: Dialect) {
  const settings = { elisionCaptureLimit: 100 };
  const stage = await openProxyStage({ folder: tempFolder(), settings });
  onTestFinished(() => stage.stop());
  const send = async (name: string, items: readonly WireItem[]): Promise<readonly string[]> => {
    await stage.send(dialect, requestWith(dialect, items), ['session-id', name]);
    const forwarded = JSON.parse(stage.forwarded()) as Record<string, unknown[]>;
    await stage.settled();
    const list = forwarded[dialect === 'openai_responses' ? 'input' : 'messages'] ?? [];
    return list.slice(list.length - items.length).map((item) => JSON.stringify(item));
  };
  const second = exchange(dialect, 'second', 'And now the second part.');
  const edited = exchange(dialect, 'first', 'Fix the first part, but with care.');
  const last = said('user', 'Thank you. What is left to do?');
  /** The memory holds all outputs then. */
  const begin = async (): Promise<void> => {
    await send('one', [...exchange(dialect, 'first', 'Fix the first part.'), ...second, last]);
  };
  const edit = (): Promise<readonly string[]> => send('one', [...edited, ...second, last]);
  /** The first exchange as it is forwarded in front of another prompt. */
  const goElsewhere = async (name: string, ...more: readonly WireItem[]) =>
    (await send(name, [...edited, said('user', 'Leave it at that.'), ...more])).slice(
      0,
      edited.length,
    );
  return { begin, edit, goElsewhere, firstLength: edited.length };
}

const STUB = '[svc left out this ';

function stubsIn(items: readonly string[]): number {
  return items.filter((item) => item.includes(STUB)).length;
}

test.each(DIALECTS)(
  'law 6, %s: what was only ever sent as stubs stays stubs in front of the batch, also in a fork',
  async (dialect) => {
    const { begin, edit, goElsewhere, firstLength } = await openHistory(dialect);
    await begin();
    const sent = (await edit()).slice(0, firstLength);
    expect(stubsIn(sent)).toBe(ROUNDS);
    expect(await goElsewhere('one')).toEqual(sent);
    expect(await goElsewhere('another')).toEqual(sent);
  },
);

test.each(DIALECTS)(
  'law 6, %s: a conversation that sent the same items whole keeps them whole',
  async (dialect) => {
    const { begin, edit, goElsewhere, firstLength } = await openHistory(dialect);
    await begin();
    const whole = await goElsewhere('another');
    expect(stubsIn(whole)).toBe(0);
    expect(stubsIn((await edit()).slice(0, firstLength))).toBe(ROUNDS);
    const more = [said('assistant', 'Very well.'), said('user', 'Goodbye then.')];
    expect(await goElsewhere('another', ...more)).toEqual(whole);
    // The provider has this form of them too, and the one that began with it may go on.
    expect(await goElsewhere('one')).toEqual(whole);
  },
);

test('law 6: what a fork leaves out later stays in front of bound thinking', async () => {
  let aheadMs = 0;
  const clock = { now: () => Date.now() + aheadMs, monotonic: () => performance.now() + aheadMs };
  const { ask, story, strict } = await startTalk({ clock });
  const stubs = async (name: string, list: readonly WireItem[], model?: string) => {
    const headers = { 'session-id': name };
    const asked = await ask(list, { headers, ...(model !== undefined && { model }) });
    await story.drained();
    return { item: asked.item, count: asked.sent.split(STUB).length - 1 };
  };
  const unbound = (name: string, list: readonly WireItem[]) => stubs(name, list, 'claude-sonnet-5');
  const dialect = 'anthropic_messages';
  let items = exchange(dialect, 'first', 'Fix the first part.').slice(0, -1);
  await unbound('one', items);
  aheadMs = 301_000;
  items = [...items, ...toolRound(dialect, 'call_more', 'nothing')];
  expect((await unbound('one', items)).count).toBe(ROUNDS - 3);
  const second = exchange(dialect, 'second', 'And now the second part.').slice(1);
  items = [...items, ...second, said('user', 'And the lexer?')];
  const lexer = await unbound('one', items);
  items = [...items, lexer.item];
  // The model binds its thinking from here on.
  const own = [...items, said('user', 'And the printer?')];
  const bound = await stubs('one', own);
  expect([lexer.count, bound.count]).toEqual([ROUNDS - 3, ROUNDS - 3]);
  await unbound('fork', [...items, said('user', 'And the tests?')]);
  aheadMs += 301_000;
  // After the step back, the batch is recorded at the newest prompt that both conversations have.
  const forked = await unbound('fork', [...items, said('user', 'And the documents?')]);
  expect(forked.count).toBeGreaterThan(ROUNDS);
  const next = await stubs('one', [...own, bound.item, said('user', 'Thank you.')]);
  expect(next.count).toBe(ROUNDS - 3);
  expect([strict.refusals, strict.lost]).toEqual([[], []]);
});
