import { createHash } from 'node:crypto';
import { flattenedVerify, importJWK } from 'jose';
import { expect, test } from 'vitest';
import { DIALECTS, promptOf } from '../../../test/support/dialect-wire.ts';
import { callService } from '../support/memory-service.ts';
import { MODEL, openModelService, type ModelService } from '../support/model-service.ts';
import { ask, type ClientAnswer } from '../../../test/support/sockets.ts';

/** The receipt that an answer names, once it is stored. */
async function receiptOf({ service }: ModelService, key: string, answer: ClientAnswer) {
  const id = String(answer.headers['x-svc-receipt-id']);
  expect(id).toMatch(/^rcpt_[0-9a-z]{26}$/);
  await expect
    .poll(async () => (await callService(service.url, `/v1/svc/requests/${id}`, { key })).status)
    .toBe(200);
  return (await callService(service.url, `/v1/svc/requests/${id}`, { key })).json;
}

async function openSigned(): Promise<ModelService & { readonly key: string }> {
  const stage = await openModelService();
  await stage.ask('POST signing/rotate', {});
  return { ...stage, key: await stage.makeKey() };
}

/** RFC 8785 for the values that receipts have, without any code of svc: sorted members, no blanks. */
function canonical(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  const names = Object.keys(value).toSorted((one, other) => (one < other ? -1 : 1));
  const members = names.map(
    (name) => `${JSON.stringify(name)}:${canonical(Reflect.get(value, name))}`,
  );
  return `{${members.join(',')}}`;
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}

test('[1.4-receipt] each kind of request leaves one receipt, whether it is served, refused or failed', async () => {
  const stage = await openSigned();
  const { key, send, port, provider, addProvider } = stage;
  for (const dialect of DIALECTS) {
    // oxlint-disable-next-line no-await-in-loop
    await addProvider(dialect);
  }
  const answers: [string, ClientAnswer, object][] = [];
  for (const dialect of DIALECTS) {
    for (const stream of [true, false]) {
      const body = promptOf(dialect, 'Hello there', { stream });
      // oxlint-disable-next-line no-await-in-loop
      const answer = await send(dialect, body, { key });
      answers.push([
        `${dialect} ${stream}`,
        answer,
        { kind: 'model', dialect, streamed: stream, status: 'completed', http_status: 200 },
      ]);
    }
  }
  const anthropic = 'anthropic_messages';
  const hello = promptOf(anthropic, 'Hello there');
  const count = await send(anthropic, hello, { key, path: '/v1/messages/count_tokens' });
  answers.push(['count', count, { kind: 'count_tokens', status: 'completed' }]);
  const headers = ['authorization', `Bearer ${key}`];
  const list = await ask(port, { method: 'GET', path: '/v1/models', headers });
  answers.push(['list', list, { kind: 'models', status: 'completed', http_status: 200 }]);
  const unknown = await send(anthropic, { ...hello, model: 'z' }, { key });
  answers.push(['unknown model', unknown, { status: 'rejected', error_code: 'MODEL_NOT_FOUND' }]);
  const wrongMode = { 'x-svc-memory-mode': 'all' };
  const refused = await send(anthropic, hello, { key, headers: wrongMode });
  answers.push(['mode', refused, { status: 'rejected', error_code: 'MODE_INVALID' }]);
  const noPath = await send(anthropic, hello, { key, path: '/v1/messages/no/such' });
  answers.push(['path', noPath, { status: 'rejected', http_status: 404 }]);
  provider.reply = () => ({ status: 529, headers: {}, body: '{"type":"error"}' });
  const failed = await send(anthropic, hello, { key });
  answers.push([
    'overloaded',
    failed,
    { status: 'upstream_error', upstream_status: 529, error_source: 'provider' },
  ]);
  provider.reply = () => ({ status: 200, headers: {}, body: '{"half', cutAfter: 3 });
  const cut = await send(anthropic, hello, { key });
  answers.push(['cut', cut, { status: 'upstream_interrupted' }]);
  for (const [name, answer, expected] of answers) {
    // oxlint-disable-next-line no-await-in-loop
    const receipt = await receiptOf(stage, key, answer);
    expect([name, receipt]).toMatchObject([name, expected]);
    if (answer.status === 200 && !answer.isCut && receipt.kind === 'model') {
      expect(receipt.response_sha256).toBe(sha256(answer.body));
    }
  }
  const all = await callService(stage.service.url, '/v1/svc/requests?limit=100', { key });
  expect(all.json.data).toHaveLength(answers.length);
  const heads = await callService(stage.service.url, '/v1/svc/requests/heads', { key });
  const { keys } = (await callService(stage.service.url, '/.well-known/svc/receipt-keys.json', {}))
    .json;
  const publicKey = await importJWK(keys[0], 'Ed25519');
  for (const { signature, ...rest } of [...all.json.data, ...heads.json.data]) {
    const [head = '', , sealed = ''] = signature.jws.split('.');
    const payload = Buffer.from(canonical(rest)).toString('base64url');
    // oxlint-disable-next-line no-await-in-loop -- It throws for a signature that does not fit.
    await flattenedVerify({ protected: head, payload, signature: sealed }, publicKey);
  }
});

test('[2.2-latency] a receipt has the time of the whole request and of its steps', async () => {
  const stage = await openSigned();
  const { key, send, provider, addProvider } = stage;
  await addProvider('openai_responses');
  const { reply } = provider;
  provider.reply = (request) => ({ ...reply(request), delayMs: 200 });
  const answer = await send('openai_responses', promptOf('openai_responses', 'Hello'), { key });
  const receipt = await receiptOf(stage, key, answer);
  const { latency_ms: ms, created_at: from, completed_at: to } = receipt;
  // A timer may fire a little early by the clock that is read here.
  expect(ms.upstream_first_byte).toBeGreaterThanOrEqual(195);
  expect(ms.upstream_total).toBeGreaterThanOrEqual(ms.upstream_first_byte);
  expect(ms.total).toBeGreaterThanOrEqual(ms.upstream_total);
  expect(ms).toMatchObject({ auth: expect.any(Number), overhead: expect.any(Number) });
  expect(Date.parse(to) - Date.parse(from)).toBe(ms.total);
  const refused = await send('openai_responses', { model: 'z' }, { key });
  const { latency_ms: short } = await receiptOf(stage, key, refused);
  expect(short).toMatchObject({ total: expect.any(Number), upstream_total: null });
});

test('[2.3-typed-model-ids] a model that was typed by hand is served, though the provider lists none', async () => {
  const stage = await openSigned();
  const { ask: console, key, send, provider, addProvider } = stage;
  const typed = { allowed_models: ['house-model'], default_model: 'house-model' };
  const id = await addProvider('openai_responses', typed);
  const { reply } = provider;
  provider.reply = (request) =>
    request.path === '/v1/models' ? { status: 404, headers: {}, body: '' } : reply(request);
  expect((await console(`POST providers/${id}/models`, {})).json.outcome).toBe('not_supported');
  await console(`PATCH providers/${id}`, { version: 1, allowed_models: ['house-model', 'new/1'] });
  for (const model of ['house-model', 'new/1']) {
    const body = promptOf('openai_responses', 'Hello', { model });
    // oxlint-disable-next-line no-await-in-loop
    expect((await send('openai_responses', body, { key })).status).toBe(200);
  }
});

test('[2.3-custom-kinds] a custom provider is a gateway, a region, a company proxy or anything else of its style', async () => {
  const stage = await openSigned();
  const { key, send, provider, addProvider } = stage;
  const base = `https://models.provider.test:${new URL(provider.url).port}`;
  const kinds = {
    gateway: { base_url: `${base}/gateway/v1` },
    regional: { base_url: `${base}/eu-west`, auth: 'x-api-key' },
    enterprise: {
      base_url: `${base}/llm`,
      auth: 'none',
      custom_headers: [
        { name: 'api-key', value: '$API_KEY' },
        { name: 'x-team', value: 'api' },
      ],
    },
    other: { base_url: base, custom_query: [{ name: 'api-version', value: '2026-01' }] },
  };
  for (const [name, more] of Object.entries(kinds)) {
    // oxlint-disable-next-line no-await-in-loop
    await addProvider('openai_chat_completions', {
      name,
      allowed_models: [name],
      default_model: name,
      credential: `sk-of-${name}`,
      ...more,
    });
    const body = promptOf('openai_chat_completions', 'Hello', { model: name });
    // oxlint-disable-next-line no-await-in-loop
    await send('openai_chat_completions', body, { key });
  }
  const seen = provider.seen.map(({ path, headers }) => [
    path,
    headers.find((_, at) => /^(?:authorization|x-api-key|api-key)$/i.test(headers[at - 1] ?? '')),
  ]);
  expect(seen).toEqual([
    ['/gateway/v1/chat/completions', 'Bearer sk-of-gateway'],
    ['/eu-west/chat/completions', 'sk-of-regional'],
    ['/llm/chat/completions', 'sk-of-enterprise'],
    ['/v1/chat/completions?api-version=2026-01', 'Bearer sk-of-other'],
  ]);
});

test('[5.6-auto-admitted-pinned] the address of a preset is pinned and public too: one that leads inside is not dialled', async () => {
  const stage = await openSigned();
  const { ask: console, key, send, provider } = stage;
  const allowed = { default_model: MODEL, allowed_models: [MODEL], credential: 'sk-1' };
  const preset = { name: 'claude', kind: 'preset', preset_id: 'anthropic', ...allowed };
  const style = { api_style: 'anthropic_messages' };
  expect((await console('POST providers', { ...preset, ...style })).status).toBe(201);
  const closed = await openModelService({ egress: { ports: [], allow: [] } });
  expect((await closed.ask('POST providers', { ...preset, ...style })).status).toBe(201);
  const body = promptOf('anthropic_messages', 'Hello');
  const refused = await closed.send('anthropic_messages', body, { key: await closed.makeKey() });
  expect([refused.status, refused.headers['x-svc-error-code']]).toEqual([
    502,
    'PROVIDER_ADDRESS_REFUSED',
  ]);
  // Where the operator opened the network, the certificate must still be the name's own.
  const unproven = await send('anthropic_messages', body, { key });
  expect([unproven.status, unproven.headers['x-svc-error-code']]).toEqual([
    502,
    'PROVIDER_UNREACHABLE',
  ]);
  expect(provider.seen).toEqual([]);
});
