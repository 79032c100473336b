import { readdirSync, readFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { join } from 'node:path';
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
  type WireItem,
} from '../support/dialect-wire.ts';
import { TOKEN } from '../support/local-server.ts';
import { until } from '../support/sockets.ts';
import {
  type RecordingProvider,
  startRecordingProvider,
  startStory,
  type Story,
} from '../support/story.ts';
import { tempFolder } from '../support/temp-folder.ts';

const PROMPT = 'The staging database of the walrus shop listens on port 6431.';
const ANSWER = 'Its production twin uses port 7431 behind pgbouncer, as Oskar wrote.';

async function startBoth() {
  const provider = await startRecordingProvider();
  provider.reply = (request) => answerTo(request, { text: ANSWER });
  const story = await startStory({ provider });
  return { provider, story };
}

/** Everything that the memory holds, oldest first, as `role: text`. */
async function kept(story: Story, space?: string): Promise<string[]> {
  await story.settled();
  const filter = { limit: 1000, ...(space !== undefined && { space }) };
  const records = await story.memory.list(filter, AbortSignal.timeout(30_000));
  return records.map(({ role, text }) => `${role}: ${text}`).toReversed();
}

/** Waits: history is kept one exchange after the other, when nobody waits for svc. */
async function expectKept(story: Story, count: number): Promise<void> {
  await expect.poll(async () => (await kept(story)).length).toBe(count);
}

/** Every byte that the data folder holds. */
function bytesOnDisk(folder: string): Buffer {
  return Buffer.concat(readdirSync(folder).map((name) => readFileSync(join(folder, name))));
}

/** Sends and hangs up as soon as `isEnough`. */
async function sendAndHangUp(
  story: Story,
  dialect: Dialect,
  options: { body: object; isEnough: () => boolean },
): Promise<void> {
  const outgoing = httpRequest({
    port: story.port,
    host: '127.0.0.1',
    method: 'POST',
    path: PATHS[dialect],
    headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
  });
  outgoing.on('error', () => {});
  outgoing.on('response', (incoming) => incoming.resume().on('error', () => {}));
  outgoing.end(JSON.stringify(options.body));
  await until(options.isEnough);
  outgoing.destroy();
  await until(() => story.rows.length > 0);
}

// spec: 1.2-text-saved, 2.4-captured-text
test.each(
  DIALECTS.flatMap((dialect) => [
    { dialect, stream: true },
    { dialect, stream: false },
  ]),
)(
  '$dialect, streamed $stream: what was typed and what was answered is kept',
  async ({ dialect, stream }) => {
    const { story } = await startBoth();
    await story.send(dialect, promptOf(dialect, PROMPT, { stream }));
    expect(await kept(story)).toEqual([`user: ${PROMPT}`, `assistant: ${ANSWER}`]);
  },
);

// spec: 8-saved-once
test.each(DIALECTS)(
  '%s: what is seen again in the history is kept once, also after a restart',
  async (dialect) => {
    const folder = tempFolder();
    const provider = await startRecordingProvider();
    provider.reply = (request) => answerTo(request, { text: `${ANSWER}\n` });
    const first = await startStory({ provider, folder });
    const items: WireItem[] = [];
    const told: string[] = [];
    const tell = async (story: Story, text: string): Promise<void> => {
      items.push(said('user', text));
      await story.send(dialect, requestWith(dialect, items));
      items.push(said('assistant', `${ANSWER}\n`));
      told.push(`user: ${text}`);
    };
    await tell(first, PROMPT);
    await tell(first, 'Marta owns the billing dashboard.');
    await first.stop();
    const second = await startStory({ provider, folder });
    await tell(second, 'Oskar triages the support tickets on Mondays.');
    const all = await kept(second);
    expect(all.toSorted()).toEqual([`assistant: ${ANSWER}`, ...told].toSorted());
  },
);

test('a session that began before svc did is kept from its history, a few exchanges a request', async () => {
  const { story } = await startBoth();
  const items = Array.from({ length: 20 }, (_, at) => [
    said('user', `Fact number ${at}: the bay ${at} belongs to team ${at}.`),
    said('assistant', `Bay ${at} is noted for the team.`),
  ]).flat();
  const body = requestWith('anthropic_messages', [...items, said('user', PROMPT)]);
  await story.send('anthropic_messages', body);
  // proxy.elisionCaptureLimit is 8 exchanges; the new one comes on top.
  await expectKept(story, 18);
  await story.send('anthropic_messages', body);
  await expectKept(story, 34);
  await story.send('anthropic_messages', body);
  await expectKept(story, 42);
});

// spec: 1.9-visible-text-only
test('R26: tool calls, their results, reasoning and system prompts are never kept', async () => {
  const { provider, story } = await startBoth();
  provider.reply = () => ({
    status: 200,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      type: 'message',
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'CANARY-thinking', signature: 'c2ln' },
        { type: 'redacted_thinking', data: 'CANARY-redacted' },
        { type: 'text', text: ANSWER },
        { type: 'new_kind', text: 'CANARY-new' },
      ],
      stop_reason: 'end_turn',
    }),
  });
  const items = [
    said('user', PROMPT),
    said('assistant', [
      { type: 'thinking', thinking: 'CANARY-thought', signature: 'c2ln' },
      { type: 'text', text: 'The shop runs two databases behind one proxy.' },
      { type: 'tool_use', id: 't1', name: 'Bash', input: { command: 'CANARY-argument' } },
    ]),
    said('user', [{ type: 'tool_result', tool_use_id: 't1', content: 'CANARY-output' }]),
  ];
  const body = requestWith('anthropic_messages', items, { system: 'CANARY-system' });
  await story.send('anthropic_messages', body);
  expect(await kept(story)).toEqual([
    `user: ${PROMPT}`,
    `assistant: The shop runs two databases behind one proxy.\n\n${ANSWER}`,
  ]);
  expect(bytesOnDisk(story.folder).includes('CANARY')).toBe(false);
});

interface BadEnd {
  readonly name: string;
  readonly reply: RecordingProvider['reply'];
}

const streamed: RecordingProvider['reply'] = (request) =>
  answerTo(request, { text: ANSWER, isStreamed: true });

const BAD_ENDS: readonly BadEnd[] = [
  { name: 'fails', reply: () => ({ status: 500, headers: {}, body: '{"error":{}}' }) },
  {
    name: 'is cut off',
    reply: (request) => ({ ...streamed(request), cutAfter: streamed(request).body.length - 60 }),
  },
  {
    name: 'ends without its last event',
    reply: (request) => {
      const reply = streamed(request);
      // Chat Completions end twice, with a finish reason and with [DONE]: one of them is enough.
      const ends = request.path === PATHS.openai_chat_completions ? 2 : 1;
      const events = reply.body.split('\n\n');
      return { ...reply, body: `${events.slice(0, -1 - ends).join('\n\n')}\n\n` };
    },
  },
  {
    name: 'is not what it says',
    reply: () => ({
      status: 200,
      headers: { 'content-type': 'application/json' },
      body: `{"content":[{"type":"text","text":"${ANSWER}"`,
    }),
  },
];

test.each(BAD_ENDS.flatMap((end) => DIALECTS.map((dialect) => ({ ...end, dialect }))))(
  'R26: $dialect: of an answer that $name nothing is kept',
  async ({ dialect, reply }) => {
    const { provider, story } = await startBoth();
    provider.reply = reply;
    await story.send(dialect, promptOf(dialect, PROMPT, { stream: true }));
    const texts = await kept(story);
    expect(texts.filter((text) => text.startsWith('assistant'))).toEqual([]);
  },
);

test.each(DIALECTS)(
  'R26: %s: an answer that ended at a limit is not kept, and not later either',
  async (dialect) => {
    const { provider, story } = await startBoth();
    provider.reply = (request) => answerTo(request, { text: ANSWER, isCutShort: true });
    const items = [said('user', PROMPT)];
    await story.send(dialect, requestWith(dialect, items));
    expect(await kept(story)).toEqual([`user: ${PROMPT}`]);
    provider.reply = (request) =>
      answerTo(request, { text: 'Noted: Grafana alerts go to Marta, too.' });
    const next = [
      ...items,
      said('assistant', ANSWER),
      said('user', 'Marta owns the billing dashboard.'),
    ];
    await story.send(dialect, requestWith(dialect, next));
    expect((await kept(story)).toSorted()).toEqual(
      [
        'assistant: Noted: Grafana alerts go to Marta, too.',
        `user: ${PROMPT}`,
        'user: Marta owns the billing dashboard.',
      ].toSorted(),
    );
  },
);

test.each(DIALECTS)(
  '%s: a person who stops an answer keeps what they asked, not half an answer',
  async (dialect) => {
    const { provider, story } = await startBoth();
    provider.reply = (request) => {
      const reply = streamed(request);
      return { ...reply, body: reply.body.slice(0, -80), hangs: true };
    };
    const body = promptOf(dialect, PROMPT, { stream: true });
    await sendAndHangUp(story, dialect, { body, isEnough: () => provider.seen.length > 0 });
    expect(await kept(story)).toEqual([`user: ${PROMPT}`]);
  },
);

test('a person who stops before the first byte keeps what they asked', async () => {
  const { provider, story } = await startBoth();
  provider.reply = (request) => ({ ...answerTo(request), delayMs: 60_000 });
  const body = promptOf('openai_responses', PROMPT, { stream: true });
  await sendAndHangUp(story, 'openai_responses', {
    body,
    isEnough: () => provider.seen.length > 0,
  });
  expect(await kept(story)).toEqual([`user: ${PROMPT}`]);
  expect(story.rows[0]).toMatchObject({ status: 0, end: 'client-gone' });
});

test.each(DIALECTS)(
  '%s: an exchange with tools is kept as one, when its last answer is there',
  async (dialect) => {
    const { provider, story } = await startBoth();
    provider.reply = (request) =>
      answerTo(request, { text: 'One moment, please.', callsTool: true });
    const items = [said('user', PROMPT)];
    await story.send(dialect, requestWith(dialect, items));
    expect(await kept(story)).toEqual([`user: ${PROMPT}`]);
    provider.reply = (request) => answerTo(request, { text: ANSWER });
    await story.send(
      dialect,
      requestWith(dialect, [...items, ...toolRound(dialect, 'call_1', 'CANARY')]),
    );
    expect(await kept(story)).toEqual([`user: ${PROMPT}`, `assistant: ${ANSWER}`]);
  },
);

test('fillers are no memories', async () => {
  const { provider, story } = await startBoth();
  provider.reply = (request) => answerTo(request, { text: 'OK.' });
  for (const text of ['ok', 'Yes, please!', 'go on', 'continue', 'Danke.', '好的']) {
    await story.send('anthropic_messages', promptOf('anthropic_messages', text));
  }
  expect(await kept(story)).toEqual([]);
});

test('what stands between <private> and </private> goes to the provider and is never kept', async () => {
  const { provider, story } = await startBoth();
  const text = `${PROMPT} <private>my pin is CANARY-pin</private> Remember it.`;
  await story.send('anthropic_messages', promptOf('anthropic_messages', text));
  expect(provider.seen[0]?.body.toString()).toContain('CANARY-pin');
  expect(await kept(story)).toContain(`user: ${PROMPT}   Remember it.`);
  expect(bytesOnDisk(story.folder).includes('CANARY-pin')).toBe(false);
});

const SECRET = `sk-ant-api03-${'Zq9'.repeat(30)}-AA`;

test('R26: a secret is masked in every byte on disk, and the provider still gets it', async () => {
  const { provider, story } = await startBoth();
  provider.reply = (request) => answerTo(request, { text: `Your key ${SECRET} is safe with me.` });
  await story.send(
    'openai_responses',
    promptOf('openai_responses', `Use the key ${SECRET} for the shop.`),
  );
  expect(provider.seen[0]?.body.toString()).toContain(SECRET);
  const before = bytesOnDisk(story.folder);
  const texts = await kept(story);
  expect(texts.join('\n')).toContain('[masked: ');
  await story.stop();
  for (const bytes of [before, bytesOnDisk(story.folder)]) {
    expect(bytes.includes(SECRET.slice(20, 50))).toBe(false);
  }
});

test('R24: a recalled block that comes back in an answer is not kept again', async () => {
  const { provider, story } = await startBoth();
  await story.send('anthropic_messages', promptOf('anthropic_messages', PROMPT));
  await story.settled();
  provider.reply = (request) => {
    const { messages } = JSON.parse(request.body.toString()) as { messages: { content: string }[] };
    return answerTo(request, { text: `You told me: ${messages[0]?.content ?? ''}` });
  };
  const question = 'On which port does the database of the walrus shop listen?';
  await story.send('anthropic_messages', promptOf('anthropic_messages', question));
  expect((await kept(story)).slice(2)).toEqual([
    `user: ${question}`,
    `assistant: You told me: ${question}`,
  ]);
});

// spec: 8-capture-deadline
test('R27: what a kill would leave is on disk before the client has its last byte', async () => {
  const { story } = await startBoth();
  const answer = await story.send('anthropic_messages', promptOf('anthropic_messages', PROMPT));
  expect(answer.status).toBe(200);
  // No flush in between: journal or database, one of them holds it now.
  const bytes = bytesOnDisk(story.folder);
  expect([bytes.includes(PROMPT), bytes.includes(ANSWER)]).toEqual([true, true]);
});

const CLAUDE_CODE = { 'User-Agent': 'claude-cli/2.1.329 (external, cli)' };
const TOOLS = [{ name: 'Bash', input_schema: { type: 'object' } }];

function claudeCode(folder: string, text: string): object {
  const system = [
    { type: 'text', text: "You are Claude Code, Anthropic's official CLI for Claude." },
    { type: 'text', text: `# Environment\n - Primary working directory: ${folder}\n` },
  ];
  return promptOf('anthropic_messages', text, { system, tools: TOOLS });
}

test('R25: what was said in one project is not recalled in another, and is in the same one', async () => {
  const { provider, story } = await startBoth();
  const question = 'On which port does the staging database of the walrus shop listen?';
  const ask = async (body: object, headers: Readonly<Record<string, string>>) => {
    const answer = await story.send('anthropic_messages', body, headers);
    return answer.headers['x-svc-memory-state'];
  };
  await ask(claudeCode('/home/ada/walrus', PROMPT), CLAUDE_CODE);
  await story.settled();
  expect(await ask(claudeCode('/home/ada/other', question), CLAUDE_CODE)).toBe('empty');
  expect(await ask(claudeCode('/home/ada/other/walrus', question), CLAUDE_CODE)).toBe('empty');
  expect(await ask(promptOf('anthropic_messages', question), {})).toBe('empty');
  expect(await ask(claudeCode('/home/ada/walrus', question), CLAUDE_CODE)).toBe('recalled');
  expect(provider.seen.at(-1)?.body.toString()).toContain('port 6431');
});

test('R25: x-svc-memory-space names the space, and global is recalled everywhere', async () => {
  const { story } = await startBoth();
  const tell = (text: string, space: string) =>
    story.send('openai_responses', promptOf('openai_responses', text), {
      'x-svc-memory-space': space,
    });
  await tell(PROMPT, 'global');
  await tell('Marta owns the billing dashboard and its Grafana alerts.', 'team/one');
  await story.settled();
  const question = 'On which port does the staging database of the walrus shop listen?';
  const everywhere = await tell(question, 'team/two');
  expect(everywhere.headers['x-svc-memory-state']).toBe('recalled');
  const elsewhere = await tell(
    'Who owns the billing dashboard and its Grafana alerts?',
    'team/two',
  );
  expect(elsewhere.headers['x-svc-memory-state']).toBe('empty');
  expect(await kept(story, 'team/one')).toHaveLength(2);
});

test('an exchange keeps its conclusion when its order is one word', async () => {
  const { story } = await startBoth();
  await story.send('anthropic_messages', promptOf('anthropic_messages', '14'));
  await expectKept(story, 1);
  expect(await kept(story)).toEqual([`assistant: ${ANSWER}`]);
});
