import { expect, onTestFinished, test } from 'vitest';
import type { Dialect } from '../../src/core/conversation/view.ts';
import { DIALECTS } from '../../src/core/dialects/apis.ts';
import { FoundEntries } from '../../src/core/ledger/entries.ts';
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
    toolRound(dialect, `call_${name}${at}`, longOutput(`${name}${at}`, 900), {
      file_path: `/src/${name}${at}.ts`,
    }),
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

/** Conversations with a strict provider; their first part has left out all but its newest outputs. */
async function openBound(folder = tempFolder()) {
  const dialect = 'anthropic_messages';
  let aheadMs = 0;
  const clock = { now: () => Date.now() + aheadMs, monotonic: () => performance.now() + aheadMs };
  const { ask, story, strict, provider } = await startTalk({ clock, folder });
  const send = async (name: string, items: readonly WireItem[], model?: string) => {
    const headers = { 'session-id': name };
    const asked = await ask(items, { headers, ...(model !== undefined && { model }) });
    await story.drained();
    return { item: asked.item, stubs: asked.sent.split(STUB).length - 1 };
  };
  const unbound = (name: string, items: readonly WireItem[]) =>
    send(name, items, 'claude-sonnet-5');
  const pause = (): void => void (aheadMs += 301_000);
  const begun = exchange(dialect, 'first', 'Fix the first part.').slice(0, -1);
  await unbound('one', begun);
  pause();
  const items = [...begun, ...toolRound(dialect, 'call_more', 'nothing')];
  expect((await unbound('one', items)).stubs).toBe(LEFT);
  return { dialect, strict, provider, story, send, unbound, pause, items } as const;
}

const LEFT = ROUNDS - 3;

test('law 6: what a fork leaves out later stays in front of bound thinking', async () => {
  const { dialect, strict, send, unbound, pause, ...begun } = await openBound();
  const second = exchange(dialect, 'second', 'And now the second part.').slice(1);
  const shared = [...begun.items, ...second, said('user', 'And the lexer?')];
  const lexer = await unbound('one', shared);
  const items = [...shared, lexer.item];
  // The model binds its thinking from here on.
  const own = [...items, said('user', 'And the printer?')];
  const bound = await send('one', own);
  expect([lexer.stubs, bound.stubs]).toEqual([LEFT, LEFT]);
  await unbound('fork', [...items, said('user', 'And the tests?')]);
  pause();
  // After the step back, the batch is recorded at the newest prompt that both conversations have.
  const forked = await unbound('fork', [...items, said('user', 'And the documents?')]);
  expect(forked.stubs).toBeGreaterThan(ROUNDS);
  const next = await send('one', [...own, bound.item, said('user', 'Thank you.')]);
  expect(next.stubs).toBe(LEFT);
  expect([strict.refusals, strict.lost]).toEqual([[], []]);
});

test('law 6: an output that came back stays whole in front of bound thinking', async () => {
  const { dialect, strict, send, unbound, ...begun } = await openBound();
  // Claude Code refers to an output that it has sent before, so svc sends that whole again.
  const unchanged =
    'File unchanged since last read. The content from the earlier read is still current.';
  const again = toolRound(dialect, 'call_again', unchanged, { file_path: '/src/first0.ts' });
  const items = [...begun.items, ...again];
  const referring = await unbound('one', items);
  expect(referring.stubs).toBe(LEFT - 1);
  const own = [...items, referring.item, said('user', 'And the printer?')];
  const bound = await send('one', own);
  const next = await send('one', [...own, bound.item, said('user', 'Thank you.')]);
  expect([bound.stubs, next.stubs]).toEqual([LEFT - 1, LEFT - 1]);
  expect([strict.refusals, strict.lost]).toEqual([[], []]);
});

test('law 6: a ledger that is late after a restart brings no text back in front of bound thinking', async () => {
  const folder = tempFolder();
  const { strict, provider, story, send, ...begun } = await openBound(folder);
  const own = [...begun.items, said('user', 'And the printer?')];
  const bound = await send('one', own);
  expect(bound.stubs).toBe(LEFT);
  await story.stop();
  const isLate = (withinMs: number): boolean => withinMs < 1_000;
  const again = await startTalk({
    folder,
    provider,
    strict,
    settings: { recallMs: 300 },
    wrapLedger: (ledger) => ({
      generation: () => ledger.generation(),
      record: (entries) => ledger.record(entries),
      commit: (entries) => ledger.commit(entries),
      isShared: false,
      find: async (addresses, withinMs) =>
        isLate(withinMs) ? new FoundEntries([], 'late') : ledger.find(addresses, withinMs),
    }),
  });
  const items = [...own, bound.item, said('user', 'Thank you.')];
  const next = await again.ask(items, { headers: { 'session-id': 'one' } });
  expect(next.sent.split(STUB).length - 1).toBe(LEFT);
  expect([strict.refusals, strict.lost]).toEqual([[], []]);
});
