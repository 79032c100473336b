import { expect, test } from 'vitest';
import { openConsole } from '../support/console.ts';
import { callService, itemOf } from '../support/memory-service.ts';
import { FIRST, TestMasterKeys } from '../support/test-vault.ts';

const SPACE = 'project/api-0123456789';
const DEFAULTS = {
  compression_mode: 'deterministic',
  input_budget: 8192,
  recalled_tokens_max: 512,
  elision_enabled: true,
  elision_keep_rounds: 4,
  elision_capture_limit: 8,
  version: 0,
};

async function open() {
  const opened = await openConsole({ masterKeys: new TestMasterKeys(FIRST) });
  await opened.ask('POST vault/keys', { key_id: FIRST });
  const send = (call: string, body: unknown, headers: Record<string, string>) => {
    const [method = '', path = ''] = call.split(' ');
    const given = { authorization: `Bearer ${opened.token}`, ...headers };
    const more = body === undefined ? {} : { body };
    return callService(opened.service.url, `/v1/svc/console/${path}`, {
      method,
      headers: given,
      ...more,
    });
  };
  return { ...opened, send };
}

test('account defaults change from the version that was seen, and leave an event', async () => {
  const { ask, send, tokenOf } = await open();
  const before = await ask('GET settings');
  expect(before.json).toEqual(DEFAULTS);
  expect(before.headers['etag']).toBe('"0"');
  const change = { input_budget: 20_000, elision_enabled: false };
  expect((await ask('PATCH settings', change)).json.error.param).toBe('If-Match');
  const done = await send('PATCH settings', change, { 'if-match': '"0"' });
  expect(done.json).toEqual({ ...DEFAULTS, ...change, version: 1 });
  const late = await send('PATCH settings', { input_budget: 9000 }, { 'if-match': '"0"' });
  expect([late.status, late.json.error.code]).toEqual([409, 'CONFLICT']);
  expect((await ask('GET settings')).json.input_budget).toBe(20_000);
  const wrong = await send('PATCH settings', {}, { 'if-match': 'W/"1"' });
  expect(wrong.json.error.param).toBe('If-Match');
  expect((await ask('GET audit?limit=1')).json.data).toMatchObject([
    { kind: 'settings.updated', details: change },
  ]);
  const viewer = { key: await tokenOf('viewer') };
  expect((await ask('PATCH settings', {}, viewer)).json.error.code).toBe('SCOPE_DENIED');
});

test('the memory of a tenant is listed, counted and purged by its admins alone', async () => {
  const { ask, askMemory, tokenOf } = await open();
  const scopes = ['read', 'write', 'receipt:read'];
  const { secret } = (await ask('POST keys', { name: 'k', scopes })).json;
  const items = [itemOf('The port is 6543.'), itemOf('Tea is at noon.')];
  await askMemory('memory/capture', secret, { space: SPACE, if_generation: 'new', items });
  const [admin, viewer] = [{ key: await tokenOf('admin') }, { key: await tokenOf('viewer') }];
  const listed = await ask(`GET memory/items?space=${SPACE}`, undefined, admin);
  expect(listed.json.data).toHaveLength(2);
  const refused = await ask(`GET memory/items?space=${SPACE}`, undefined, viewer);
  expect(refused.json.error.code).toBe('SCOPE_DENIED');
  const sources = await ask(`GET memory/sources?space=${SPACE}`, undefined, viewer);
  expect(sources.json.data).toMatchObject([{ records: 2 }]);
  const order = { space: SPACE, scope: { all: true }, confirm: SPACE };
  const counted = await ask('POST memory/purges', { ...order, dry_run: true }, admin);
  expect(counted.json).toMatchObject({ state: 'dry_run', counts: { records: 2 } });
  const [{ item_id: item }] = listed.json.data;
  const gone = await ask(`DELETE memory/items/${item}?space=${SPACE}`, undefined, admin);
  expect(gone.json).toMatchObject({ state: 'erased', counts: { records: 1 } });
  const done = await ask('POST memory/purges', order, admin);
  expect(done.json).toMatchObject({ state: 'erased', counts: { records: 1 } });
  const { purge_id: id } = done.json;
  expect((await ask(`GET memory/purges/${id}`, undefined, viewer)).json.state).toBe('erased');
  expect((await ask('GET memory/purges', undefined, viewer)).json.data).toHaveLength(2);
  const kinds = (await ask('GET audit')).json.data.map(({ kind }: { kind: string }) => kind);
  expect(kinds.slice(0, 2)).toEqual(['memory.purge_requested', 'memory.item_deleted']);
  // Another tenant has neither.
  await ask('POST tenants', { tenant_id: 'acme' });
  const acme = { key: await tokenOf('admin', 'acme') };
  expect((await ask(`GET memory/items?space=${SPACE}`, undefined, acme)).json.data).toEqual([]);
  expect((await ask(`GET memory/purges/${id}`, undefined, acme)).status).toBe(404);
});

test('the status tells an operator what works and how much there is', async () => {
  const { ask, tokenOf } = await open();
  await ask('POST tenants', { tenant_id: 'acme' });
  expect((await ask('GET status')).json).toMatchObject({
    problems: { vault: null, signer: null, journal: null },
    tenants: 2,
    providers: 0,
    keys: 0,
  });
  const admin = { key: await tokenOf('admin') };
  expect((await ask('GET status', undefined, admin)).json.error.code).toBe('SCOPE_DENIED');
});
