import { describe, expect, test } from 'vitest';
import { DIALECTS, promptOf } from '../../../test/support/dialect-wire.ts';
import { limiterOf } from '../support/limits.ts';
import { callService } from '../support/memory-service.ts';
import {
  errorIn,
  HOST,
  openModelService,
  providerCertificate,
  receiptIn,
} from '../support/model-service.ts';
import { noteOfTest } from '../support/service-control.ts';
import {
  ask as askRaw,
  head,
  pause,
  type SeenRequest,
  startProvider,
  until,
} from '../../../test/support/sockets.ts';

/** Parts of a service that fail while models are asked: nothing is forwarded that could not be accounted for. */

describe.each(DIALECTS)('%s', (dialect) => {
  test('a journal of receipts that is full: not ready, 503 before anything is forwarded, and well again', async () => {
    // Room for two open receipts and the lines that close them, not for a third one.
    let isHeld = true;
    const answer = ({ socket }: SeenRequest) =>
      socket.write(`${head('200 OK', 'Content-Type: application/json', 'Content-Length: 2')}{}`);
    const provider = await startProvider((request) => {
      if (!isHeld) answer(request);
    }, providerCertificate());
    const stage = await openModelService({
      journalBytesMax: 18_000,
      egress: { ports: [provider.port], allow: ['127.0.0.0/8'] },
    });
    const { send, makeKey, addProvider, service, port } = stage;
    await addProvider(dialect, { base_url: `https://${HOST}:${provider.port}` });
    const key = await makeKey();
    const body = promptOf(dialect, 'Hello');
    const running = [send(dialect, body, { key }), send(dialect, body, { key })];
    await until(() => provider.requests.length === 2);
    const refused = await send(dialect, body, { key });
    expect([refused.status, errorIn(refused).code]).toEqual([503, 'JOURNAL_FULL']);
    expect(refused.headers).toMatchObject({
      'x-should-retry': 'true',
      'retry-after': '2',
      'x-svc-error-source': 'service',
    });
    // Nothing could be written, so no receipt is promised.
    expect(errorIn(refused).receipt).toBe(null);
    expect(refused.headers['x-svc-receipt-id']).toBe(undefined);
    const path = '/v1/models';
    const headers = ['authorization', `Bearer ${key}`];
    const list = await askRaw(port, { method: 'GET', path, headers });
    expect([list.status, errorIn(list).code, errorIn(list).receipt]).toEqual([
      503,
      'JOURNAL_FULL',
      null,
    ]);
    // A request that is refused anyway keeps its own answer.
    const unknown = await send(dialect, { ...body, model: 'unknown' }, { key });
    expect([unknown.status, errorIn(unknown).code, errorIn(unknown).receipt]).toEqual([
      404,
      'MODEL_NOT_FOUND',
      null,
    ]);
    const ready = await callService(service.url, '/readyz');
    expect([ready.status, ready.json.checks.journal.status]).toEqual([503, 'fail']);
    expect(provider.requests).toHaveLength(2);
    isHeld = false;
    for (const request of provider.requests) answer(request);
    for (const { status } of await Promise.all(running)) expect(status).toBe(200);
    await service.receipts.flush();
    expect((await send(dialect, body, { key })).status).toBe(200);
    await pause(1_100);
    expect((await callService(service.url, '/readyz')).status).toBe(200);
  }, 60_000);

  test.each([
    [
      'throws',
      () => {
        throw new Error('CANARY');
      },
    ],
    ['rejects', async () => Promise.reject(new Error('CANARY'))],
    ['hangs', () => new Promise<never>(() => undefined)],
  ] as const)('a limiter that %s: 503, and nothing is forwarded', async (_, take) => {
    const stage = await openModelService({ limiter: limiterOf(take) });
    const { send, makeKey, addProvider, provider, ask: console, service } = stage;
    await addProvider(dialect);
    await console('POST plans', { name: 'small', limits: { concurrent_requests: 9 } });
    await console('PATCH tenants/default', { plan: 'small' });
    const key = await makeKey();
    const answer = await send(dialect, promptOf(dialect, 'Hello'), { key });
    expect([answer.status, errorIn(answer).code]).toEqual([503, 'RATE_LIMITER_UNAVAILABLE']);
    expect(answer.headers).toMatchObject({ 'x-should-retry': 'true', 'retry-after': '2' });
    expect(await receiptIn(stage, errorIn(answer).receipt)).toMatchObject({
      status: 'rejected',
      http_status: 503,
      error_code: 'RATE_LIMITER_UNAVAILABLE',
      error_source: 'service',
      model_requested: 'm',
    });
    expect(provider.seen).toEqual([]);
    const said = JSON.stringify([service.reports, answer.body.toString()]);
    expect(said).not.toContain('CANARY');
  });
});

test('an unreadable secret refuses requests to its provider, with a receipt, until it is replaced', async () => {
  const stage = await openModelService();
  const { send, makeKey, addProvider, provider, ask: console, service } = stage;
  const id = await addProvider('anthropic_messages', {
    custom_headers: [{ name: 'x-team', value: 'team $API_KEY' }],
  });
  const key = await makeKey();
  const body = promptOf('anthropic_messages', 'Hello');
  const store = service.store.of('default');
  const find = store.findSecret.bind(store);
  const [header] = (await store.listProviders())[0]?.headers ?? [];
  const sealed = await find(header?.secretId ?? '');
  if (sealed === undefined) throw new Error('lost');
  const [own] = await store.listProviders();
  if (own === undefined) throw new Error('lost');
  const broken = { ...sealed, ciphertext: Buffer.alloc(sealed.ciphertext.length) };
  await store.apply(
    { what: 'provider.put', provider: { ...own, version: 2 }, ifVersion: 1, secrets: [broken] },
    noteOfTest('provider.updated'),
  );
  const failed = await send('anthropic_messages', body, { key });
  expect([failed.status, errorIn(failed).code]).toEqual([503, 'VAULT_UNAVAILABLE']);
  expect(await receiptIn(stage, errorIn(failed).receipt)).toMatchObject({
    status: 'rejected',
    error_code: 'VAULT_UNAVAILABLE',
    model_requested: 'm',
  });
  expect(provider.seen).toEqual([]);
  const repaired = await console(`PATCH providers/${id}`, {
    version: 2,
    credential: 'sk-new',
    custom_headers: [{ name: 'x-team', value: 'team $API_KEY' }],
  });
  expect(repaired.status).toBe(200);
  expect((await send('anthropic_messages', body, { key })).status).toBe(200);
  expect(provider.seen[0]?.headers.join('\n')).toContain('team sk-new');
});

test('a clock that is set back one hour: receipts keep their numbers and order of time, limits and keys hold', async () => {
  let behind = 0;
  const clock = { now: () => Date.now() - behind, monotonic: () => performance.now() };
  const stage = await openModelService({ clock });
  const { send, makeKey, addProvider, ask: console, service } = stage;
  await addProvider('openai_responses');
  const limits = {
    requests_per_minute: 6_000,
    requests_burst: 2,
    tokens_per_day: 1_000_000,
    concurrent_requests: 2,
  };
  await console('POST plans', { name: 'small', limits });
  await console('PATCH tenants/default', { plan: 'small' });
  const key = await makeKey({ expiresAt: Date.now() + 1_800_000 });
  const late = await makeKey({ expiresAt: Date.now() - 5_400_000 });
  const body = promptOf('openai_responses', 'Hello');
  const ids: string[] = [];
  const run = async (): Promise<void> => {
    for (let count = 0; count < 4; count += 1) {
      // oxlint-disable-next-line no-await-in-loop
      const answer = await send('openai_responses', body, { key });
      expect([count, answer.status]).toEqual([count, 200]);
      ids.push(String(answer.headers['x-svc-receipt-id']));
      // oxlint-disable-next-line no-await-in-loop
      await pause(30);
    }
  };
  await run();
  behind = 3_600_000;
  await run();
  behind = 0;
  await run();
  await service.receipts.flush();
  expect(new Set(ids).size).toBe(12);
  const receipts = [];
  for (const id of ids) {
    // oxlint-disable-next-line no-await-in-loop
    receipts.push(await receiptIn(stage, id));
  }
  const issuers = receipts.map(({ issuer }) => issuer as { seq: number; node: string });
  expect(issuers.map(({ seq }) => seq)).toEqual(ids.map((_, at) => at + 1));
  for (const { created_at: from, completed_at: to } of receipts) {
    expect(String(from) <= String(to)).toBe(true);
  }
  const list = await callService(service.url, '/v1/svc/requests?limit=100', { key });
  const listed = list.json.data.map((one: { receipt_id: string }) => one.receipt_id);
  expect(listed).toEqual(ids.toSorted().toReversed());
  behind = 3_600_000;
  const refused = await send('openai_responses', body, { key: late });
  expect([refused.status, errorIn(refused).code]).toEqual([401, 'AUTH_EXPIRED']);
}, 60_000);
