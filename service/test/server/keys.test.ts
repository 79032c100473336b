import { expect, test } from 'vitest';
import { openServiceStore } from '../../src/adapters/service-store/sqlite-service-store.ts';
import { revokeKeyOf } from '../support/service-control.ts';
import { manualClock } from '../../../test/support/manual-clock.ts';
import {
  callService,
  itemOf,
  keyIdOf,
  type ServiceAnswer,
  startMemoryService,
} from '../support/memory-service.ts';

const SPACE = 'project/api-0123456789';

const CAPTURE = { space: SPACE, if_generation: 'new', items: [itemOf('a fact')] };

function codeOf({ status, json }: ServiceAnswer): string {
  return `${status} ${status === 200 ? '' : json.error.code}`.trim();
}

// spec: 5.3-401-403
test('R4: no key, a mistyped one, an unknown one and two that differ are refused alike, before the path', async () => {
  const { url, makeKey } = await startMemoryService();
  const key = await makeKey();
  const last = key.endsWith('0') ? '1' : '0';
  const unknown = 'svc_live_0K2bNlA0SEtH_N1qfA3CaRpWIkJBZxxenwEYqtWTxf2yS06ADSi7Lg6s_G90JOjw';
  for (const path of ['/v1/svc/whoami', '/v1/svc/nothing', '/']) {
    /* oxlint-disable no-await-in-loop */
    expect(codeOf(await callService(url, path))).toBe('401 AUTH_MISSING');
    const mistyped = { key: key.slice(0, -1) + last };
    expect(codeOf(await callService(url, path, mistyped))).toBe('401 AUTH_INVALID');
    expect(codeOf(await callService(url, path, { key: unknown }))).toBe('401 AUTH_INVALID');
    const both = { key, headers: { 'x-api-key': unknown } };
    expect(codeOf(await callService(url, path, both))).toBe('401 AUTH_INVALID');
    /* oxlint-enable no-await-in-loop */
  }
  const answer = await callService(url, '/v1/svc/whoami', { headers: { authorization: key } });
  expect(answer).toMatchObject({ status: 401, headers: { 'www-authenticate': 'Bearer' } });
});

// spec: 5.1-api-key
test('either header carries the key', async () => {
  const { url, makeKey } = await startMemoryService();
  const key = await makeKey({ name: 'laptop' });
  for (const headers of [{ authorization: `bearer ${key}` }, { 'x-api-key': key }]) {
    // oxlint-disable-next-line no-await-in-loop
    const { json } = await callService(url, '/v1/svc/whoami', { headers });
    expect(json.key).toMatchObject({ key_id: keyIdOf(key), name: 'laptop' });
    expect(JSON.stringify(json)).not.toContain(key.split('_')[3]);
  }
});

// spec: 5.1-api-key
test('a Basic header for a gateway is no key: x-api-key decides, and two keys are still refused', async () => {
  const { url, makeKey } = await startMemoryService();
  const [key, other] = [await makeKey(), await makeKey()];
  const ask = async (authorization: string, apiKey?: string): Promise<string> => {
    const headers = { authorization, ...(apiKey === undefined ? {} : { 'x-api-key': apiKey }) };
    const answer = await callService(url, '/v1/svc/whoami', { headers });
    return answer.status === 200 ? answer.json.key.key_id : codeOf(answer);
  };
  const basic = `Basic ${Buffer.from('gateway:password').toString('base64')}`;
  expect(await ask(basic, key)).toBe(keyIdOf(key));
  expect(await ask(basic)).toBe('401 AUTH_MISSING');
  expect(await ask(basic, `${key}x`)).toBe('401 AUTH_INVALID');
  // Everything else beside a key is malformed or another key.
  for (const wrong of [
    other,
    `Bearer ${other}`,
    `ApiKey ${other}`,
    `${basic} ${other}`,
    'Bearer',
  ]) {
    // oxlint-disable-next-line no-await-in-loop -- The guard counts failures one by one.
    expect([wrong, await ask(wrong, key)]).toEqual([wrong, '401 AUTH_INVALID']);
  }
});

test('a key that another process revokes is refused by the very next call', async () => {
  const { url, makeKey, folder, store } = await startMemoryService();
  const key = await makeKey();
  expect((await callService(url, '/v1/svc/whoami', { key })).status).toBe(200);
  // A connection of its own to the same file, as the command line has.
  const beside = openServiceStore({ folder, report: () => undefined });
  expect(await revokeKeyOf(beside.of('default'), keyIdOf(key))).toBe('done');
  expect(codeOf(await callService(url, '/v1/svc/whoami', { key }))).toBe('401 AUTH_REVOKED');
  expect(await revokeKeyOf(beside.of('default'), keyIdOf(key))).toBe('missing');
  await beside.close();
  expect(await store.of('default').listKeys()).toHaveLength(1);
});

test('a key that has expired is refused', async () => {
  const { url, makeKey } = await startMemoryService();
  const key = await makeKey({ expiresAt: Date.now() - 1 });
  expect(codeOf(await callService(url, '/v1/svc/whoami', { key }))).toBe('401 AUTH_EXPIRED');
});

// spec: 2.1-scopes
test('each scope opens its own operations and nothing else', async () => {
  const { url, makeKey } = await startMemoryService();
  const calls: Readonly<Record<string, [string, object | undefined, string]>> = {
    recall: ['memory/recall', { space: SPACE, max_tokens: 10 }, 'read'],
    retrieve: ['memory/retrieve', { refs: [itemOf('x').digest] }, 'read'],
    items: ['memory/items', undefined, 'read'],
    sources: [`memory/sources?space=${SPACE}`, undefined, 'read'],
    capture: ['memory/capture', CAPTURE, 'write'],
    purge: [
      'memory/purges',
      { space: SPACE, scope: { all: true }, confirm: SPACE, dry_run: true },
      'write',
    ],
    receipts: ['memory/purges', undefined, 'receipt:read'],
  };
  for (const scope of ['read', 'write', 'receipt:read'] as const) {
    /* oxlint-disable no-await-in-loop */
    const key = await makeKey({ scopes: [scope] });
    const { json } = await callService(url, '/v1/svc/whoami', { key });
    expect(json).toMatchObject({
      key: { scopes: [scope] },
      memory_mode_default: scope === 'receipt:read' ? 'off' : scope,
    });
    for (const [path, body, needed] of Object.values(calls)) {
      const answer = await callService(url, `/v1/svc/${path}`, { key, body });
      expect(codeOf(answer), path).toBe(needed === scope ? '200' : '403 SCOPE_DENIED');
    }
    /* oxlint-enable no-await-in-loop */
  }
});

test('R25: a key is held to its spaces in every operation', async () => {
  const { url, makeKey } = await startMemoryService();
  const all = await makeKey();
  const key = await makeKey({ spaces: ['team/*', 'global'] });
  const said = (space: string): object => ({ ...CAPTURE, space, items: [itemOf(`of ${space}`)] });
  for (const space of ['team/one', 'secret']) {
    // oxlint-disable-next-line no-await-in-loop
    await callService(url, '/v1/svc/memory/capture', { key: all, body: said(space) });
  }
  const ask = (path: string, body?: object): Promise<ServiceAnswer> =>
    callService(url, `/v1/svc/${path}`, { key, body });
  const denied = '403 SPACE_DENIED';
  expect(codeOf(await ask('whoami?space=secret'))).toBe(denied);
  expect(codeOf(await ask('whoami?space=team/one'))).toBe('200');
  expect(codeOf(await ask('memory/capture', said('secret')))).toBe(denied);
  expect(codeOf(await ask('memory/capture', said('teams/x')))).toBe(denied);
  const question = { max_tokens: 100, query: { text: 'of secret' } };
  expect(codeOf(await ask('memory/recall', { ...question, space: 'secret' }))).toBe(denied);
  const sneaky = { ...question, space: 'team/one', include_spaces: ['secret'] };
  expect(codeOf(await ask('memory/recall', sneaky))).toBe(denied);
  expect(codeOf(await ask('memory/items?space=secret'))).toBe(denied);
  expect(codeOf(await ask('memory/sources?space=secret'))).toBe(denied);
  expect(codeOf(await ask('memory/items/it_1.0?space=secret'))).toBe('405 METHOD_NOT_ALLOWED');
  const order = { space: 'secret', scope: { all: true }, confirm: 'secret' };
  expect(codeOf(await ask('memory/purges', order))).toBe(denied);
  // Without a space: everything that the key may read, and nothing else.
  const spaces = (await ask('memory/items')).json.data.map(
    ({ provenance: [source] }: { provenance: { space: string }[] }) => source?.space,
  );
  expect(spaces).toEqual(['team/one']);
  const refs = [itemOf('of secret').digest, itemOf('of team/one').digest];
  const fetched = (await ask('memory/retrieve', { refs })).json;
  expect(fetched.objects).toHaveLength(1);
  expect(fetched.missing).toEqual([{ ref: refs[0], reason: 'unknown' }]);
  // Receipts of other spaces do not exist for it.
  await callService(url, '/v1/svc/memory/purges', { key: all, body: order });
  const [receipt] = (await callService(url, '/v1/svc/memory/purges', { key: all })).json.data;
  expect((await ask('memory/purges')).json.data).toEqual([]);
  expect(codeOf(await ask(`memory/purges/${receipt.purge_id}`))).toBe('404 NOT_FOUND');
});

test('an address that tries key after key is made to wait, and a good key is not', async () => {
  const clock = manualClock();
  const { url, makeKey } = await startMemoryService({ clock });
  const key = await makeKey();
  expect((await callService(url, '/v1/svc/whoami', { key })).status).toBe(200);
  const codes: string[] = [];
  for (let tries = 0; tries < 22; tries += 1) {
    // oxlint-disable-next-line no-await-in-loop
    codes.push(codeOf(await callService(url, '/v1/svc/whoami', { key: 'guess' })));
  }
  expect(codes).toEqual([
    ...Array<string>(20).fill('401 AUTH_INVALID'),
    ...Array<string>(2).fill('429 RATE_LIMIT_EXCEEDED'),
  ]);
  const refused = await callService(url, '/v1/svc/whoami', { key: 'guess' });
  expect(Number(refused.headers['retry-after'])).toBeGreaterThanOrEqual(1);
  clock.goOn(2000);
  const later = await callService(url, '/v1/svc/whoami', { key: 'guess' });
  expect(codeOf(later)).toBe('401 AUTH_INVALID');
  expect((await callService(url, '/v1/svc/whoami', { key })).status).toBe(200);
});

test('calls of one key beyond its rate are told when to come again, and other keys go on', async () => {
  const { url, makeKey } = await startMemoryService({
    limits: { requestsPerMinute: 2 },
    clock: manualClock(),
  });
  const [busy, calm] = [await makeKey(), await makeKey()];
  const codes: string[] = [];
  for (let calls = 0; calls < 3; calls += 1) {
    // oxlint-disable-next-line no-await-in-loop
    codes.push(codeOf(await callService(url, '/v1/svc/whoami', { key: busy })));
  }
  expect(codes).toEqual(['200', '429 RATE_LIMIT_EXCEEDED', '429 RATE_LIMIT_EXCEEDED']);
  const refused = await callService(url, '/v1/svc/whoami', { key: busy });
  expect(refused.json.error.retry).toMatchObject({ action: 'after_delay' });
  expect(refused.json.error.retry.after_ms).toBeGreaterThan(0);
  const { status, json } = await callService(url, '/v1/svc/whoami', { key: calm });
  expect([status, json.limits.requests_per_minute]).toEqual([200, 2]);
});

test('when a key was used is known to the minute', async () => {
  const { url, makeKey, store } = await startMemoryService();
  const key = await makeKey();
  await callService(url, '/v1/svc/whoami', { key });
  await expect
    .poll(async () => (await store.of('default').listKeys())[0]?.usedAt)
    .toBeGreaterThan(0);
});

test('R29: neither a key nor a text is in what the service logs or answers with', async () => {
  const { url, makeKey, calls, reports } = await startMemoryService();
  const key = await makeKey();
  const canary = 'CANARY-7f3a is the word';
  await callService(url, '/v1/svc/memory/capture', {
    key,
    body: { ...CAPTURE, items: [itemOf(canary)] },
  });
  const wrong = await callService(
    url,
    `/v1/svc/memory/items/${canary.slice(0, 11)}?space=no%20space`,
    {
      key,
      method: 'DELETE',
    },
  );
  const bad = await callService(url, '/v1/svc/memory/recall', {
    key,
    body: { space: canary, max_tokens: canary, [canary]: canary },
  });
  expect([wrong.status, bad.status]).toEqual([422, 422]);
  const said = JSON.stringify([calls, reports, wrong.text, bad.text]);
  expect(said).not.toContain('CANARY');
  expect(said).not.toContain(key.split('_')[3]);
  expect(calls.map(({ operation, status }) => [operation, status])).toEqual([
    ['capture', 200],
    ['deleteItem', 422],
    ['recall', 422],
  ]);
  expect(calls[0]).toMatchObject({ keyId: keyIdOf(key), code: undefined });
});
