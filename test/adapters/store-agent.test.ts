import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openHostedMemory } from '../../src/adapters/memory-client/open-hosted-memory.ts';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import { quotedRecords } from '../../src/core/recall/quoted-records.ts';
import { writeAgentBlock } from '../../src/core/recall/agent-block.ts';
import type { AgentFacts, Memory, RecallAnswer } from '../../src/ports/memory.ts';
import { referenceOf, shortReference } from '../../src/core/memory/reference.ts';
import { blockEntry, foundBlock } from '../support/ledger-entries.ts';
import { startMemoryService } from '../../service/test/support/memory-service.ts';
import { recordOf, questionOf, FACTS } from '../support/records.ts';
import { tempFolder } from '../support/temp-folder.ts';

const patience = (): AbortSignal => AbortSignal.timeout(30_000);

function openStore(folder: string) {
  const store = openEmbeddedStore({ folder, report: () => undefined });
  onTestFinished(() => store.close());
  return store;
}

const agent: AgentFacts = {
  conversation: 'now',
  branch: 'feat/x',
  quietShare: 0,
  briefTokensMax: 125,
};

function exchangeOf(conversation: string, asked: string, answered: string) {
  const place = { conversation, exchange: 0, branch: 'feat/x' };
  return [recordOf(asked, place), recordOf<'assistant'>(answered, { ...place, role: 'assistant' })];
}

const parser = exchangeOf(
  'c1',
  'find out why the parser drops the last token of a slow stream',
  'Now let me look.\n\nRoot cause: `flushTail()` in src/parser.ts returned before the last chunk of the stream was decoded.',
);

async function fill(memory: Memory): Promise<Memory> {
  await memory.capture(
    FACTS.map((text, at) => recordOf(text, { exchange: at, conversation: `f${at % 7}` })),
    patience(),
  );
  await memory.capture(parser, patience());
  return memory;
}

async function storeWith(folder = tempFolder()) {
  const store = openStore(folder);
  await fill(store.memory);
  return store;
}

interface Opened {
  readonly memory: Memory;
  close(): Promise<void>;
}

async function openService(folder: string): Promise<Opened> {
  const service = await startMemoryService({ folder });
  const hosted = openHostedMemory({
    settings: {
      kind: 'hosted',
      baseUrl: service.url,
      serviceKey: await service.makeKey(),
      allowPrivate: true,
    },
    recallMs: 10_000,
    report: () => undefined,
  });
  const close = async (): Promise<void> => {
    await hosted.close();
    await service.stop();
  };
  onTestFinished(close);
  return { memory: hosted.memory, close };
}

function quotesOf({ exchanges = [] }: RecallAnswer): string[] {
  return exchanges.flatMap(({ quotes }) => quotes.map(({ text }) => text));
}

const asked = 'the parser still drops a token of the stream, tail or head?';

const PLACES = [
  ['the embedded store', async (folder: string): Promise<Opened> => openStore(folder)],
  ['a memory service', openService],
] as const;

test('an exchange that was recalled is read again when its prompt is sent anew', async () => {
  const { memory } = await storeWith();
  const question = questionOf(asked, { agent });
  expect(quotesOf(await memory.recall(question, patience())).join()).toContain('flushTail');
  const anew = exchangeOf(
    'c1',
    'why does the parser still drop the head token of a slow stream?',
    'Root cause: `openHead()` in src/parser.ts skipped the first chunk of the stream.',
  );
  await memory.capture(anew, patience());
  expect(quotesOf(await memory.recall(question, patience())).join()).toContain('openHead');
});

test('of a prompt that was sent anew again and again, only the newest texts are read', async () => {
  const { memory } = await storeWith();
  for (let time = 1; time <= 20; time += 1) {
    const wish = `look at run ${time} of the parser: it drops the last token of a slow stream`;
    // oxlint-disable-next-line no-await-in-loop -- In the order of their times.
    await memory.capture([recordOf(wish, { conversation: 'c1', branch: 'feat/x' })], patience());
  }
  const { exchanges = [] } = await memory.recall(questionOf(asked, { agent }), patience());
  const found = exchanges.find(({ quotes }) =>
    quotes.some(({ text }) => text.includes('flushTail')),
  );
  expect(found?.records).toHaveLength(9);
});

test('a memory that was recalled has its new time when it is said again', async () => {
  const { memory } = await storeWith();
  const at = Date.UTC(2026, 4, 20);
  const chat = async () =>
    (await memory.recall(questionOf(asked), patience())).passages.map((one) => one.at);
  const lines = async () =>
    (await memory.recall(questionOf(asked, { agent }), patience())).exchanges;
  expect(await chat()).not.toContain(at);
  expect((await lines())?.map((one) => one.at)).not.toContain(at);
  await memory.capture(
    parser.map((record) => ({ ...record, at, isTimed: true })),
    patience(),
  );
  expect(await chat()).toContain(at);
  expect((await lines())?.map((one) => one.at)).toContain(at);
});

// One ranking, one quiet gate, one brief: wherever the memories are.
describe.each(PLACES)('%s', (_place, open) => {
  test.each([1, 6, 20])(
    'a fact is recalled under %i requests like the one that asks',
    async (times) => {
      const { memory } = await open(tempFolder());
      const fact = 'The staging database of our quay listens on port 6431 of host walrus.';
      await memory.capture(exchangeOf('fact', fact, 'Noted.'), patience());
      const request = (ticket: number) =>
        `Migrate the staging database of our quay. This is for ticket ${ticket}.`;
      for (let ticket = 1; ticket <= times; ticket += 1) {
        const made = exchangeOf(
          `t${ticket}`,
          request(ticket),
          'The migration has run without an error.',
        );
        await memory.capture(made, patience());
      }
      const prompt = request(times + 1);
      const { exchanges = [], sessions = [] } = await memory.recall(
        questionOf(prompt, { agent }),
        patience(),
      );
      const { text } = writeAgentBlock(
        { standing: [], exchanges, sessions },
        { tokensMax: 512, briefTokensMax: 118 },
      );
      expect(text).toContain(fact);
      expect(text).not.toContain('Migrate the staging database');
      expect(text).not.toContain('This is for ticket');
      const lines = text.split('\n').filter((line) => line.startsWith('- '));
      expect(new Set(lines).size).toBe(lines.length);
    },
  );

  test('an order that nobody answered is not recalled beside what was stated', async () => {
    const { memory } = await open(tempFolder());
    for (const [at, order] of ['Write', 'Check', 'Review', 'Fix', 'Port', 'Extend'].entries()) {
      const words = `${order} the quay staging database port and its host walrus for harbour ${at}00`;
      await memory.capture([recordOf(words, { conversation: `o${at}`, exchange: 0 })], patience());
    }
    const fact = 'Our staging database needs port 6431 of the quay.';
    await memory.capture([recordOf(fact, { conversation: 'fact', exchange: 0 })], patience());
    const question = questionOf('which quay staging database port does walrus have', { agent });
    const { exchanges = [] } = await memory.recall(question, patience());
    expect(exchanges.map(({ quotes }) => quotes)).toEqual([[{ role: 'user', text: fact }]]);
  });

  test("an agent's prompt gets the conclusion of an exchange, under a reference that is found", async () => {
    const memory = await fill((await open(tempFolder())).memory);
    const young = Array.from(
      { length: 25 },
      (_, at) => `parser stream token ${at} of LaunchDarkly`,
    );
    for (const text of young) await memory.recall(questionOf(text, { agent }), patience());
    const answer = await memory.recall(questionOf(asked, { agent }), patience());
    const [found] = answer.exchanges ?? [];
    expect(found?.quotes).toEqual([
      {
        role: 'assistant',
        text: 'Root cause: `flushTail()` in src/parser.ts returned before the last chunk of the stream was decoded.',
      },
    ]);
    const records = parser.map(({ digest }) => referenceOf(digest));
    expect(found?.records.toSorted()).toEqual(records.toSorted());
    const named = answer.sessions?.find(({ title }) => title.includes('src/parser.ts'));
    expect([named?.space, named?.records.toSorted()]).toEqual(['project', records.toSorted()]);
    const held = await memory.retrieve({ ref: found?.ref ?? '' }, patience());
    expect(held?.text).toBe(parser[1]?.text);
    expect(await memory.retrieve({ ref: 'm_aaaaaaaa' }, patience())).toBeUndefined();
  });

  test('a new project hears what all projects share', async () => {
    const { memory } = await open(tempFolder());
    const records = parser.map((record) => ({ ...record, space: 'global' }));
    await memory.capture(records, patience());
    const answer = await memory.recall(questionOf(asked, { agent, space: 'new' }), patience());
    expect(quotesOf(answer).join('\n')).toContain('flushTail');
  });

  test('what the request holds is not quoted, nor its exchange', async () => {
    const memory = await fill((await open(tempFolder())).memory);
    const excludeDigests = [parser[0]?.digest ?? ''];
    const answer = await memory.recall(questionOf(asked, { agent, excludeDigests }), patience());
    expect(quotesOf(answer).join('\n')).not.toContain('flushTail');
  });

  test('recall keeps quiet for replies, and for prompts below the share of their project', async () => {
    const memory = await fill((await open(tempFolder())).memory);
    const loud = Array.from({ length: 30 }, (_, at) => `${asked} ${at}`);
    for (const text of loud) await memory.recall(questionOf(text, { agent }), patience());
    const quiet = { ...agent, quietShare: 0.7, briefTokensMax: 0 };
    for (const text of ['yes', '9', 'commit', 'Grafana and Vault and a tail']) {
      const answer = await memory.recall(questionOf(text, { agent: quiet }), patience());
      expect(answer, text).toEqual({ passages: [], exchanges: [], sessions: [] });
    }
  });

  test('a prompt that says that there is a past is heard below the share of its project', async () => {
    const memory = await fill((await open(tempFolder())).memory);
    const loud = Array.from({ length: 30 }, (_, at) => `${asked} flushTail ${at}`);
    for (const text of loud) await memory.recall(questionOf(text, { agent }), patience());
    const quiet = { ...agent, quietShare: 0.9, briefTokensMax: 0 };
    const hears = async (text: string): Promise<boolean> => {
      const answer = await memory.recall(questionOf(text, { agent: quiet }), patience());
      return quotesOf(answer).length > 0;
    };
    expect(await hears('the stream loses a token')).toBe(false);
    expect(await hears('we had this before: the stream loses a token')).toBe(true);
    // There are no words to look for.
    expect(await hears('do it as last time')).toBe(false);
  });

  test('the share of a project survives a restart', async () => {
    const folder = tempFolder();
    const first = await open(folder);
    await fill(first.memory);
    const loud = Array.from({ length: 30 }, (_, at) => `${asked} flushTail ${at}`);
    for (const text of loud) await first.memory.recall(questionOf(text, { agent }), patience());
    await first.memory.capture([recordOf('one more')], patience());
    await first.close();
    const { memory } = await open(folder);
    const quiet = { ...agent, quietShare: 0.7 };
    const answer = await memory.recall(
      questionOf('LaunchDarkly stream', { agent: quiet }),
      patience(),
    );
    expect(answer.exchanges).toEqual([]);
  });

  test('a brief says what other sessions of the branch concluded or were about, not the one that asks', async () => {
    const memory = await fill((await open(tempFolder())).memory);
    await memory.capture(
      exchangeOf('now', 'yes', 'Pushed to the remote branch of the parser.'),
      patience(),
    );
    await memory.capture(
      exchangeOf(
        'c2',
        'ok. please move the invoice exporter to streams',
        'Done, the exporter streams.',
      ),
      patience(),
    );
    const { sessions = [] } = await memory.recall(questionOf('hello there', { agent }), patience());
    const titles = sessions.map(({ title }) => title);
    expect(titles.slice(0, 2).toSorted()).toEqual([
      'assistant: Root cause: `flushTail()` in src/parser.ts returned before the last chunk of the stream was decoded.',
      'move the invoice exporter to streams',
    ]);
    expect(titles.join('\n')).not.toContain('Pushed');
    for (const text of ['14', 'yes and yes', 'push it']) {
      const answered = await memory.recall(questionOf(text, { agent }), patience());
      expect(answered.sessions, text).toEqual([]);
    }
    const without = { ...agent, briefTokensMax: 0 };
    expect(
      (await memory.recall(questionOf('hello there', { agent: without }), patience())).sessions,
    ).toEqual([]);
  });

  test('R25: lines and brief come from the spaces that the project had before, and from no other', async () => {
    const memory = await fill((await open(tempFolder())).memory);
    const older = questionOf(asked, { agent, space: 'now', olderSpaces: ['project'] });
    const answer = await memory.recall(older, patience());
    expect(quotesOf(answer).join('\n')).toContain('flushTail');
    expect(answer.sessions?.length).toBeGreaterThan(0);
    const other = await memory.recall(questionOf(asked, { agent, space: 'now' }), patience());
    expect([quotesOf(other), other.sessions ?? []]).toEqual([[], []]);
  });
});

test('R26: a block that quotes a forgotten exchange, or names its session, is emptied', async () => {
  const folder = tempFolder();
  const { memory, ledger } = await storeWith(folder);
  const answer = await memory.recall(questionOf('hello there', { agent }), patience());
  const limits = { tokensMax: 512, briefTokensMax: 118 };
  const at = Date.UTC(2026, 4, 1);
  const exchanges = [
    {
      ref: shortReference(referenceOf(parser[1]?.digest ?? '')),
      space: 'project',
      at,
      quotes: [{ role: 'assistant' as const, text: 'anything' }],
    },
  ];
  const blocks = {
    lines: writeAgentBlock({ standing: [], exchanges, sessions: [] }, limits).text,
    brief: writeAgentBlock({ standing: [], exchanges: [], sessions: answer.sessions ?? [] }, limits)
      .text,
    other: writeAgentBlock(
      { standing: [], exchanges: [], sessions: [{ at, title: 'Pin undici 7' }] },
      limits,
    ).text,
  };
  expect(blocks.brief).toContain('Root cause: `flushTail()`');
  const records = parser.map(({ digest }) => referenceOf(digest));
  const known = {
    passages: [],
    exchanges: exchanges.map((one) => ({ ...one, records, client: 'codex' })),
  };
  const entries = Object.entries(blocks).map(([name, block]) => {
    const quoted = quotedRecords(block, { ...known, sessions: answer.sessions ?? [] });
    return blockEntry(name, { block, quoted });
  });
  await ledger.record(entries);
  const journals = (): string[] =>
    readdirSync(folder).filter(
      (name) =>
        name.startsWith('ledger-') && readFileSync(join(folder, name)).includes('svc-memory'),
    );
  await expect.poll(journals).toEqual([]);
  await memory.forget({ refs: [referenceOf(parser[0]?.digest ?? '')] }, patience());
  expect(await foundBlock(ledger, 'lines')).toBe('');
  expect(await foundBlock(ledger, 'brief')).toBe('');
  expect(await foundBlock(ledger, 'other')).toBe(blocks.other);
});

test.each(PLACES)('%s quotes the text after the last tool call', async (_, open) => {
  const { memory } = await open(tempFolder());
  const before = 'The quay gateway loses its port because it trims the tail.';
  const last = 'The quay gateway kept the wrong port because `flushTail()` came late.';
  const place = { conversation: 'c1', exchange: 0 };
  const answer = recordOf<'assistant'>(`${before}\n\n${last}`, {
    ...place,
    role: 'assistant',
    lastFrom: before.length + 2,
  });
  const prompt = recordOf('why does the quay gateway lose its port?', place);
  await memory.capture([prompt, answer], patience());
  const question = questionOf('the port of the quay gateway is wrong again', { agent });
  const quotes = quotesOf(await memory.recall(question, patience()));
  expect(quotes).toContain(last);
  expect(quotes).not.toContain(before);
});
