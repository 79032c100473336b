import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { DIALECTS, PATHS, promptOf } from '../../../test/support/dialect-wire.ts';
import {
  errorIn,
  isServing,
  MODEL,
  openModelService,
  PROVIDER_SECRET,
  receiptIn,
} from '../support/model-service.ts';
import { exchange, openSocket, parseAnswer, readAll } from '../../../test/support/raw-http.ts';
import { callService } from '../support/memory-service.ts';
import { ask } from '../../../test/support/sockets.ts';
import { bomb } from '../../../test/support/zstd-frames.ts';

/**
 * Bad input on the model routes of a service: each gets a clear error in its dialect and a receipt,
 * nothing reaches the provider, and the next request is served.
 */

const MIB = 1 << 20;

describe.each(DIALECTS)('%s', (dialect) => {
  test('a body that names no model, two of them, or none that is allowed is refused, with the name in the receipt', async () => {
    const stage = await openModelService();
    const { send, makeKey, addProvider, provider } = stage;
    await addProvider(dialect, { allowed_models: [MODEL, 'n-*'] });
    await addProvider(dialect, { name: 'second', allowed_models: ['s'], default_model: 's' });
    const key = await makeKey();
    const body = promptOf(dialect, 'Hello there');
    const { model: _, ...nameless } = body;
    const text = JSON.stringify(body);
    const cases: readonly (readonly [object | string, string, number, string | null])[] = [
      [{ ...body, model: 'unknown-1' }, 'MODEL_NOT_FOUND', 404, 'unknown-1'],
      [text.replace('"model"', '"mod\\u0065l"').replace('"m"', '"x"'), 'MODEL_NOT_FOUND', 404, 'x'],
      [nameless, 'MODEL_AMBIGUOUS', 422, null],
      [text.replace('{', '{"model":"m",'), 'MODEL_AMBIGUOUS', 422, null],
      [text.replace('{', '{"mod\\u0065l":"m",'), 'MODEL_AMBIGUOUS', 422, null],
      [text.replace('{', '{"Model":"m",'), 'MODEL_AMBIGUOUS', 422, null],
      [{ ...body, model: ['m'] }, 'MODEL_AMBIGUOUS', 422, null],
      [{ ...body, model: '' }, 'MODEL_AMBIGUOUS', 422, null],
      ['', 'BODY_UNREADABLE', 422, null],
      ['[]', 'BODY_UNREADABLE', 422, null],
      [`${text}x`, 'BODY_UNREADABLE', 422, null],
      ['\u0000\u0001', 'BODY_UNREADABLE', 422, null],
    ];
    for (const [sent, code, status, model] of cases) {
      // oxlint-disable-next-line no-await-in-loop
      const answer = await send(dialect, sent, { key });
      const error = errorIn(answer);
      expect([sent, answer.status, error.code]).toEqual([sent, status, code]);
      expect(answer.headers['x-should-retry']).toBe('false');
      // oxlint-disable-next-line no-await-in-loop
      expect(await receiptIn(stage, error.receipt)).toMatchObject({
        status: 'rejected',
        http_status: status,
        error_code: code,
        error_source: 'service',
        model_requested: model,
        forwarded_sha256: null,
      });
    }
    expect(provider.seen).toEqual([]);
    expect(await isServing(stage, dialect, key)).toBe(true);
  });

  test('a mode that is wrong or comes twice is refused before the body is read', async () => {
    const stage = await openModelService();
    const { makeKey, addProvider, provider, port } = stage;
    await addProvider(dialect);
    const key = await makeKey();
    const body = Buffer.from(JSON.stringify(promptOf(dialect, 'Hello')));
    const own = ['authorization', `Bearer ${key}`, 'content-type', 'application/json'];
    for (const modes of [
      ['x-svc-memory-mode', 'OFF'],
      ['x-svc-memory-mode', ''],
      ['x-svc-memory-mode', 'off', 'x-svc-memory-mode', 'off'],
      ['x-svc-memory-mode', 'off, read'],
      ['x-svc-compression-mode', 'shadow', 'x-svc-compression-mode', 'passthrough'],
      ['x-svc-compression-mode', 'none'],
      ['x-svc-memory-space', 'a', 'x-svc-memory-space', 'b'],
    ]) {
      // oxlint-disable-next-line no-await-in-loop
      const answer = await ask(port, { path: PATHS[dialect], headers: [...own, ...modes], body });
      expect([modes, answer.status, errorIn(answer).code]).toEqual([modes, 422, 'MODE_INVALID']);
      // oxlint-disable-next-line no-await-in-loop
      const receipt = await receiptIn(stage, errorIn(answer).receipt);
      expect(receipt).toMatchObject({ status: 'rejected', error_code: 'MODE_INVALID' });
    }
    expect(provider.seen).toEqual([]);
  });

  test('a body of 70 MB is refused, announced or in chunks, and so are bombs in each encoding', async () => {
    const stage = await openModelService();
    const { send, makeKey, addProvider, provider, port } = stage;
    await addProvider(dialect);
    const key = await makeKey();
    const path = PATHS[dialect];
    const head = (...lines: string[]) =>
      [
        `POST ${path} HTTP/1.1`,
        'Host: svc',
        `Authorization: Bearer ${key}`,
        'Content-Type: application/json',
        ...lines,
        '',
        '',
      ].join('\r\n');
    const announced = parseAnswer(await exchange(port, head('Content-Length: 70000000')));
    expect([announced.status, announced.headers.get('x-svc-error-code')]).toEqual([
      413,
      'BODY_TOO_LARGE',
    ]);
    const socket = await openSocket(port);
    const answered = readAll(socket);
    socket.write(head('Transfer-Encoding: chunked'));
    const chunk = Buffer.concat([
      Buffer.from('100000\r\n'),
      Buffer.alloc(MIB, 0x20),
      Buffer.from('\r\n'),
    ]);
    for (let sent = 0; sent < 70; sent += 1) socket.write(chunk);
    const chunked = parseAnswer(await answered);
    expect([chunked.status, chunked.headers.get('x-svc-error-code')]).toEqual([
      413,
      'BODY_TOO_LARGE',
    ]);
    const receipt = await receiptIn(stage, chunked.headers.get('x-svc-receipt-id'));
    expect(receipt).toMatchObject({ status: 'rejected', error_code: 'BODY_TOO_LARGE' });
    const bombs: readonly (readonly [string, Buffer])[] = [
      // Four gigabytes.
      ['zstd', bomb(32_768)],
      ['gzip', gzipSync(Buffer.alloc(65 * MIB, 0x20))],
    ];
    for (const [encoding, bytes] of bombs) {
      const headers = { 'content-encoding': encoding };
      // oxlint-disable-next-line no-await-in-loop
      const answer = await send(dialect, bytes, { key, headers });
      expect([encoding, answer.status, errorIn(answer).code]).toEqual([
        encoding,
        413,
        'BODY_TOO_LARGE',
      ]);
      // oxlint-disable-next-line no-await-in-loop
      const told = await receiptIn(stage, errorIn(answer).receipt);
      expect(told).toMatchObject({ status: 'rejected', error_code: 'BODY_TOO_LARGE' });
    }
    expect(provider.seen).toEqual([]);
    expect(await isServing(stage, dialect, key)).toBe(true);
  });

  test('credentials in any header, and x-svc-* in any spelling, stay with the service', async () => {
    const { port, makeKey, addProvider, provider } = await openModelService();
    await addProvider(dialect);
    const key = await makeKey();
    const carried = [
      'x-api-key',
      'api-key',
      'x-goog-api-key',
      'cookie',
      'proxy-authorization',
      'x-svc-memory-space',
      'x-svc-tenant',
      'X-SVC-Anything',
      'x_svc_anything',
      'x_api_key',
    ];
    const headers = carried.flatMap((name) => [
      name,
      name === 'x-api-key' ? key : name.endsWith('space') ? 'canary-space' : 'CANARY-7d2e',
    ]);
    const own = ['authorization', `Bearer ${key}`, 'content-type', 'application/json'];
    const body = Buffer.from(JSON.stringify(promptOf(dialect, 'Hello')));
    const answer = await ask(port, { path: PATHS[dialect], headers: [...own, ...headers], body });
    expect(answer.status).toBe(200);
    const seen = provider.seen[0]?.headers.join('\n') ?? '';
    expect(seen).toContain(PROVIDER_SECRET);
    expect(seen.toLowerCase()).not.toMatch(/canary-(?:7d2e|space)|svc/);
    expect(seen).not.toContain(key);
  });
});

test('the generation of the space that answered stands in the receipt, and none where nobody asked', async () => {
  const stage = await openModelService();
  const { send, makeKey, addProvider, service } = stage;
  await addProvider('openai_responses');
  const [key, mute] = [await makeKey(), await makeKey({ scopes: [] })];
  const headers = { 'x-svc-memory-space': 'shop' };
  const tell = async (credential: string, text: string) => {
    const body = promptOf('openai_responses', text);
    const answer = await send('openai_responses', body, { key: credential, headers });
    return receiptIn(stage, answer.headers['x-svc-receipt-id']);
  };
  await tell(key, 'Remember this: the deploy code word is marmalade.');
  await service.flush();
  const asked = await tell(key, 'What is the deploy code word?');
  const state = await service.store.of('default').spaceState('shop', AbortSignal.timeout(9000));
  expect(asked).toMatchObject({ memory_state: 'recalled', memory_generation: state.generation });
  expect((await tell(mute, 'What is the deploy code word?'))['memory_generation']).toBe(null);
});

test('ids of another tenant are unknown on every route that takes one', async () => {
  const stage = await openModelService();
  const { send, makeKey, addProvider, port, service, ask: console } = stage;
  await console('POST tenants', { tenant_id: 'acme' });
  await addProvider('openai_responses', { name: 'own', custom_headers: [] });
  const [key, other] = [await makeKey(), await makeKey({ tenant: 'acme' })];
  const body = promptOf('openai_responses', 'Remember: the parcel went to the harbour.');
  const answer = await send('openai_responses', body, { key });
  const receipt = String(answer.headers['x-svc-receipt-id']);
  await receiptIn(stage, receipt);
  await service.flush();
  const read = async (credential: string, path: string) => {
    const headers = ['authorization', `Bearer ${credential}`];
    const { status, body: bytes } = await ask(port, { method: 'GET', path, headers });
    return { status, text: bytes.toString() };
  };
  const items = JSON.parse((await read(key, '/v1/svc/memory/items')).text) as {
    data: { item_id: string; provenance: { ref: string }[] }[];
  };
  const [item] = items.data;
  const ref = item?.provenance[0]?.ref ?? '';
  expect(ref).not.toBe('');
  for (const path of [`/v1/svc/requests/${receipt}`, `/v1/svc/memory/objects/${ref}`]) {
    // oxlint-disable-next-line no-await-in-loop
    expect([path, (await read(key, path)).status]).toEqual([path, 200]);
    // oxlint-disable-next-line no-await-in-loop
    expect([path, (await read(other, path)).status]).toEqual([path, 404]);
  }
  for (const path of [
    '/v1/svc/memory/items',
    '/v1/svc/requests',
    '/v1/svc/memory/sources?space=default',
  ]) {
    // oxlint-disable-next-line no-await-in-loop
    expect(JSON.parse((await read(other, path)).text)).toMatchObject({ data: [] });
  }
  const admin = await stage.tokenOf('admin', 'acme');
  for (const call of [
    `DELETE keys/${key.split('_')[2]}`,
    `POST keys/${key.split('_')[2]}/rotate`,
    `GET requests/${receipt}`,
    `DELETE memory/items/${item?.item_id}?space=default`,
  ]) {
    const sent = call.startsWith('POST') ? {} : undefined;
    // oxlint-disable-next-line no-await-in-loop
    const answered = await console(call, sent, { key: admin });
    expect([call, answered.status]).toEqual([call, 404]);
  }
  expect((await read(key, `/v1/svc/memory/objects/${ref}`)).status).toBe(200);
  // The other tenant has no provider: that of the first one serves it nothing.
  const foreign = await send('openai_responses', body, { key: other });
  expect([foreign.status, errorIn(foreign).code]).toEqual([422, 'PROVIDER_NOT_CONFIGURED']);
  const told = await receiptIn(stage, errorIn(foreign).receipt, 'acme');
  expect(told).toMatchObject({ tenant_id: 'acme', model_requested: MODEL, provider_id: null });
});

test('a base URL that leads elsewhere than to a public name is refused by the console, by name alone', async () => {
  const { ask: console } = await openModelService({ egress: { ports: [], allow: [] } });
  const wrong = [
    'https://user:CANARY@api.example.com',
    'https://user@api.example.com',
    'https://127.0.0.1',
    'https://8.8.8.8',
    'https://0177.0.0.1',
    'https://0x7f000001',
    'https://2130706433',
    'https://[::1]',
    'https://[::ffff:127.0.0.1]',
    'https://[::ffff:a9fe:a9fe]',
    'https://localhost',
    'https://gateway',
    'https://gateway.internal',
    'https://169.254.169.254',
    'https://metadata.google.internal',
    'https://metadata',
    'http://api.example.com',
    'https://api.example.com:9200',
    'file:///etc/passwd',
  ];
  for (const base_url of wrong) {
    const body = {
      name: 'gateway',
      kind: 'custom',
      api_style: 'openai_responses',
      base_url,
      credential: 'sk-1',
      default_model: 'm',
      allowed_models: ['m'],
    };
    // oxlint-disable-next-line no-await-in-loop
    const answer = await console('POST providers', body);
    expect([base_url, answer.status, answer.json.error?.code, answer.json.error?.param]).toEqual([
      base_url,
      422,
      'INVALID_REQUEST',
      'base_url',
    ]);
    expect(answer.text).not.toContain('CANARY');
  }
  expect((await console('GET providers')).json.data).toEqual([]);
});

test('a member that no console operation knows is refused by each of them, and nothing changes', async () => {
  const stage = await openModelService();
  const { ask: console, addProvider, service, token } = stage;
  const id = await addProvider('openai_responses');
  const key = (await console('POST keys', { name: 'k', scopes: ['read'] })).json.key_id;
  await console('POST plans', { name: 'small', limits: {} });
  const before = (await console('GET audit')).text;
  const purge = { space: 'default', scope: { all: true }, confirm: 'default', dry_run: true };
  const calls: readonly (readonly [string, object])[] = [
    ['POST tenants', { tenant_id: 'acme' }],
    ['PATCH tenants/default', { plan: 'small' }],
    ['POST plans', { name: 'large', limits: {} }],
    ['PUT plans/small', { limits: {} }],
    ['POST admins', { name: 'a', role: 'viewer' }],
    ['POST keys', { name: 'k2', scopes: ['read'] }],
    [`POST keys/${key}/rotate`, {}],
    [`PATCH providers/${id}`, { version: 1, enabled: false }],
    [`POST providers/${id}/models`, {}],
    [`POST providers/${id}/test`, {}],
    [`POST providers/${id}/fingerprint`, { credential: 'sk-1' }],
    ['POST memory/purges', purge],
    ['POST vault/keys', { key_id: 'mk_other' }],
    ['POST vault/rotate', {}],
    ['POST vault/verify', {}],
    ['POST signing/rotate', {}],
    ['PATCH settings', { compression_mode: 'shadow' }],
  ];
  for (const [call, body] of calls) {
    const [method = '', path = ''] = call.split(' ');
    for (const surplus of [{ surplus: 1 }, { __proto__x: {} }, { tenant_id_: 'acme' }]) {
      // oxlint-disable-next-line no-await-in-loop
      const answer = await callService(service.url, `/v1/svc/console/${path}`, {
        key: token,
        method,
        body: { ...body, ...surplus },
        headers: { 'if-match': '"0"' },
      });
      expect([call, answer.status, answer.json.error?.code]).toEqual([
        call,
        422,
        'INVALID_REQUEST',
      ]);
    }
  }
  expect((await console('GET audit')).text).toBe(before);
});

test('every path of a service takes 100 headers, and says so where there are more', async () => {
  const { makeKey, service } = await openModelService();
  const key = await makeKey();
  const call = (count: number) => {
    const headers = Object.fromEntries(
      Array.from({ length: count }, (_, at) => [`x-more-${at}`, String(at)]),
    );
    return callService(service.url, '/v1/svc/whoami', { key, headers });
  };
  expect((await call(90)).status).toBe(200);
  const refused = await call(120);
  expect([refused.status, refused.text]).toEqual([422, expect.stringContaining('100 headers')]);
});
