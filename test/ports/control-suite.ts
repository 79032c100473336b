import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { findBreak } from '../../src/core/service/audit.ts';
import type { StoredAdmin } from '../../src/core/service/admins.ts';
import { NO_LIMITS } from '../../src/core/service/plans.ts';
import type { ServiceStore } from '../../src/ports/service-store.ts';
import { addKeyTo, addTenant, noteOfTest, revokeKeyOf } from '../support/service-control.ts';

const patience = (): AbortSignal => AbortSignal.timeout(30_000);
const EVERY = { limit: 100, after: undefined };
const KEY = { keyId: 'a', name: 'one', hash: 'h', scopes: ['read'], createdAt: 2 } as const;

/** What every database owes the tenants, plans, keys, admins and the audit of a service. */
export function controlSuite(open: () => ServiceStore): void {
  describe('control', () => {
    let whole: ServiceStore;
    beforeEach(() => {
      whole = open();
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
  });
}
