import { expect, test } from 'vitest';
import { said, toolRound, type WireItem } from '../support/dialect-wire.ts';
import { FakeMemory } from '../support/fake-memory.ts';
import type { Reply, SeenRequest } from '../support/story.ts';
import { NAMED, startTalk, type StrictTalk } from '../support/strict-talk.ts';

/** `boundShortening: "provider"`: the provider itself clears old tool outputs of a bound conversation. */

const SETTINGS = { boundShortening: 'provider', inputBudget: 0, elisionCaptureLimit: 100 } as const;
const BETA = 'context-management-2025-06-27';
const TYPE = 'clear_tool_uses_20250919';

interface Session {
  readonly talk: StrictTalk;
  /** The next request of the conversation: one more round of a tool, after so many before it. */
  readonly next: (options?: {
    readonly headers?: Readonly<Record<string, string>>;
    readonly output?: string;
  }) => ReturnType<StrictTalk['ask']>;
  readonly items: () => readonly WireItem[];
}

type Options = NonNullable<Parameters<typeof startTalk>[0]> & { readonly model?: string };

/** A conversation with one answer that thinks, and five rounds whose outputs the memory holds. */
async function begun({ model, settings, ...options }: Options = {}): Promise<Session> {
  const talk = await startTalk({ ...options, settings: { ...SETTINGS, ...settings } });
  const asked = model === undefined ? {} : { model };
  const prompt = said('user', 'Fix the parser.');
  const { item } = await talk.ask([prompt], asked);
  let items: readonly WireItem[] = [prompt, item, said('user', 'Go on.')];
  const next: Session['next'] = async ({ headers = NAMED, output } = {}) => {
    const id = `call_${items.length}`;
    items = [...items, ...toolRound('anthropic_messages', id, output ?? `${id} says something`)];
    const answer = await talk.ask(items, { ...asked, headers });
    await talk.story.settled();
    await talk.story.drained();
    return answer;
  };
  for (let round = 0; round < 5; round += 1) {
    // oxlint-disable-next-line no-await-in-loop -- A client waits for each answer.
    await next();
  }
  return { talk, next, items: () => items };
}

const editsIn = (sent: string): readonly WireItem[] => {
  const { context_management: told } = JSON.parse(sent) as {
    context_management?: { edits: readonly WireItem[] };
  };
  return told?.edits ?? [];
};
const betasOf = (seen: SeenRequest | undefined): readonly string[] =>
  (seen?.headers ?? []).filter((_, at, all) => all[at - 1]?.toLowerCase() === 'anthropic-beta');

test('the provider is asked to clear what the memory holds, and the history that is sent stays as it is', async () => {
  const { talk, next, items } = await begun();
  const { sent, status, headers } = await next({ headers: { ...NAMED, 'anthropic-beta': 'a' } });
  expect(status).toBe(200);
  expect(editsIn(sent)).toEqual([
    {
      type: TYPE,
      trigger: { type: 'input_tokens', value: 60_000 },
      keep: { type: 'tool_uses', value: 4 },
      clear_at_least: { type: 'input_tokens', value: 20_000 },
    },
  ]);
  expect(betasOf(talk.provider.seen.at(-1))).toEqual([`a,${BETA}`]);
  expect((JSON.parse(sent) as { messages: unknown }).messages).toEqual(items());
  expect(headers).toMatchObject({
    'x-svc-elided-items': '0',
    'x-svc-continuity-state': 'bypassed_protected_context',
  });
  expect([talk.strict.refusals, talk.strict.lost]).toEqual([[], []]);
});

test('the request log says what the provider cleared', async () => {
  const { talk, next } = await begun();
  const honest = talk.provider.reply;
  const applied = { type: TYPE, cleared_tool_uses: 2, cleared_input_tokens: 21_000 };
  talk.provider.reply = (request) => {
    const { body, ...reply } = honest(request);
    const message = JSON.parse(body) as WireItem;
    const context_management = { applied_edits: [applied] };
    return { ...reply, body: JSON.stringify({ ...message, context_management }) };
  };
  await next();
  expect(talk.story.rows.at(-1)).toMatchObject({
    isBound: true,
    elidedItems: 0,
    cleared: { outputs: 2, tokens: 21_000 },
  });
  talk.provider.reply = honest;
  await next();
  expect(talk.story.rows.at(-1)).toMatchObject({ cleared: { outputs: 0, tokens: 0 } });
});

test.each([
  ['by default', { settings: { boundShortening: 'off' } }],
  ['where no thinking is bound', { model: 'claude-opus-4-5' }],
  ['in passthrough', { settings: { compressionMode: 'passthrough' } }],
  ['without a memory that is read', { settings: { memoryMode: 'write' } }],
  ['with the client’s own login', { auth: 'client' }],
] as const)('nothing is asked of the provider %s', async (_, options) => {
  const { talk, next } = await begun(options);
  const { sent, status } = await next();
  expect([status, editsIn(sent)]).toEqual([200, []]);
  expect(betasOf(talk.provider.seen.at(-1))).toEqual([]);
  expect(talk.story.rows.at(-1)).not.toHaveProperty('cleared');
});

test('nothing is cleared while the memory does not prove all of it', async () => {
  const memory = new FakeMemory();
  const { talk, next, items } = await begun({ memory });
  expect(editsIn((await next()).sent)).toHaveLength(1);
  const hold = memory.hold.bind(memory);
  let gone = 1;
  memory.hold = async (asked, signal) => (await hold(asked, signal)).slice(gone);
  expect(editsIn((await next()).sent)).toEqual([]);
  gone = 0;
  expect(editsIn((await next()).sent)).toHaveLength(1);
  memory.failure = 'unavailable';
  expect(editsIn((await talk.ask(items())).sent)).toEqual([]);
});

test('an output that is masked in the memory keeps the whole conversation uncleared', async () => {
  const { next } = await begun();
  const output = `the key is sk-ant-api03-${'a1B2'.repeat(22)}-AAAAAAAA`;
  await next({ output });
  for (let round = 0; round < 4; round += 1) {
    // oxlint-disable-next-line no-await-in-loop -- A client waits for each answer.
    await next();
  }
  expect(editsIn((await next()).sent)).toEqual([]);
});

test('a provider that refuses the edit gets the request without it, and is not asked for an hour', async () => {
  const { talk, next } = await begun();
  const honest = talk.provider.reply;
  const before = talk.provider.seen.length;
  talk.provider.reply = (request): Reply => {
    if (!request.body.toString().includes(TYPE)) return honest(request);
    const body = '{"type":"error","error":{"type":"invalid_request_error","message":"no"}}';
    return { status: 400, headers: { 'content-type': 'application/json' }, body };
  };
  const asked = (): readonly number[] =>
    talk.provider.seen.slice(before).map(({ body }) => editsIn(body.toString()).length);
  expect((await next()).status).toBe(200);
  expect(asked()).toEqual([1, 0]);
  expect(betasOf(talk.provider.seen.at(-1))).toEqual([]);
  expect(talk.story.rows.at(-1)).not.toHaveProperty('cleared');
  expect((await next()).status).toBe(200);
  expect(asked()).toEqual([1, 0, 0]);
  expect(talk.strict.refusals).toEqual([]);
});

test('a request of a sub-agent, and one with a mode of its own, go out as they came', async () => {
  const { talk, next } = await begun();
  expect(editsIn((await next()).sent)).toHaveLength(1);
  // It repeats the same history, so that nothing but its kind makes the difference.
  const agent = { ...NAMED, 'x-claude-code-agent-id': 'agent-one' };
  const passing = { ...NAMED, 'x-svc-compression-mode': 'passthrough' };
  expect(editsIn((await next({ headers: agent })).sent)).toEqual([]);
  expect(talk.story.rows.at(-1)).toMatchObject({ kind: 'subagent', status: 200 });
  expect(editsIn((await next({ headers: passing })).sent)).toEqual([]);
  expect(editsIn((await next()).sent)).toHaveLength(1);
});
