import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { verifyObject } from '../../src/core/jws.ts';
import { openConsole, type OpenedConsole } from '../support/console.ts';
import { callService, itemOf } from '../support/memory-service.ts';
import { FIRST, SECOND, TestMasterKeys } from '../support/test-vault.ts';

const SPACE = 'project/api-0123456789';

async function openVault(): Promise<OpenedConsole & { readonly keys: TestMasterKeys }> {
  const keys = new TestMasterKeys(FIRST, SECOND);
  const opened = await openConsole({ masterKeys: keys });
  expect((await opened.ask('POST vault/keys', { key_id: FIRST })).status).toBe(201);
  return { ...opened, keys };
}

async function codeOf(answer: Promise<{ json: { error?: { code: string } } }>) {
  return (await answer).json.error?.code;
}

test('without a master key nothing is sealed, and the service serves as before', async () => {
  const { ask, service } = await openConsole();
  expect(await codeOf(ask('POST signing/rotate', {}))).toBe('VAULT_UNAVAILABLE');
  expect(await codeOf(ask('POST vault/keys', { key_id: FIRST }))).toBe('VAULT_UNAVAILABLE');
  expect((await ask('GET vault')).json).toEqual({ problem: null, keys: [] });
  expect((await callService(service.url, '/readyz')).status).toBe(200);
});

test('receipts of purges are signed, and anyone can check them with the public keys', async () => {
  const { ask, askMemory, service } = await openVault();
  await ask('POST signing/rotate', {});
  const { secret } = (
    await ask('POST keys', { name: 'k', scopes: ['read', 'write', 'receipt:read'] })
  ).json;
  const items = [itemOf('to be purged')];
  await askMemory('memory/capture', secret, { space: SPACE, if_generation: 'new', items });
  const order = { space: SPACE, scope: { all: true }, confirm: SPACE };
  const { json: receipt } = await askMemory('memory/purges', secret, order);
  const publicKeys = async () =>
    (await callService(service.url, '/.well-known/svc/receipt-keys.json')).json.keys;
  expect(verifyObject(receipt, await publicKeys())).toBe('valid');
  const changed = { ...receipt, counts: { ...receipt.counts, records: 0 } };
  expect(verifyObject(changed, await publicKeys())).toBe('invalid');
  // Another key signs from now on; what the first one signed is checked as before.
  await ask('POST signing/rotate', {});
  const again = await askMemory(`memory/purges/${receipt.purge_id}`, secret);
  const [listed] = (await askMemory('memory/purges', secret)).json.data;
  await expect.poll(publicKeys).toHaveLength(1);
  const keys = (await ask('GET signing')).json.data;
  expect(keys.map((key: { retired_at: unknown }) => key.retired_at === null)).toEqual([
    true,
    false,
  ]);
  for (const one of [receipt, again.json, listed]) expect(verifyObject(one, keys)).toBe('valid');
});

test('the public keys are current within a second of a rotation, and need no key', async () => {
  const { ask, clock, service } = await openVault();
  const keys = async () =>
    (await callService(service.url, '/.well-known/svc/receipt-keys.json')).json.keys;
  expect(await keys()).toEqual([]);
  await ask('POST signing/rotate', {});
  clock.goOn(1001);
  expect(await keys()).toMatchObject([{ kty: 'OKP', alg: 'Ed25519', use: 'sig' }]);
});

test('another master key than before is told, shuts the vault, and makes the service unready', async () => {
  const { ask, keys, service, clock } = await openVault();
  await ask('POST signing/rotate', {});
  const right = keys.set(FIRST);
  clock.goOn(1001);
  expect((await ask('GET vault')).json.problem).toContain('does not fit the vault');
  expect(await codeOf(ask('POST signing/rotate', {}))).toBe('VAULT_UNAVAILABLE');
  expect((await ask('POST vault/verify', {})).json).toMatchObject({
    unreadable: [expect.any(String)],
  });
  const ready = await callService(service.url, '/readyz');
  expect([ready.status, ready.json.checks]).toMatchObject([
    503,
    { store: { status: 'ok' }, vault: { status: 'fail' } },
  ]);
  keys.set(FIRST, right);
  clock.goOn(1001);
  expect((await callService(service.url, '/readyz')).status).toBe(200);
  expect((await ask('POST vault/verify', {})).json).toEqual({ secrets: 1, unreadable: [] });
});

test('a second master key seals, the first opens what it sealed until all is rewrapped and it retires', async () => {
  const { ask, keys } = await openVault();
  await ask('POST signing/rotate', {});
  expect((await ask('POST vault/keys', { key_id: SECOND })).status).toBe(201);
  expect(await codeOf(ask('POST vault/keys', { key_id: SECOND }))).toBe('CONFLICT');
  const states = async () =>
    (await ask('GET vault')).json.keys.map((key: Record<string, unknown>) => [
      key['key_id'],
      key['state'],
      key['secrets'],
    ]);
  expect(await states()).toEqual([
    [FIRST, 'decrypt_only', 1],
    [SECOND, 'active', 0],
  ]);
  expect(await codeOf(ask(`DELETE vault/keys/${FIRST}`))).toBe('CONFLICT');
  expect(await codeOf(ask(`DELETE vault/keys/${SECOND}`))).toBe('CONFLICT');
  expect((await ask('POST vault/rotate', {})).json).toEqual({ secrets: 1, unreadable: [] });
  expect((await ask('POST vault/rotate', {})).json).toEqual({ secrets: 0, unreadable: [] });
  keys.take(FIRST);
  expect((await ask('POST vault/verify', {})).json).toEqual({ secrets: 1, unreadable: [] });
  expect((await ask(`DELETE vault/keys/${FIRST}`)).status).toBe(204);
  expect((await ask(`DELETE vault/keys/${FIRST}`)).status).toBe(404);
  const { json } = await ask('GET audit', undefined, { tenant: 'service' });
  const kinds = json.data.map((event: { kind: string }) => event.kind);
  expect(kinds.slice(0, 5)).toEqual([
    'vault.kek_retired',
    'vault.rotated',
    'vault.kek_added',
    'signing_key.rotated',
    'vault.kek_added',
  ]);
});

test('a rotation that stops at any batch leaves every secret readable, and goes on where it stood', async () => {
  const { ask, service } = await openVault();
  // More than two batches of 100.
  for (let at = 0; at < 205; at += 1) {
    // oxlint-disable-next-line no-await-in-loop
    await ask('POST signing/rotate', {});
  }
  await ask('POST vault/keys', { key_id: SECOND });
  const apply = service.store.apply.bind(service.store);
  let batches = 0;
  service.store.apply = async (change, note) => {
    if (change.what === 'secrets.rewrap') {
      batches += 1;
      if (batches === 2) throw new Error('killed');
    }
    return apply(change, note);
  };
  expect(await codeOf(ask('POST vault/rotate', {}))).toBe('INTERNAL');
  expect((await ask('POST vault/verify', {})).json).toEqual({ secrets: 205, unreadable: [] });
  expect((await ask('POST vault/rotate', {})).json).toEqual({ secrets: 105, unreadable: [] });
  expect((await ask('POST vault/verify', {})).json).toEqual({ secrets: 205, unreadable: [] });
}, 60_000);

test('one secret that does not open is named, and the others are rotated', async () => {
  const { ask, keys } = await openVault();
  await ask('POST signing/rotate', {});
  await ask('POST vault/keys', { key_id: SECOND });
  await ask('POST signing/rotate', {});
  keys.take(FIRST);
  const answer = (await ask('POST vault/rotate', {})).json;
  expect([answer.secrets, answer.unreadable]).toEqual([0, [expect.stringMatching(/^service\/./)]]);
});

// spec: 1.7-vault
test('R29: neither a private key nor a master key is in a file of the service or in an answer', async () => {
  const { ask, keys, service } = await openVault();
  const { kid } = (await ask('POST signing/rotate', {})).json;
  const sealed = await service.store.of('service').findSecret(kid);
  const told = [(await ask('GET vault')).text, (await ask('GET signing')).text].join('');
  const master = Buffer.from((await keys.find(FIRST)) ?? []);
  const files = readdirSync(service.folder).map((name) => readFileSync(join(service.folder, name)));
  expect(sealed?.fingerprint).toMatch(/^fp_/);
  for (const file of files) {
    expect(file.includes(master)).toBe(false);
    // Each private key in PKCS #8 begins with these bytes, in base64.
    expect(file.includes('MC4CAQAwBQYDK2VwBCIEI')).toBe(false);
  }
  expect(told).not.toContain(master.toString('base64url'));
});
