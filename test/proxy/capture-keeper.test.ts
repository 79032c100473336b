import { TEXTS } from '../../src/adapters/texts.ts';
import { expect, onTestFinished, test, vi } from 'vitest';
import { FoundEntries } from '../../src/core/ledger/entries.ts';
import { CaptureKeeper } from '../../src/proxy/capture-keeper.ts';
import { Conversations, type Reading } from '../../src/proxy/conversations.ts';
import type { MemoryRecord } from '../../src/ports/memory.ts';
import { readRequest } from '../support/view-of.ts';
import { DIALECTS, requestWith, said, type WireItem } from '../support/dialect-wire.ts';
import type { Dialect } from '../../src/core/conversation/view.ts';

const ASKED = said('user', 'On which port does the staging database listen?');
const HISTORY = [ASKED, said('assistant', 'On port 6431.'), said('user', 'And its twin?')];

function open(dialect: Dialect) {
  let generation = 0;
  const disk = { isFull: false };
  const kept: (readonly MemoryRecord[])[] = [];
  const conversations = new Conversations();
  const keeper = new CaptureKeeper({
    blockKey: 'key',
    texts: TEXTS,
    clock: { now: () => Date.UTC(2026, 10, 20), monotonic: () => 0 },
    outbox: {
      keep: (records) => !disk.isFull && kept.push(records) > 0,
      flush: async () => undefined,
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
  return { keeper, read, forget, kept, disk };
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

test('an answer of the history that the next prompt says was interrupted is not kept', async () => {
  const { keeper, read, kept } = open('anthropic_messages');
  const stopped = ['[Request interrupted by user]', 'I mean the twin.'];
  const next = said(
    'user',
    stopped.map((text) => ({ type: 'text', text })),
  );
  const half = said('assistant', 'The staging database listens on port 6431.');
  const reading = read([ASKED, half, next, said('assistant', 'On 7431.'), said('user', 'Thanks.')]);
  // oxlint-disable-next-line no-await-in-loop -- One exchange after the other.
  while (await keeper.keepHistory(reading, []));
  const texts = kept.flat().map(({ text }) => text);
  expect(texts).toContain('On which port does the staging database listen?');
  expect(texts).not.toContain('The staging database listens on port 6431.');
});

test('a question is kept without the blocks of its own request, whatever the one before carried', () => {
  const { keeper, read, kept } = open('anthropic_messages');
  const block = '<svc-memory>The database listens on port 5432.</svc-memory>';
  const text = 'On which port does the staging database listen?';
  const reading = read([said('user', `${text} ${block}`)]);
  const [item] = reading.view.items;
  if (item === undefined) throw new Error('no item');
  const placement = { item, block, form: 'text', space: 'default', tokens: 9 } as const;
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

const WHOLE = {
  isComplete: true,
  isFailed: false,
  isCutShort: false,
  callsTools: false,
  thoughts: [],
};

test('captures of a time in which the disk is full are held, and kept once it has room', () => {
  const { keeper, read, kept, disk } = open('anthropic_messages');
  disk.isFull = true;
  const port = (at: number): string =>
    `The staging database number ${at} listens on port ${6000 + at}.`;
  for (let at = 0; at < 3; at += 1) {
    const reading = read([said('user', `On which port does database ${at} listen, please?`)]);
    expect(keeper.keepAnswer(reading, { ...WHOLE, text: port(at) }, [])).toBe('failed');
  }
  expect(kept).toEqual([]);
  disk.isFull = false;
  const reading = read([said('user', 'On which port does database 3 listen, please?')]);
  expect(keeper.keepAnswer(reading, { ...WHOLE, text: port(3) }, [])).toBe(2);
  const texts = kept.flat().map(({ text }) => text);
  expect(texts.filter((text) => text.startsWith('The staging'))).toEqual([0, 1, 2, 3].map(port));
});

test('what is held is tried once more at the end, and what is lost then is counted', () => {
  const { keeper, read, kept, disk } = open('anthropic_messages');
  disk.isFull = true;
  const reading = read([said('user', 'On which port does the walrus database listen, please?')]);
  keeper.keepAnswer(reading, { ...WHOLE, text: 'The walrus database listens on port 6431.' }, []);
  expect(keeper.keepLast()).toBe(2);
  disk.isFull = false;
  expect(keeper.keepLast()).toBe(0);
  expect(kept.flat()).toHaveLength(2);
});

test('held captures are kept without a further request, and never take more than their bound', () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const { keeper, read, kept, disk } = open('anthropic_messages');
  disk.isFull = true;
  const long = 'The walrus database listens at bay seventeen of the quay. '.repeat(2000);
  for (let at = 0; at < 60; at += 1) {
    const reading = read([said('user', `Where does the walrus database ${at} listen, please?`)]);
    keeper.keepAnswer(reading, { ...WHOLE, text: `Database ${at}: ${long}` }, []);
  }
  disk.isFull = false;
  vi.advanceTimersByTime(6000);
  const chars = kept.flat().reduce((sum, { text }) => sum + text.length, 0);
  expect(kept.length).toBeGreaterThan(10);
  expect(chars).toBeLessThanOrEqual(4 << 20);
  expect(kept.at(-1)?.some(({ text }) => text.includes('Database 59'))).toBe(true);
});
