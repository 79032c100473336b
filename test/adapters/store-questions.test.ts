import { expect, onTestFinished, test } from 'vitest';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import type { Memory } from '../../src/ports/memory.ts';
import { FACTS, questionOf, recordOf } from '../support/records.ts';
import { tempFolder } from '../support/temp-folder.ts';

const patience = (): AbortSignal => AbortSignal.timeout(30_000);

function openMemory(): Memory {
  const store = openEmbeddedStore({ folder: tempFolder(), report: () => undefined });
  onTestFinished(() => store.close());
  return store.memory;
}

async function fill(memory: Memory, asked: string, answered?: string): Promise<void> {
  const noise = FACTS.map((text, at) =>
    recordOf(text, { exchange: at, conversation: `f${at % 7}` }),
  );
  const place = { conversation: 'port', exchange: 0 };
  await memory.capture([...noise, recordOf(asked, place)], patience());
  if (answered === undefined) return;
  await memory.capture(
    [recordOf<'assistant'>(answered, { ...place, role: 'assistant' })],
    patience(),
  );
}

const textsOf = async (memory: Memory, question: string): Promise<readonly string[]> =>
  (await memory.recall(questionOf(question), patience())).passages.map(({ text }) => text);

const ASKED = 'Which port does the walrus gateway listen on?';
const agent = { conversation: 'now', branch: '', quietShare: 0, briefTokensMax: 0 };

test.each([ASKED, 'what port does the walrus gateway use', 'Und der Port des walrus gateway?'])(
  'a question that got no answer is not recalled: %s',
  async (asked) => {
    const memory = openMemory();
    await fill(memory, asked);
    expect(await textsOf(memory, 'walrus gateway port')).not.toContain(asked);
    const { exchanges } = await memory.recall(
      questionOf('which port has the walrus gateway', { agent }),
      patience(),
    );
    const quotes = exchanges?.flatMap((exchange) => exchange.quotes.map(({ text }) => text));
    expect(quotes).not.toContain(asked);
    // It stays in the memory: a person finds it.
    expect((await memory.list({ limit: 100 }, patience())).map(({ text }) => text)).toContain(
      asked,
    );
  },
);

test('a question comes with its answer, however little the answer shares with the prompt', async () => {
  const memory = openMemory();
  const answer =
    `It is 6431. ${'Nothing else was said about this on that day. '.repeat(14)}`.trim();
  await fill(memory, ASKED, answer);
  const texts = await textsOf(memory, 'walrus gateway port');
  expect(texts).toContain(ASKED);
  expect(texts.some((text) => text.startsWith('It is 6431.'))).toBe(true);
});

test('a question whose answer does not fit stays out with it', async () => {
  const memory = openMemory();
  await fill(
    memory,
    ASKED,
    `It is 6431, ${'as the walrus said to the oyster, '.repeat(12)}`.trim(),
  );
  const asked = questionOf('walrus gateway port', { tokensMax: 60 });
  const { passages } = await memory.recall(asked, patience());
  expect(passages.map(({ text }) => text)).not.toContain(ASKED);
});

test('a question that states something is recalled by itself', async () => {
  const memory = openMemory();
  const asked = 'The walrus gateway listens on port 6431. Can that change?';
  await fill(memory, asked);
  expect(await textsOf(memory, 'walrus gateway port')).toContain(asked);
});
