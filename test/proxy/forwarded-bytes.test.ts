import { expect, test } from 'vitest';
import type { Dialect } from '../../src/core/conversation/view.ts';
import {
  answerTo,
  DIALECTS,
  PATHS,
  promptOf,
  requestWith,
  said,
  toolRound,
} from '../support/dialect-wire.ts';
import { FakeMemory } from '../support/fake-memory.ts';
import { TOKEN } from '../support/local-server.ts';
import { recordOf } from '../support/records.ts';
import { ask } from '../support/sockets.ts';
import { startRecordingProvider, startStory, type StoryOptions } from '../support/story.ts';
import { CODEX_HEADER, frame, rawBlock } from '../support/zstd-frames.ts';

const FACT = 'The staging database of the walrus shop listens on port 6431.';
const QUESTION = 'On which port does the staging database of the walrus shop listen?';

async function startKnowing(options: Omit<StoryOptions, 'provider'> = {}) {
  const provider = await startRecordingProvider();
  const memory = new FakeMemory();
  await memory.capture([recordOf(FACT, { space: 'default' })], AbortSignal.timeout(30_000));
  const story = await startStory({ provider, memory, ...options });
  return { provider, memory, story };
}

/** JSON as no serialiser would write it, and one prompt that recalls nothing. */
function oddBody(dialect: Dialect, prompt: string): string {
  const list = dialect === 'openai_responses' ? 'input' : 'messages';
  return `{\r\n\t"temperature" : 1.0 ,"seed":9007199254740993, "zero":-0, "big":1e400,
  "metadata":{"a":1,"a":2,"\\u0061":"\\ud83d\\ude00 \\/"} , "unknown_field" : [ null,true , {} ],
  "model":"m","max_tokens":500, "tools":[{"type":"function","name":"t","function":{"name":"t"}}],
  "${list}" : [ {"content" : "${prompt}","role":"user", "x":1.10 } ] , "stream":false
  } `;
}

// spec: 1.1-no-translation, 1.5-unknown-passes, 1.7-client-picks-model, 4-no-own-fields
test.each(DIALECTS)(
  'R12: %s: without a recall the very bytes of the client leave',
  async (dialect) => {
    const { provider, story } = await startKnowing();
    const body = oddBody(dialect, 'Paint the mountains in winter, please.');
    const answer = await story.send(dialect, body);
    expect(answer.headers['x-svc-memory-state']).toBe('empty');
    expect(provider.seen[0]?.path).toBe(PATHS[dialect]);
    expect(provider.seen[0]?.body.toString()).toBe(body);
  },
);

test.each(DIALECTS)(
  'R12: %s: with memory off the very bytes of the client leave',
  async (dialect) => {
    const { provider, story } = await startKnowing();
    const body = oddBody(dialect, QUESTION);
    await story.send(dialect, body, { 'x-svc-memory-mode': 'off' });
    expect(provider.seen[0]?.body.toString()).toBe(body);
  },
);

// spec: 1.2-recall-added, 2.4-full-request
test.each(DIALECTS)('R12: %s: a recall inserts, and changes no other byte', async (dialect) => {
  const { provider, story } = await startKnowing();
  const body = oddBody(dialect, QUESTION);
  await story.send(dialect, body);
  const forwarded = provider.seen[0]?.body.toString() ?? '';
  const at = body.indexOf(QUESTION) + QUESTION.length;
  const after = body.slice(at);
  expect(forwarded.slice(0, at)).toBe(body.slice(0, at));
  expect(forwarded.slice(-after.length)).toBe(after);
  expect(forwarded.slice(at, -after.length)).toMatch(
    /^\\n\\n<svc-memory [^]*6431[^]*<\/svc-memory>$/,
  );
});

// spec: 4.4-zstd
test('R12: a zstd body leaves as what it decodes to', async () => {
  const { provider, story } = await startKnowing();
  const body = oddBody('openai_responses', 'Paint the mountains in winter, please.');
  const encoded = frame({ header: CODEX_HEADER, blocks: [rawBlock(Buffer.from(body), true)] });
  await story.send('openai_responses', encoded, { 'content-encoding': 'zstd' });
  expect(provider.seen[0]?.headers.map((name) => name.toLowerCase())).not.toContain(
    'content-encoding',
  );
  expect(provider.seen[0]?.body.toString()).toBe(body);
});

test.each([
  ['not JSON', '{"model": "m", "messages": [}'],
  ['not UTF-8', Buffer.from([0x7b, 0xff, 0xfe, 0x7d])],
  ['no list', '{"model":"m"}'],
  ['the list twice', '{"messages":[],"messages":[{"role":"user","content":"x"}]}'],
  ['600 levels', `{"messages":[${'['.repeat(600)}${']'.repeat(600)}]}`],
  ['100,000 levels', `{"messages":[],"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`],
  ['a number', '7'],
  ['__proto__', '{"__proto__":{"messages":[{"role":"user","content":"hi"}]}}'],
])('R12, R13: a body that is %s goes on as it is: the provider judges it', async (_name, body) => {
  const { provider, story } = await startKnowing();
  const answer = await story.send('anthropic_messages', body);
  expect(answer.status).toBe(200);
  expect(answer.headers).toMatchObject({
    'x-svc-memory-state': 'skipped_unsupported',
    'x-svc-continuity-state': 'bypassed_unparseable',
    'x-svc-compression-mode': 'passthrough',
  });
  expect(provider.seen[0]?.body.equals(Buffer.from(body))).toBe(true);
});

test.each(DIALECTS)('R12: %s: an odd but valid body of any shape never fails', async (dialect) => {
  const { provider, story } = await startKnowing();
  const odd: unknown[] = [
    null,
    7,
    'text',
    [],
    {},
    { role: 'user' },
    { role: 7, content: {} },
    { role: 'user', content: [null, 7, {}, { type: 'text' }, { type: 'text', text: 7 }] },
    { role: 'tool', tool_call_id: 7, content: null },
    { role: 'assistant', tool_calls: {}, content: [{ type: 'tool_use' }] },
    { type: 'function_call_output', output: { a: [] } },
    { type: 'reasoning', summary: 7, encrypted_content: {} },
    { __proto__: null, constructor: { prototype: 1 }, content: '' },
  ];
  for (const item of odd) {
    const body = requestWith(dialect, [item, said('user', QUESTION)]);
    const answer = await story.send(dialect, body);
    expect([JSON.stringify(item), answer.status]).toEqual([JSON.stringify(item), 200]);
  }
  for (const extra of [
    { system: 7 },
    { system: [null] },
    { instructions: {} },
    { tools: 7 },
    { metadata: 7 },
    { stream: 'yes' },
  ]) {
    const answer = await story.send(dialect, promptOf(dialect, 'Hello over there.', extra));
    expect(answer.status).toBe(200);
  }
  expect(provider.seen).toHaveLength(odd.length + 6);
});

interface Form {
  readonly dialect: Dialect;
  readonly form: string;
  readonly items: readonly unknown[];
  /** The path of members and indexes to the text that gets the block. */
  readonly expected: (text: string) => unknown;
}

const TEXT_PART = { type: 'text', text: QUESTION };
const IMAGE = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AA==' } };

const FORMS: readonly Form[] = [
  ...DIALECTS.map((dialect) => ({
    dialect,
    form: 'text',
    items: [said('user', QUESTION)],
    expected: (block: string) => said('user', `${QUESTION}\n\n${block}`),
  })),
  ...(['anthropic_messages', 'openai_chat_completions'] as const).map((dialect) => ({
    dialect,
    form: 'a list of parts',
    items: [said('user', [TEXT_PART])],
    expected: (block: string) => said('user', [TEXT_PART, { type: 'text', text: block }]),
  })),
  {
    dialect: 'openai_responses',
    form: 'a list of parts',
    items: [said('user', [{ type: 'input_text', text: QUESTION }])],
    expected: (block) =>
      said('user', [
        { type: 'input_text', text: QUESTION },
        { type: 'input_text', text: block },
      ]),
  },
  {
    dialect: 'anthropic_messages',
    form: 'a marked part and a picture',
    items: [said('user', [{ ...TEXT_PART, cache_control: { type: 'ephemeral' } }, IMAGE])],
    expected: (block) =>
      said('user', [
        { ...TEXT_PART, cache_control: { type: 'ephemeral' } },
        IMAGE,
        { type: 'text', text: block },
      ]),
  },
];

test.each(FORMS)(
  'R24: $dialect: a prompt that is $form gets the block at its end, and nothing else changes',
  async ({ dialect, items, expected }) => {
    const { provider, story } = await startKnowing();
    const history = [
      said('user', 'Good morning, how are things at the harbour today?'),
      said('assistant', 'All is quiet.'),
    ];
    const body = requestWith(dialect, [...history, ...items]);
    await story.send(dialect, body);
    const forwarded = JSON.parse(provider.seen[0]?.body.toString() ?? '') as Record<
      string,
      unknown
    >;
    const list = dialect === 'openai_responses' ? 'input' : 'messages';
    const newest = (forwarded[list] as unknown[]).at(-1);
    const block = /<svc-memory [^]*?<\/svc-memory>/.exec(textIn(newest))?.[0] ?? 'no block';
    expect(block).toContain(FACT);
    const wanted = structuredClone(body) as Record<string, unknown[]>;
    wanted[list]?.splice(-1, 1, expected(block));
    expect(forwarded).toEqual(wanted);
    // system and instructions, word for word.
    expect(provider.seen[0]?.body.toString().split('<svc-memory')).toHaveLength(2);
  },
);

test('a Responses input that is one string gets the block inside that string', async () => {
  const { provider, story } = await startKnowing();
  await story.send('openai_responses', { model: 'm', input: QUESTION });
  const { input } = JSON.parse(provider.seen[0]?.body.toString() ?? '') as { input: string };
  expect(input).toMatch(/^On which port [^]*\n\n<svc-memory [^]*6431[^]*<\/svc-memory>$/);
});

test.each(DIALECTS)('%s: inside a tool loop nothing is recalled anew', async (dialect) => {
  const { memory, provider, story } = await startKnowing();
  const items = [said('user', QUESTION), ...toolRound(dialect, 'call_1', 'ls: nothing here')];
  const answer = await story.send(dialect, requestWith(dialect, items));
  expect(answer.headers['x-svc-memory-state']).toBe('empty');
  expect(memory.questions).toEqual([]);
  expect(provider.seen[0]?.body.includes('<svc-memory')).toBe(false);
});

// spec: 1.5-native-bytes, 4.4-json-and-sse
test.each(
  DIALECTS.flatMap((dialect) => [
    { dialect, stream: true },
    { dialect, stream: false },
  ]),
)(
  'R20: $dialect, streamed $stream: the answer of a changed request reaches the client byte for byte',
  async ({ dialect, stream }) => {
    const { provider, story } = await startKnowing();
    let sent = '';
    provider.reply = (request) => {
      const reply = answerTo(request);
      // What no parser would write again: odd spacing, an unknown event, a number that is not a float.
      const odd = stream ? ': ping\n\nevent:  new \ndata: {"n":1.0}\n\n' : ' \n';
      sent = odd + reply.body;
      return { ...reply, body: sent };
    };
    const answer = await story.send(dialect, promptOf(dialect, QUESTION, { stream }));
    expect(answer.headers['x-svc-memory-state']).toBe('recalled');
    expect(answer.body.toString()).toBe(sent);
    expect(sent).not.toBe('');
  },
);

// spec: 4.4-no-translation, 4.4-messages-style
test.each(DIALECTS)(
  '%s without an upstream is 404 with the command that adds one',
  async (dialect) => {
    const others = DIALECTS.filter((one) => one !== dialect);
    const { provider, story } = await startKnowing({ dialects: others });
    const answer = await story.send(dialect, promptOf(dialect, QUESTION));
    expect(answer.status).toBe(404);
    expect(answer.body.toString()).toContain('UPSTREAM_NOT_CONFIGURED');
    expect(answer.body.toString()).toContain('svc setup');
    expect(answer.headers).toMatchObject({
      'x-svc-error-source': 'proxy',
      'x-should-retry': 'false',
      'x-svc-memory-mode': 'read-write',
    });
    expect(provider.seen).toEqual([]);
  },
);

// spec: 4.4-models
test('a model list asked for in no dialect goes to the only provider there is', async () => {
  const { provider, story } = await startKnowing({ dialects: ['anthropic_messages'] });
  provider.reply = () => ({ status: 200, headers: {}, body: '{"data":[]}' });
  const answer = await ask(story.port, {
    method: 'GET',
    path: '/v1/models',
    headers: ['authorization', `Bearer ${TOKEN}`],
  });
  expect(answer.status).toBe(200);
  expect(provider.seen.map(({ path }) => path)).toEqual(['/v1/models']);
});

// spec: 4.4-models
test('the model list, token counts and compaction are relayed untouched', async () => {
  const { memory, provider, story } = await startKnowing();
  const body = Buffer.from(oddBody('anthropic_messages', QUESTION));
  const headers = [
    'x-api-key',
    TOKEN,
    'content-type',
    'application/json',
    'anthropic-version',
    '2023-06-01',
  ];
  provider.reply = ({ path }) => ({
    status: 200,
    headers: { 'x-from': path },
    body: '{"data":[]}',
  });
  const count = await ask(story.port, {
    path: '/v1/messages/count_tokens?beta=true',
    headers,
    body,
  });
  expect(count.headers['x-from']).toBe('/v1/messages/count_tokens?beta=true');
  expect(provider.seen[0]?.body).toEqual(body);
  const models = await ask(story.port, {
    method: 'GET',
    path: '/v1/models?limit=1',
    headers: headers.slice(0, 2),
  });
  expect(models.body.toString()).toBe('{"data":[]}');
  expect(provider.seen[1]?.path).toBe('/v1/models?limit=1');
  expect(memory.questions).toEqual([]);
});

function textIn(item: unknown): string {
  const { content } = item as { content: unknown };
  if (typeof content === 'string') return content;
  return (content as { text?: string }[]).map(({ text = '' }) => text).join('\n');
}
