import { expect, test } from 'vitest';
import { promptOf } from '../../../test/support/dialect-wire.ts';
import { callService, itemOf } from '../support/memory-service.ts';
import {
  errorIn,
  type ModelService,
  openModelService,
  type SendOptions,
} from '../support/model-service.ts';
import { ask, type ClientAnswer, pause } from '../../../test/support/sockets.ts';
import { receiptIn } from '../support/model-service.ts';

/** What requests cost that no provider sees: refused ones, and lists of models. */

const DIALECT = 'openai_chat_completions';

async function openLimited(limits: object): Promise<ModelService & { readonly key: string }> {
  const stage = await openModelService();
  await stage.ask('POST plans', { name: 'small', limits });
  await stage.ask('POST tenants', { tenant_id: 'acme', plan: 'small' });
  await stage.addProvider(DIALECT, {}, 'acme');
  const scopes = ['read', 'write', 'receipt:read'];
  const made = await stage.ask('POST keys', { name: 'k', scopes }, { tenant: 'acme' });
  return { ...stage, key: made.json.secret };
}

function list({ port, key }: Pick<ModelService, 'port'> & SendOptions): Promise<ClientAnswer> {
  const headers = ['authorization', `Bearer ${key}`];
  return ask(port, { method: 'GET', path: '/v1/models', headers });
}

test('a request over its budget costs no recall, and its receipt says that nothing was recalled or forwarded', async () => {
  const stage = await openLimited({ tokens_per_day: 60 });
  const { send, key, provider, service } = stage;
  const fact = 'The deploy code word for project Zephyr is marmalade-42. '.repeat(3);
  expect((await send(DIALECT, promptOf(DIALECT, fact), { key })).status).toBe(200);
  await service.flush();
  const seen = provider.seen.length;
  const recalls: string[] = [];
  const question = promptOf(DIALECT, 'What is the deploy code word for project Zephyr?');
  for (let tries = 0; tries < 3; tries += 1) {
    /* oxlint-disable no-await-in-loop */
    const answer = await send(DIALECT, question, { key });
    expect([answer.status, errorIn(answer).code]).toEqual([429, 'RATE_LIMIT_EXCEEDED']);
    expect(answer.headers['x-svc-recalled-tokens']).toBe('0');
    expect(answer.headers['x-svc-forwarded-input-tokens']).toBe('0');
    const receipt = await receiptIn(stage, answer.headers['x-svc-receipt-id'], 'acme');
    expect(receipt).toMatchObject({
      status: 'rejected',
      error_code: 'RATE_LIMIT_EXCEEDED',
      recalled_tokens: 0,
      recalled_items: 0,
      forwarded_input_tokens: 0,
      forwarded_sha256: null,
      memory_mode: 'read-write',
      memory_state: 'off',
    });
    expect(receipt['original_input_tokens']).toBeGreaterThan(10);
    expect((receipt['latency_ms'] as Record<string, unknown>)['recall']).toBeNull();
    recalls.push(String(receipt['memory_generation']));
    /* oxlint-enable no-await-in-loop */
  }
  expect(recalls).toEqual(['null', 'null', 'null']);
  expect(provider.seen).toHaveLength(seen);
});

test('lists of models and refused requests count against the limit of requests', async () => {
  const stage = await openLimited({ requests_per_minute: 6, requests_burst: 6 });
  const { send, key } = stage;
  const wrong = { ...promptOf(DIALECT, 'Hello'), model: 'unknown' };
  const mode = { 'x-svc-memory-mode': 'all' };
  const statuses = [
    (await list(stage)).status,
    (await list(stage)).status,
    (await send(DIALECT, wrong, { key })).status,
    (await send(DIALECT, promptOf(DIALECT, 'Hello'), { key, headers: mode })).status,
    (await send(DIALECT, promptOf(DIALECT, 'Hello'), { key, path: '/v1/messages/none' })).status,
    (await send(DIALECT, promptOf(DIALECT, 'Hello'), { key })).status,
    (await list(stage)).status,
    (await send(DIALECT, wrong, { key })).status,
    (await send(DIALECT, promptOf(DIALECT, 'Hello'), { key })).status,
  ];
  expect(statuses).toEqual([200, 200, 404, 422, 404, 200, 429, 429, 429]);
});

test('a client that repeats refused requests or lists leaves a bounded number of receipts', async () => {
  const stage = await openLimited({});
  const { send, key, service } = stage;
  const wrong = { ...promptOf(DIALECT, 'Hello'), model: 'unknown' };
  const named = async (calls: number, call: () => Promise<ClientAnswer>): Promise<number> => {
    let receipts = 0;
    for (let count = 0; count < calls; count += 20) {
      // oxlint-disable-next-line no-await-in-loop -- Twenty at once.
      const answers = await Promise.all(Array.from({ length: 20 }, call));
      receipts += answers.filter(({ headers }) => 'x-svc-receipt-id' in headers).length;
      const errors = answers.filter(({ status }) => status >= 400);
      for (const answer of errors) {
        const { receipt } = errorIn(answer);
        expect(receipt).toBe(answer.headers['x-svc-receipt-id'] ?? null);
      }
    }
    return receipts;
  };
  const lists = await named(100, () => list(stage));
  const refusals = await named(300, () => send(DIALECT, wrong, { key }));
  expect(lists).toBe(100);
  expect(lists + refusals).toBeLessThan(200);
  // Served requests always have one.
  const served = await send(DIALECT, promptOf(DIALECT, 'Hello'), { key });
  expect(served.headers['x-svc-receipt-id']).toMatch(/^rcpt_/);
  await service.receipts.flush();
  await pause(50);
  const url = new URL('/v1/svc/requests/heads', service.url);
  const heads = await callService(service.url, url.pathname, { key });
  expect(heads.json.data[0].last_seq).toBe(lists + refusals + 1);
  // Another tenant has a count of its own.
  const other = await stage.makeKey({ scopes: ['read'] });
  expect((await list({ ...stage, key: other })).headers['x-svc-receipt-id']).toMatch(/^rcpt_/);
});

test('a request of a suspended tenant is refused, and its receipt says so', async () => {
  const stage = await openLimited({});
  const { send, key, service } = stage;
  await stage.ask('PATCH tenants/acme', { status: 'suspended' });
  await service.changes.changed();
  const answer = await send(DIALECT, promptOf(DIALECT, 'Hello'), { key });
  expect([answer.status, errorIn(answer).code]).toEqual([403, 'TENANT_SUSPENDED']);
  const receipt = await receiptIn(stage, answer.headers['x-svc-receipt-id'], 'acme');
  expect(receipt).toMatchObject({ status: 'rejected', error_code: 'TENANT_SUSPENDED' });
});

test('a receipt says how long the limits and the captures took', async () => {
  const stage = await openLimited({ requests_per_minute: 600, tokens_per_day: 1_000_000 });
  const { send, key } = stage;
  const answer = await send(DIALECT, promptOf(DIALECT, 'The code word is marmalade.'), { key });
  const receipt = await receiptIn(stage, answer.headers['x-svc-receipt-id'], 'acme');
  const { latency_ms: latency } = receipt as { latency_ms: Record<string, unknown> };
  expect(latency['limiter']).toBeTypeOf('number');
  expect(latency['capture']).toBeTypeOf('number');
});

test('a plan that allows no further record: captures are rejected, and requests go on', async () => {
  const stage = await openLimited({ records: 2 });
  const { send, key, service, askMemory } = stage;
  for (const words of ['one fact about boats', 'a second fact about sails']) {
    // oxlint-disable-next-line no-await-in-loop
    const answer = await send(DIALECT, promptOf(DIALECT, `Remember ${words}.`), { key });
    expect(answer.status).toBe(200);
  }
  await service.flush();
  const held = await askMemory('memory/items', key);
  expect(held.json.data.length).toBeLessThanOrEqual(2);
  const body = { space: 'default', if_generation: 'new', items: [itemOf('a third fact')] };
  const capture = await askMemory('memory/capture', key, body);
  expect(capture.json.results).toMatchObject([{ state: 'rejected', reason: 'quota' }]);
});
