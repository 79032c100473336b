import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Ledger } from '../../src/ports/ledger.ts';
import { said, toolRound } from '../support/dialect-wire.ts';
import { longOutput } from '../support/tool-session.ts';
import { ask } from '../support/sockets.ts';
import { TOKEN } from '../support/local-server.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { BINDING, FACTS, NAMED, QUESTION, SECOND, startTalk } from '../support/strict-talk.ts';
import { recordOf } from '../support/records.ts';

/**
 * Law 7: in a conversation with thinking that is bound to its prefix, what svc sent once it sends again. The
 * provider refuses every request that breaks this.
 */

const blocksIn = (body: string): string[] => body.match(/<svc-memory .*?<\/svc-memory>/g) ?? [];
const asked = said('user', QUESTION);
const second = said('user', SECOND);
const third = said('user', 'Paint the mountains in winter, please.');

/** After two prompts, each with a block, and their answers. */
async function twoBlocks(options: Parameters<typeof startTalk>[0] = {}) {
  const talk = await startTalk({ settings: { recalledTokensMax: 2_000 }, ...options });
  const one = await talk.ask([asked]);
  const two = await talk.ask([asked, one.item, second]);
  expect(blocksIn(two.sent)).toHaveLength(2);
  const items = [asked, one.item, second, two.item];
  return { ...talk, items, blocks: blocksIn(two.sent) };
}

test.each([
  ['memory off', { 'x-svc-memory-mode': 'off' }, 'off'],
  ['memory that only writes', { 'x-svc-memory-mode': 'write' }, 'write_only'],
  ['passthrough', { 'x-svc-compression-mode': 'passthrough' }, 'recalled'],
  ['a side request', { 'x-claude-code-request-class': 'auxiliary' }, 'skipped_side_call'],
  ['a compaction', { 'x-claude-code-request-class': 'compaction' }, 'skipped_side_call'],
])('placed blocks are sent again with %s', async (_name, headers, state) => {
  const { ask: send, items, blocks, strict } = await twoBlocks();
  const answer = await send([...items, third], { headers: { ...NAMED, ...headers } });
  expect(answer.status).toBe(200);
  expect(blocksIn(answer.sent)).toEqual(blocks);
  expect(answer.headers['x-svc-memory-state']).toBe(state);
  expect(Number(answer.headers['x-svc-recalled-tokens'])).toBeGreaterThan(0);
  expect([strict.refusals, strict.lost]).toEqual([[], []]);
});

// The address of such a conversation in the ledger contains the space that the client states.
test('placed blocks are sent again after an unnamed client states another space', async () => {
  const { ask: send, strict } = await startTalk();
  const first = await send([asked], { headers: {} });
  const [block] = blocksIn(first.sent);
  expect(block).toBeDefined();
  const elsewhere = { 'x-svc-memory-space': 'elsewhere' };
  const items = [asked, first.item, second];
  const moved = await send(items, { headers: elsewhere });
  const later = await send([...items, moved.item, third], { headers: elsewhere });
  expect([moved.status, later.status]).toEqual([200, 200]);
  expect(blocksIn(later.sent)[0]).toBe(block);
  expect([strict.refusals, strict.lost]).toEqual([[], []]);
});

// In a string the block is appended to the text. In a list of parts it is a part of its own.
test('a placed block keeps its form when another conversation has it in the other form', async () => {
  const { ask: send, strict } = await startTalk();
  const parts = said('user', [{ type: 'text', text: QUESTION }]);
  const other = await send([parts], { headers: { 'session-id': 'with-parts' } });
  const first = await send([asked]);
  expect(blocksIn(first.sent)).toEqual(blocksIn(other.sent));
  const later = await send([asked, first.item, second]);
  expect([later.status, blocksIn(later.sent)[0]]).toEqual([200, blocksIn(first.sent)[0]]);
  expect([strict.refusals, strict.lost]).toEqual([[], []]);
});

test('a forgotten block stays away although another space has the same text', async () => {
  const { ask: send, story } = await startTalk();
  const patience = AbortSignal.timeout(30_000);
  const space = 'elsewhere';
  const copies = FACTS.map((text) => recordOf(text, { space, conversation: text }));
  await story.memory.capture(copies, patience);
  const other = await send([asked], { headers: { 'session-id': 'in-default' } });
  const headers = { ...NAMED, 'x-svc-memory-space': space };
  const first = await send([asked], { headers });
  expect(blocksIn(first.sent)).toEqual(blocksIn(other.sent));
  expect(await story.memory.forget({ space }, patience)).toBeGreaterThan(1);
  const later = await send([asked, first.item, second], { headers });
  expect(blocksIn(later.sent)).toEqual([]);
});

// Another request of the process reads the new generation between this request's look-up and what it does with it.
test('a block that is forgotten while svc repeats it is not sent, and is not recorded again', async () => {
  let atFind: () => Promise<void> = () => Promise.resolve();
  let readOn: () => unknown = () => undefined;
  const folder = tempFolder();
  const wrapLedger = (ledger: Ledger): Ledger => {
    readOn = () => ledger.generation();
    return {
      generation: () => ledger.generation(),
      record: (entries) => ledger.record(entries),
      commit: (entries) => ledger.commit(entries),
      isShared: false,
      find: async (addresses, withinMs) => {
        const found = await ledger.find(addresses, withinMs);
        const told = JSON.stringify(addresses.map((one) => found.get(one) ?? ''));
        if (told.includes('6431')) await atFind();
        return found;
      },
    };
  };
  const { ask: send, story } = await startTalk({ folder, wrapLedger });
  const first = await send([asked]);
  expect(blocksIn(first.sent)).toHaveLength(1);
  atFind = async () => {
    atFind = () => Promise.resolve();
    expect(await story.memory.forget({ words: '6431' }, AbortSignal.timeout(30_000))).toBe(1);
    readOn();
  };
  // A fork under another id repeats the block, and records it as its own.
  const headers = { 'session-id': 'a-fork' };
  const later = await send([asked, first.item, second], { headers });
  expect(later.sent).not.toContain('6431');
  await story.stop();
  const bytes = readdirSync(folder)
    .filter((name) => name.startsWith('state.db'))
    .map((name) => readFileSync(join(folder, name)).toString('latin1'));
  expect(bytes.join('')).not.toContain('walrus shop listens on port 6431');
});

// Anthropic takes PDF files in requests of at most 32 MB (platform.claude.com, "PDF support", read 2026-11-29).
test('placed blocks are sent again behind a prompt with a long document', async () => {
  const { ask: send, items, blocks, strict } = await twoBlocks();
  const data = Buffer.alloc(20 << 20, 'QUJD').toString();
  const source = { type: 'base64', media_type: 'application/pdf', data };
  const content = [
    { type: 'document', source },
    { type: 'text', text: 'What does it say?' },
  ];
  const answer = await send([...items, said('user', content)]);
  expect(answer.status).toBe(200);
  expect(blocksIn(answer.sent)).toEqual(blocks);
  expect([strict.refusals, strict.lost]).toEqual([[], []]);
});

test('a token count carries the placed blocks, because the provider checks it too', async () => {
  const { items, blocks, strict, story, provider } = await twoBlocks();
  const body = {
    model: BINDING,
    system: 'Be kind.',
    thinking: { type: 'adaptive' },
    messages: [...items, third],
  };
  const answer = await ask(story.port, {
    path: '/v1/messages/count_tokens',
    headers: [
      'Authorization',
      `Bearer ${TOKEN}`,
      'Content-Type',
      'application/json',
      'session-id',
      'session-one',
    ],
    body: Buffer.from(JSON.stringify(body)),
  });
  expect(answer.status).toBe(200);
  expect(blocksIn(provider.seen.at(-1)?.body.toString() ?? '')).toEqual(blocks);
  expect(strict.refusals).toEqual([]);
});

test('placed blocks are sent again after a restart, under another name and with a smaller budget', async () => {
  const folder = tempFolder();
  const { items, blocks, strict, story, provider } = await twoBlocks({ folder });
  await story.stop();
  const again = await startTalk({ folder, provider, strict, settings: { recalledTokensMax: 64 } });
  const answer = await again.ask([...items, third], { headers: { 'session-id': 'a-fork' } });
  expect([answer.status, blocksIn(answer.sent)]).toEqual([200, blocks]);
  expect([strict.refusals, strict.lost]).toEqual([[], []]);
});

test('a client that leaves old thinking out keeps its blocks', async () => {
  const { ask: send, items, blocks, strict } = await twoBlocks();
  const stripped = items.map((item) =>
    Array.isArray(item['content'])
      ? { ...item, content: item['content'].filter(({ type }) => type !== 'thinking') }
      : item,
  );
  const answer = await send([...stripped.slice(0, 3), items[3] ?? {}, third]);
  expect([answer.status, blocksIn(answer.sent)]).toEqual([200, blocks]);
  const without = await send([...stripped, third]);
  expect([without.status, blocksIn(without.sent)]).toEqual([200, blocks]);
  expect(strict.refusals).toEqual([]);
});

test('a change to a model that binds nothing, and back, keeps the blocks', async () => {
  const { ask: send, items, blocks, strict } = await twoBlocks();
  const other = await send([...items, third], {
    model: 'claude-opus-4-5',
    headers: { ...NAMED, 'x-svc-memory-mode': 'off' },
  });
  expect(blocksIn(other.sent)).toEqual(blocks);
  const back = await send([...items, third, other.item, said('user', 'Go on, please.')]);
  expect([back.status, blocksIn(back.sent)]).toEqual([200, blocks]);
  expect(strict.refusals).toEqual([]);
  expect(strict.lost.filter(({ reason }) => reason === 'prefix')).toEqual([]);
});

test('a model that binds nothing sends no block while memory is off', async () => {
  const talk = await startTalk();
  const model = 'claude-opus-4-5';
  const one = await talk.ask([asked], { model });
  expect(blocksIn(one.sent)).toHaveLength(1);
  const off = { ...NAMED, 'x-svc-memory-mode': 'off' };
  const two = await talk.ask([asked, one.item, third], { model, headers: off });
  expect(blocksIn(two.sent)).toEqual([]);
  // Bound thinking was made behind that request, so the block stays out.
  const bound = await talk.ask([asked, one.item, third, two.item, second], { headers: off });
  const items = [asked, one.item, third, two.item, second, bound.item, said('user', 'And now?')];
  const last = await talk.ask(items);
  expect([last.status, talk.strict.refusals]).toEqual([200, []]);
  expect(blocksIn(last.sent)).toEqual([]);
});

test('a conversation that was continued without svc gets its earlier blocks back never more', async () => {
  const { ask: send, direct, items, strict, story } = await twoBlocks();
  // The provider refuses the history without its blocks, so the client leaves all thinking out once.
  const stripped = items.map((item) =>
    Array.isArray(item['content'])
      ? { ...item, content: item['content'].filter(({ type }) => type !== 'thinking') }
      : item,
  );
  const foreign = direct([...stripped, third]);
  const continued = [...stripped, third, foreign];
  const back = await send([...continued, said('user', 'And now?')]);
  expect([back.status, blocksIn(back.sent)]).toEqual([200, []]);
  expect(story.rows.at(-1)).toMatchObject({ isBound: true, isForeign: true });
  const later = await send([...continued, said('user', 'And now?'), back.item, third]);
  expect([later.status, blocksIn(later.sent)]).toEqual([200, []]);
  expect([strict.refusals, strict.lost]).toEqual([[], []]);
});

test('a client that edits a later prompt keeps the blocks in front of the edit', async () => {
  const { ask: send, items, blocks, strict } = await twoBlocks();
  const three = await send([...items, third]);
  const edited = [
    ...items,
    said('user', 'Paint the sea instead.'),
    three.item,
    said('user', 'Go on.'),
  ];
  const answer = await send(edited, { model: 'claude-opus-4-5' });
  expect([answer.status, blocksIn(answer.sent)]).toEqual([200, blocks]);
  // The client's own edit costs the thinking behind it, and that alone.
  const back = await send([...items, said('user', 'Paint the sea instead.')]);
  expect([back.status, blocksIn(back.sent)]).toEqual([200, blocks]);
  expect(strict.refusals).toEqual([]);
});

test('stubs that were away when thinking was bound stay away, and others are repeated for good', async () => {
  const settings = { inputBudget: 1, elisionKeepRounds: 1, elisionCaptureLimit: 100 };
  const talk = await startTalk({ settings });
  const model = 'claude-opus-4-5';
  const rounds = Array.from({ length: 40 }, (_, at) =>
    toolRound('anthropic_messages', `call_${at}`, longOutput(`r${at}`, 900)),
  ).flat();
  const stubs = (sent: string): number => sent.split('[svc left out').length - 1;
  const items = [third, ...rounds];
  await talk.ask(items, { model });
  await talk.story.drained();
  const shortened = await talk.ask(items, { model });
  expect(stubs(shortened.sent)).toBeGreaterThan(0);
  const off = { ...NAMED, 'x-svc-memory-mode': 'off' };
  // Memory is off while the one thinking is bound, and on while the other one is.
  const whole = await talk.ask(items, { headers: off });
  expect(stubs(whole.sent)).toBe(0);
  const after = await talk.ask([...items, whole.item, second]);
  expect([after.status, stubs(after.sent)]).toEqual([200, 0]);
  const bound = await talk.ask(items);
  const repeated = await talk.ask([...items, bound.item, second], { headers: off });
  expect([repeated.status, stubs(repeated.sent)]).toEqual([200, stubs(bound.sent)]);
  expect([talk.strict.refusals, talk.strict.lost]).toEqual([[], []]);
});

test('a compacted conversation is bound no more until its new history thinks', async () => {
  const { ask: send, story } = await twoBlocks();
  const summary = said('user', 'This session continues. Summary: all is well.');
  const answer = await send([summary], { headers: { ...NAMED, 'x-svc-memory-mode': 'off' } });
  expect(answer.status).toBe(200);
  expect(story.rows.at(-1)?.isBound).toBeUndefined();
});
