import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openConsole, type OpenedConsole } from '../support/console.ts';
import { noteOfTest } from '../support/service-control.ts';
import { FIRST, TestMasterKeys } from '../support/test-vault.ts';

const SECRET = 'sk-CANARY-3f9a71';
const CUSTOM = {
  name: 'gateway',
  kind: 'custom',
  api_style: 'openai_responses',
  base_url: 'https://models.example.com/v1',
  credential: SECRET,
  default_model: 'gpt-5',
  allowed_models: ['gpt-5'],
} as const;

async function openProviders(): Promise<OpenedConsole> {
  const opened = await openConsole({ masterKeys: new TestMasterKeys(FIRST) });
  await opened.ask('POST vault/keys', { key_id: FIRST });
  return opened;
}

// spec: 2.3-one-configuration, 2.3-api-style
test('a custom provider is made, listed, changed and deleted, each with its event', async () => {
  const { ask } = await openProviders();
  const made = await ask('POST providers', CUSTOM);
  const { provider_id: id, credential } = made.json;
  expect([made.status, made.json]).toMatchObject([
    201,
    {
      base_url: 'https://models.example.com',
      auth: 'bearer',
      preset_id: null,
      credential: { fingerprint: expect.stringMatching(/^fp_/) },
      enabled: true,
      version: 1,
    },
  ]);
  expect((await ask('GET providers')).json.data).toEqual([made.json]);
  const path = `providers/${id}`;
  expect((await ask(`GET ${path}`)).json).toEqual(made.json);
  const change = { version: 1, allowed_models: ['gpt-5', 'gpt-5-*'], enabled: false };
  const changed = await ask(`PATCH ${path}`, change);
  expect(changed.json).toMatchObject({ version: 2, enabled: false, credential });
  const stale = await ask(`PATCH ${path}`, change);
  expect([stale.status, stale.json.error.code]).toEqual([409, 'CONFLICT']);
  const renewed = await ask(`PATCH ${path}`, { version: 2, credential: `${SECRET}-2` });
  expect(renewed.json.credential.fingerprint).not.toBe(credential.fingerprint);
  expect((await ask('POST vault/verify', {})).json).toEqual({ secrets: 1, unreadable: [] });
  expect((await ask(`DELETE ${path}`)).status).toBe(204);
  expect((await ask(`DELETE ${path}`)).status).toBe(404);
  expect((await ask('POST vault/verify', {})).json.secrets).toBe(0);
  const kinds = (await ask('GET audit')).json.data.map((event: { kind: string }) => event.kind);
  expect(kinds).toEqual([
    'provider.deleted',
    'provider.updated',
    'provider.updated',
    'provider.created',
  ]);
});

// spec: 2.3-secret-vaulted
test('R29: a credential and a header value with it are told nowhere, and are sealed on disk', async () => {
  const { ask, service } = await openProviders();
  const made = await ask('POST providers', {
    ...CUSTOM,
    custom_headers: [
      { name: 'x-team', value: 'api' },
      { name: 'x-extra', value: 'HEADER-CANARY $API_KEY' },
    ],
    custom_query: [{ name: 'key', value: '$API_KEY' }],
  });
  expect(made.json.custom_headers).toEqual([
    { name: 'x-team', value: 'api', secret: false },
    { name: 'x-extra', value: null, secret: true },
  ]);
  expect(made.json.custom_query).toEqual([{ name: 'key', value: null, secret: true }]);
  expect((await ask('POST vault/verify', {})).json).toEqual({ secrets: 3, unreadable: [] });
  const told = await Promise.all(
    ['providers', 'audit', 'vault'].map(async (path) => (await ask(`GET ${path}`)).text),
  );
  const wrong = await ask('POST providers', {
    ...CUSTOM,
    name: 'b',
    base_url: `https://${SECRET}`,
  });
  expect(wrong.status).toBe(422);
  const files = readdirSync(service.folder).map((name) =>
    readFileSync(join(service.folder, name), 'latin1'),
  );
  const logs = JSON.stringify([service.calls, service.reports]);
  const all = [made.text, wrong.text, ...told, ...files, logs].join('\n');
  for (const secret of [SECRET, 'HEADER-CANARY']) expect(all).not.toContain(secret);
});

test('a sealed credential that is moved to another tenant does not open', async () => {
  const { ask, service } = await openProviders();
  await ask('POST tenants', { tenant_id: 'acme' });
  await ask('POST providers', CUSTOM);
  await ask('POST providers', CUSTOM, { tenant: 'acme' });
  const [acme, own] = await service.store.listSecrets({ limit: 9 });
  expect([own?.tenant, acme?.tenant]).toEqual(['default', 'acme']);
  expect(own?.fingerprint).not.toBe(acme?.fingerprint);
  const store = service.store.of('acme');
  const [provider] = await store.listProviders();
  if (own === undefined || acme === undefined || provider === undefined) throw new Error('lost');
  const { secretId, owner } = acme;
  const moved = { ...own, secretId, owner };
  const next = { ...provider, version: 2 };
  const change = { what: 'provider.put', provider: next, ifVersion: 1, secrets: [moved] } as const;
  expect(await store.apply(change, noteOfTest('provider.updated'))).toBe('done');
  expect((await ask('POST vault/verify', {})).json).toEqual({
    secrets: 2,
    unreadable: [`acme/${secretId}`],
  });
});

test('a clash of models names both providers, and nothing is saved', async () => {
  const { ask } = await openProviders();
  await ask('POST providers', CUSTOM);
  const clash = await ask('POST providers', { ...CUSTOM, name: 'second' });
  expect([clash.status, clash.json.error.code]).toEqual([409, 'CONFLICT']);
  expect(clash.json.error.message).toContain('second and gateway both have the model gpt-5');
  const namesake = await ask('POST providers', {
    ...CUSTOM,
    default_model: 'o3',
    allowed_models: ['o3'],
  });
  expect(namesake.status).toBe(409);
  expect((await ask('GET providers')).json.data).toHaveLength(1);
  expect((await ask('GET audit')).json.data).toHaveLength(1);
  expect((await ask('POST vault/verify', {})).json.secrets).toBe(1);
});

// spec: 8-slot-freed
test('a plan bounds providers, and deleting one frees a slot', async () => {
  const { ask } = await openProviders();
  await ask('POST plans', { name: 'small', limits: { providers: 1 } });
  await ask('POST tenants', { tenant_id: 'acme', plan: 'small' });
  const add = (name: string) =>
    ask(
      'POST providers',
      { ...CUSTOM, name, default_model: name, allowed_models: [name] },
      { tenant: 'acme' },
    );
  const { provider_id: id } = (await add('one')).json;
  const over = await add('two');
  expect([over.status, over.json.error.code]).toEqual([403, 'PLAN_LIMIT_REACHED']);
  await ask(`DELETE providers/${id}`, undefined, { tenant: 'acme' });
  expect((await add('two')).status).toBe(201);
});

// spec: 2.3-endpoint-stored
test('a preset takes its address from the catalog, and keeps it', async () => {
  const { ask } = await openProviders();
  const preset = {
    name: 'claude',
    kind: 'preset',
    preset_id: 'anthropic',
    api_style: 'anthropic_messages',
    credential: SECRET,
    default_model: 'claude-sonnet-4-5',
    allowed_models: ['claude-*'],
  };
  expect((await ask('POST providers', preset)).json).toMatchObject({
    preset_id: 'anthropic',
    base_url: 'https://api.anthropic.com',
    auth: 'x-api-key',
  });
  const wrong: readonly object[] = [
    { preset_id: 'ollama', api_style: 'openai_chat_completions' },
    { preset_id: 'nobody' },
    { preset_id: undefined },
    { api_style: 'openai_responses' },
    { base_url: 'https://evil.example' },
  ];
  for (const one of wrong) {
    // oxlint-disable-next-line no-await-in-loop
    const answer = await ask('POST providers', { ...preset, name: 'other', ...one });
    expect([one, answer.json.error?.code]).toEqual([one, 'INVALID_REQUEST']);
  }
});

test('a provider that could not work is refused, and leaves neither secret nor event', async () => {
  const { ask } = await openProviders();
  const header = (name: string, value = 'v') => ({ custom_headers: [{ name, value }] });
  const wrong: readonly object[] = [
    { base_url: undefined },
    { base_url: 'https://10.0.0.1' },
    { base_url: 'http://models.example.com' },
    { preset_id: 'openai' },
    { credential: undefined },
    { credential: 'two words' },
    { credential: 'line\r\nend' },
    { auth: 'none' },
    { default_model: 'o3' },
    { allowed_models: [] },
    { allowed_models: ['a*b'] },
    header('host'),
    header('x-svc-memory-mode'),
    header('x-a', 'split\r\nx-b: c'),
    header('x-a\r\nx-b'),
    { surplus: 1 },
  ];
  for (const one of wrong) {
    // oxlint-disable-next-line no-await-in-loop
    const answer = await ask('POST providers', { ...CUSTOM, ...one });
    expect([one, answer.status, answer.json.error?.code]).toEqual([one, 422, 'INVALID_REQUEST']);
  }
  expect(
    (await ask('POST providers', { ...CUSTOM, auth: 'none', credential: undefined })).status,
  ).toBe(201);
  const { provider_id: id } = (await ask('GET providers')).json.data[0];
  const moved = await ask(`PATCH providers/${id}`, { version: 1, base_url: 'https://x.example' });
  expect(moved.json.error.code).toBe('INVALID_REQUEST');
  expect((await ask('GET audit')).json.data).toHaveLength(1);
  expect((await ask('POST vault/verify', {})).json.secrets).toBe(0);
});

test('without a master key no credential is taken', async () => {
  const { ask } = await openConsole();
  const answer = await ask('POST providers', CUSTOM);
  expect([answer.status, answer.json.error.code]).toEqual([503, 'VAULT_UNAVAILABLE']);
  expect((await ask('GET providers')).json.data).toEqual([]);
});

test('a provider of another tenant is not found by its id, and a viewer changes none', async () => {
  const { ask, tokenOf } = await openProviders();
  await ask('POST tenants', { tenant_id: 'acme' });
  const { provider_id: id } = (await ask('POST providers', CUSTOM)).json;
  const acme = await tokenOf('admin', 'acme');
  for (const [call, body] of [
    [`GET providers/${id}`, undefined],
    [`PATCH providers/${id}`, { version: 1, enabled: false }],
    [`DELETE providers/${id}`, undefined],
  ] as const) {
    // oxlint-disable-next-line no-await-in-loop
    expect((await ask(call, body, { key: acme })).status).toBe(404);
  }
  const viewer = await tokenOf('viewer');
  expect((await ask('GET providers', undefined, { key: viewer })).json.data).toHaveLength(1);
  for (const call of ['POST providers', `PATCH providers/${id}`, `DELETE providers/${id}`]) {
    // oxlint-disable-next-line no-await-in-loop
    const answer = await ask(call, call.startsWith('DELETE') ? undefined : {}, { key: viewer });
    expect(answer.json.error.code).toBe('SCOPE_DENIED');
  }
});
