import { expect, test } from 'vitest';
import { DIALECTS, PATHS, promptOf } from '../../../test/support/dialect-wire.ts';
import { checkAnswer, MODEL, openModelService, PROVIDER_SECRET } from '../support/model-service.ts';
import { callService } from '../support/memory-service.ts';
import { ask } from '../../../test/support/sockets.ts';

// spec: 4.1-chat, 4.1-responses, 4.1-messages, 4.1-base-and-key
test.each(DIALECTS)(
  '%s is served to a client that has the address and a key, with the bytes of the provider',
  async (dialect) => {
    const { send, port, makeKey, addProvider, provider } = await openModelService();
    await addProvider(dialect);
    const key = await makeKey();
    const { reply } = provider;
    const told: string[] = [];
    provider.reply = (request) => {
      const answer = reply(request);
      told.push(answer.body);
      return answer;
    };
    for (const stream of [true, false]) {
      const body = JSON.stringify(promptOf(dialect, 'Hello there', { stream }));
      // oxlint-disable-next-line no-await-in-loop
      const answer = await send(dialect, body, { key });
      const type = stream ? 'text/event-stream' : 'application/json';
      expect([answer.status, answer.headers['content-type']]).toEqual([200, type]);
      expect(answer.body.toString()).toBe(told.at(-1));
      expect(provider.seen.at(-1)?.body.toString()).toBe(body);
    }
    // A client of either kind sends its key as it is used to.
    const headers = ['x-api-key', key, 'content-type', 'application/json'];
    const body = Buffer.from(JSON.stringify(promptOf(dialect, 'Hello')));
    expect((await ask(port, { path: PATHS[dialect], headers, body })).status).toBe(200);
  },
);

test('the default model is spliced in where the body names none, and nothing else changes', async () => {
  const { send, makeKey, addProvider, provider } = await openModelService();
  await addProvider('openai_chat_completions', { default_model: 'm' });
  const key = await makeKey();
  const { model: _, ...body } = promptOf('openai_chat_completions', 'What is 1.0?');
  const text = JSON.stringify(body);
  expect((await send('openai_chat_completions', text, { key })).status).toBe(200);
  expect(provider.seen[0]?.body.toString()).toBe(`{"model":"m",${text.slice(1)}`);
});

// spec: 1.1-own-upstream, 1.7-model-routed
test('two providers of a dialect share it by model; a disabled one is asked nothing', async () => {
  const { send, makeKey, addProvider, provider, ask: console } = await openModelService();
  const exact = { name: 'exact', allowed_models: ['gpt-5-mini'], default_model: 'gpt-5-mini' };
  const id = await addProvider('openai_responses', {
    ...exact,
    custom_headers: [{ name: 'x-who', value: 'exact' }],
  });
  const prefix = { name: 'prefix', allowed_models: ['gpt-*'], default_model: 'gpt-5' };
  await addProvider('openai_responses', {
    ...prefix,
    custom_headers: [{ name: 'x-who', value: 'prefix' }],
  });
  const key = await makeKey();
  const to = async (model: string): Promise<string> => {
    await send('openai_responses', promptOf('openai_responses', 'Hello', { model }), { key });
    const { headers = [] } = provider.seen.at(-1) ?? {};
    return headers[headers.indexOf('x-who') + 1] ?? '';
  };
  expect([await to('gpt-5-mini'), await to('gpt-5')]).toEqual(['exact', 'prefix']);
  await console(`PATCH providers/${id}`, { version: 1, enabled: false });
  expect(await to('gpt-5-mini')).toBe('prefix');
});

test('the scopes of a key decide the memory mode, and a header can only lower it', async () => {
  const { send, makeKey, addProvider } = await openModelService();
  await addProvider('openai_responses');
  const modes = ['', 'off', 'read', 'write', 'read-write'];
  const table = {
    'read write': ['read-write', 'off', 'read', 'write', 'read-write'],
    read: ['read', 'off', 'read', 'off', 'read'],
    write: ['write', 'off', 'off', 'write', 'write'],
    '': ['off', 'off', 'off', 'off', 'off'],
  };
  for (const [scopes, expected] of Object.entries(table)) {
    const given = scopes.split(' ').filter((scope) => scope !== '') as ('read' | 'write')[];
    // oxlint-disable-next-line no-await-in-loop
    const key = await makeKey({ scopes: given });
    const found: unknown[] = [];
    for (const mode of modes) {
      const headers: Record<string, string> = mode === '' ? {} : { 'x-svc-memory-mode': mode };
      const body = promptOf('openai_responses', 'Hello there');
      // oxlint-disable-next-line no-await-in-loop
      const answer = await send('openai_responses', body, { key, headers });
      found.push(answer.headers['x-svc-memory-mode']);
    }
    expect(found, scopes).toEqual(expected);
  }
});

// spec: 4.1-evidence
test("an answer's evidence names its receipt and no local proxy; the caller's own x-svc-* goes nowhere", async () => {
  const { send, makeKey, addProvider, provider } = await openModelService();
  await addProvider('anthropic_messages');
  const key = await makeKey();
  const body = promptOf('anthropic_messages', 'Hello there');
  const headers = {
    'x-svc-anything': 'CANARY-1',
    cookie: 'CANARY-2',
    'x-forwarded-for': '1.2.3.4',
  };
  const { status, headers: told } = await send('anthropic_messages', body, { key, headers });
  expect(status).toBe(200);
  expect(told['x-svc-receipt-id']).toMatch(/^rcpt_[0-9a-z]{26}$/);
  expect(told['x-svc-request-id']).toBe(told['x-svc-receipt-id']);
  expect(told).toMatchObject({
    'x-svc-memory-mode': 'read-write',
    'x-svc-memory-state': 'empty',
    'x-svc-compression-mode': expect.any(String),
    'x-svc-continuity-state': expect.any(String),
    'x-svc-original-input-tokens': expect.stringMatching(/^\d+$/),
    'x-svc-forwarded-input-tokens': expect.stringMatching(/^\d+$/),
    'x-svc-recalled-tokens': '0',
    'x-svc-elided-items': '0',
    'x-svc-elided-tokens': '0',
  });
  expect(told['x-svc-local-proxy']).toBe(undefined);
  const seen = provider.seen[0]?.headers.join('\n') ?? '';
  expect(seen).not.toMatch(/CANARY-[12]|1\.2\.3\.4|svc/);
  expect(seen.toLowerCase()).toContain(`x-api-key\n${PROVIDER_SECRET.toLowerCase()}`);
});

test('the list of models has both forms, is narrowed by the key, and asks no provider', async () => {
  const { port, makeKey, addProvider, provider } = await openModelService();
  await addProvider('openai_responses', {
    allowed_models: ['a', 'b', 'c-*'],
    default_model: 'c-1',
  });
  await addProvider('anthropic_messages', { allowed_models: ['claude'], default_model: 'claude' });
  const key = await makeKey();
  const list = async (path: string, more: readonly string[] = []) => {
    const headers = ['authorization', `Bearer ${key}`, ...more];
    const answer = await ask(port, { method: 'GET', path, headers });
    checkAnswer(answer, { method: 'GET', path });
    return {
      status: answer.status,
      json: JSON.parse(answer.body.toString()) as Record<string, unknown>,
    };
  };
  const openai = await list('/v1/models?limit=1000');
  expect(openai.json).toMatchObject({ object: 'list' });
  expect((openai.json['data'] as { id: string }[]).map(({ id }) => id)).toEqual(['a', 'b', 'c-1']);
  const anthropic = await list('/v1/models', ['anthropic-version', '2023-06-01']);
  expect(anthropic.json).toMatchObject({
    data: [{ type: 'model', id: 'claude', display_name: 'claude' }],
    has_more: false,
    first_id: 'claude',
    last_id: 'claude',
  });
  expect((await list('/v1/models/a')).json).toMatchObject({ id: 'a', object: 'model' });
  expect((await list('/v1/models/z')).status).toBe(404);
  // No path of a model: the service itself says so.
  const broken = await ask(port, {
    method: 'GET',
    path: '/v1/models/%',
    headers: ['authorization', `Bearer ${key}`],
  });
  expect(broken.status).toBe(404);
  expect((await list('/v1/models/%62')).json).toMatchObject({ id: 'b' });
  expect(provider.seen).toEqual([]);
});

test('a count of tokens is relayed untouched, and has a receipt; HEAD / says nothing', async () => {
  const { send, port, makeKey, addProvider, provider } = await openModelService();
  await addProvider('anthropic_messages');
  const key = await makeKey();
  const body = JSON.stringify(promptOf('anthropic_messages', 'Hello'));
  const path = '/v1/messages/count_tokens?beta=true';
  const answer = await send('anthropic_messages', body, { key, path });
  expect(answer.headers['x-svc-receipt-id']).toMatch(/^rcpt_/);
  expect(provider.seen.map((seen) => [seen.path, seen.body.toString()])).toEqual([[path, body]]);
  const wrong = body.replace(`"${MODEL}"`, '"other"');
  expect((await send('anthropic_messages', wrong, { key, path })).status).toBe(404);
  const head = await ask(port, { method: 'HEAD', path: '/' });
  expect([head.status, head.body.length]).toEqual([200, 0]);
});

test('a revoked key is refused by the next request', async () => {
  const { send, makeKey, addProvider, ask: console } = await openModelService();
  await addProvider('openai_responses');
  const key = await makeKey();
  const body = promptOf('openai_responses', 'Hello');
  expect((await send('openai_responses', body, { key })).status).toBe(200);
  await console(`DELETE keys/${key.split('_')[2]}`);
  const refused = await send('openai_responses', body, { key });
  expect([refused.status, refused.headers['x-svc-error-code']]).toEqual([401, 'AUTH_REVOKED']);
});

// spec: 3.2-account-defaults
test('the account defaults of a tenant hold, and a header overrides one for its request', async () => {
  const { send, makeKey, addProvider, service, token } = await openModelService();
  await addProvider('openai_responses');
  await callService(service.url, '/v1/svc/console/settings', {
    key: token,
    method: 'PATCH',
    body: { compression_mode: 'passthrough' },
    headers: { 'if-match': '"0"' },
  });
  const key = await makeKey();
  const mode = async (headers: Record<string, string> = {}) => {
    const body = promptOf('openai_responses', 'Hello there');
    const answer = await send('openai_responses', body, { key, headers });
    return answer.headers['x-svc-compression-mode'];
  };
  expect(await mode()).toBe('passthrough');
  expect(await mode({ 'x-svc-compression-mode': 'shadow' })).toBe('shadow');
});
