import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadDriver } from '../../../src/adapters/store/driver.ts';
import { runServiceHere } from '../../../test/support/cli.ts';
import { promptOf } from '../../../test/support/dialect-wire.ts';
import { limiterOf } from '../support/limits.ts';
import { callService, keyIdOf, startMemoryService } from '../support/memory-service.ts';
import { errorIn, openModelService, receiptIn } from '../support/model-service.ts';
import { manualClock } from '../../../test/support/manual-clock.ts';
import { initModelHome, providerBody, consoleOf } from '../support/model-process.ts';
import { makeServiceKey, tempHomeWithService } from '../support/service-process.ts';
import { ask } from '../../../test/support/sockets.ts';

/** Answers to an operator and to a plain client that said too little, or the wrong thing. */

const DIALECT = 'openai_chat_completions';

test('a node whose limiter does not answer is not ready, logs it once, and is ready again with it', async () => {
  let isAway = true;
  const limiter = {
    ...limiterOf(async () => ({ refusedBy: undefined, waitMs: 0 })),
    ping: async () => {
      if (isAway) throw new Error('CANARY');
    },
  };
  const clock = manualClock();
  const { url, reports } = await startMemoryService({ limiter, clock });
  const away = await callService(url, '/readyz');
  expect([away.status, away.json.checks.limiter.status]).toEqual([503, 'fail']);
  expect(away.text).not.toContain('CANARY');
  clock.goOn(2000);
  expect((await callService(url, '/readyz')).status).toBe(503);
  isAway = false;
  clock.goOn(2000);
  expect((await callService(url, '/readyz')).status).toBe(200);
  expect(reports).toEqual([
    { code: 'NOT_READY', fields: { limiter: expect.stringMatching(/^Error operator-views/) } },
    { code: 'READY' },
  ]);
});

test('a revoked key in a loop locks out no key behind the same address, also none that is new', async () => {
  const clock = manualClock();
  const { url, makeKey, store } = await startMemoryService({ clock });
  const revoked = await makeKey();
  const status = async (key?: string): Promise<number> =>
    (await callService(url, '/v1/svc/whoami', key === undefined ? {} : { key })).status;
  await store.of('default').apply(
    { what: 'key.revoke', keyId: keyIdOf(revoked), at: 1 },
    {
      event_id: 'evt_0000000000000000000000001',
      at: 1,
      kind: 'key.revoked',
      actor: { type: 'cli', id: 'test', ip_hash: null },
      target: { type: 'key', id: 'k' },
      details: {},
    },
  );
  const statuses = new Set<number>();
  for (let tries = 0; tries < 40; tries += 1) {
    /* oxlint-disable no-await-in-loop */
    statuses.add(await status(revoked));
    // Neither does a client that sends no key, or half of one.
    statuses.add(await status());
    statuses.add(await status('svc_live_half'));
    /* oxlint-enable no-await-in-loop */
  }
  expect(statuses).toEqual(new Set([401, 429]));
  expect(await status(await makeKey())).toBe(200);
  // A search tries different keys.
  for (let tries = 0; tries < 25; tries += 1) {
    const { url: elsewhere, makeKey: makeOther } = await otherService();
    expect(elsewhere).not.toBe(url);
    // oxlint-disable-next-line no-await-in-loop
    await status(await makeOther());
  }
  expect(await status(await makeKey())).toBe(429);
  clock.goOn(60_000);
  expect(await status(await makeKey())).toBe(200);
}, 60_000);

let other: Promise<Awaited<ReturnType<typeof startMemoryService>>> | undefined;

/** A service whose keys are unknown to every other. */
function otherService() {
  return (other ??= startMemoryService());
}

test('a key that is limited to spaces serves a plain SDK with memory off, and refuses a named space', async () => {
  const stage = await openModelService();
  const { send, makeKey, addProvider, provider } = stage;
  await addProvider(DIALECT);
  const key = await makeKey({ spaces: ['team/*'] });
  const body = promptOf(DIALECT, 'The code word is marmalade.');
  const plain = await send(DIALECT, body, { key });
  expect([plain.status, plain.headers['x-svc-memory-mode']]).toEqual([200, 'off']);
  expect(plain.headers['x-svc-memory-state']).toBe('off');
  expect(await receiptIn(stage, plain.headers['x-svc-receipt-id'])).toMatchObject({
    memory_mode_effective: 'off',
    memory_state: 'off',
    capture_state: 'off',
  });
  expect(provider.seen).toHaveLength(1);
  const named = await send(DIALECT, body, { key, headers: { 'x-svc-memory-space': 'secret' } });
  expect([named.status, errorIn(named).code]).toEqual([403, 'SPACE_DENIED']);
  const own = await send(DIALECT, body, { key, headers: { 'x-svc-memory-space': 'team/a' } });
  expect(own.headers['x-svc-memory-mode']).toBe('read-write');
});

test('revoked keys leave the list, and are listed on request', async () => {
  const home = await tempHomeWithService();
  const svc = (...words: string[]) => runServiceHere(['keys', ...words], { home });
  const [kept, gone] = [await makeServiceKey(home), await makeServiceKey(home)];
  await svc('revoke', keyIdOf(gone));
  for (const again of ['revoke', 'rotate']) {
    // oxlint-disable-next-line no-await-in-loop -- Both use the same database.
    const { code, stderr } = await svc(again, keyIdOf(gone));
    expect([code, stderr]).toEqual([1, expect.stringMatching(/revoked already, since \d{4}-/)]);
  }
  expect((await svc('revoke', 'nosuchkey123')).stderr).toContain('no such key');
  const list = await svc('list');
  expect([list.stdout.includes(keyIdOf(kept)), list.stdout.includes(keyIdOf(gone))]).toEqual([
    true,
    false,
  ]);
  expect((await svc('list', '--revoked')).stdout).toContain(keyIdOf(gone));
  const made = await svc('create', '--name', 'models', '--scopes', 'none', '--json');
  expect([made.code, JSON.parse(made.stdout)]).toMatchObject([0, { scopes: [] }]);
}, 60_000);

test('usage by key names the keys, a test of a provider says what is wrong with its certificate, and a start prints its calls', async () => {
  const place = await initModelHome(undefined, { environment: { NODE_EXTRA_CA_CERTS: '' } });
  const service = await place.start();
  const console = consoleOf(service, place.token);
  await console('POST providers', providerBody(DIALECT, place.baseUrl));
  const { json } = await console('POST keys', { name: 'laptop-of-ann', scopes: ['read'] });
  const headers = ['authorization', `Bearer ${String(json.secret)}`];
  await ask(service.port, { method: 'GET', path: '/v1/models', headers });
  await expect
    .poll(async () => (await place.svc('usage', '--by', 'key')).stdout, { timeout: 20_000 })
    .toContain('laptop-of-ann');
  const tested = await place.svc('providers', 'test', 'p-2', '--json');
  expect(tested.code).toBe(1);
  expect(JSON.parse(tested.stdout)).toMatchObject({
    ok: false,
    error_code: 'PROVIDER_UNREACHABLE',
    error_message: expect.stringMatching(/SELF_SIGNED|UNABLE_TO_VERIFY/),
  });
  await service.end('SIGTERM');
  expect(service.stderr()).toMatch(/ {2}models {2}200 {2}/);
}, 60_000);

test.each([
  ['the only tenant', undefined],
  ['a named tenant', 'acme'],
])(
  'a test of a provider of %s is made by the running service, with its certificates',
  async (_of, tenant) => {
    const place = await initModelHome();
    const service = await place.start('--quiet');
    const call = consoleOf(service, place.token);
    const flags = tenant === undefined ? [] : ['--tenant', tenant];
    if (tenant !== undefined) await call('POST tenants', { tenant_id: tenant });
    await call('POST providers', providerBody(DIALECT, place.baseUrl), {
      ...(tenant && { tenant }),
    });
    // The command trusts nothing but what the system trusts.
    const svc = (...words: string[]) =>
      runServiceHere(words, { home: place.home, env: { SVC_SERVICE_HOME: place.folder } });
    const tested = await svc('providers', 'test', 'p-2', '--json', ...flags);
    expect([tested.code, tested.stderr]).toEqual([0, '']);
    expect(JSON.parse(tested.stdout)).toMatchObject({ ok: true, status: 200 });
    const admins = (await call('GET admins')).json.data as { name: string; status: string }[];
    expect(admins.filter(({ name }) => name === 'svc-service providers')).toMatchObject([
      { status: 'revoked' },
    ]);
    await service.end('SIGTERM');
    const alone = await svc('providers', 'test', 'p-2', '--json', ...flags);
    expect([alone.code, alone.stderr]).toEqual([1, expect.stringContaining('does not run')]);
  },
  60_000,
);

test('receipts that were removed with the head of their node are missed by verify', async () => {
  const place = await initModelHome();
  const serve = async (requests: number): Promise<void> => {
    const service = await place.start('--quiet');
    const { json } = await consoleOf(service, place.token)('POST keys', { name: 'k', scopes: [] });
    const headers = ['authorization', `Bearer ${String(json.secret)}`];
    for (let count = 0; count < requests; count += 1) {
      // oxlint-disable-next-line no-await-in-loop
      await ask(service.port, { method: 'GET', path: '/v1/models', headers });
    }
    expect(await service.end('SIGTERM')).toBe(0);
  };
  await serve(3);
  await serve(2);
  const verify = async (name: string) => {
    const into = join(place.home, name);
    const exported = await place.svc('receipts', 'export', into);
    expect(exported.code, exported.stderr).toBe(0);
    return place.svc('receipts', 'verify', into);
  };
  const whole = await verify('whole');
  expect(whole.code, whole.stdout).toBe(0);
  expect(whole.stderr).not.toContain('Nothing signed says');
  // Without its heads nobody can say whether an export has all receipts.
  await verify('headless');
  writeFileSync(join(place.home, 'headless', 'heads.ndjson'), '');
  const headless = await place.svc('receipts', 'verify', join(place.home, 'headless'));
  expect(headless.stderr).toContain('Nothing signed says here how many receipts default has');
  const database = loadDriver().open(join(place.folder, 'service.db'));
  const last = '(SELECT max(node) FROM receipt_heads)';
  database.exec(`DELETE FROM receipts WHERE body LIKE '%' || ${last} || '%'`);
  database.exec(`DELETE FROM receipt_heads WHERE node = ${last}`);
  database.close();
  const cut = await verify('cut');
  expect(cut.code).toBe(1);
  expect(cut.stdout).toMatch(/default {2}[23] receipts missing that no head accounts for/);
}, 90_000);
