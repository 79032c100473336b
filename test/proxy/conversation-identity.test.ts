import { expect, test } from 'vitest';
import { FoundEntries } from '../../src/core/ledger/entries.ts';
import type { Ledger } from '../../src/ports/ledger.ts';
import { referenceOf, textDigest } from '../../src/core/memory/reference.ts';
import { type EmbeddedStore, openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import {
  answerTo,
  DIALECTS,
  requestWith,
  said,
  toolRound,
  type WireItem,
} from '../support/dialect-wire.ts';
import type { Dialect } from '../../src/core/conversation/view.ts';
import { manualClock } from '../support/manual-clock.ts';
import { recordOf } from '../support/records.ts';
import { startRecordingProvider, startStory, type Story } from '../support/story.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** Which blocks a conversation gets, and which belong to another one that begins like it. */

const HOUR_MS = 3_600_000;
const QUESTION = 'On which port does the staging database of the walrus shop listen?';
const SECOND = 'Who owns the billing dashboard and its Grafana alerts?';

async function teach(story: Story, ...texts: string[]): Promise<void> {
  const records = texts.map((text) => recordOf(text, { space: 'default', conversation: text }));
  await story.memory.capture(records, AbortSignal.timeout(30_000));
}

const portFact = (port: number): string =>
  `The staging database of the walrus shop listens on port ${port}.`;

function blocksIn(body: Buffer | undefined): string[] {
  return body?.toString().match(/<svc-memory [^]*?<\/svc-memory>/g) ?? [];
}

async function startAsking(options: Partial<Parameters<typeof startStory>[0]> = {}) {
  const provider = options.provider ?? (await startRecordingProvider());
  const story = await startStory({ provider, ...options });
  const ask = async (dialect: Dialect, items: readonly WireItem[], session?: string) => {
    const headers = session === undefined ? {} : { 'session-id': session };
    const answer = await story.send(dialect, requestWith(dialect, items), headers);
    const state = answer.headers['x-svc-memory-state'];
    return { state, blocks: blocksIn(provider.seen.at(-1)?.body), headers: answer.headers };
  };
  return { provider, story, ask };
}

const asked = said('user', QUESTION);
const answered = (text: string): WireItem[] => [asked, said('assistant', text)];

test.each(DIALECTS)(
  '%s: each fork of a conversation keeps its own block, and so does each that goes on from it',
  async (dialect) => {
    const { story, ask } = await startAsking();
    await teach(story, portFact(6431));
    const [one = ''] = (await ask(dialect, [asked], 'one')).blocks;
    expect(one).toContain('6431');
    const longOne = [...answered('Port 6431.'), said('user', SECOND)];
    expect((await ask(dialect, longOne, 'one')).blocks[0]).toBe(one);
    await teach(story, portFact(7000));
    const [two = ''] = (await ask(dialect, [asked], 'two')).blocks;
    expect(two).not.toBe(one);
    const longTwo = [...answered('Port 7000.'), said('user', SECOND)];
    expect((await ask(dialect, longTwo, 'two')).blocks[0]).toBe(two);
    expect((await ask(dialect, longOne, 'resumed-one')).blocks[0]).toBe(one);
    expect((await ask(dialect, longTwo, 'resumed-two')).blocks[0]).toBe(two);
    expect((await ask(dialect, longOne, 'one')).blocks[0]).toBe(one);
  },
);

// The item that a client sends back holds more than svc could foresee: the words alone tell the answer.
test('a fork of a conversation that thought, and was not continued yet, keeps the block in front of its answer', async () => {
  const { story, provider, ask } = await startAsking();
  const answerWith = (text: string): void => {
    provider.reply = (request) => answerTo(request, { text });
  };
  await teach(story, portFact(6431));
  answerWith('It is port 6431.');
  const [one = ''] = (await ask('anthropic_messages', [asked], 'one')).blocks;
  await teach(story, portFact(7000));
  answerWith('It is port 7000 now.');
  const [two = ''] = (await ask('anthropic_messages', [asked], 'two')).blocks;
  expect(two).not.toBe(one);
  const goOn = (text: string) => {
    const thinking = { type: 'thinking', thinking: 'Hm.', signature: 'c2ln' };
    return [asked, said('assistant', [thinking, { type: 'text', text }]), said('user', SECOND)];
  };
  const forked = async (text: string, name: string): Promise<string | undefined> =>
    (await ask('anthropic_messages', goOn(text), name)).blocks[0];
  expect(await forked('It is port 7000 now.', 'fork-of-two')).toBe(two);
  expect(await forked('It is port 6431.', 'fork-of-one')).toBe(one);
});

test.each(DIALECTS)(
  '%s: an hour later the same words without a name are a new conversation, and the first keeps its block',
  async (dialect) => {
    const clock = manualClock();
    const folder = tempFolder();
    const { provider, story, ask } = await startAsking({ clock, folder });
    await teach(story, portFact(6431));
    const [one = ''] = (await ask(dialect, [asked])).blocks;
    const loop = [asked, ...toolRound(dialect, 'call_one', 'nothing')];
    expect((await ask(dialect, loop)).blocks).toEqual([one]);
    clock.goOn(HOUR_MS + 1_000);
    await teach(story, portFact(7000));
    const [two = ''] = (await ask(dialect, [asked])).blocks;
    expect(two).toContain('7000');
    const other = [asked, ...toolRound(dialect, 'call_two', 'nothing')];
    expect((await ask(dialect, other)).blocks).toEqual([two]);
    await story.stop();
    const again = await startAsking({ provider, clock, folder });
    const longer = [...loop, ...toolRound(dialect, 'call_three', 'nothing')];
    expect((await again.ask(dialect, longer)).blocks).toEqual([one]);
    expect((await again.ask(dialect, other)).blocks).toEqual([two]);
  },
);

const taught = { space: 'default', ref: referenceOf(textDigest('user', portFact(6431))) };
const retire = async ({ desk }: EmbeddedStore): Promise<void> => {
  expect(await desk.pin({ ...taught, pin: 'never' })).toBe(true);
};
const edit = async ({ desk }: EmbeddedStore): Promise<void> => {
  const text = portFact(7000);
  const change = { ...taught, text: { digest: textDigest('user', text), text }, at: 1 };
  expect(await desk.edit(change)).toBe('edited');
};
const forget = async (store: EmbeddedStore): Promise<void> => {
  await store.memory.forget({ words: 'walrus' }, AbortSignal.timeout(30_000));
};

// Another process does it, as the page or a command.
test.each([
  ['retired', retire],
  ['edited', edit],
  ['forgotten', forget],
])(
  'a new conversation that begins like an old one gets no block whose memory was %s since',
  async (_, change) => {
    const folder = tempFolder();
    const { story, ask } = await startAsking({ folder });
    await teach(story, portFact(6431));
    const loop = (id: string) => [asked, ...toolRound('anthropic_messages', id, 'nothing')];
    const [one = ''] = (await ask('anthropic_messages', [asked])).blocks;
    expect(one).toContain('6431');
    expect((await ask('anthropic_messages', loop('call_one'))).blocks).toEqual([one]);
    const store = openEmbeddedStore({ folder, report: () => undefined });
    await change(store);
    await store.close();
    for (const name of [undefined, 'named']) {
      // oxlint-disable-next-line no-await-in-loop
      expect((await ask('anthropic_messages', [asked], name)).blocks.join()).not.toContain('6431');
    }
    // The first conversation keeps what it was sent, unless it was to be forgotten.
    const longer = [...loop('call_one'), said('user', SECOND)];
    const kept = change === retire ? [one] : [];
    expect((await ask('anthropic_messages', longer)).blocks).toEqual(kept);
  },
);

test('an opening that nothing was decided for gets no block of an old conversation that begins like it', async () => {
  const clock = manualClock();
  const { story, provider } = await startAsking({ clock });
  const send = async (items: readonly WireItem[], headers = {}) => {
    await story.send('anthropic_messages', requestWith('anthropic_messages', items), headers);
    return blocksIn(provider.seen.at(-1)?.body);
  };
  await teach(story, portFact(6431));
  expect(await send([asked])).toHaveLength(1);
  for (const name of [{}, { 'session-id': 'named' }]) {
    clock.goOn(2 * HOUR_MS);
    // oxlint-disable-next-line no-await-in-loop
    expect(await send([asked], { ...name, 'x-svc-memory-mode': 'off' })).toEqual([]);
    const loop = [asked, ...toolRound('anthropic_messages', `call_${clock.now()}`, 'nothing')];
    // oxlint-disable-next-line no-await-in-loop
    expect(await send(loop, name)).toEqual([]);
  }
  // Another one decides at the same time. The words of the first answer tell them apart.
  expect(await send([asked])).toHaveLength(1);
  provider.reply = (request) => answerTo(request, { text: 'I do not know.' });
  expect(await send([asked], { 'x-svc-memory-mode': 'off' })).toEqual([]);
  const thanked = [...answered('I do not know.'), said('user', 'Thank you for that.')];
  expect(await send(thanked)).toEqual([]);
});

test('a fork that asks the same deep prompt again sends the same bytes, whatever was learned', async () => {
  const { story, ask, provider } = await startAsking();
  await teach(story, portFact(6431));
  const deep = [said('user', 'Hello to you.'), said('assistant', 'Hello.'), asked];
  await ask('anthropic_messages', deep, 'one');
  const first = provider.seen.at(-1)?.body.toString();
  await teach(story, portFact(7000));
  await ask('anthropic_messages', deep, 'fork');
  expect(provider.seen.at(-1)?.body.toString()).toBe(first);
});

test('openai_responses: the block stays where a prompt changes its form from a string to a message', async () => {
  const { story, provider } = await startAsking();
  await teach(story, portFact(6431));
  const send = (input: unknown) =>
    story.send('openai_responses', { model: 'm', input }, { 'session-id': 's' });
  await send(QUESTION);
  const [block = ''] = blocksIn(provider.seen.at(-1)?.body);
  expect(block).toContain('6431');
  const rest = [said('assistant', 'Port 6431.'), said('user', 'Thank you for that.')];
  const part = [{ type: 'input_text', text: QUESTION }];
  for (const first of [
    said('user', QUESTION),
    said('user', part),
    { type: 'message', role: 'user', content: part },
  ]) {
    await send([first, ...rest]);
    const body = provider.seen.at(-1)?.body;
    expect(blocksIn(body)).toEqual([block]);
    expect(body?.indexOf('<svc-memory')).toBeLessThan(body?.indexOf('Thank you') ?? 0);
  }
});

test('openai_responses: references to stored items keep the blocks that stand, and get no new one', async () => {
  const { story, ask } = await startAsking();
  await teach(story, portFact(6431), 'Marta owns the billing dashboard and its Grafana alerts.');
  const [block] = (await ask('openai_responses', [asked], 's')).blocks;
  const items = [asked, { type: 'item_reference', id: 'msg_1' }, said('user', SECOND)];
  const second = await ask('openai_responses', items, 's');
  expect([second.state, second.blocks]).toEqual(['recalled', [block]]);
  expect(second.headers['x-svc-continuity-state']).toMatch(/not_needed|bypassed_provider_state/);
});

test('a refusal is off for an hour, also after a restart, and then recall is tried again', async () => {
  const clock = manualClock();
  const folder = tempFolder();
  const first = await startAsking({ clock, folder });
  await teach(first.story, portFact(6431));
  const { provider } = first;
  provider.reply = (request) =>
    request.body.includes('<svc-memory')
      ? { status: 400, headers: {}, body: '{"error":"not this"}' }
      : answerTo(request);
  await first.ask('anthropic_messages', [asked], 's');
  await first.story.stop();
  provider.reply = (request) => answerTo(request);
  const again = await startAsking({ provider, clock, folder });
  const longer = [...answered('I do not know.'), said('user', QUESTION)];
  clock.goOn(HOUR_MS - 10_000);
  expect((await again.ask('anthropic_messages', longer, 's')).state).toBe('skipped_unsupported');
  clock.goOn(20_000);
  expect((await again.ask('anthropic_messages', longer, 's')).state).toBe('recalled');
});

test('a conversation without a name does not inherit the refusal of one that only begins like it', async () => {
  const { provider, story, ask } = await startAsking();
  await teach(story, portFact(6431));
  const opening = [said('user', 'Good morning to you.'), said('assistant', 'Good morning.')];
  await ask('anthropic_messages', opening.slice(0, 1));
  provider.reply = (request) =>
    request.body.includes('<svc-memory')
      ? { status: 400, headers: {}, body: '{"error":"not this"}' }
      : answerTo(request);
  const refused = [...opening, asked];
  expect((await ask('anthropic_messages', refused)).blocks).toEqual([]);
  provider.reply = (request) => answerTo(request);
  const later = [...refused, said('assistant', 'I do not know.'), said('user', QUESTION)];
  expect((await ask('anthropic_messages', later)).state).toBe('skipped_unsupported');
  const other = [opening[0] ?? asked, said('assistant', 'Hello there.'), asked];
  expect((await ask('anthropic_messages', other)).state).toBe('recalled');
});

test('a ledger that is late leaves the blocks that are known, and places no new one', async () => {
  const folder = tempFolder();
  const store = openEmbeddedStore({ folder, report: () => undefined });
  let isLate = false;
  const ledger: Ledger = {
    generation: () => store.ledger.generation(),
    record: (entries) => store.ledger.record(entries),
    commit: (entries) => store.ledger.commit(entries),
    isShared: false,
    find: async (addresses, withinMs) => {
      const found = await store.ledger.find(addresses, withinMs);
      if (!isLate) return found;
      // It knows the first prompt of this conversation, and nothing of the second.
      const known = addresses.flatMap((address) => found.get(address) ?? []);
      return new FoundEntries(known, 'late');
    },
  };
  const { story, ask } = await startAsking({ ledger, folder });
  await teach(story, portFact(6431), 'Marta owns the billing dashboard and its Grafana alerts.');
  const [block] = (await ask('anthropic_messages', [asked], 's')).blocks;
  isLate = true;
  const longer = [...answered('Port 6431.'), said('user', SECOND)];
  const late = await ask('anthropic_messages', longer, 's');
  expect([late.state, late.blocks]).toEqual(['degraded_timeout', [block]]);
  isLate = false;
  const then = await ask('anthropic_messages', longer, 's');
  expect([then.state, then.blocks.length]).toEqual(['recalled', 2]);
  await store.close();
});

test('what throws while svc changes a request leaves the client’s own bytes, and a state that says so', async () => {
  const folder = tempFolder();
  const store = openEmbeddedStore({ folder, report: () => undefined });
  const broken: Ledger = {
    generation: () => 0,
    record: () => store.ledger.record([]),
    commit: () => store.ledger.commit([]),
    isShared: false,
    find: () => Promise.reject(new RangeError('Invalid time value')),
  };
  const { story, provider } = await startAsking({ ledger: broken, folder });
  const body = requestWith('anthropic_messages', [asked]);
  const passthrough = { 'x-svc-compression-mode': 'passthrough' };
  const { status, headers } = await story.send('anthropic_messages', body, passthrough);
  expect(status).toBe(200);
  expect(headers).toMatchObject({
    'x-svc-memory-state': 'degraded_invalid',
    'x-svc-continuity-state': 'not_applicable',
  });
  const { headers: more } = await story.send('anthropic_messages', body);
  expect(more['x-svc-continuity-state']).toBe('bypassed_recall_degraded');
  expect(provider.seen.map((seen) => seen.body.toString())).toEqual([
    JSON.stringify(body),
    JSON.stringify(body),
  ]);
  await store.close();
});
