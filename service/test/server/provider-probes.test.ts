import { expect, test } from 'vitest';
import { openModelService, PROVIDER_SECRET } from '../support/model-service.ts';
import { secretsBelow } from '../support/secret-search.ts';

const DIALECT = 'openai_responses';

// spec: 2.3-fetch-models
test('the models of a custom provider are fetched: identifiers alone, and an event', async () => {
  const { ask, addProvider, provider } = await openModelService();
  const id = await addProvider(DIALECT);
  const models = [{ id: 'gpt-5' }, { id: 'a b' }, { name: 'models/gemini' }, { id: 'gpt-5' }, 7];
  provider.reply = () => ({
    status: 200,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ data: models, secret: 'CANARY-of-the-provider' }),
  });
  const { status, json, text } = await ask(`POST providers/${id}/models`, {});
  expect([status, json]).toEqual([
    200,
    { outcome: 'listed', models: ['gpt-5', 'models/gemini'], truncated: false, dropped: 2 },
  ]);
  expect(text).not.toContain('CANARY');
  expect(provider.seen[0]).toMatchObject({ path: '/v1/models' });
  expect(provider.seen[0]?.headers.join('\n')).toContain(PROVIDER_SECRET);
  const [event] = (await ask('GET audit')).json.data;
  expect(event).toMatchObject({
    kind: 'provider.models_fetched',
    details: { outcome: 'listed', models: 2 },
  });
});

test.each([
  ['unauthorized', 401, '{"error":"no"}'],
  ['not_supported', 404, ''],
  ['invalid', 200, 'CANARY <html>'],
  ['invalid', 302, ''],
  ['invalid', 200, `{"data":["${'x'.repeat(2 << 20)}"]}`],
])(
  'a list that cannot be had is %s (%i), with nothing that the provider said',
  async (outcome, code, body) => {
    const { ask, addProvider, provider } = await openModelService();
    const id = await addProvider(DIALECT);
    provider.reply = () => ({ status: code, headers: { location: 'https://127.0.0.1/' }, body });
    const { status, json } = await ask(`POST providers/${id}/models`, {});
    expect([status, json]).toEqual([200, { outcome, models: [], truncated: false, dropped: 0 }]);
  },
);

test('a test sends one tiny request, and tells status and time alone', async () => {
  const { ask, addProvider, provider } = await openModelService();
  const id = await addProvider('anthropic_messages');
  const well = await ask(`POST providers/${id}/test`, {});
  expect(well.json).toEqual({
    ok: true,
    status: 200,
    error_code: null,
    error_message: null,
    ms: expect.any(Number),
  });
  expect(provider.seen.length).toBe(1);
  expect(provider.seen[0]?.body.length).toBeLessThan(600);
  provider.reply = () => ({ status: 401, headers: {}, body: 'CANARY' });
  const refused = await ask(`POST providers/${id}/test`, {});
  expect([refused.json.ok, refused.json.status]).toEqual([false, 401]);
  const away = await addProvider(DIALECT, {
    name: 'away',
    base_url: 'https://models.provider.test:8443',
  });
  const failed = await ask(`POST providers/${away}/test`, {});
  expect(failed.json).toMatchObject({
    ok: false,
    status: null,
    error_code: 'PROVIDER_UNREACHABLE',
  });
});

test('R29: a credential is compared with the saved one, and is kept nowhere', async () => {
  const { ask, addProvider, service } = await openModelService();
  const id = await addProvider(DIALECT);
  const { credential } = (await ask(`GET providers/${id}`)).json;
  const compare = (secret: string) =>
    ask(`POST providers/${id}/fingerprint`, { credential: secret });
  const { fingerprint } = credential;
  expect((await compare(PROVIDER_SECRET)).json).toEqual({ fingerprint, matches: true });
  const other = await compare('sk-CANARY-another');
  expect(other.json.matches).toBe(false);
  expect(other.json.fingerprint).not.toBe(fingerprint);
  expect(secretsBelow(service.folder, { other: 'sk-CANARY-another' })).toEqual([]);
  expect((await ask(`POST providers/${id}/fingerprint`, {})).status).toBe(422);
});

test('providers are probed six times a minute by a tenant, and by an admin of it alone', async () => {
  const { ask, addProvider, tokenOf } = await openModelService();
  const id = await addProvider(DIALECT);
  const viewer = await tokenOf('viewer');
  const denied = await ask(`POST providers/${id}/test`, {}, { key: viewer });
  expect([denied.status, denied.json.error.code]).toEqual([403, 'SCOPE_DENIED']);
  await ask('POST tenants', { tenant_id: 'acme' });
  const stranger = await tokenOf('admin', 'acme');
  expect((await ask(`POST providers/${id}/test`, {}, { key: stranger })).status).toBe(404);
  const found: number[] = [];
  for (let times = 0; times < 7; times += 1) {
    // oxlint-disable-next-line no-await-in-loop
    found.push((await ask(`POST providers/${id}/test`, {})).status);
  }
  expect(found).toEqual([200, 200, 200, 200, 200, 200, 429]);
});

// spec: 2.3-presets
test('presets are those of the catalog with a public address and a key', async () => {
  const { ask, addProvider, provider } = await openModelService();
  const { json } = await ask('GET presets');
  const ids = json.data.map((preset: { preset_id: string }) => preset.preset_id);
  expect(ids).toContain('anthropic');
  expect(ids).not.toContain('ollama');
  expect(ids).not.toContain('lmstudio');
  // The models of a preset stand in the catalog: its list is not asked for.
  const base_url = undefined;
  const id = await addProvider('anthropic_messages', {
    kind: 'preset',
    preset_id: 'anthropic',
    base_url,
  });
  const fetched = await ask(`POST providers/${id}/models`, {});
  expect([fetched.status, fetched.json.error.code]).toEqual([422, 'INVALID_REQUEST']);
  expect(provider.seen).toEqual([]);
});
