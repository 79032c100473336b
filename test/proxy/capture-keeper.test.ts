import { expect, test } from 'vitest';
import { FoundEntries } from '../../src/core/ledger/found-entries.ts';
import { CaptureKeeper } from '../../src/proxy/capture-keeper.ts';
import { Conversations } from '../../src/proxy/conversations.ts';
import type { MemoryRecord } from '../../src/ports/memory.ts';
import { type Reading, readRequest } from '../../src/proxy/read-request.ts';
import { DIALECTS, requestWith, said, type WireItem } from '../support/dialect-wire.ts';
import type { Dialect } from '../../src/core/conversation/dialect.ts';

const ASKED = said('user', 'On which port does the staging database listen?');
const HISTORY = [ASKED, said('assistant', 'On port 6431.'), said('user', 'And its twin?')];

function open(dialect: Dialect) {
  let generation = 0;
  const kept: (readonly MemoryRecord[])[] = [];
  const conversations = new Conversations();
  const keeper = new CaptureKeeper({
    blockKey: 'key',
    clock: { now: () => Date.UTC(2026, 10, 20), monotonic: () => 0 },
    outbox: {
      waiting: 0,
      keep: (records) => kept.push(records) > 0,
      flush: async () => undefined,
      stored: async () => true,
    },
    ledger: {
      generation: () => generation,
      find: async () => new FoundEntries([]),
      record: async () => undefined,
      commit: async () => true,
      isShared: false,
    },
  });
  const read = (items: readonly WireItem[], headers: readonly string[] = []): Reading => {
    const reading = readRequest(conversations, {
      id: 'r',
      route: { kind: 'model', dialect },
      method: 'POST',
      target: '/v1/messages',
      headers: ['session-id', 's', ...headers],
      body: Buffer.from(JSON.stringify(requestWith(dialect, items))),
      startedAt: 0,
    });
    if (reading === undefined) throw new Error('not read');
    return reading;
  };
  const forget = (): void => {
    generation += 1;
  };
  return { keeper, read, forget, kept };
}

test.each(DIALECTS)('%s: a conversation that begins has no history to keep', (dialect) => {
  const { keeper, read } = open(dialect);
  expect(keeper.hasHistory(read([ASKED]))).toBe(false);
});

test.each(DIALECTS)('%s: history is there until it is kept, or forgotten', async (dialect) => {
  const { keeper, read, forget } = open(dialect);
  const reading = read(HISTORY);
  expect(keeper.hasHistory(reading)).toBe(true);
  expect(await keeper.keepHistory(reading, [])).toBe(true);
  expect(keeper.hasHistory(reading)).toBe(true);
  // oxlint-disable-next-line no-await-in-loop -- One exchange after the other.
  while (await keeper.keepHistory(reading, []));
  expect(keeper.hasHistory(read(HISTORY))).toBe(false);
  const later = [...HISTORY, said('assistant', 'Port 7431.'), said('user', 'Thanks. Since when?')];
  expect(keeper.hasHistory(read(later))).toBe(true);
  forget();
  expect(keeper.hasHistory(read(HISTORY))).toBe(true);
});

test('a question is kept without the blocks of its own request, whatever the one before carried', () => {
  const { keeper, read, kept } = open('anthropic_messages');
  const block = '<svc-memory>The database listens on port 5432.</svc-memory>';
  const text = 'On which port does the staging database listen?';
  const reading = read([said('user', `${text} ${block}`)]);
  const [item] = reading.view.items;
  if (item === undefined) throw new Error('no item');
  const placement = { item, block, form: 'text', tokens: 9 } as const;
  const answer = {
    isComplete: true,
    isFailed: false,
    isCutShort: false,
    callsTools: false,
    thoughts: [],
  };
  for (const placements of [[], [placement], [placement], []]) {
    keeper.keepAnswer(reading, { ...answer, text: 'It listens on port 6431 now.' }, placements);
  }
  const asked = kept.map((records) => records.find(({ role }) => role === 'user')?.text);
  expect(asked).toEqual([`${text} ${block}`, text, text, `${text} ${block}`]);
});
