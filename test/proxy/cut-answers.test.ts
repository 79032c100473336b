import { request as httpRequest } from 'node:http';
import { expect, test } from 'vitest';
import type { Dialect } from '../../src/core/conversation/view.ts';
import {
  answerTo,
  DIALECTS,
  PATHS,
  requestWith,
  said,
  type WireItem,
} from '../support/dialect-wire.ts';
import { TOKEN } from '../support/local-server.ts';
import { until } from '../support/sockets.ts';
import {
  type RecordingProvider,
  type Reply,
  startRecordingProvider,
  startStory,
  type Story,
} from '../support/story.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** Of an answer that did not end as it should, clients keep what they have, and send it again. */

const EARLIER = 'Our staging database listens on port 6431 behind pgbouncer.';
const ASKED = 'Which of the walrus shop databases may be dropped?';
const HALF = 'Dropping the walrus archive is fine, and the orders database may go as w';
const NEXT = 'Marta owns the billing dashboard.';

const streamed: RecordingProvider['reply'] = (request) =>
  answerTo(request, { text: HALF, isStreamed: true });

/** Chat Completions end twice, with a finish reason and with [DONE]: one of them is enough. */
function withoutEnd(reply: Reply, path: string): Reply {
  const ends = path === PATHS.openai_chat_completions ? 2 : 1;
  const events = reply.body.split('\n\n');
  return { ...reply, body: `${events.slice(0, -1 - ends).join('\n\n')}\n\n` };
}

const CUTS: readonly { name: string; hangsUp?: boolean; reply: RecordingProvider['reply'] }[] = [
  {
    name: 'ended at a limit',
    reply: (request) => answerTo(request, { text: HALF, isCutShort: true }),
  },
  {
    name: 'broke off',
    reply: (request) => ({ ...streamed(request), cutAfter: streamed(request).body.length - 60 }),
  },
  {
    name: 'ended without its last event',
    reply: (request) => withoutEnd(streamed(request), request.path),
  },
  {
    name: 'the person stopped',
    hangsUp: true,
    reply: (request) => ({ ...withoutEnd(streamed(request), request.path), hangs: true }),
  },
];

async function sendAndHangUp(story: Story, dialect: Dialect, body: object): Promise<void> {
  let bytes = 0;
  const outgoing = httpRequest({
    port: story.port,
    host: '127.0.0.1',
    method: 'POST',
    path: PATHS[dialect],
    headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
  });
  outgoing.on('error', () => {});
  outgoing.on('response', (incoming) => {
    incoming.on('data', (chunk: Buffer) => (bytes += chunk.length)).on('error', () => {});
  });
  outgoing.end(JSON.stringify(body));
  await until(() => bytes > 0);
  outgoing.destroy();
  await until(() => story.rows.length > 0);
}

async function kept(story: Story): Promise<string[]> {
  await story.settled();
  const records = await story.memory.list({ limit: 1000 }, AbortSignal.timeout(30_000));
  return records.map(({ role, text }) => `${role}: ${text}`);
}

test.each(CUTS.flatMap((cut) => DIALECTS.map((dialect) => ({ ...cut, dialect }))))(
  'R26: $dialect: an answer that $name is not taken for a whole one after a restart',
  async ({ dialect, reply, hangsUp }) => {
    const folder = tempFolder();
    const provider = await startRecordingProvider();
    provider.reply = reply;
    const items: WireItem[] = [
      said('user', EARLIER),
      said('assistant', 'Port 6431 is noted for the walrus shop.'),
      said('user', ASKED),
    ];
    const first = await startStory({ provider, folder, settings: { elisionCaptureLimit: 0 } });
    const asked = requestWith(dialect, items, { stream: true });
    if (hangsUp === true) await sendAndHangUp(first, dialect, asked);
    else await first.send(dialect, asked);
    await first.stop();

    provider.reply = (request) => answerTo(request, { text: 'ok' });
    const second = await startStory({ provider, folder });
    const next = [...items, said('assistant', HALF), said('user', NEXT)];
    await second.send(dialect, requestWith(dialect, next));
    // History is kept from its end: what came before the cut answer is there when that was judged.
    await expect.poll(() => kept(second)).toContain(`user: ${EARLIER}`);
    expect((await kept(second)).toSorted()).toEqual(
      [
        'assistant: Port 6431 is noted for the walrus shop.',
        `user: ${ASKED}`,
        `user: ${EARLIER}`,
        `user: ${NEXT}`,
      ].toSorted(),
    );
  },
);

test('R26: an answer that was asked for again and came whole is kept', async () => {
  const folder = tempFolder();
  const provider = await startRecordingProvider();
  provider.reply = (request) => answerTo(request, { text: HALF, isCutShort: true });
  const story = await startStory({ provider, folder });
  const asked = requestWith('anthropic_messages', [said('user', ASKED)]);
  await story.send('anthropic_messages', asked);
  provider.reply = (request) => answerTo(request, { text: 'Only the walrus archive may go.' });
  await story.send('anthropic_messages', asked);
  expect((await kept(story)).toSorted()).toEqual([
    'assistant: Only the walrus archive may go.',
    `user: ${ASKED}`,
  ]);
});

test('a client that goes with the finish reason has the whole answer, and it is kept', async () => {
  const provider = await startRecordingProvider();
  provider.reply = (request) => {
    const reply = answerTo(request, { text: EARLIER, isStreamed: true });
    return { ...reply, body: reply.body.replace('data: [DONE]', ': waits'), hangs: true };
  };
  const story = await startStory({ provider });
  const asked = requestWith('openai_chat_completions', [said('user', ASKED)], { stream: true });
  await sendAndHangUp(story, 'openai_chat_completions', asked);
  expect((await kept(story)).toSorted()).toEqual([`assistant: ${EARLIER}`, `user: ${ASKED}`]);
});

test('an answer that is too large to be read is no cut: its text is kept when the client sends it back', async () => {
  const provider = await startRecordingProvider();
  const picture = { type: 'image', source: { type: 'base64', data: 'iVBORw0K'.repeat(700_000) } };
  const content = [{ type: 'text', text: EARLIER }, picture];
  const body = JSON.stringify({ type: 'message', stop_reason: 'end_turn', content });
  const headers = { 'content-type': 'application/json' };
  provider.reply = () => ({ status: 200, headers, body });
  const story = await startStory({ provider });
  await story.send('anthropic_messages', requestWith('anthropic_messages', [said('user', ASKED)]));
  provider.reply = (request) => answerTo(request, { text: 'ok' });
  const next = [said('user', ASKED), said('assistant', EARLIER), said('user', NEXT)];
  await story.send('anthropic_messages', requestWith('anthropic_messages', next));
  await expect.poll(() => kept(story)).toContain(`assistant: ${EARLIER}`);
});
