import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ServiceStore, TenantStore } from '../../src/ports/service-store.ts';

const patience = (): AbortSignal => AbortSignal.timeout(30_000);
const LONG_MS = 3_600_000;
const lease = (holder: string, ms = LONG_MS, name = 'job:one') => ({
  name,
  holder,
  note: `of ${holder}`,
  ms,
});

/** What every database owes work that one process may do at a time. */
export function leaseSuite(open: () => ServiceStore | Promise<ServiceStore>): void {
  describe('leases', () => {
    let whole: ServiceStore;
    let store: TenantStore;
    beforeEach(async () => {
      whole = await open();
      store = whole.of('default');
    });
    afterEach(() => whole.close());

    test('one holder has it until it gives it back, and whoever comes learns whose it is', async () => {
      expect(await store.takeLease(lease('a'))).toBe(undefined);
      expect(await store.takeLease(lease('b'))).toBe('of a');
      // Asked again: the answer may have been lost.
      expect(await store.takeLease(lease('a'))).toBe(undefined);
      expect(await store.takeLease(lease('b', LONG_MS, 'job:two'))).toBe(undefined);
      expect(await whole.of('acme').takeLease(lease('b'))).toBe(undefined);
      expect(await store.listLeases('job:')).toEqual([
        { name: 'job:one', holder: 'a', note: 'of a' },
        { name: 'job:two', holder: 'b', note: 'of b' },
      ]);
      expect(await store.listLeases('job:t')).toHaveLength(1);
      expect(await store.listLeases('ob')).toEqual([]);
      await store.endLease({ name: 'job:one', holder: 'b' });
      expect(await store.takeLease(lease('b'))).toBe('of a');
      await store.endLease({ name: 'job:one', holder: 'a' });
      expect(await store.takeLease(lease('b'))).toBe(undefined);
    });

    test('it ends by itself, and a renewal holds it only while it stands', async () => {
      await store.takeLease(lease('dead', 1));
      await sleep(10);
      expect(await store.listLeases('')).toEqual([]);
      expect(await store.renewLease(lease('dead'))).toBe(false);
      expect(await store.takeLease(lease('b', 400))).toBe(undefined);
      expect(await store.renewLease(lease('b', LONG_MS))).toBe(true);
      expect(await store.renewLease(lease('dead'))).toBe(false);
      await sleep(450);
      expect(await store.takeLease(lease('c'))).toBe('of b');
    });

    test('one call works on an answer, and the next one finds what it kept', async () => {
      const asked = { keyId: 'k', idempotencyKey: 'batch-0001' };
      const begin = (holder: string, ms = LONG_MS) =>
        store.beginAnswer(asked, { holder, requestHash: `hash of ${holder}`, ms });
      expect(await begin('a')).toEqual({ state: 'begun' });
      expect(await begin('b')).toEqual({ state: 'running', requestHash: 'hash of a' });
      expect(await begin('a')).toEqual({ state: 'begun' });
      expect(
        await whole.of('acme').beginAnswer(asked, { holder: 'b', requestHash: 'h', ms: LONG_MS }),
      ).toEqual({ state: 'begun' });
      await store.leaveAnswer(asked, 'b');
      expect(await begin('b')).toMatchObject({ state: 'running' });
      await store.leaveAnswer(asked, 'a');
      // The one that died comes back after its time.
      expect(await begin('b', 1)).toEqual({ state: 'begun' });
      await sleep(10);
      expect(await begin('c')).toEqual({ state: 'begun' });
      const answer = { requestHash: 'h', body: '{}', at: Date.now() };
      await store.keepAnswer(asked, answer);
      expect(await begin('d')).toEqual({ state: 'kept', answer });
      expect(await store.findAnswer(asked, patience())).toEqual(answer);
      expect(await store.listLeases('answer:')).toEqual([]);
    });
  });
}
