import { expect, onTestFinished, test } from 'vitest';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import { estimateTextTokens } from '../../src/core/bytes/tokens.ts';
import {
  answerTo,
  DIALECTS,
  requestWith,
  said,
  toolRound,
  type WireItem,
} from '../support/dialect-wire.ts';
import { recordOf } from '../support/records.ts';
import {
  type RecordingProvider,
  startRecordingProvider,
  startStory,
  type Story,
  type StoryOptions,
} from '../support/story.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { wrapped } from '../support/wrapped-memory.ts';

const FACT = 'The staging database of the walrus shop listens on port 6431.';
const QUESTION = 'On which port does the staging database of the walrus shop listen?';
const SECOND_FACT = 'Marta owns the billing dashboard and its Grafana alerts.';
const SECOND_QUESTION = 'Who owns the billing dashboard and its Grafana alerts?';

async function teach(story: Story, ...texts: string[]): Promise<void> {
  const records = texts.map((text) => recordOf(text, { space: 'default', conversation: text }));
  await story.memory.capture(records, AbortSignal.timeout(30_000));
}

async function startTaught(options: Partial<StoryOptions> = {}) {
  const provider = options.provider ?? (await startRecordingProvider());
  const story = await startStory({ provider, ...options });
  await teach(story, FACT, SECOND_FACT);
  return { provider, story };
}

function blocksIn(body: Buffer | undefined): string[] {
  return body?.toString().match(/<svc-memory [^]*?<\/svc-memory>/g) ?? [];
}

function lastBody(provider: RecordingProvider): Buffer | undefined {
  return provider.seen.at(-1)?.body;
}

const STATED = { 'session-id': 'session-one' };

test.each(DIALECTS)('%s: in a tool loop and after it the same block goes back', async (dialect) => {
  const { provider, story } = await startTaught();
  let items: WireItem[] = [said('user', QUESTION)];
  await story.send(dialect, requestWith(dialect, items));
  const [block] = blocksIn(lastBody(provider));
  expect(block).toContain(FACT);
  // What is learned meanwhile must not move what was placed.
  await teach(story, 'The staging database of the walrus shop listens on port 7000 since today.');
  for (const round of ['a', 'b', 'c']) {
    items = [...items, ...toolRound(dialect, `call_${round}`, 'nothing')];
    const { headers } = await story.send(dialect, requestWith(dialect, items));
    expect(headers['x-svc-memory-state']).toBe('recalled');
    expect(blocksIn(lastBody(provider))).toEqual([block]);
  }
  items = [...items, said('assistant', 'Port 6431.'), said('user', 'Thank you so much for that.')];
  await story.send(dialect, requestWith(dialect, items));
  expect(blocksIn(lastBody(provider))[0]).toBe(block);
});

test('R26: what another process forgets is not said again, not even in a tool loop', async () => {
  const folder = tempFolder();
  const { provider, story } = await startTaught({ folder });
  const items = [said('user', QUESTION)];
  const dialect = 'anthropic_messages';
  await story.send(dialect, requestWith(dialect, items), STATED);
  expect(blocksIn(lastBody(provider))[0]).toContain(FACT);
  const other = openEmbeddedStore({ folder, report: () => {} });
  expect(await other.memory.forget({ words: 'walrus' }, AbortSignal.timeout(30_000))).toBe(2);
  await other.close();
  const longer = [...items, ...toolRound(dialect, 'call_1', 'nothing')];
  const { headers } = await story.send(dialect, requestWith(dialect, longer), STATED);
  expect(headers['x-svc-memory-state']).toBe('empty');
  expect(blocksIn(lastBody(provider))).toEqual([]);
});

test.each(DIALECTS)('%s: after a restart the same bytes leave', async (dialect) => {
  const folder = tempFolder();
  const { provider, story } = await startTaught({ folder });
  const items = [said('user', QUESTION)];
  const whole = requestWith(dialect, items);
  const longer = requestWith(dialect, [...items, ...toolRound(dialect, 'call_1', 'nothing')]);
  await story.send(dialect, whole, STATED);
  await story.send(dialect, longer, STATED);
  await story.stop();
  const again = await startStory({ provider, folder });
  await teach(again, 'The staging database of the walrus shop listens on port 7000 since today.');
  await again.send(dialect, whole, STATED);
  await again.send(dialect, longer, STATED);
  const [first, second, third, fourth] = provider.seen.map(({ body }) => body.toString());
  expect(blocksIn(Buffer.from(first ?? ''))).toHaveLength(1);
  expect([third, fourth]).toEqual([first, second]);
});

test('a fork under a new conversation id keeps the blocks of what it shares', async () => {
  const { provider, story } = await startTaught();
  const shared = [said('user', QUESTION), said('assistant', 'Port 6431.')];
  await story.send('openai_responses', requestWith('openai_responses', shared.slice(0, 1)), STATED);
  const [block] = blocksIn(lastBody(provider));
  const forked = [...shared, said('user', SECOND_QUESTION)];
  await story.send('openai_responses', requestWith('openai_responses', forked), {
    'session-id': 'session-two',
  });
  const blocks = blocksIn(lastBody(provider));
  expect(blocks[0]).toBe(block);
  expect(blocks[1]).toContain(SECOND_FACT);
});

test('a rewind to an earlier prompt sends the bytes of that time, and another prompt its own', async () => {
  const { provider, story } = await startTaught();
  const send = (items: readonly WireItem[]) =>
    story.send('anthropic_messages', requestWith('anthropic_messages', items), STATED);
  const opening = [said('user', QUESTION)];
  await send(opening);
  const first = lastBody(provider)?.toString();
  const taken = [...opening, said('assistant', 'Port 6431.'), said('user', SECOND_QUESTION)];
  await send(taken);
  await send(opening);
  expect(lastBody(provider)?.toString()).toBe(first);
  const other = [
    ...opening,
    said('assistant', 'Port 6431.'),
    said('user', 'Paint the mountains in winter, please.'),
  ];
  await send(other);
  expect(blocksIn(lastBody(provider))).toEqual(blocksIn(Buffer.from(first ?? '')));
});

test('the flip of a message between text and one marked part keeps the words and the block', async () => {
  const { provider, story } = await startTaught();
  const mark = { cache_control: { type: 'ephemeral' } };
  const part = (text: string, extra: object = {}) => [{ type: 'text', text, ...extra }];
  const send = (items: readonly WireItem[]) =>
    story.send('anthropic_messages', requestWith('anthropic_messages', items), STATED);
  await send([said('user', part(QUESTION, mark))]);
  const [block] = blocksIn(lastBody(provider));
  const rest = [
    said('assistant', 'Port 6431.'),
    said('user', part('And what else is there?', mark)),
  ];
  await send([said('user', QUESTION), ...rest]);
  await send([said('user', part(QUESTION)), ...rest]);
  const firsts = provider.seen.map(({ body }) => {
    const { messages } = JSON.parse(body.toString()) as { messages: { content: unknown }[] };
    return messages[0]?.content;
  });
  // The provider's cache goes by the blocks of a message: two of them, in every request.
  expect(firsts[0]).toEqual([
    ...part(QUESTION, mark),
    ...part(JSON.parse(`"${block ?? ''}"`) as string),
  ]);
  expect(firsts[1]).toEqual([...part(QUESTION), ...part(JSON.parse(`"${block ?? ''}"`) as string)]);
  expect(firsts[2]).toEqual(firsts[1]);
});

test('what a block of this conversation says already is not recalled again', async () => {
  const { provider, story } = await startTaught();
  const opening = [said('user', QUESTION), said('assistant', 'Let us see.')];
  const send = (items: readonly WireItem[]) =>
    story.send('anthropic_messages', requestWith('anthropic_messages', items), STATED);
  await send(opening.slice(0, 1));
  await send([...opening, said('user', `Once more: ${QUESTION} And ${SECOND_QUESTION}`)]);
  const blocks = blocksIn(lastBody(provider));
  expect(blocks).toHaveLength(2);
  expect(blocks[1]).toContain(SECOND_FACT);
  expect(blocks[1]).not.toContain(FACT);
});

// spec: 2.4-recalled-context
test('all blocks of a request together stay within the budget, and none ever makes way for a newer one', async () => {
  const provider = await startRecordingProvider();
  const recalledTokensMax = 160;
  const story = await startStory({ provider, settings: { recalledTokensMax } });
  const topics = ['walrus', 'penguin', 'albatross', 'narwhal', 'beluga', 'puffin'];
  await teach(
    story,
    ...topics.map(
      (topic) =>
        `The ${topic} service keeps its ${topic} backups in the ${topic} bucket, is owned by the ${topic} team and is deployed on the day of the ${topic}.`,
    ),
  );
  const items: WireItem[] = [];
  const counts: number[] = [];
  for (const topic of topics) {
    items.push(said('user', `Where does the ${topic} service keep its ${topic} backups?`));
    const body = requestWith('openai_chat_completions', items);
    const answer = await story.send('openai_chat_completions', body);
    const blocks = blocksIn(lastBody(provider));
    const tokens = blocks
      .map((block) => estimateTextTokens(JSON.parse(`"${block}"`) as string))
      .reduce((sum, one) => sum + one, 0);
    expect(tokens).toBeLessThanOrEqual(recalledTokensMax);
    expect(Number(answer.headers['x-svc-recalled-tokens'])).toBe(tokens);
    counts.push(blocks.length);
    items.push(said('assistant', `In the ${topic} bucket.`));
  }
  // One block fits or two, and they stay.
  expect(counts[0]).toBe(1);
  expect(Math.max(...counts)).toBeLessThan(topics.length);
  expect(counts).toEqual(counts.toSorted((one, other) => one - other));
});

test('a placed block stays when the budget is lowered', async () => {
  const folder = tempFolder();
  const { provider, story } = await startTaught({ folder });
  const body = requestWith('openai_responses', [said('user', QUESTION)]);
  await story.send('openai_responses', body, STATED);
  const sent = lastBody(provider);
  expect(blocksIn(sent)).toHaveLength(1);
  await story.stop();
  const frugal = await startStory({ provider, folder, settings: { recalledTokensMax: 20 } });
  await frugal.send('openai_responses', body, STATED);
  expect(lastBody(provider)).toEqual(sent);
});

test.each([
  { status: 400, headers: {} },
  { status: 403, headers: {} },
  { status: 413, headers: {} },
  { status: 422, headers: {} },
  { status: 451, headers: {} },
  { status: 429, headers: {} },
])(
  'R17: a changed request that is refused ($status) is sent once more as the client wrote it',
  async ({ status, headers }) => {
    const { provider, story } = await startTaught();
    provider.reply = (request) =>
      request.body.includes('<svc-memory')
        ? { status, headers, body: '{"error":"not this"}' }
        : answerTo(request);
    const items = [said('user', QUESTION)];
    const body = requestWith('anthropic_messages', items);
    const answer = await story.send('anthropic_messages', body, STATED);
    expect(answer.status).toBe(200);
    expect(answer.headers).toMatchObject({
      'x-svc-continuity-state': 'bypassed_provider_refused',
      'x-svc-recalled-tokens': '0',
      'x-svc-forwarded-input-tokens': answer.headers['x-svc-original-input-tokens'],
    });
    expect(provider.seen).toHaveLength(2);
    expect(lastBody(provider)?.toString()).toBe(JSON.stringify(body));
    // From now on this conversation is left alone, and another one is not.
    const longer = [...items, said('assistant', 'I do not know.'), said('user', SECOND_QUESTION)];
    const next = await story.send(
      'anthropic_messages',
      requestWith('anthropic_messages', longer),
      STATED,
    );
    expect(next.headers['x-svc-memory-state']).toBe('skipped_unsupported');
    expect(provider.seen).toHaveLength(3);
    await story.send('anthropic_messages', body, { 'session-id': 'session-two' });
    expect(provider.seen).toHaveLength(5);
  },
);

test.each([400, 413, 429])(
  'R17: where the client’s own bytes are refused too (%i), the next refusal is tried again all the same',
  async (status) => {
    const { provider, story } = await startTaught();
    const refusals = ['{"error":"with the block"}', '{"error":"without it"}'];
    provider.reply = ({ body }) => {
      const refusal = refusals[body.includes('<svc-memory') ? 0 : 1] ?? '';
      return { status, headers: {}, body: refusal };
    };
    const body = requestWith('openai_chat_completions', [said('user', QUESTION)]);
    for (const _ of [1, 2]) {
      const before = provider.seen.length;
      // oxlint-disable-next-line no-await-in-loop -- A client waits for each answer.
      const answer = await story.send('openai_chat_completions', body, STATED);
      expect([answer.status, provider.seen.length - before]).toEqual([status, 2]);
      // Clients repair themselves by the words of the first refusal.
      expect(answer.body.toString()).toBe(refusals[0]);
    }
  },
);

test('R17: where the provider fails on the client’s own bytes, nobody knows what it refused', async () => {
  const { provider, story } = await startTaught();
  const body = requestWith('anthropic_messages', [said('user', QUESTION)]);
  provider.reply = (request) => {
    const status = request.body.includes('<svc-memory') ? 400 : 503;
    return { status, headers: {}, body: '{"error":"no"}' };
  };
  expect((await story.send('anthropic_messages', body, STATED)).status).toBe(503);
  provider.reply = (request) => answerTo(request);
  const next = await story.send('anthropic_messages', body, STATED);
  expect(next.headers['x-svc-memory-state']).toBe('recalled');
});

test('R17: where the client’s own bytes are refused too, memory was not why and stays on', async () => {
  const { provider, story } = await startTaught();
  const tooLong = '{"error":{"message":"prompt is too long"}}';
  provider.reply = () => ({ status: 400, headers: {}, body: tooLong });
  const body = requestWith('anthropic_messages', [said('user', QUESTION)]);
  const answer = await story.send('anthropic_messages', body, STATED);
  expect([answer.status, answer.body.toString()]).toEqual([400, tooLong]);
  expect(provider.seen).toHaveLength(2);
  provider.reply = (request) => answerTo(request);
  const next = await story.send('anthropic_messages', body, STATED);
  expect(next.headers['x-svc-memory-state']).toBe('recalled');
});

test.each([
  { status: 429, headers: { 'retry-after': '7' } },
  { status: 429, headers: { 'anthropic-ratelimit-tokens-remaining': '0' } },
  { status: 429, headers: { 'x-ratelimit-remaining-requests': '0' } },
  { status: 401, headers: {} },
  { status: 500, headers: {} },
  { status: 529, headers: { 'retry-after': '3' } },
])(
  'R17: a changed request that fails otherwise ($status) is one attempt, relayed as it came',
  async ({ status, headers }) => {
    const { provider, story } = await startTaught();
    const wrong = '{"error": {"message":"later"} }\n';
    provider.reply = () => ({ status, headers, body: wrong });
    const body = requestWith('openai_responses', [said('user', QUESTION)]);
    const answer = await story.send('openai_responses', body);
    expect([answer.status, answer.body.toString()]).toEqual([status, wrong]);
    expect(answer.headers).toMatchObject({ ...headers, 'x-svc-memory-state': 'recalled' });
    expect(provider.seen).toHaveLength(1);
  },
);

test('R17: an unchanged request that is refused is one attempt', async () => {
  const { provider, story } = await startTaught();
  provider.reply = () => ({ status: 400, headers: {}, body: '{"error":"bad"}' });
  const body = requestWith('openai_responses', [said('user', 'Paint the mountains in winter.')]);
  const answer = await story.send('openai_responses', body);
  expect(answer.status).toBe(400);
  expect(provider.seen).toHaveLength(1);
});

test('previous_response_id passes unchanged, and so does the conversation behind it', async () => {
  const { provider, story } = await startTaught();
  const body = requestWith('openai_responses', [said('user', QUESTION)], {
    previous_response_id: 'resp_1',
  });
  await story.send('openai_responses', body);
  expect(lastBody(provider)?.toString()).toBe(JSON.stringify(body));
});

test('R26: what is forgotten while the memory is asked for it is not placed, then or later', async () => {
  const folder = tempFolder();
  const store = openEmbeddedStore({ folder, report: () => undefined });
  onTestFinished(() => store.close());
  let isForgetting = true;
  const { memory } = store;
  const slow = wrapped(memory, {
    recall: async (question, signal) => {
      const found = await memory.recall(question, signal);
      if (isForgetting) await memory.forget({ words: 'walrus' }, AbortSignal.timeout(30_000));
      return found;
    },
  });
  const provider = await startRecordingProvider();
  const story = await startStory({ provider, memory: slow, ledger: store.ledger, folder });
  await teach(story, FACT);
  const items = [said('user', QUESTION)];
  const ask = () => story.send('anthropic_messages', requestWith('anthropic_messages', items));
  expect((await ask()).headers['x-svc-memory-state']).toBe('degraded_unavailable');
  expect(blocksIn(lastBody(provider))).toEqual([]);
  isForgetting = false;
  expect((await ask()).headers['x-svc-memory-state']).toBe('empty');
  expect(blocksIn(lastBody(provider))).toEqual([]);
});
