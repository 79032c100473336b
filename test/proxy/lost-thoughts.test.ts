import { expect, onTestFinished, test } from 'vitest';
import type { RequestView } from '../../src/core/conversation/view.ts';
import { ConversationState } from '../../src/proxy/conversations.ts';
import { requestWith, said } from '../support/dialect-wire.ts';
import { type Reply, startRecordingProvider, startStory, type Story } from '../support/story.ts';
import { openProxyStage, type ProxyStage } from '../support/proxy-stage.ts';
import { BETA, type Item } from '../support/strict-provider/conversation.ts';
import { StrictProvider } from '../support/strict-provider/strict-provider.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { viewOf } from '../support/view-of.ts';
import { comparePrefix } from '../../src/proxy/accounts.ts';

/** A provider that dropped thoughts, or refused a request for them, is seen in the request log. */

const JSON_HEAD = { 'content-type': 'application/json' };
const LOST = [
  { type: 'thinking_dropped', path: 'messages.1.content.0', reason: 'prefix_binding_mismatch' },
];

function answer(input_transformations: unknown = []): Reply {
  const content = [{ type: 'text', text: 'Noted.' }];
  const message = { type: 'message', role: 'assistant', model: 'm', stop_reason: 'end_turn' };
  const body = JSON.stringify({ ...message, content, input_transformations });
  return { status: 200, headers: JSON_HEAD, body };
}

const ASKED = said('user', 'Which port does the staging database use?');
const THOUGHT = said('assistant', [
  { type: 'thinking', thinking: 'hm', signature: 'signed' },
  { type: 'text', text: 'Port 6431.' },
]);
const NEXT = said('user', 'Write it into the runbook, please.');

async function send(story: Story, items: readonly unknown[], extra = {}): Promise<void> {
  const request = requestWith('anthropic_messages', items, extra);
  await story.send('anthropic_messages', request, { 'x-claude-code-session-id': 'session-1' });
}

test('dropped thoughts are in the row, with the client that had changed the system prompt', async () => {
  const provider = await startRecordingProvider();
  const story = await startStory({ provider });
  provider.reply = () => answer();
  await send(story, [ASKED]);
  provider.reply = () => answer(LOST);
  await send(story, [ASKED, THOUGHT, NEXT], { system: 'Be kind. Today is Tuesday.' });
  expect(story.rows[0]).not.toHaveProperty('lostThoughts');
  expect(story.rows[1]).toMatchObject({ lostThoughts: { prefix: 1 }, prefixChangedBy: 'client' });
});

test('who changed the prefix is left open where the client sent it unchanged', async () => {
  const provider = await startRecordingProvider();
  const story = await startStory({ provider });
  provider.reply = () => answer();
  await send(story, [ASKED]);
  provider.reply = () => answer(LOST);
  await send(story, [ASKED, THOUGHT, NEXT]);
  expect(story.rows[1]).toMatchObject({ lostThoughts: { prefix: 1 } });
  expect(story.rows[1]).not.toHaveProperty('prefixChangedBy');
});

test('a request that is refused for its thoughts is in the row, and the client reads the error', async () => {
  const provider = await startRecordingProvider();
  const story = await startStory({ provider });
  const message = 'messages.1.content.0: The block is bound to a different conversation.';
  const error = { type: 'error', error: { type: 'invalid_request_error', message } };
  provider.reply = () => ({ status: 400, headers: JSON_HEAD, body: JSON.stringify(error) });
  const request = requestWith('anthropic_messages', [ASKED, THOUGHT, NEXT]);
  const { body, status } = await story.send('anthropic_messages', request);
  expect([status, JSON.parse(body.toString())]).toEqual([400, error]);
  expect(story.rows.at(-1)).toMatchObject({ status: 400, lostThoughts: { refused: 1 } });
  provider.reply = () => ({ status: 400, headers: JSON_HEAD, body: '{"error":{}}' });
  await story.send('anthropic_messages', request);
  expect(story.rows.at(-1)).not.toHaveProperty('lostThoughts');
});

test('an answer that breaks off tells of the dropped thoughts, too', async () => {
  const provider = await startRecordingProvider();
  const story = await startStory({ provider });
  const start = { type: 'message_start', message: { model: 'm', input_transformations: LOST } };
  const body = `data: ${JSON.stringify(start)}\n\ndata: {"type":"ping"}\n\n`;
  const headers = { 'content-type': 'text/event-stream' };
  provider.reply = () => ({ status: 200, headers, body, cutAfter: body.length - 4 });
  await send(story, [ASKED, THOUGHT, NEXT], { stream: true }).catch(() => undefined);
  await expect.poll(() => story.rows).toMatchObject([{ lostThoughts: { prefix: 1 } }]);
});

function view(items: readonly unknown[], extra = {}): RequestView {
  return viewOf('anthropic_messages', requestWith('anthropic_messages', items, extra));
}

const AFTER = said('assistant', [
  { type: 'thinking', thinking: 'hm', signature: 'later' },
  { type: 'text', text: 'Done.' },
]);

const USAGE = { input: 1, cacheRead: 0, cacheWrite: 0, output: 1 };

function answered(one: RequestView, state: ConversationState): void {
  const { sketch, before } = comparePrefix(one, state, 1);
  const times = { at: 0, answeredAt: 0, wallAt: 0, lifetimeMs: 1 };
  state.sent?.keep({ sketch, own: new Map(), usage: USAGE, ...times }, before);
}

function changer(...views: readonly RequestView[]): unknown {
  const state = new ConversationState();
  for (const one of views) answered(one, state);
  return state.prefixChangedBy;
}

test('the client changed something when an earlier item, the tools or the system prompt differ', () => {
  const first = view([ASKED]);
  const second = view([ASKED, THOUGHT, NEXT]);
  expect(changer(first, second, view([ASKED, THOUGHT, NEXT, AFTER, ASKED]))).toBeUndefined();
  const shortened = said('user', 'Write it.');
  expect(changer(first, second, view([ASKED, THOUGHT, shortened, AFTER, ASKED]))).toBe('client');
  expect(changer(first, view([ASKED, THOUGHT, NEXT], { tools: [{ name: 'x' }] }))).toBe('client');
  expect(changer(first, view([ASKED, THOUGHT, NEXT], { max_tokens: 9 }))).toBeUndefined();
});

test('a moved cache mark, a rewound conversation and a new beginning change nothing', () => {
  const system = [{ type: 'text', text: 'Be kind.' }];
  const marked = [{ ...system[0], cache_control: { type: 'ephemeral' } }];
  const second = view([ASKED, THOUGHT, NEXT], { system });
  expect(changer(view([ASKED], { system: marked }), second)).toBeUndefined();
  const long = view([ASKED, THOUGHT, NEXT, AFTER, ASKED]);
  expect(changer(long, view([ASKED, THOUGHT, said('user', 'Rather not.')]))).toBeUndefined();
  expect(changer(long, view([said('user', 'Summary: the port is 6431.')]))).toBeUndefined();
});

test('the first change counts, until the history has no thoughts any more', () => {
  const state = new ConversationState();
  answered(view([ASKED]), state);
  state.prefixChangedBy = 'svc';
  answered(view([ASKED, THOUGHT, NEXT], { tools: [{ name: 'x' }] }), state);
  expect(state.prefixChangedBy).toBe('svc');
  answered(view([NEXT]), state);
  expect(state.prefixChangedBy).toBeUndefined();
});

async function strictStage(): Promise<ProxyStage> {
  const provider = { strict: new StrictProvider() };
  const stage = await openProxyStage({ folder: tempFolder(), provider });
  onTestFinished(() => stage.stop());
  return stage;
}

const HEADERS = ['anthropic-beta', BETA, 'x-claude-code-session-id', 'session-1'];

test('a strict provider of Messages: what the client edits is lost, in both ways', async () => {
  const stage = await strictStage();
  const ask = async (extra: object): Promise<Item> => {
    const body = { model: 'claude-opus-5-5', max_tokens: 100, thinking: { type: 'adaptive' } };
    const sent = await stage.send('anthropic_messages', { ...body, ...extra }, HEADERS);
    return JSON.parse(sent.body.toString()) as Item;
  };
  const first = said('user', 'one [[final=ok]]');
  const { content } = await ask({ messages: [first] });
  const messages = [first, said('assistant', content), said('user', 'two [[final=ok]]')];
  await ask({ messages });
  expect(stage.rows.at(-1)).toMatchObject({ status: 200 });
  expect(stage.rows.at(-1)).not.toHaveProperty('lostThoughts');

  const system = 'Today is another day.';
  await ask({ messages, system });
  const refused = { status: 400, lostThoughts: { refused: 1 }, prefixChangedBy: 'client' };
  expect(stage.rows.at(-1)).toMatchObject(refused);
  const block_binding = { prefix_mismatch_behavior: 'drop_block' };
  await ask({ messages, system, thinking: { type: 'adaptive', block_binding } });
  const dropped = { status: 200, lostThoughts: { prefix: 1 }, prefixChangedBy: 'client' };
  expect(stage.rows.at(-1)).toMatchObject(dropped);
});

test.each([false, true])(
  'a strict provider of Responses: reasoning behind an edit is lost (streamed: %s)',
  async (stream) => {
    const stage = await strictStage();
    const shell = { model: 'gpt-6', reasoning: {} };
    const first = said('user', 'one [[final=ok]]');
    const headers = ['session_id', 'session-1'];
    const sent = await stage.send('openai_responses', { ...shell, input: [first] }, headers);
    const { output } = JSON.parse(sent.body.toString()) as { output: Item[] };
    const input = [said('user', 'edited'), ...output, said('user', 'two [[final=ok]]')];
    await stage.send('openai_responses', { ...shell, input, stream }, headers);
    const lost = { status: 200, lostThoughts: { prefix: 1 }, prefixChangedBy: 'client' };
    expect(stage.rows.at(-1)).toMatchObject(lost);
  },
);
