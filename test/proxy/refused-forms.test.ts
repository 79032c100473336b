import { expect, test } from 'vitest';
import { said } from '../support/dialect-wire.ts';
import { NAMED, QUESTION, SECOND, startTalk } from '../support/strict-talk.ts';
import type { Reply, SeenRequest } from '../support/story.ts';
import { readAnswer, upstreamSettings } from '../support/upstream.ts';
import type { Upstream, UpstreamRequest } from '../../src/ports/upstream.ts';
import { forwardPlanned } from '../../src/proxy/forward.ts';

/** The forms that svc sends when a provider refuses a changed request, and what it learns from that. */

const blocksIn = (body: string): number => body.split('<svc-memory ').length - 1;
const asked = said('user', QUESTION);
const second = said('user', SECOND);

/** A conversation with one block and one answer; the provider's next refusals are the test's. */
async function oneBlock(model?: string) {
  const talk = await startTalk({ settings: { recalledTokensMax: 2_000 } });
  const options = model === undefined ? {} : { model };
  const one = await talk.ask([asked], options);
  expect(blocksIn(one.sent)).toBe(1);
  const honest = talk.provider.reply;
  const refuse = (mayPass: (blocks: number) => boolean, refusal: Partial<Reply> = {}): void => {
    talk.provider.reply = (request: SeenRequest) => {
      if (mayPass(blocksIn(request.body.toString()))) return honest(request);
      const body = `{"error":"${blocksIn(request.body.toString())} blocks"}`;
      return { status: 403, headers: { 'content-type': 'application/json' }, body, ...refusal };
    };
  };
  const before = talk.provider.seen.length;
  const sent = (): number[] =>
    talk.provider.seen.slice(before).map(({ body }) => blocksIn(body.toString()));
  const next = (text = SECOND) => talk.ask([asked, one.item, said('user', text)], options);
  return { ...talk, options, honest, first: one.item, refuse, sent, next };
}

test('a refused block is taken back, and the blocks that were accepted stay', async () => {
  const { refuse, next, sent, story, strict } = await oneBlock();
  refuse((blocks) => blocks < 2);
  const answer = await next();
  expect([answer.status, sent()]).toEqual([200, [2, 1]]);
  expect(answer.headers['x-svc-memory-state']).toBe('recalled');
  // The same prompt again, and the next one: no block is added for an hour.
  expect((await next()).sent).toBe(answer.sent);
  expect(sent()).toEqual([2, 1, 1]);
  expect(story.rows.at(-1)?.recalledTokens).toBeGreaterThan(0);
  expect([strict.refusals, strict.lost]).toEqual([[], []]);
});

test('edits in front of bound thinking are never left out at a refusal of another kind', async () => {
  const { refuse, next, sent } = await oneBlock();
  refuse(() => false);
  const answer = await next();
  expect([answer.status, sent()]).toEqual([403, [2, 1]]);
  // Clients repair themselves by the words of the first refusal.
  expect(answer.text).toBe('{"error":"2 blocks"}');
});

test('where the provider says that thinking is bound elsewhere, the client’s own bytes are tried too', async () => {
  const { refuse, next, sent, ask, first, options, honest, provider, strict } = await oneBlock();
  const message = 'The block is bound to a different conversation.';
  refuse((blocks) => blocks === 0, { status: 400, body: JSON.stringify({ error: { message } }) });
  const answer = await next();
  // Here these bytes are refused too, and the client gets the words that it repairs itself by.
  expect([answer.status, sent()]).toEqual([400, [2, 1, 0]]);
  expect(answer.text).toContain(message);
  provider.reply = honest;
  strict.refusals.length = 0;
  expect((await ask([asked, first, second], options)).status).toBe(200);
  expect(strict.refusals).toEqual([]);
});

test('where no thinking is bound, the client’s own bytes are tried last', async () => {
  const { refuse, next, sent } = await oneBlock('claude-opus-4-5');
  refuse((blocks) => blocks === 0);
  const answer = await next();
  expect([answer.status, sent()]).toEqual([200, [2, 1, 0]]);
  expect(answer.headers).toMatchObject({
    'x-svc-memory-state': 'skipped_unsupported',
    'x-svc-recalled-tokens': '0',
  });
  // The blocks were at fault, so they stay out.
  expect((await next('Paint the mountains in winter.')).status).toBe(200);
  expect(sent()).toEqual([2, 1, 0, 0]);
});

test('a refusal that has nothing to do with svc switches nothing off', async () => {
  const { refuse, next, sent, provider, honest } = await oneBlock('claude-opus-4-5');
  refuse(() => false, { status: 400 });
  expect((await next()).status).toBe(400);
  provider.reply = honest;
  const answer = await next();
  expect([answer.status, answer.headers['x-svc-memory-state']]).toEqual([200, 'recalled']);
  expect(sent()).toEqual([2, 1, 0, 2]);
});

// The provider refuses a thought if a block in front of it is missing later ("Fix a thinking block bound to a different
// conversation", platform.claude.com, read on 2026-11-28), and so does the stand-in.
test('a block that is placed after a refusal is found under another name of the conversation too', async () => {
  const { ask, first, refuse, next, provider, honest, strict } = await oneBlock();
  refuse(() => false, { status: 400 });
  expect((await next()).status).toBe(400);
  provider.reply = honest;
  const placed = await next();
  expect(blocksIn(placed.sent)).toBe(2);
  strict.refusals.length = 0;
  const headers = { 'session-id': 'session-two' };
  const third = said('user', 'Paint the mountains in winter.');
  const resumed = await ask([asked, first, second, placed.item, third], { headers });
  expect([resumed.status, strict.refusals]).toEqual([200, []]);
  expect(blocksIn(resumed.sent)).toBeGreaterThanOrEqual(2);
});

test('a provider that cannot be reached for the second form leaves its first answer', async () => {
  const { provider, next, sent } = await oneBlock();
  provider.reply = ({ body }) => ({
    status: 422,
    headers: { 'content-type': 'application/json' },
    body: '{"error":"no"}',
    ...(blocksIn(body.toString()) < 2 && { cutAfter: 0 }),
  });
  const answer = await next();
  expect(answer.status).toBe(422);
  expect(sent()[0]).toBe(2);
});

test('in shadow a refusal is one attempt', async () => {
  const { provider, ask, first, sent } = await oneBlock('claude-opus-4-5');
  provider.reply = () => ({ status: 400, headers: {}, body: '{"error":"no"}' });
  const headers = { ...NAMED, 'x-svc-compression-mode': 'shadow' };
  const answer = await ask([asked, first, second], { headers, model: 'claude-opus-4-5' });
  expect([answer.status, sent()]).toEqual([400, [0]]);
});

test('where the other forms cannot be made, the client gets the refusal of the provider', async () => {
  const refusal = '{"error":"no"}';
  const sent: UpstreamRequest[] = [];
  const upstream: Upstream = {
    send: async (request) => {
      sent.push(request);
      return {
        status: 400,
        headers: ['content-type', 'application/json'],
        deliver: (sink) => {
          sink.data(Buffer.from(refusal));
          sink.end();
        },
        resume: () => undefined,
        abort: () => undefined,
      };
    },
    warm: () => undefined,
    close: async () => undefined,
  };
  const accepted: unknown[] = [];
  const answer = await forwardPlanned({
    configured: { settings: upstreamSettings({}), upstream },
    request: {
      id: 'req_1',
      route: { kind: 'model', dialect: 'anthropic_messages' },
      method: 'POST',
      target: '/v1/messages',
      headers: [],
      body: Buffer.from('{}'),
      startedAt: 0,
    },
    planned: { body: [Buffer.from('{"a":1}')] },
    fallbacks: () => {
      throw new Error('a fault of svc');
    },
    signal: new AbortController().signal,
    onRefused: async (form) => void accepted.push(form),
  });
  expect((await readAnswer(answer)).body.toString()).toBe(refusal);
  expect([sent.length, accepted]).toEqual([1, [undefined]]);
});
