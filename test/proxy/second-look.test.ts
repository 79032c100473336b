import { expect, test } from 'vitest';
import type { Dialect } from '../../src/core/conversation/view.ts';
import { textDigest } from '../../src/core/memory/reference.ts';
import type { RecallQuestion } from '../../src/ports/memory.ts';
import { StrictPair } from '../support/conversation-fuzz/strict-pair.ts';
import { recordOf } from '../support/records.ts';
import { DIALECTS, requestWith, said, toolRound, type WireItem } from '../support/dialect-wire.ts';
import {
  LOOK_AT,
  LOOK_FACT,
  LOOK_FILE,
  lookBody,
  lookRounds,
  looksIn,
  teachLook,
} from '../support/second-look.ts';
import {
  type RecordingProvider,
  startRecordingProvider,
  startStory,
  type Story,
  type StoryOptions,
} from '../support/story.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { wrapped } from '../support/wrapped-memory.ts';

const STATED = { 'session-id': 'one' };

/** The brief and the recall for a prompt are quiet, so that a block is a second look. */
const SETTINGS = { sessionBrief: false, recallQuietPercent: 100 };

async function startTaught(options: Partial<StoryOptions> = {}) {
  const provider = options.provider ?? (await startRecordingProvider());
  const settings = { ...SETTINGS, ...options.settings };
  const story = await startStory({ ...options, provider, settings });
  await teachLook(story);
  return { provider, story };
}

async function sendTo(
  { provider, story }: { readonly provider: RecordingProvider; readonly story: Story },
  dialect: Dialect,
  items: readonly WireItem[],
  headers: Readonly<Record<string, string>> = STATED,
): Promise<string> {
  const { status } = await story.send(dialect, lookBody(dialect, items), headers);
  expect(status).toBe(200);
  return provider.seen.at(-1)?.body.toString() ?? '';
}

test.each(DIALECTS)(
  '%s: after some calls one block goes to the end of the newest result, and stays there',
  async (dialect) => {
    const given = await startTaught();
    for (let round = 0; round < LOOK_AT; round += 1) {
      const body = await sendTo(given, dialect, lookRounds(dialect, round));
      expect(looksIn(body)).toEqual([]);
    }
    const rounds = lookRounds(dialect, LOOK_AT);
    const placed = await sendTo(given, dialect, rounds);
    const [block = ''] = looksIn(placed);
    expect(block).toContain(LOOK_FACT.replaceAll('"', '\\"'));
    // A string stays a string, and nothing else of the request changes.
    const written = JSON.stringify(`text of file ${LOOK_AT}`).slice(0, -1);
    expect(placed).toContain(`${written}\\n\\n${block}"`);
    expect(placed.replace(`\\n\\n${block}`, '')).toBe(JSON.stringify(lookBody(dialect, rounds)));
    const longer = await sendTo(given, dialect, lookRounds(dialect, 9));
    expect(looksIn(longer)).toEqual([block]);
    expect(longer).toContain(`${written}\\n\\n${block}"`);
    const answered = [...lookRounds(dialect, 9), said('assistant', 'It is faster.')];
    const later = [...answered, said('user', 'Thank you so much for that, it is much better.')];
    expect(looksIn(await sendTo(given, dialect, later))).toEqual([block]);
  },
);

test.each(DIALECTS)('%s: a retry, a restart and a fork send the same bytes', async (dialect) => {
  const folder = tempFolder();
  const given = await startTaught({ folder });
  const rounds = lookRounds(dialect, LOOK_AT);
  const placed = await sendTo(given, dialect, rounds);
  expect(looksIn(placed)).toHaveLength(1);
  expect(await sendTo(given, dialect, rounds)).toBe(placed);
  expect(await sendTo(given, dialect, rounds, { 'session-id': 'a fork' })).toBe(placed);
  const longer = await sendTo(given, dialect, lookRounds(dialect, 6));
  await given.story.stop();
  const again = await startTaught({ folder, provider: given.provider });
  expect(await sendTo(again, dialect, rounds)).toBe(placed);
  expect(await sendTo(again, dialect, lookRounds(dialect, 6))).toBe(longer);
});

// A client may clear old results itself. Thinking that was made with a block is refused without it, and a block that
// comes back at another place breaks the prefix as well: Anthropic, "Preserved thinking" and "Prefix checks"
// (platform.claude.com, read 2026-11-29). The step `clear` of the fuzzed histories asks the strict stand-in the same.
test.each(DIALECTS)(
  '%s: after the client clears old results in the tool loop, later requests send what the next one sent',
  async (dialect) => {
    const given = await startTaught();
    await sendTo(given, dialect, lookRounds(dialect, LOOK_AT));
    const output = (round: number): string => (round < 3 ? '[cleared]' : `text of file ${round}`);
    const rounds = lookRounds(dialect, LOOK_AT + 1, { output });
    const placed = looksIn(await sendTo(given, dialect, rounds));
    const end = [said('assistant', 'It is faster.'), said('user', 'Thank you so much for that.')];
    expect(looksIn(await sendTo(given, dialect, [...rounds, ...end]))).toEqual(placed);
  },
);

// The provider has the prefix without that block in its cache.
test('a look that stayed away does not come back when the client edits a prompt before all thinking', async () => {
  const provider = await startRecordingProvider();
  const story = await startStory({ provider });
  const place = { space: 'default', conversation: 'earlier' };
  const fact = recordOf('Marta owns the billing dashboard and its Grafana alerts.', place);
  await story.memory.capture([fact], AbortSignal.timeout(30_000));
  const pair = new StrictPair({ account: 'new', isStrictest: false });
  provider.reply = (request) => pair.reply(request);
  const dialect = 'openai_responses';
  const tools = [{ type: 'function', name: 'shell' }];
  let items = [said('user', 'Who owns the billing dashboard and its Grafana alerts?')];
  /** Returns the number of blocks. */
  const send = async (more: readonly WireItem[], model: string, named = {}): Promise<number> => {
    items = [...items, ...more];
    const json = requestWith(dialect, items, { model, tools });
    pair.expect({ dialect, isCount: false, betas: [], json }, { text: 'Done.' });
    const { status } = await story.send(dialect, json, named);
    expect(status).toBe(200);
    return (provider.seen.at(-1)?.body.toString() ?? '').split('<svc-memory ').length - 1;
  };
  const asks = (text: string): readonly WireItem[] => [
    ...pair.thoughts,
    said('assistant', 'Done.'),
    said('user', text),
  ];
  const unbound = 'gemini-2.5-pro';
  expect(await send([], unbound)).toBe(1);
  const rule = `${LOOK_FILE} must never touch the billing dashboard of Marta before build 7.`;
  const learned = recordOf<'assistant'>(rule, { ...place, role: 'assistant' });
  await story.memory.capture([learned], AbortSignal.timeout(30_000));
  expect(await send(lookRounds(dialect, LOOK_AT), unbound)).toBe(2);
  pair.fail(400);
  expect(await send(asks('And the other one?'), unbound)).toBe(0);
  pair.fail();
  expect(await send(asks('Is that all?'), unbound)).toBe(1);
  const edited = items.length + 1;
  expect(await send(asks('What is left?'), 'gpt-6.2')).toBe(1);
  expect(await send(asks('Say it in short.'), 'gpt-6.2', STATED)).toBe(1);
  items = items.map((item, at) => (at === edited ? said('user', 'What else is left?') : item));
  expect(await send(asks('Thank you.'), 'gpt-6.2', STATED)).toBe(1);
});

// Its thinking is left out when a prompt begins, as many clients do. So only its visible words say which answer it is.
test.each([
  ['calls a tool instead of the words that were relayed', true],
  ['calls a tool', false],
])(
  'a refused block does not come back in a tool loop without thinking: the client %s',
  async (_, isOther) => {
    const provider = await startRecordingProvider();
    const story = await startStory({ provider });
    const place = { space: 'default', conversation: 'earlier' };
    const fact = recordOf('Marta owns the billing dashboard and its Grafana alerts.', place);
    await story.memory.capture([fact], AbortSignal.timeout(30_000));
    const pair = new StrictPair({ account: 'new', isStrictest: false });
    provider.reply = (request) => pair.reply(request);
    const dialect = 'anthropic_messages';
    const tools = [{ name: 'shell', input_schema: { type: 'object' } }];
    let items = [said('user', 'Who owns the billing dashboard and its Grafana alerts?')];
    /** Returns the number of blocks. */
    const send = async (more: readonly WireItem[], model = 'claude-fable-5-2'): Promise<number> => {
      items = [...items, ...more];
      const json = requestWith(dialect, items, { model, tools });
      pair.expect({ dialect, isCount: false, betas: [], json }, { text: 'Done.' });
      expect((await story.send(dialect, json)).status).toBe(200);
      return (provider.seen.at(-1)?.body.toString() ?? '').split('<svc-memory ').length - 1;
    };
    const asks = (text: string) => [said('assistant', 'Done.'), said('user', text)];
    expect(await send([], 'gemini-2.5-pro')).toBe(1);
    expect(await send(asks('And the other one?'))).toBe(1);
    pair.fail(413);
    expect(await send(asks('Is that all?'))).toBe(0);
    pair.fail();
    expect(await send(asks('What is left?'))).toBe(0);
    for (const call of ['call_1', 'call_2', 'call_3', 'call_4', 'call_5']) {
      const [answer, ...rest] = toolRound(dialect, call, 'Nothing.', {
        file_path: '/home/ada/a.ts',
      });
      const calls: readonly unknown[] = Array.isArray(answer?.['content']) ? answer['content'] : [];
      const words = isOther ? [] : [{ type: 'text', text: 'Done.' }];
      expect(await send([said('assistant', [...words, ...calls]), ...rest])).toBe(0);
    }
  },
);

// The client changes its own prefix where the reasoning was. svc must not change it further on, by a block that moves.
test('a block stays at its result when the client leaves reasoning out in the tool loop', async () => {
  const given = await startTaught();
  const reasoning = { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'opaque' };
  const rounds = lookRounds('openai_responses', LOOK_AT);
  const [block] = looksIn(await sendTo(given, 'openai_responses', [reasoning, ...rounds]));
  const longer = await sendTo(given, 'openai_responses', lookRounds('openai_responses', 6));
  expect(longer).toContain(`text of file ${LOOK_AT}\\n\\n${block}"`);
});

test('the memory is asked in one request of a prompt, and in no other one', async () => {
  const provider = await startRecordingProvider();
  const inner = await startStory({ provider });
  await teachLook(inner);
  const asked: unknown[] = [];
  const memory = wrapped(inner.memory, {
    recall: (question, signal) => {
      asked.push(question.agent?.action);
      return inner.memory.recall(question, signal);
    },
  });
  const story = await startStory({ provider, memory, settings: SETTINGS });
  for (let round = 0; round < 12; round += 1) {
    await sendTo(
      { provider, story },
      'anthropic_messages',
      lookRounds('anthropic_messages', round),
    );
  }
  expect(asked.map((action) => action !== undefined)).toEqual([false, true]);
});

test('a look that finds nothing is the only one, also after a restart', async () => {
  const folder = tempFolder();
  const provider = await startRecordingProvider();
  const start = () => startStory({ provider, folder, settings: SETTINGS });
  const dialect = 'openai_responses';
  const story = await start();
  expect(looksIn(await sendTo({ provider, story }, dialect, lookRounds(dialect, LOOK_AT)))).toEqual(
    [],
  );
  await teachLook(story);
  expect(looksIn(await sendTo({ provider, story }, dialect, lookRounds(dialect, 5)))).toEqual([]);
  await story.stop();
  const again = await start();
  expect(
    looksIn(await sendTo({ provider, story: again }, dialect, lookRounds(dialect, 6))),
  ).toEqual([]);
  const asked = [
    ...lookRounds(dialect, 6),
    said('assistant', 'Done.'),
    said('user', 'And now make the tide job of the other shop write faster.'),
    ...lookRounds(dialect, 6 + LOOK_AT, { from: 7 }),
    ...toolRound(dialect, 'call_open', 'text', {
      file_path: '/home/ada/walrus/src/harbour_lock.ts',
    }),
  ];
  expect(looksIn(await sendTo({ provider, story: again }, dialect, asked))).toHaveLength(1);
});

const TEXT = 'text of a file';
const MARK = { cache_control: { type: 'ephemeral' } };

test.each([
  ['a list with a text', [{ type: 'text', text: TEXT }], true],
  ['a text with a cache mark', [{ type: 'text', text: TEXT, ...MARK }], true],
  [
    'a text and a picture',
    [
      { type: 'text', text: TEXT },
      { type: 'image', source: {} },
    ],
    true,
  ],
  ['only a picture', [{ type: 'image', source: {} }], false],
  ['a reference to a tool', [{ type: 'text', text: TEXT }, { type: 'tool_reference' }], false],
  ['a cited text', [{ type: 'text', text: TEXT, citations: [] }], false],
  ['a search result', [{ type: 'search_result', content: [] }], false],
  ['an object as JSON', '{"file": "text"}\n', false],
  ['a list as JSON', [{ type: 'text', text: ' [1, 2]' }], false],
  ['lines of JSON', '{"a":1}\n{"b":2}', false],
  ['nothing', undefined, false],
])('a result with %s: a block goes there: %s', async (_, output, isPlaced) => {
  const given = await startTaught();
  const dialect = 'anthropic_messages';
  const last = lookRounds(dialect, LOOK_AT, {
    output: (round) => (round === LOOK_AT ? output : 'text'),
  });
  const body = await sendTo(given, dialect, last);
  expect(looksIn(body)).toHaveLength(isPlaced ? 1 : 0);
  const [block = ''] = looksIn(body);
  expect(body.replace(`\\n\\n${block}`, '')).toBe(JSON.stringify(lookBody(dialect, last)));
  if (isPlaced) expect(body).toContain(`${TEXT}\\n\\n${block}"`);
  // Where it takes none, the next result does.
  else
    expect(
      looksIn(await sendTo(given, dialect, [...last, ...lookRounds(dialect, 5, { from: 5 })])),
    ).toHaveLength(1);
});

test('two lines have room in one look', async () => {
  const given = await startTaught();
  const rule = (file: string): string =>
    `The tide job must never open ${file} while the walrus shop writes, because the pumps of the northern berth wait.`;
  const records = ['part_2.ts', 'part_3.ts'].map((file) =>
    recordOf<'assistant'>(rule(file), {
      space: 'default',
      conversation: file,
      role: 'assistant',
    }),
  );
  await given.story.memory.capture(records, AbortSignal.timeout(30_000));
  const rounds = lookRounds('anthropic_messages', LOOK_AT);
  const body = await sendTo(given, 'anthropic_messages', rounds);
  expect(body.split('The tide job must never open')).toHaveLength(3);
});

test('an error takes a block, and several results of one message take it in the last one', async () => {
  const given = await startTaught();
  const rounds = lookRounds('anthropic_messages', LOOK_AT);
  const calls = ['x', 'y'].map((id) => ({ type: 'tool_use', id, name: 'Bash', input: {} }));
  const results = ['x', 'y'].map((tool_use_id) => {
    return { type: 'tool_result', tool_use_id, content: `${tool_use_id} failed`, is_error: true };
  });
  const note = {
    type: 'text',
    text: '<system-reminder>\nA note of the client.\n</system-reminder>',
  };
  const items = [
    ...rounds.slice(0, -2),
    said('assistant', calls),
    said('user', [...results, note]),
  ];
  const body = await sendTo(given, 'anthropic_messages', items);
  const [block = ''] = looksIn(body);
  expect(body).toContain(`"content":"y failed\\n\\n${block}"`);
});

test.each([
  ['off', { secondLook: 'off' }],
  ['without room', { recalledTokensMax: 40 }],
] as const)('no second look: %s', async (_, settings) => {
  const given = await startTaught({ settings: { ...SETTINGS, ...settings } });
  const rounds = lookRounds('anthropic_messages', LOOK_AT);
  expect(looksIn(await sendTo(given, 'anthropic_messages', rounds))).toEqual([]);
  expect(
    looksIn(await sendTo(given, 'anthropic_messages', lookRounds('anthropic_messages', 7))),
  ).toEqual([]);
});

test.each([
  ['memory off', { 'x-svc-memory-mode': 'off' }],
  ['memory for writing only', { 'x-svc-memory-mode': 'write' }],
  ['shadow', { 'x-svc-compression-mode': 'shadow' }],
  ['a side call', { 'x-claude-code-request-class': 'auxiliary' }],
])('nothing is placed with %s, and nothing in a result that was sent so', async (_, headers) => {
  const given = await startTaught();
  const dialect = 'anthropic_messages';
  const rounds = lookRounds(dialect, LOOK_AT);
  expect(looksIn(await sendTo(given, dialect, rounds, { ...STATED, ...headers }))).toEqual([]);
  const isMain = !('x-claude-code-request-class' in headers);
  if (isMain) expect(looksIn(await sendTo(given, dialect, rounds))).toEqual([]);
  expect(looksIn(await sendTo(given, dialect, lookRounds(dialect, 5)))).toHaveLength(1);
});

test('the output is stored and left out without the block, which stays behind its stub', async () => {
  const given = await startTaught({
    settings: { ...SETTINGS, inputBudget: 500, elisionKeepRounds: 1, elisionCaptureLimit: 100 },
  });
  const dialect = 'anthropic_messages';
  const output = (round: number) => `${`line ${round} of a long output\n`.repeat(400)}end`;
  const body = await sendTo(given, dialect, lookRounds(dialect, LOOK_AT, { output }));
  const [block = ''] = looksIn(body);
  expect(block).not.toBe('');
  let last = body;
  for (let round = LOOK_AT + 1; round < 30; round += 1) {
    await given.story.drained();
    last = await sendTo(given, dialect, lookRounds(dialect, round, { output }));
  }
  const { messages }: { messages: readonly WireItem[] } = JSON.parse(last);
  const result = JSON.stringify(messages[2 * LOOK_AT]);
  expect(result).toContain('[svc left out this ');
  expect(result).not.toContain('of a long output\\nline');
  expect(result).toContain(`\\n\\n${block}"`);
  expect(looksIn(last)).toEqual([block]);
  const digest = textDigest('tool', output(LOOK_AT));
  const held = await given.story.memory.retrieve(
    { digest, space: 'default' },
    AbortSignal.timeout(30_000),
  );
  expect(held?.text).toBe(output(LOOK_AT));
});

test.each([
  ['on', 0],
  ['hosted', 1],
] as const)(
  'a service is asked with the setting %s %i times, and gets masked names alone',
  async (secondLook, times) => {
    const provider = await startRecordingProvider();
    const asked: RecallQuestion[] = [];
    const inner = await startStory({ provider });
    const passage = {
      ...recordOf<'assistant'>(LOOK_FACT, { role: 'assistant', space: 'default' }),
      ref: 'm_aaaaaaaaaaaaaaaa',
      score: 1,
    };
    const other = { ...passage, text: 'Nothing must be said of anything else.', digest: 'another' };
    const memory = wrapped(inner.memory, {
      supports: { kind: 'hosted', read: true, write: false },
      recall: async (question) => {
        asked.push(question);
        return { passages: asked.length === 1 ? [] : [other, passage] };
      },
    });
    const story = await startStory({ provider, memory, settings: { ...SETTINGS, secondLook } });
    const dialect = 'anthropic_messages';
    const secret = `sk-ant-api03-${'Ab3'.repeat(31)}AA`;
    const output = (round: number) =>
      round === 2 ? `Error: the key ${secret} was refused` : 'text';
    await sendTo({ provider, story }, dialect, []);
    const words = said('assistant', 'I begin with the parsnip.');
    const body = await sendTo({ provider, story }, dialect, [
      words,
      ...lookRounds(dialect, LOOK_AT, { output }),
    ]);
    expect(asked).toHaveLength(1 + times);
    expect(looksIn(body)).toHaveLength(times);
    expect(body).not.toContain(other.text);
    const [, look] = asked;
    if (look === undefined) return;
    expect(look.agent).toBeUndefined();
    expect(look.humanText).toContain('harbour_lock.ts');
    expect(look.humanText + look.assistantText).not.toContain('parsnip');
    expect(JSON.stringify(look)).not.toContain(secret);
  },
);

test('a memory that fails changes nothing, and the result stays as it was sent', async () => {
  const provider = await startRecordingProvider();
  const inner = await startStory({ provider });
  await teachLook(inner);
  let isDown = true;
  const memory = wrapped(inner.memory, {
    recall: (question, signal) => {
      if (isDown && question.agent?.action !== undefined) throw new Error('down');
      return inner.memory.recall(question, signal);
    },
  });
  const folder = tempFolder();
  const start = () => startStory({ provider, memory, folder, settings: SETTINGS });
  const story = await start();
  const dialect = 'anthropic_messages';
  const rounds = lookRounds(dialect, LOOK_AT);
  expect(looksIn(await sendTo({ provider, story }, dialect, rounds))).toEqual([]);
  isDown = false;
  await story.stop();
  const again = await start();
  expect(looksIn(await sendTo({ provider, story: again }, dialect, rounds))).toEqual([]);
  expect(
    looksIn(await sendTo({ provider, story: again }, dialect, lookRounds(dialect, 6))),
  ).toEqual([]);
});

const RULE = 'Always use pnpm here, never npm.';

test('a rule that the action falls under is a fact of the second look, once in a conversation', async () => {
  const provider = await startRecordingProvider();
  const story = await startStory({ provider, settings: SETTINGS });
  const place = { space: 'default', conversation: 'earlier' };
  await story.memory.capture([recordOf(RULE, place)], AbortSignal.timeout(30_000));
  const dialect = 'anthropic_messages';
  const install = (id: string): readonly WireItem[] =>
    toolRound(dialect, id, 'added 1 package', { command: 'npm install zod' });
  const first = [...lookRounds(dialect, LOOK_AT - 1), ...install('call_i')];
  const placed = await sendTo({ provider, story }, dialect, first);
  expect(placed).toContain(`- 2026-05-01, the user: ${RULE}`);
  const prompt = said('user', 'Now make the harbour job of the shop read twice as fast, please.');
  const done = [...first, said('assistant', 'It is faster.'), prompt];
  await sendTo({ provider, story }, dialect, done);
  const again = [...done, ...lookRounds(dialect, 9, { from: 6 }), ...install('call_j')];
  const later = await sendTo({ provider, story }, dialect, again);
  expect(later.split(RULE)).toHaveLength(2);
});

test('a retired rule is in no second look', async () => {
  const provider = await startRecordingProvider();
  const story = await startStory({ provider, settings: SETTINGS });
  const place = { space: 'default', conversation: 'earlier' };
  await story.memory.capture([recordOf(RULE, place)], AbortSignal.timeout(30_000));
  await story.memory.capture(
    [
      recordOf('We use npm here from now on, not pnpm.', {
        ...place,
        at: Date.UTC(2026, 4, 2),
        exchange: 1,
      }),
    ],
    AbortSignal.timeout(30_000),
  );
  const dialect = 'anthropic_messages';
  const install = toolRound(dialect, 'call_i', 'added', { command: 'npm install zod' });
  const placed = await sendTo({ provider, story }, dialect, [
    ...lookRounds(dialect, LOOK_AT - 1),
    ...install,
  ]);
  expect(placed).not.toContain(RULE);
  expect(placed).toContain('2026-05-02, the user: We use npm here from now on, not pnpm.');
});

test.each([
  ['anthropic_messages', { system: `You are an agent.\n\n# CLAUDE.md\n- ${RULE}\n` }],
  ['openai_responses', { instructions: `# AGENTS.md\n\n* ${RULE} "Always."` }],
] as const)(
  '%s: what the client’s own instructions say is not said again',
  async (dialect, stated) => {
    const sent = async (extra: WireItem): Promise<string> => {
      const provider = await startRecordingProvider();
      const story = await startStory({ provider, settings: SETTINGS });
      const place = { space: 'default', conversation: 'earlier' };
      await story.memory.capture([recordOf(RULE, place)], AbortSignal.timeout(30_000));
      const install = toolRound(dialect, 'call_i', 'added', { command: 'npm install zod' });
      const items = [...lookRounds(dialect, LOOK_AT - 1), ...install];
      await story.send(dialect, lookBody(dialect, items, extra), STATED);
      return provider.seen.at(-1)?.body.toString() ?? '';
    };
    expect(await sent(stated)).not.toContain('<svc-memory');
    expect(await sent({})).toContain(`the user: ${RULE}`);
  },
);
