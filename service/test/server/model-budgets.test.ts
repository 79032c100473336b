import { expect, describe, test } from 'vitest';
import type { Dialect } from '../../../src/core/conversation/view.ts';
import { DIALECTS, PATHS, promptOf, type WireItem } from '../../../test/support/dialect-wire.ts';
import {
  errorIn,
  type ModelService,
  openModelService,
  receiptIn,
} from '../support/model-service.ts';
import { openSocket } from '../../../test/support/raw-http.ts';
import { ProcessLimiter } from '../../src/adapters/limiter/process-limiter.ts';
import type { Limiter } from '../../src/ports/limiter.ts';
import { pause, until } from '../../../test/support/sockets.ts';

/** Budgets of tokens, where the client does not wait for the end of its answer. */

const WORDS = 300;

/** One token an event, without the end that has the provider's count. */
const DELTAS: Readonly<Record<Dialect, (text: string) => object>> = {
  anthropic_messages: (text) => ({
    type: 'content_block_delta',
    index: 0,
    delta: { type: 'thinking_delta', thinking: text },
  }),
  openai_responses: (text) => ({ type: 'response.function_call_arguments.delta', delta: text }),
  openai_chat_completions: (text) => ({
    choices: [{ index: 0, delta: { content: text }, finish_reason: null }],
  }),
};

function deltasOf(dialect: Dialect): string {
  const events = Array.from({ length: WORDS }, (_, at) => {
    return `data: ${JSON.stringify(DELTAS[dialect](`w${at} `))}\n\n`;
  });
  return events.join('');
}

async function openWithBudget(
  dialect: Dialect,
  tokensPerDay: number,
): Promise<ModelService & { readonly key: string }> {
  const stage = await openModelService();
  await stage.addProvider(dialect);
  const body = { name: 'k', scopes: ['read', 'write'], tokens_per_day: tokensPerDay };
  return { ...stage, key: (await stage.ask('POST keys', body)).json.secret };
}

/** Sends a request, and hangs up once `isEnough`. Gives what came until then. */
async function leave(
  { port, key }: Pick<ModelService, 'port'> & { readonly key: string },
  dialect: Dialect,
  { body: asked, isEnough }: { body: WireItem; isEnough: (said: string) => boolean },
): Promise<string> {
  const client = await openSocket(port);
  const body = JSON.stringify(asked);
  let said = '';
  client.on('data', (bytes: Buffer) => (said += bytes.toString()));
  const head = [
    `POST ${PATHS[dialect]} HTTP/1.1`,
    'Host: svc',
    `Authorization: Bearer ${key}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
  ];
  client.write(`${head.join('\r\n')}\r\n\r\n${body}`);
  await until(() => isEnough(said));
  client.destroy();
  return said;
}

describe.each(DIALECTS)('%s', (dialect) => {
  test('a client that hangs up before the end of a stream has used what it got', async () => {
    const stage = await openWithBudget(dialect, WORDS);
    stage.provider.reply = () => ({
      status: 200,
      headers: { 'content-type': 'text/event-stream' },
      body: deltasOf(dialect),
      hangs: true,
    });
    const body = promptOf(dialect, 'Write three hundred words.', { stream: true });
    const said = await leave(stage, dialect, {
      body,
      isEnough: (text) => text.includes(`w${WORDS - 1} `),
    });
    const id = /x-svc-receipt-id: (\S+)/i.exec(said)?.[1];
    // It is the provider who tells of output tokens, and it has not.
    expect(await receiptIn(stage, id)).toMatchObject({
      status: 'client_aborted',
      output_tokens: null,
    });
    const usage = await stage.ask('GET usage');
    expect(usage.json.data[0].spent_tokens).toBeGreaterThanOrEqual(WORDS);
    expect(usage.json.data[0].spent_tokens).toBeLessThan(3 * WORDS);
    const next = await stage.send(dialect, body, stage);
    expect([next.status, errorIn(next).code]).toEqual([429, 'RATE_LIMIT_EXCEEDED']);
    expect(errorIn(next).message).toContain('key_tokens_per_day');
  });

  test('a client that hangs up before the answer begins has used what it sent', async () => {
    const stage = await openWithBudget(dialect, 1500);
    stage.provider.reply = () => ({ status: 200, headers: {}, body: '{}', delayMs: 60_000 });
    const body = promptOf(dialect, 'word '.repeat(1000));
    await leave(stage, dialect, { body, isEnough: () => stage.provider.seen.length > 0 });
    await until(() => stage.service.receipts.waiting === 0);
    // The count is told to nobody who waits for it.
    await pause(50);
    const next = await stage.send(dialect, body, stage);
    expect([next.status, errorIn(next).code]).toEqual([429, 'RATE_LIMIT_EXCEEDED']);
  });
});

/** A whole answer of WORDS words in which the provider counts nothing. */
const UNCOUNTED: Readonly<Record<Dialect, string>> = {
  anthropic_messages: [
    { type: 'message_start', message: { id: 'msg_1', type: 'message', role: 'assistant' } },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    {
      type: 'content_block_delta',
      index: 0,
      delta: { type: 'text_delta', text: 'w '.repeat(WORDS) },
    },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'end_turn' } },
    { type: 'message_stop' },
  ]
    .map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
    .join(''),
  openai_responses: [
    { type: 'response.output_text.delta', delta: 'w '.repeat(WORDS) },
    {
      type: 'response.completed',
      response: {
        id: 'resp_1',
        status: 'completed',
        output: [{ type: 'message', content: [{ type: 'output_text', text: 'w '.repeat(WORDS) }] }],
      },
    },
  ]
    .map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
    .join(''),
  // Without stream_options.include_usage no chunk has usage: OpenAI's API reference, November 2026.
  openai_chat_completions: `${deltasOf('openai_chat_completions')}data: ${JSON.stringify({
    choices: [{ index: 0, delta: {}, finish_reason: 'stop' }],
  })}\n\ndata: [DONE]\n\n`,
};

describe.each(DIALECTS)('%s', (dialect) => {
  test('a whole streamed answer that the provider has not counted is spent by estimate', async () => {
    const stage = await openWithBudget(dialect, WORDS);
    stage.provider.reply = () => ({
      status: 200,
      headers: { 'content-type': 'text/event-stream' },
      body: UNCOUNTED[dialect],
    });
    const body = promptOf(dialect, 'Write three hundred words.', { stream: true });
    const answer = await stage.send(dialect, body, stage);
    expect(answer.status).toBe(200);
    const receipt = await receiptIn(stage, answer.headers['x-svc-receipt-id']);
    expect(receipt).toMatchObject({ status: 'completed', output_tokens: null });
    const usage = await stage.ask('GET usage');
    expect(usage.json.data[0].spent_tokens).toBeGreaterThanOrEqual(WORDS);
    expect(usage.json.data[0].spent_tokens).toBeLessThan(3 * WORDS);
    const next = await stage.send(dialect, body, stage);
    expect([next.status, errorIn(next).code]).toEqual([429, 'RATE_LIMIT_EXCEEDED']);
  });
});

// The second: a provider that compresses although it was asked for identity. svc never decodes it.
test.each(['identity', 'gzip'])(
  'a whole answer without usage in %s is spent by estimate',
  async (encoding) => {
    const dialect = 'openai_chat_completions';
    const stage = await openWithBudget(dialect, WORDS);
    const message = { role: 'assistant', content: 'w '.repeat(3 * WORDS) };
    stage.provider.reply = () => ({
      status: 200,
      headers: { 'content-type': 'application/json', 'content-encoding': encoding },
      body: JSON.stringify({ choices: [{ index: 0, message, finish_reason: 'stop' }] }),
    });
    const body = promptOf(dialect, 'Write nine hundred words.');
    expect((await stage.send(dialect, body, stage)).status).toBe(200);
    await until(() => stage.service.receipts.waiting === 0);
    const next = await stage.send(dialect, body, stage);
    expect([next.status, errorIn(next).code]).toEqual([429, 'RATE_LIMIT_EXCEEDED']);
  },
);

// Gateways fill in zeros, or an empty object, where the server behind them has not counted.
test.each([{ prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }, {}])(
  'a whole answer whose usage counts nothing is spent by estimate: %j',
  async (usage) => {
    const dialect = 'openai_chat_completions';
    const stage = await openWithBudget(dialect, WORDS);
    const end = { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], usage };
    stage.provider.reply = () => ({
      status: 200,
      headers: { 'content-type': 'text/event-stream' },
      body: `${deltasOf(dialect)}data: ${JSON.stringify(end)}\n\ndata: [DONE]\n\n`,
    });
    const body = promptOf(dialect, 'Write three hundred words.', { stream: true });
    const answer = await stage.send(dialect, body, stage);
    const receipt = await receiptIn(stage, answer.headers['x-svc-receipt-id']);
    expect(receipt).toMatchObject({ status: 'completed', output_tokens: null });
    const next = await stage.send(dialect, body, stage);
    expect([next.status, errorIn(next).code]).toEqual([429, 'RATE_LIMIT_EXCEEDED']);
  },
);

// Gateways that count the prompt alone, or whose count of the answer is no count.
test.each([
  {},
  { completion_tokens: -5 },
  { completion_tokens: '300' },
  { completion_tokens: 1e308 },
])(
  'a whole answer whose output the provider has not counted is spent by estimate: %j',
  async (counts) => {
    const dialect = 'openai_chat_completions';
    const stage = await openWithBudget(dialect, WORDS);
    const usage = { prompt_tokens: 12, ...counts };
    const end = { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], usage };
    stage.provider.reply = () => ({
      status: 200,
      headers: { 'content-type': 'text/event-stream' },
      body: `${deltasOf(dialect)}data: ${JSON.stringify(end)}\n\ndata: [DONE]\n\n`,
    });
    const body = promptOf(dialect, 'Write three hundred words.', { stream: true });
    const answer = await stage.send(dialect, body, stage);
    const receipt = await receiptIn(stage, answer.headers['x-svc-receipt-id']);
    expect(receipt).toMatchObject({ status: 'completed', output_tokens: null });
    const spent = (await stage.ask('GET usage')).json.data[0];
    expect(spent.spent_tokens).toBeGreaterThanOrEqual(12 + WORDS);
    expect(spent.spent_tokens).toBeLessThan(3 * WORDS);
    expect([spent.input_tokens, spent.output_tokens]).toEqual([12, 0]);
    const next = await stage.send(dialect, body, stage);
    expect([next.status, errorIn(next).code]).toEqual([429, 'RATE_LIMIT_EXCEEDED']);
  },
);

test('an absurd count is booked against the limits as it is in the sums of usage', async () => {
  const dialect = 'openai_chat_completions';
  const booked: number[] = [];
  const clock = { now: () => Date.now(), monotonic: () => performance.now() };
  const counting = new ProcessLimiter(clock);
  const limiter: Limiter = {
    ping: () => counting.ping(),
    take: (asks) => counting.take(asks),
    renew: (leases) => counting.renew(leases),
    settle: async (end) => {
      for (const { ask, more } of end.changes)
        if (ask.kind === 'budget') booked.push(ask.cost + more);
      await counting.settle(end);
    },
  };
  const stage = await openModelService({ limiter });
  await stage.addProvider(dialect);
  const made = { name: 'k', scopes: ['read', 'write'], tokens_per_day: 2 ** 40 };
  const key = (await stage.ask('POST keys', made)).json.secret;
  const most = Number.MAX_SAFE_INTEGER;
  const end = {
    choices: [{ index: 0, message: { role: 'assistant', content: 'Yes.' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: most, completion_tokens: most },
  };
  const headers = { 'content-type': 'application/json' };
  stage.provider.reply = () => ({ status: 200, headers, body: JSON.stringify(end) });
  const body = promptOf(dialect, 'Do you count?');
  const answer = await stage.send(dialect, body, { key });
  await receiptIn(stage, answer.headers['x-svc-receipt-id']);
  const { spent_tokens: spent } = (await stage.ask('GET usage')).json.data[0];
  expect(booked).toEqual([spent]);
  expect((await stage.send(dialect, body, { key })).status).toBe(200);
});
