import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { findBreak } from '../support/audit-chain.ts';
import type { StoredAdmin } from '../../src/core/admins.ts';
import { ACCOUNT_DEFAULTS } from '../../src/core/account-settings.ts';
import { NO_LIMITS } from '../../src/core/plans.ts';
import type { ServiceStore } from '../../src/ports/service-store.ts';
import {
  addKeyTo,
  addMasterKey,
  addTenant,
  noteOfTest,
  providerOf,
  putProvider,
  removeProvider,
  revokeKeyOf,
} from '../support/service-control.ts';

const patience = (): AbortSignal => AbortSignal.timeout(30_000);
const EVERY = { limit: 100, after: undefined };
const KEY = { keyId: 'a', name: 'one', hash: 'h', scopes: ['read'], createdAt: 2 } as const;

/** What every database owes the tenants, plans, keys, admins and the audit of a service. */
export function controlSuite(open: () => ServiceStore | Promise<ServiceStore>): void {
  describe('control', () => {
    let whole: ServiceStore;
    beforeEach(async () => {
      whole = await open();
    });
    afterEach(() => whole.close());

    test('keys are found by their id with their tenant, listed oldest first, revoked once', async () => {
      const store = whole.of('default');
      const other = { ...KEY, keyId: 'b', createdAt: 1, spaces: ['x/*'], expiresAt: 9 };
      const [own, listed] = [KEY, other].map((key) => ({ ...key, tenant: 'default' }));
      expect(await addKeyTo(store, KEY)).toBe('done');
      expect(await addKeyTo(store, other)).toBe('done');
      expect(await addKeyTo(store, KEY)).toBe('exists');
      expect(await whole.findCaller('a', patience())).toEqual({
        key: own,
        tenant: {
          tenantId: 'default',
          name: 'default',
          plan: 'self-hosted',
          status: 'active',
          createdAt: 0,
          limits: NO_LIMITS,
        },
      });
      expect(await whole.findCaller('c', patience())).toBe(undefined);
      expect(await store.listKeys()).toEqual([listed, own]);
      expect(await store.listKeys({ limit: 1, after: 'b' })).toEqual([own]);
      expect(await store.listKeys({ limit: 1, after: 'a' })).toEqual([]);
      await store.noteKeyUse('a', 3);
      expect(await revokeKeyOf(store, 'a')).toBe('done');
      expect(await revokeKeyOf(store, 'a', 5)).toBe('missing');
      expect(await store.getKey('a')).toEqual({ ...own, usedAt: 3, revokedAt: 4 });
    });

    test('every change is in the list of changes, in its order and with nothing between', async () => {
      const since = (after?: number) => whole.changesSince(after, patience());
      const { last } = await since();
      const store = whole.of('default');
      await addKeyTo(store, KEY);
      expect(await addKeyTo(store, KEY)).toBe('exists');
      await revokeKeyOf(store, 'a');
      await store.apply({ what: 'event' }, noteOfTest('provider.models_fetched'));
      await addTenant(whole, 'acme');
      const admin: StoredAdmin = {
        adminId: 'b',
        name: 'n',
        role: 'admin',
        tenant: 'acme',
        hash: 'h',
        createdAt: 1,
      };
      await whole.apply({ what: 'admin.add', admin }, noteOfTest('admin.created'));
      await addMasterKey(whole);
      await putProvider(store, providerOf());
      const settings = { what: 'settings.put', settings: ACCOUNT_DEFAULTS, ifVersion: 0 } as const;
      await store.apply(settings, noteOfTest('settings.updated'));
      const list = await since(last);
      expect(list.changes?.filter(({ kind }) => kind !== 'plan')).toEqual([
        { tenant: 'default', kind: 'key', id: 'a' },
        { tenant: 'default', kind: 'key', id: 'a' },
        { tenant: 'acme', kind: 'tenant', id: 'acme' },
        { tenant: 'acme', kind: 'admin', id: 'b' },
        { tenant: 'default', kind: 'provider', id: 'prov_a' },
        { tenant: 'default', kind: 'settings', id: 'default' },
      ]);
      expect(list.last - last).toBe(list.changes?.length);
      expect(await since(list.last)).toEqual({ last: list.last, changes: [] });
      expect(await since(list.last - 1)).toEqual({
        last: list.last,
        changes: [{ tenant: 'default', kind: 'settings', id: 'default' }],
      });
      // The database of an earlier day.
      expect((await since(list.last + 5)).changes).toBe(undefined);
    });

    test('who missed more changes than one read has is told that anything may have changed', async () => {
      const store = whole.of('default');
      const { last } = await whole.changesSince(undefined, patience());
      await addKeyTo(store, KEY);
      const rotate = (at: number) =>
        store.apply(
          { what: 'key.rotate', keyId: 'a', rotation: { hash: `h${at}`, at, graceMs: 0 } },
          noteOfTest('key.rotated'),
        );
      for (let at = 0; at < 1000; at += 1) await rotate(at); // oxlint-disable-line no-await-in-loop
      const list = await whole.changesSince(last, patience());
      expect(list).toEqual({ last: last + 1001, changes: undefined });
      expect((await whole.changesSince(last + 1, patience())).changes).toHaveLength(1000);
    });

    test('a rotated key keeps its id and its rights, and the hashes before with their time', async () => {
      const store = whole.of('default');
      const key = { ...KEY, allowedModels: ['gpt-*'], tokensPerDay: 5, tokensPerMonth: 6 };
      await addKeyTo(store, key);
      const rotate = (hash: string, at: number, graceMs: number) =>
        store.apply(
          { what: 'key.rotate', keyId: 'a', rotation: { hash, at, graceMs } },
          noteOfTest('key.rotated'),
        );
      expect(await rotate('h2', 100, 50)).toBe('done');
      expect(await rotate('h3', 110, 10)).toBe('done');
      expect(await store.getKey('a')).toEqual({
        ...key,
        tenant: 'default',
        hash: 'h3',
        rotatedAt: 110,
        retired: [
          { hash: 'h2', until: 120 },
          { hash: 'h', until: 120 },
        ],
      });
      await revokeKeyOf(store, 'a');
      expect(await rotate('h4', 120, 0)).toBe('missing');
    });

    test('a plan bounds the keys of its tenants, and a revoked one frees its place', async () => {
      await addTenant(whole, 'acme', { keys: 1 });
      const store = whole.of('acme');
      expect(await addKeyTo(store, KEY)).toBe('done');
      expect(await addKeyTo(store, { ...KEY, keyId: 'b' })).toBe('limit');
      expect(await addKeyTo(whole.of('default'), { ...KEY, keyId: 'b' })).toBe('done');
      await revokeKeyOf(store, 'a');
      expect(await addKeyTo(store, { ...KEY, keyId: 'c' })).toBe('done');
      expect(await addKeyTo(whole.of('nobody'), { ...KEY, keyId: 'd' })).toBe('missing');
    });

    test('a plan bounds providers, a deleted one frees its place, and its secrets go with it', async () => {
      await addMasterKey(whole);
      await addTenant(whole, 'acme', { providers: 1 });
      const store = whole.of('acme');
      expect(await putProvider(store, providerOf())).toBe('done');
      const second = providerOf({ providerId: 'prov_b', name: 'b', allowedModels: ['x'] });
      expect(await putProvider(store, second)).toBe('limit');
      expect(await store.findSecret('sec_a')).toMatchObject({ owner: 'prov_a', version: 1 });
      expect(await removeProvider(store, 'prov_a')).toBe('done');
      expect(await removeProvider(store, 'prov_a')).toBe('missing');
      expect(await store.findSecret('sec_a')).toBe(undefined);
      expect(await putProvider(store, second)).toBe('done');
      expect(await putProvider(whole.of('nobody'), second)).toBe('missing');
    });

    test('a provider changes from the version that was seen, and what it names no more is destroyed', async () => {
      await addMasterKey(whole);
      const store = whole.of('default');
      const first = providerOf();
      await putProvider(store, first);
      const credential = { secretId: 'sec_b', fingerprint: 'fp_00000001', savedAt: 2 };
      const next = { ...first, credential, version: 2 };
      expect(await putProvider(store, next, 2)).toBe('changed');
      expect(await putProvider(store, next)).toBe('changed');
      expect(await store.findSecret('sec_b')).toBe(undefined);
      expect(await putProvider(store, next, 1)).toBe('done');
      expect(await store.listProviders()).toEqual([next]);
      expect(await store.findSecret('sec_a')).toBe(undefined);
      expect(await store.findSecret('sec_b')).toMatchObject({ version: 2 });
      const lost = { ...next, providerId: 'prov_z' };
      expect(await putProvider(store, lost, 1)).toBe('missing');
    });

    test('two enabled providers of one style share neither a name nor a model', async () => {
      await addMasterKey(whole);
      const store = whole.of('default');
      await putProvider(store, providerOf({ allowedModels: ['gpt-5', 'gpt-*'] }));
      const credential = { secretId: 'sec_b', fingerprint: 'fp_00000001', savedAt: 1 };
      const other = { providerId: 'prov_b', name: 'b', credential };
      const put = (given: Parameters<typeof providerOf>[0]) =>
        putProvider(store, providerOf({ ...other, ...given }));
      expect(await put({ name: 'gateway', allowedModels: ['x'] })).toBe('exists');
      expect(await put({ allowedModels: ['x', 'gpt-*'] })).toBe('clash');
      expect((await store.listAudit(EVERY)).length).toBe(1);
      expect(await put({ isEnabled: false })).toBe('done');
      const enabled = providerOf({ ...other, version: 2 });
      expect(await putProvider(store, enabled, 1)).toBe('clash');
      const elsewhere = { ...enabled, apiStyle: 'anthropic_messages' as const };
      expect(await putProvider(store, elsewhere, 1)).toBe('done');
    });

    test('settings have defaults until they are saved, and change from the version that was seen', async () => {
      const store = whole.of('default');
      expect(await store.getSettings()).toEqual({ ...ACCOUNT_DEFAULTS, version: 0 });
      const settings = { ...ACCOUNT_DEFAULTS, inputBudget: 9000 };
      const put = (ifVersion: number) =>
        store.apply({ what: 'settings.put', settings, ifVersion }, noteOfTest('settings.updated'));
      expect(await put(1)).toBe('changed');
      expect(await put(0)).toBe('done');
      expect(await put(0)).toBe('changed');
      expect(await store.getSettings()).toEqual({ ...settings, version: 1 });
      expect(await store.listAudit(EVERY)).toMatchObject([{ kind: 'settings.updated' }]);
      await addTenant(whole, 'acme');
      expect(await whole.of('acme').getSettings()).toMatchObject({ version: 0 });
      const lost = { what: 'settings.put', settings, ifVersion: 0 } as const;
      expect(await whole.of('nobody').apply(lost, noteOfTest('settings.updated'))).toBe('missing');
    });

    test('a purge leaves its event in its own transaction, and counting leaves none', async () => {
      const store = whole.of('default');
      const note = noteOfTest('memory.purge_requested');
      const order = { space: 'default', scope: { all: true }, requestedBy: 'k', now: 6 } as const;
      await store.beginPurge({ ...order, purgeId: 'prg_1', isDryRun: true, note });
      expect(await store.listAudit(EVERY)).toEqual([]);
      await store.beginPurge({ ...order, purgeId: 'prg_2', isDryRun: false, note });
      const events = await store.listAudit(EVERY);
      expect(events).toMatchObject([{ kind: 'memory.purge_requested', number: 1 }]);
      expect(findBreak('default', events)).toBe(undefined);
    });

    test('tenants and plans are made once, changed, and listed by name', async () => {
      await addTenant(whole, 'acme', { keys: 1 });
      const tenant = {
        tenantId: 'acme',
        name: 'x',
        plan: 'self-hosted',
        status: 'active',
        createdAt: 1,
      } as const;
      const note = noteOfTest('tenant.created');
      expect(await whole.apply({ what: 'tenant.add', tenant }, note)).toBe('exists');
      const lost = { ...tenant, tenantId: 'b', plan: 'nowhere' };
      expect(await whole.apply({ what: 'tenant.add', tenant: lost }, note)).toBe('missing');
      const change = { what: 'tenant.set', tenantId: 'acme', status: 'suspended' } as const;
      expect(await whole.apply(change, note)).toBe('done');
      expect(await whole.apply({ ...change, plan: 'nowhere' }, note)).toBe('missing');
      expect(await whole.apply({ ...change, tenantId: 'b' }, note)).toBe('missing');
      expect(await whole.findTenant('acme')).toMatchObject({
        name: 'acme',
        status: 'suspended',
        limits: { keys: 1, records: null },
      });
      const last = { what: 'tenant.set', tenantId: 'acme', status: 'deleted' } as const;
      const again = { ...last, status: 'active' } as const;
      // Either change may come first. The tenant is deleted in the end, and stays so.
      const both = await Promise.all([whole.apply(last, note), whole.apply(again, note)]);
      expect(['done,changed', 'done,done']).toContain(both.join(','));
      expect(await whole.apply(again, note)).toBe('changed');
      expect((await whole.findTenant('acme'))?.status).toBe('deleted');
      const ids = (await whole.listTenants(EVERY)).map(({ tenantId }) => tenantId);
      expect(ids).toEqual(['acme', 'default']);
      expect(await whole.listTenants({ limit: 9, after: 'acme' })).toHaveLength(1);
      const plan = { name: 'plan-acme', limits: { ...NO_LIMITS, keys: 7 }, createdAt: 1 };
      expect(await whole.apply({ what: 'plan.put', plan, isNew: true }, note)).toBe('exists');
      expect(await whole.apply({ what: 'plan.put', plan, isNew: false }, note)).toBe('done');
      expect((await whole.findTenant('acme'))?.limits.keys).toBe(7);
      const other = { ...plan, name: 'other' };
      expect(await whole.apply({ what: 'plan.put', plan: other, isNew: false }, note)).toBe(
        'missing',
      );
      expect((await whole.listPlans(EVERY)).map(({ name }) => name)).toEqual([
        'plan-acme',
        'self-hosted',
      ]);
    });

    test('admins are found by their id, listed by tenant, and revoked in their own tenant alone', async () => {
      await addTenant(whole, 'acme');
      const note = noteOfTest('admin.created');
      const operator: StoredAdmin = {
        adminId: 'o',
        name: 'o',
        role: 'operator',
        hash: 'h',
        createdAt: 1,
      };
      const admin: StoredAdmin = { ...operator, adminId: 'x', role: 'admin', tenant: 'acme' };
      const add = (one: StoredAdmin) => whole.apply({ what: 'admin.add', admin: one }, note);
      expect(await add(operator)).toBe('done');
      expect(await add({ ...admin, expiresAt: 9 })).toBe('done');
      expect(await add(admin)).toBe('exists');
      expect(await add({ ...admin, adminId: 'y', tenant: 'nobody' })).toBe('missing');
      expect(await whole.findAdmin('x', patience())).toEqual({ ...admin, expiresAt: 9 });
      expect(await whole.listAdmins('acme', EVERY)).toHaveLength(1);
      expect(await whole.listAdmins('default', EVERY)).toEqual([]);
      expect(await whole.listAdmins(undefined, { limit: 9, after: 'o' })).toHaveLength(1);
      await whole.noteAdminUse('x', 5);
      const revoke = (adminId: string, tenant: string | undefined) =>
        whole.apply({ what: 'admin.revoke', adminId, tenant, at: 7 }, note);
      expect(await revoke('o', 'acme')).toBe('missing');
      expect(await revoke('x', 'default')).toBe('missing');
      expect(await revoke('x', 'acme')).toBe('done');
      expect(await revoke('x', undefined)).toBe('missing');
      expect(await whole.findAdmin('x', patience())).toMatchObject({ usedAt: 5, revokedAt: 7 });
    });

    test('a sealed secret is found in its own tenant, and its master key stays while it is under it', async () => {
      const note = noteOfTest('vault.kek_added');
      const bytes = new Uint8Array([1, 2]);
      const canary = { kek: 'mk_1', wrapped: bytes, ciphertext: bytes };
      const master = (id: string) => whole.apply({ what: 'master.add', id, canary, at: 1 }, note);
      const retire = (id: string) => whole.apply({ what: 'master.retire', id, at: 9 }, note);
      expect([await master('mk_1'), await master('mk_1')]).toEqual(['done', 'exists']);
      const place = { tenant: 'service', secretId: 'kid', owner: 'kid', purpose: 'signing' };
      const secret = { ...place, ...canary, version: 1, fingerprint: 'fp_1', savedAt: 2 };
      const signing = { what: 'signing.add', kid: 'kid', x: 'x', secret, at: 3 } as const;
      expect(await whole.apply(signing, note)).toBe('done');
      expect(await whole.of('service').findSecret('kid')).toMatchObject({
        owner: 'kid',
        kek: 'mk_1',
      });
      expect(await whole.of('default').findSecret('kid')).toBe(undefined);
      await master('mk_2');
      expect([await retire('mk_1'), await retire('mk_2')]).toEqual(['used', 'used']);
      const row = { tenant: 'service', secretId: 'kid', version: 1, wrapped: bytes };
      const rewrap = (kekBefore: string, kek: string) =>
        whole.apply({ what: 'secrets.rewrap', rows: [{ ...row, kekBefore, kek }] }, note);
      // A row that another rotation has moved already is left as it is.
      await rewrap('mk_9', 'mk_9');
      expect(await whole.listSecrets({ limit: 9, notUnder: 'mk_2' })).toHaveLength(1);
      await rewrap('mk_1', 'mk_2');
      expect(await whole.listSecrets({ limit: 9, notUnder: 'mk_2' })).toEqual([]);
      expect(await whole.listSecrets({ limit: 9, after: row })).toEqual([]);
      expect(await retire('mk_1')).toBe('done');
      expect(await whole.listMasterKeys()).toMatchObject([
        { id: 'mk_1', state: 'retired', secrets: 0, retiredAt: 9 },
        { id: 'mk_2', state: 'active', secrets: 1 },
      ]);
      const other = { ...signing, kid: 'kid2', secret: { ...secret, secretId: 'kid2' }, at: 5 };
      await whole.apply(other, note);
      expect(await whole.listSigningKeys()).toEqual([
        { kid: 'kid2', x: 'x', createdAt: 5 },
        { kid: 'kid', x: 'x', createdAt: 3, retiredAt: 5 },
      ]);
    });

    test('each change leaves one event in the chain of its tenant, and no change leaves none', async () => {
      await addTenant(whole, 'acme');
      const store = whole.of('acme');
      await addKeyTo(store, KEY);
      await addKeyTo(store, KEY);
      await revokeKeyOf(store, 'a');
      await revokeKeyOf(store, 'a');
      await addKeyTo(whole.of('default'), { ...KEY, keyId: 'z' });
      const events = (await store.listAudit(EVERY)).toReversed();
      expect(events.map(({ number, kind }) => [number, kind])).toEqual([
        [1, 'key.created'],
        [2, 'key.revoked'],
      ]);
      expect(findBreak('acme', events)).toBe(undefined);
      expect(await store.listAudit({ limit: 9, after: '2' })).toEqual([events[0]]);
      expect(await whole.of('service').listAudit(EVERY)).toMatchObject([
        { kind: 'tenant.created', number: 1, previous: '' },
      ]);
      // A chain belongs to its tenant: the same events are no chain of another one.
      expect(findBreak('default', events)).toBe(1);
    });

    test('events of days that are kept no longer go, and the chain goes on from the last one', async () => {
      const store = whole.of('default');
      const day = 86_400_000;
      const [old, now] = [Date.parse('2026-05-01T10:00:00Z'), Date.parse('2026-11-20T10:00:00Z')];
      await whole.keepDays({ now });
      for (const at of [old, old + day, now]) {
        const note = { ...noteOfTest('key.created'), at };
        // oxlint-disable-next-line no-await-in-loop -- In their order.
        await store.apply({ what: 'event' }, note);
      }
      await whole.keepDays({ now, auditFrom: now - 30 * day });
      await whole.keepDays({ now, auditFrom: now - 30 * day });
      const [kept] = await store.listAudit(EVERY);
      expect(await store.listAudit(EVERY)).toMatchObject([{ number: 3, at: now }]);
      await store.apply({ what: 'event' }, { ...noteOfTest('key.created'), at: now + 1 });
      expect(await store.listAudit(EVERY)).toMatchObject([
        { number: 4, previous: kept?.hash },
        { number: 3 },
      ]);
    });
  });
}
