import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import {
  backUpService,
  checkService,
  restoreService,
} from '../../src/adapters/service-store/backup.ts';
import { openServiceStore } from '../../src/adapters/service-store/sqlite-service-store.ts';
import { loadDriver } from '../../../src/adapters/store/driver.ts';
import type { ServiceStore } from '../../src/ports/service-store.ts';
import {
  addKeyTo,
  addMasterKey,
  addSigningKey,
  addTenant,
  noteOfTest,
  providerOf,
  putProvider,
  revokeKeyOf,
} from '../support/service-control.ts';
import { itemsOf, objectOf, SPACE } from '../support/service-objects.ts';
import { rowOfReceipt } from '../support/receipt-facts.ts';
import { holdersOf, plantIn } from '../../../test/support/forgotten-bytes.ts';
import { tempFolder } from '../../../test/support/temp-folder.ts';
import { keepThreads } from '../../../test/support/same-thread.ts';

keepThreads();

const patience = (): AbortSignal => AbortSignal.timeout(30_000);

function open(folder: string, options: { serves?: boolean; creates?: boolean } = {}): ServiceStore {
  const store = openServiceStore({ folder, creates: true, report: () => undefined, ...options });
  onTestFinished(() => store.close());
  return store;
}

async function keep(store: ServiceStore, ...texts: string[]) {
  const batch = {
    space: SPACE,
    ifGeneration: undefined,
    objects: texts.map((text) => objectOf(text)),
    now: 1000,
  };
  return store.of('default').capture(batch, patience());
}

async function listed(store: ServiceStore): Promise<readonly string[]> {
  return (await store.of('default').listItems(itemsOf(), patience())).map(({ text }) => text);
}

test('one service at a time on a folder; the lock goes with its process', async () => {
  const folder = tempFolder();
  const first = open(folder, { serves: true });
  await first.health();
  const second = open(folder, { serves: true });
  await expect(second.health()).rejects.toThrow('Another svc service runs on this folder.');
  // Beside it, the command line looks and manages keys.
  await expect(open(folder).of('default').listKeys()).resolves.toEqual([]);
  await first.close();
  await expect(open(folder, { serves: true }).health()).resolves.toMatchObject({ records: 0 });
});

test('R28: everything in the folder is private, and a missing database is not made by looking', async () => {
  const folder = join(tempFolder(), 'service');
  await expect(open(folder, { creates: false }).health()).rejects.toThrow('does not exist');
  const store = open(folder, { serves: true });
  await keep(store, 'a fact');
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  const modes = readdirSync(folder).map((name) => statSync(join(folder, name)).mode & 0o777);
  expect(new Set(modes)).toEqual(new Set([0o600]));
});

test.each(['deleted', 'replaced'])(
  'law 2: a service whose file is %s answers nothing from it',
  async (what) => {
    const folder = tempFolder();
    const store = open(folder, { serves: true });
    await keep(store, 'a fact');
    expect(await listed(store)).toEqual(['a fact']);
    rmSync(join(folder, 'service.db'));
    if (what === 'replaced') writeFileSync(join(folder, 'service.db'), '', { mode: 0o600 });
    await expect(listed(store)).rejects.toThrow('deleted or replaced while it was open');
    await expect(store.health()).rejects.toThrow('deleted or replaced while it was open');
  },
);

test('a backup of a running service is whole, private, and never over a file that is there', async () => {
  const folder = tempFolder();
  const store = open(folder, { serves: true });
  await keep(store, 'one', 'two');
  const file = join(tempFolder(), 'backup.db');
  // Writes go on while it is made.
  const [facts] = await Promise.all([backUpService(folder, file), keep(store, 'three')]);
  expect(facts.records).toBeGreaterThanOrEqual(2);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(existsSync(`${file}-wal`)).toBe(false);
  await expect(backUpService(folder, file)).rejects.toThrow('exists already');
  await expect(backUpService(tempFolder(), `${file}2`)).rejects.toThrow('There is no service');
});

test('a restore brings the records back in a new epoch, and keeps what was there', async () => {
  const folder = tempFolder();
  const store = open(folder, { serves: true });
  const { state } = await keep(store, 'kept');
  const file = join(tempFolder(), 'backup.db');
  await backUpService(folder, file);
  await keep(store, 'lost');
  await expect(restoreService(folder, file, 0)).rejects.toThrow('A service runs on this folder.');
  await store.close();
  const facts = await restoreService(folder, file, 0);
  expect(facts.records).toBe(1);
  expect(existsSync(facts.kept ?? '')).toBe(true);
  const again = open(folder, { serves: true });
  expect(await listed(again)).toEqual(['kept']);
  const now = await again.of('default').spaceState(SPACE, patience());
  expect(now.commit_seq).toBe(1);
  expect(now.generation).not.toBe(state.generation);
  expect(readdirSync(folder).filter((name) => name.startsWith('restoring'))).toEqual([]);
});

test('a restore brings back neither a revoked key, a rotated secret nor what was purged since', async () => {
  const folder = tempFolder();
  const store = open(folder, { serves: true });
  const key = { keyId: 'abcdefghijkl', name: 'k', hash: 'h', scopes: [], createdAt: 1 };
  const other = { ...key, keyId: 'rotatedlater' };
  await addKeyTo(store.of('default'), key);
  await addKeyTo(store.of('default'), other);
  await addTenant(store, 'acme');
  const admin = { adminId: 'o', name: 'o', role: 'operator', hash: 'h', createdAt: 1 } as const;
  await store.apply({ what: 'admin.add', admin }, noteOfTest('admin.created'));
  await keep(store, 'kept', 'to be forgotten');
  const file = join(tempFolder(), 'backup.db');
  await backUpService(folder, file);
  await revokeKeyOf(store.of('default'), key.keyId, 5);
  const rotation = { hash: 'new', at: 7, graceMs: 0 };
  const rotate = { what: 'key.rotate', keyId: other.keyId, rotation } as const;
  await store.of('default').apply(rotate, noteOfTest('key.rotated'));
  const revoke = { what: 'admin.revoke', adminId: 'o', tenant: undefined, at: 8 } as const;
  await store.apply(revoke, noteOfTest('admin.revoked'));
  const suspend = { what: 'tenant.set', tenantId: 'acme', status: 'suspended' } as const;
  await store.apply(suspend, noteOfTest('tenant.suspended'));
  const { digest } = objectOf('to be forgotten');
  const order = {
    purgeId: `prg_${'2'.repeat(26)}`,
    space: SPACE,
    scope: { digests: [digest] },
    isDryRun: false,
    requestedBy: 'k',
    now: 2000,
  };
  await store.of('default').beginPurge(order);
  while (!(await store.of('default').continuePurge(order.purgeId, 2000)));
  await store.close();
  const facts = await restoreService(folder, file, 3000);
  expect(facts.carried).toEqual({ revoked: 2, purged: 1 });
  const again = open(folder, { serves: true });
  expect(await again.findCaller(key.keyId, patience())).toMatchObject({ key: { revokedAt: 5 } });
  expect(await again.findCaller(other.keyId, patience())).toMatchObject({
    key: { hash: 'new', retired: [{ hash: 'h', until: 7 }] },
  });
  expect(await again.findAdmin('o', patience())).toMatchObject({ revokedAt: 8 });
  expect(await again.findTenant('acme')).toMatchObject({ status: 'suspended' });
  expect(await listed(again)).toEqual(['kept']);
  expect((await keep(again, 'to be forgotten')).results).toEqual(['purged']);
  expect(readFileSync(join(folder, 'service.db')).includes('to be forgotten')).toBe(false);
});

test('a restore ends a purge that a crash interrupted, and a tenant that was deleted stays deleted', async () => {
  const folder = tempFolder();
  const store = open(folder, { serves: true });
  await addTenant(store, 'acme');
  const set = (status: 'suspended' | 'deleted') => {
    const change = { what: 'tenant.set', tenantId: 'acme', status } as const;
    return store.apply(change, noteOfTest(`tenant.${status}`));
  };
  await set('suspended');
  await keep(store, 'to be forgotten');
  const file = join(tempFolder(), 'backup.db');
  await backUpService(folder, file);
  await set('deleted');
  const purgeId = `prg_${'2'.repeat(26)}`;
  const scope = { session_id: 's_1' };
  const order = { purgeId, space: SPACE, scope, isDryRun: false, requestedBy: 'k', now: 2000 };
  await store.of('default').beginPurge(order);
  await store.close();
  const facts = await restoreService(folder, file, 3000);
  expect(facts.carried).toEqual({ revoked: 0, purged: 1 });
  const again = open(folder, { serves: true });
  expect(await again.findTenant('acme')).toMatchObject({ status: 'deleted' });
  expect(await listed(again)).toEqual([]);
  expect(await again.of('default').findPurge(purgeId, patience())).toMatchObject({
    state: 'erased',
    requested_by: 'k',
  });
});

test('a restore brings back no provider that was deleted since, and none of its secrets', async () => {
  const folder = tempFolder();
  const store = open(folder, { serves: true });
  await addMasterKey(store);
  await addTenant(store, 'acme');
  for (const tenant of ['default', 'acme']) {
    // oxlint-disable-next-line no-await-in-loop
    expect(await putProvider(store.of(tenant), providerOf())).toBe('done');
  }
  const file = join(tempFolder(), 'backup.db');
  await backUpService(folder, file);
  const change = { what: 'provider.remove', providerId: 'prov_a' } as const;
  const target = { type: 'provider', id: 'prov_a' };
  const note = { ...noteOfTest('provider.deleted'), target };
  expect(await store.of('acme').apply(change, note)).toBe('done');
  await store.close();
  await restoreService(folder, file, 3000);
  const again = open(folder, { serves: true });
  expect(await again.of('acme').listProviders()).toEqual([]);
  expect(await again.of('acme').findSecret('sec_a')).toBe(undefined);
  expect(await again.of('default').listProviders()).toEqual([providerOf()]);
  expect(await again.of('default').findSecret('sec_a')).toMatchObject({ owner: 'prov_a' });
});

test('a restore brings back no credential that was replaced since, nor the key that signed then', async () => {
  const folder = tempFolder();
  const store = open(folder, { serves: true });
  await addMasterKey(store);
  const own = store.of('default');
  await putProvider(own, providerOf());
  await addSigningKey(store, 'kid_1');
  const file = join(tempFolder(), 'backup.db');
  await backUpService(folder, file);
  const credential = { secretId: 'sec_new', fingerprint: 'fp_00000009', savedAt: 9 };
  const next = { ...providerOf(), credential, version: 2, name: 'renamed', defaultModel: 'other' };
  expect(await putProvider(own, next, 1)).toBe('done');
  await addSigningKey(store, 'kid_2');
  await store.close();
  await restoreService(folder, file, 3000);
  const again = open(folder, { serves: true });
  // Its name and its models are those of the backup.
  expect(await again.of('default').listProviders()).toEqual([
    { ...providerOf(), credential, version: 2, updatedAt: next.updatedAt },
  ]);
  expect(await again.of('default').findSecret('sec_a')).toBe(undefined);
  expect(await again.of('default').findSecret('sec_new')).toMatchObject({ owner: 'prov_a' });
  expect(await again.listSigningKeys()).toMatchObject([
    { kid: 'kid_2' },
    { kid: 'kid_1', retiredAt: 5 },
  ]);
  expect((await again.listSigningKeys())[0]).not.toHaveProperty('retiredAt');
  expect(await again.of('service').findSecret('kid_2')).toMatchObject({ purpose: 'signing' });
});

test('a restore keeps the receipts that were made since, and counts each once', async () => {
  const folder = tempFolder();
  const store = open(folder, { serves: true });
  const rows = Array.from({ length: 3 }, (_, at) => rowOfReceipt({ seq: at + 1 }));
  await store.storeReceipts(rows.slice(0, 1));
  const file = join(tempFolder(), 'backup.db');
  await backUpService(folder, file);
  await store.storeReceipts(rows);
  const head = { tenant: 'default', node: 'node_a', lastSeq: 3, body: '{}' };
  await store.closeHeads([head]);
  await store.close();
  await restoreService(folder, file, 3000);
  const own = open(folder, { serves: true }).of('default');
  expect(await own.listReceipts({ limit: 9, order: 'asc' }, patience())).toHaveLength(3);
  expect(await own.listHeads({ limit: 9, after: undefined })).toEqual([head]);
  const days = { from: '2000-01-01', to: '2999-12-31', groups: ['day'], limit: 9 } as const;
  expect(await own.listUsage(days)).toMatchObject([{ requests: 3, spentTokens: 300 }]);
});

test('a restore over a broken database says that it could carry nothing over', async () => {
  const folder = tempFolder();
  const store = open(folder, { serves: true });
  await keep(store, 'kept');
  const file = join(tempFolder(), 'backup.db');
  await backUpService(folder, file);
  await store.close();
  // Its log alone would make it whole again, and so would a connection of this process that the
  // driver has not quite closed yet: a new file, not new bytes.
  for (const end of ['', '-wal', '-shm']) rmSync(join(folder, `service.db${end}`), { force: true });
  writeFileSync(join(folder, 'service.db'), 'broken '.repeat(1000));
  expect((await restoreService(folder, file, 0)).carried).toBe(undefined);
  expect(await listed(open(folder, { serves: true }))).toEqual(['kept']);
});

test('what is no backup is not restored, and nothing changes', async () => {
  const folder = tempFolder();
  const store = open(folder, { serves: true });
  await keep(store, 'kept');
  await store.close();
  const file = join(tempFolder(), 'not-a-backup.db');
  writeFileSync(file, 'SQLite format 3\u0000 but not really');
  await expect(restoreService(folder, file, 0)).rejects.toThrow('not a backup');
  await expect(restoreService(folder, `${file}.missing`, 0)).rejects.toThrow('does not exist');
  expect(await listed(open(folder, { serves: true }))).toEqual(['kept']);
});

test('a broken database is told, and never replaced by an empty one', async () => {
  const folder = tempFolder();
  const store = open(folder, { serves: true });
  await keep(store, 'kept');
  await store.close();
  expect(await checkService(folder)).toBe('');
  for (const end of ['-wal', '-shm']) rmSync(join(folder, `service.db${end}`), { force: true });
  const file = join(folder, 'service.db');
  const bytes = readFileSync(file);
  writeFileSync(file, bytes.fill(0x55, 0, 4096));
  expect(await checkService(folder)).not.toBe('');
  await expect(open(folder, { serves: true }).health()).rejects.toThrow(
    /The service's file (?:is|cannot|could)/,
  );
  expect(readFileSync(file).length).toBe(bytes.length);
});

test('a purge that was cut off is on record, and goes on where it stood', async () => {
  const folder = tempFolder();
  const store = open(folder, { serves: true });
  await keep(store, ...Array.from({ length: 300 }, (_, at) => `record ${at}`));
  const order = {
    purgeId: `prg_${'0'.repeat(26)}`,
    space: SPACE,
    scope: { all: true },
    isDryRun: false,
    requestedBy: 'k',
    now: 2000,
  } as const;
  await store.of('default').beginPurge(order);
  // 256 a transaction: the first leaves some.
  expect(await store.of('default').continuePurge(order.purgeId, 2000)).toBe(false);
  await keep(store, 'captured after the purge began');
  await store.close();
  const again = open(folder, { serves: true });
  const left = [{ tenant: 'default', purgeId: order.purgeId }];
  expect(await again.unfinishedPurges()).toEqual(left);
  while (!(await again.of('default').continuePurge(order.purgeId, 3000)));
  expect(await again.unfinishedPurges()).toEqual([]);
  expect(await again.of('default').findPurge(order.purgeId, patience())).toMatchObject({
    state: 'erased',
    counts: { records: 300 },
    erased_at: new Date(3000).toISOString(),
  });
  expect(await listed(again)).toEqual(['captured after the purge began']);
  expect(await again.of('default').spaceState(SPACE, patience())).toMatchObject({
    records: 1,
    commit_seq: 301,
  });
});

test('R26: the words of what was purged are in no byte of any file', async () => {
  const folder = tempFolder();
  const store = open(folder, { serves: true });
  const canary = 'xylophone-CANARY-marmalade';
  await keep(store, `My secret is ${canary}.`, 'something else');
  expect(holdersOf(folder, canary)).not.toEqual([]);
  const order = {
    purgeId: `prg_${'1'.repeat(26)}`,
    space: SPACE,
    scope: { digests: [objectOf(`My secret is ${canary}.`).digest] },
    isDryRun: false,
    requestedBy: 'k',
    now: 2000,
  };
  await store.of('default').beginPurge(order);
  while (!(await store.of('default').continuePurge(order.purgeId, 2000)));
  expect(holdersOf(folder, canary)).toEqual([]);
  expect(holdersOf(folder, 'xylophon')).toEqual([]);
  expect(await listed(store)).toEqual(['something else']);
});

test('R26: a purge is not over while a reader of an earlier moment keeps its words in the log', async () => {
  const folder = tempFolder();
  const store = open(folder, { serves: true });
  const canary = 'xylophone-CANARY-marmalade';
  await keep(store, 'something else', `My secret is ${canary}.`);
  const reader = loadDriver().open(join(folder, 'service.db'));
  reader.exec('BEGIN');
  reader.prepare('SELECT count(*) FROM records').get();
  const purgeId = `prg_${'1'.repeat(26)}`;
  const scope = { digests: [objectOf(`My secret is ${canary}.`).digest] };
  const order = { purgeId, space: SPACE, scope, isDryRun: false, requestedBy: 'k', now: 2 };
  await store.of('default').beginPurge(order);
  // A second purge of the same record finds nothing left, and waits for the reader too.
  const sameId = `prg_${'2'.repeat(26)}`;
  await store.of('default').beginPurge({ ...order, purgeId: sameId });
  const finish = async (id = purgeId): Promise<void> => {
    while (!(await store.of('default').continuePurge(id, 3)));
  };
  await expect(finish()).rejects.toMatchObject({ reason: 'unavailable' });
  await expect(finish()).rejects.toMatchObject({ reason: 'unavailable' });
  await expect(finish(sameId)).rejects.toMatchObject({ reason: 'unavailable' });
  expect(await store.of('default').findPurge(purgeId, patience())).toMatchObject({
    state: 'tombstoned',
  });
  expect(await store.unfinishedPurges()).toHaveLength(2);
  // The record itself is gone for everybody else.
  expect(await listed(store)).toEqual(['something else']);
  reader.exec('COMMIT');
  reader.close();
  await Promise.all([finish(), finish(sameId)]);
  expect(await store.unfinishedPurges()).toEqual([]);
  expect(holdersOf(folder, canary)).toEqual([]);
  expect(holdersOf(folder, 'xylophon')).toEqual([]);
});

test('R26: the words of what was purged are gone from the bytes that SQLite does not use', async () => {
  const folder = tempFolder();
  const before = open(folder, { serves: true });
  await keep(before, 'The passphrase is zebrafishlantern.', 'something else');
  await before.close();
  plantIn(join(folder, 'service.db'), 'OLDzebrafishlantern');
  const store = open(folder, { serves: true });
  const purgeId = `prg_${'2'.repeat(26)}`;
  const order = { purgeId, space: SPACE, isDryRun: false, requestedBy: 'k', now: 2 };
  const scope = { digests: [objectOf('The passphrase is zebrafishlantern.').digest] };
  await store.of('default').beginPurge({ ...order, scope });
  while (!(await store.of('default').continuePurge(purgeId, 3)));
  expect(holdersOf(folder, 'zebrafishlantern')).toEqual([]);
  expect(await listed(store)).toEqual(['something else']);
});

test('a file with the tables of another version is refused, unchanged, and the error names the way', async () => {
  const folder = tempFolder();
  const before = open(folder, { serves: true });
  await keep(before, 'a fact');
  await before.close();
  const connection = loadDriver().open(join(folder, 'service.db'));
  connection.exec("UPDATE service_meta SET name = 'version', value = '11' WHERE name = 'schema'");
  connection.close();
  const store = open(folder, { serves: true });
  const refused = store.health();
  await expect(refused).rejects.toThrow('has the tables of another version of svc');
  await expect(refused).rejects.toThrow('svc memory export');
  await store.close();
  await expect(backUpService(folder, join(folder, 'copy.db'))).resolves.toBeDefined();
  await expect(restoreService(folder, join(folder, 'copy.db'), 5)).rejects.toThrow(
    'has the tables of another version of svc',
  );
  const opened = loadDriver().open(join(folder, 'service.db'));
  expect(opened.prepare('SELECT count(*) AS count FROM records').get()).toEqual({ count: 1 });
  opened.close();
});
