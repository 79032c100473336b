import { describe, expect, test } from 'vitest';
import { DIALECTS, promptOf } from '../../../test/support/dialect-wire.ts';
import { errorIn, MODEL, openModelService, receiptIn } from '../support/model-service.ts';
import { noteOfTest } from '../support/service-control.ts';
import { ask } from '../../../test/support/sockets.ts';

const NONE = {};

describe.each(DIALECTS)('%s', (dialect) => {
  test('a refusal has the shape of its dialect, a code, a hint, a retry header and a receipt', async () => {
    const stage = await openModelService();
    const { send, makeKey, addProvider, provider } = stage;
    await addProvider(dialect, { allowed_models: [MODEL, 'n-*'] });
    const key = await makeKey();
    const body = promptOf(dialect, 'Hello there');
    const cases: readonly (readonly [string, number, object | string, object])[] = [
      ['MODEL_NOT_FOUND', 404, { ...body, model: 'x' }, NONE],
      ['MODEL_AMBIGUOUS', 422, JSON.stringify(body).replace('{', '{"\\u006dodel":"n-1",'), NONE],
      ['MODEL_AMBIGUOUS', 422, { ...body, model: 7 }, NONE],
      ['BODY_UNREADABLE', 422, '{"model":"m",', NONE],
      ['BODY_UNREADABLE', 422, 'model=m', NONE],
      ['MODE_INVALID', 422, body, { 'x-svc-memory-mode': 'all' }],
      ['MODE_INVALID', 422, body, { 'x-svc-compression-mode': '' }],
      ['MODE_INVALID', 422, body, { 'x-svc-memory-space': 'No Such' }],
      ['ENCODING_UNSUPPORTED', 415, body, { 'content-encoding': 'lzma' }],
      ['BODY_UNREADABLE', 422, 'no zstd', { 'content-encoding': 'zstd' }],
    ];
    for (const [code, status, sent, headers] of cases) {
      // oxlint-disable-next-line no-await-in-loop
      const answer = await send(dialect, sent, { key, headers: headers as Record<string, string> });
      const error = errorIn(answer);
      expect([code, answer.status, error.code]).toEqual([code, status, code]);
      expect(answer.headers).toMatchObject({
        'x-svc-error-source': 'service',
        'x-svc-error-code': code,
        'x-should-retry': 'false',
        'x-svc-request-id': error.receipt,
        'x-svc-receipt-id': error.receipt,
        'request-id': error.receipt,
      });
      expect(answer.headers['x-svc-local-proxy']).toBe(undefined);
      // oxlint-disable-next-line no-await-in-loop
      const receipt = await receiptIn(stage, error.receipt);
      expect(receipt).toMatchObject({ status: 'rejected', http_status: status, error_code: code });
    }
    expect(provider.seen).toEqual([]);
  });

  test('a caller without a good key learns nothing but that', async () => {
    const { send, port, makeKey, addProvider, provider } = await openModelService();
    await addProvider(dialect);
    const key = await makeKey();
    const wrong = await send(dialect, promptOf(dialect, 'Hello'), { key: `${key}x` });
    expect([wrong.status, errorIn(wrong).code, errorIn(wrong).receipt]).toEqual([
      401,
      'AUTH_INVALID',
      null,
    ]);
    const none = await ask(port, { path: '/v1/messages/no/such', body: Buffer.from('{}') });
    expect([none.status, errorIn(none).code]).toEqual([401, 'AUTH_MISSING']);
    const two = await send(dialect, promptOf(dialect, 'Hello'), {
      key,
      headers: { 'x-api-key': await makeKey() },
    });
    expect([two.status, errorIn(two).code]).toEqual([401, 'AUTH_INVALID']);
    expect(provider.seen).toEqual([]);
  });
});

test('an unknown model is answered with the names that the key may use, and a hint', async () => {
  const { send, makeKey, addProvider } = await openModelService();
  await addProvider('openai_responses', { allowed_models: ['a', 'b-*'], default_model: 'a' });
  const body = promptOf('openai_responses', 'Hello', { model: 'z' });
  const answer = await send('openai_responses', body, { key: await makeKey() });
  expect(errorIn(answer).message).toBe(
    'svc: The model is not allowed here. Allowed: a, b-*. Name one of the allowed models.',
  );
});

test('without a provider of its dialect a request is refused, whatever other providers there are', async () => {
  const { send, makeKey, addProvider } = await openModelService();
  await addProvider('openai_responses');
  const body = promptOf('anthropic_messages', 'Hello');
  const answer = await send('anthropic_messages', body, { key: await makeKey() });
  expect([answer.status, errorIn(answer).code]).toEqual([422, 'PROVIDER_NOT_CONFIGURED']);
});

test('a provider that cannot be reached, or at an address that is not allowed, is a 502', async () => {
  const { send, makeKey, addProvider } = await openModelService();
  await addProvider('openai_responses', { base_url: 'https://models.provider.test:8443' });
  const key = await makeKey();
  const body = promptOf('openai_responses', 'Hello');
  const answer = await send('openai_responses', body, { key });
  expect([answer.status, errorIn(answer).code]).toEqual([502, 'PROVIDER_UNREACHABLE']);
  expect(answer.headers['x-should-retry']).toBe('true');
  const closed = await openModelService({ egress: { ports: [], allow: [] } });
  await closed.addProvider('openai_responses', { base_url: 'https://models.provider.test:8443' });
  const refused = await closed.send('openai_responses', body, { key: await closed.makeKey() });
  expect([refused.status, errorIn(refused).code]).toEqual([502, 'PROVIDER_ADDRESS_REFUSED']);
  expect(refused.headers['x-should-retry']).toBe('false');
});

test("a provider's own error passes unchanged, and says whose it is", async () => {
  const stage = await openModelService();
  const { send, makeKey, addProvider, provider } = stage;
  await addProvider('openai_responses');
  provider.reply = () => ({
    status: 529,
    headers: { 'content-type': 'application/json', 'request-id': 'req_theirs', 'retry-after': '7' },
    body: '{"error":{"message":"full"}}',
  });
  const body = promptOf('openai_responses', 'Hello');
  const answer = await send('openai_responses', body, { key: await makeKey() });
  expect([answer.status, answer.body.toString()]).toEqual([529, '{"error":{"message":"full"}}']);
  expect(answer.headers).toMatchObject({
    'x-svc-error-source': 'provider',
    'request-id': 'req_theirs',
    'retry-after': '7',
  });
  const receipt = await receiptIn(stage, answer.headers['x-svc-receipt-id']);
  expect(receipt).toMatchObject({
    status: 'upstream_error',
    http_status: 529,
    upstream_status: 529,
    upstream_request_id: 'req_theirs',
    error_source: 'provider',
  });
});

test('a space that the key may not use is refused where it is named, and memory is off where it is not', async () => {
  const stage = await openModelService();
  const { send, makeKey, addProvider, provider } = stage;
  await addProvider('anthropic_messages');
  const body = promptOf('anthropic_messages', 'Remember the marmalade of the staging cluster.');
  const team = await makeKey({ spaces: ['team/*'] });
  const named = await send('anthropic_messages', body, {
    key: team,
    headers: { 'x-svc-memory-space': 'other' },
  });
  expect([named.status, errorIn(named).code]).toEqual([403, 'SPACE_DENIED']);
  expect(provider.seen).toEqual([]);
  const derived = await send('anthropic_messages', body, { key: team });
  expect([derived.status, derived.headers['x-svc-memory-mode']]).toEqual([200, 'off']);
  const own = await send('anthropic_messages', body, {
    key: team,
    headers: { 'x-svc-memory-space': 'team/a' },
  });
  expect(own.status).toBe(200);
  const none = await makeKey({ spaces: ['team/*'], scopes: [] });
  const without = await send('anthropic_messages', body, { key: none });
  expect([without.status, without.headers['x-svc-memory-mode']]).toEqual([200, 'off']);
});

test('one credential that does not open stops its own provider alone', async () => {
  const { send, makeKey, addProvider, service } = await openModelService();
  await addProvider('openai_responses', {
    name: 'broken',
    allowed_models: ['b'],
    default_model: 'b',
  });
  await addProvider('openai_responses', { name: 'well' });
  const key = await makeKey();
  const open = service.store.of('default');
  const [provider] = (await open.listProviders()).filter(({ name }) => name === 'broken');
  const secrets = await service.store.listSecrets({ limit: 9 });
  const sealed = secrets.find(({ owner }) => owner === provider?.providerId);
  if (provider === undefined || sealed === undefined) throw new Error('lost');
  const broken = { ...sealed, ciphertext: Buffer.alloc(sealed.ciphertext.length) };
  const next = { ...provider, version: 2 };
  await open.apply(
    { what: 'provider.put', provider: next, ifVersion: 1, secrets: [broken] },
    noteOfTest('provider.updated'),
  );
  const failed = await send(
    'openai_responses',
    promptOf('openai_responses', 'Hi', { model: 'b' }),
    {
      key,
    },
  );
  expect([failed.status, errorIn(failed).code]).toEqual([503, 'VAULT_UNAVAILABLE']);
  expect(failed.headers).toMatchObject({ 'x-should-retry': 'true', 'retry-after': '2' });
  const well = await send('openai_responses', promptOf('openai_responses', 'Hi'), { key });
  expect(well.status).toBe(200);
});

test('a plan that is used up is a 429 with its limit, and nothing is forwarded', async () => {
  const stage = await openModelService();
  const { send, makeKey, addProvider, provider, ask: console } = stage;
  await addProvider('anthropic_messages');
  await console('POST plans', { name: 'small', limits: { requests_per_minute: 1 } });
  await console('PATCH tenants/default', { plan: 'small' });
  const key = await makeKey();
  const body = promptOf('anthropic_messages', 'Hello');
  const first = await send('anthropic_messages', body, { key });
  expect(first.status).toBe(200);
  const second = await send('anthropic_messages', body, { key });
  expect([second.status, errorIn(second).code]).toEqual([429, 'RATE_LIMIT_EXCEEDED']);
  expect(errorIn(second).message).toContain('requests_per_minute');
  expect(Number(second.headers['retry-after'])).toBeGreaterThan(0);
  expect(second.headers['x-should-retry']).toBe('true');
  expect(provider.seen.length).toBe(1);
  const receipt = await receiptIn(stage, errorIn(second).receipt);
  expect(receipt).toMatchObject({ status: 'rejected', error_code: 'RATE_LIMIT_EXCEEDED' });
});

test('a limiter that fails blocks the request; without a limit nobody asks it', async () => {
  const failing = () => Promise.reject(new Error('away'));
  const limiter = { ping: failing, take: failing, renew: failing, settle: failing };
  const stage = await openModelService({ limiter });
  const { send, makeKey, addProvider, provider, ask: console } = stage;
  await addProvider('openai_responses');
  const key = await makeKey();
  const body = promptOf('openai_responses', 'Hello');
  expect((await send('openai_responses', body, { key })).status).toBe(200);
  await console('POST plans', { name: 'small', limits: { requests_per_minute: 9 } });
  await console('PATCH tenants/default', { plan: 'small' });
  const blocked = await send('openai_responses', body, { key });
  expect([blocked.status, errorIn(blocked).code]).toEqual([503, 'RATE_LIMITER_UNAVAILABLE']);
  expect(provider.seen.length).toBe(1);
});
