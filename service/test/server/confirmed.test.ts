import { expect, onTestFinished, test } from 'vitest';
import { openServiceStore } from '../../src/adapters/service-store/sqlite-service-store.ts';
import type { Caller } from '../../src/ports/control-store.ts';
import type { ServiceStore } from '../../src/ports/service-store.ts';
import { ChangeWatch, Confirmed, tellingChanges } from '../../src/server/change-watch.ts';
import { manualClock } from '../../../test/support/manual-clock.ts';
import { addKeyTo, revokeKeyOf } from '../support/service-control.ts';
import { tempFolder } from '../../../test/support/temp-folder.ts';
import { MemoryError } from '../../../src/core/errors.ts';

const KEY = { keyId: 'a', name: 'one', hash: 'h', scopes: ['read'], createdAt: 2 } as const;

/** Two processes on one store: this one remembers callers, the other one changes them. */
async function openNode() {
  const store = openServiceStore({
    folder: tempFolder(),
    serves: true,
    creates: true,
    report: () => undefined,
  });
  onTestFinished(() => store.close());
  await addKeyTo(store.of('default'), KEY);
  const clock = manualClock();
  const stand = { isAway: false, asked: 0 };
  const away = () => Promise.reject(new MemoryError('unavailable', 'away'));
  const seen: ServiceStore = {
    ...store,
    changesSince: (after, signal) => (stand.isAway ? away() : store.changesSince(after, signal)),
  };
  const changes = new ChangeWatch({ store: seen, clock });
  const callers = new Confirmed<Caller | undefined>({
    clock,
    changes,
    concerns: ({ kind, id }, name) => kind === 'key' && id === name,
  });
  const ask = (): Promise<Caller | undefined> =>
    callers.ask('a', () => {
      stand.asked += 1;
      return stand.isAway ? away() : store.findCaller('a', AbortSignal.timeout(30_000));
    });
  return { store, seen, clock, stand, changes, callers, ask };
}

test('a caller is asked for once while the changes are read, and again when one names it', async () => {
  const { store, clock, stand, changes, ask } = await openNode();
  await ask();
  clock.goOn(1);
  await changes.look();
  // The first read tells nothing of the time before it.
  await ask();
  clock.goOn(1);
  await changes.look();
  for (let at = 0; at < 5; at += 1) await ask(); // oxlint-disable-line no-await-in-loop
  expect(stand.asked).toBe(2);
  await addKeyTo(store.of('default'), { ...KEY, keyId: 'b' });
  await changes.look();
  await ask();
  expect(stand.asked).toBe(2);
  await revokeKeyOf(store.of('default'), 'a');
  expect((await ask())?.key.revokedAt).toBe(undefined);
  await changes.look();
  expect((await ask())?.key.revokedAt).toBe(4);
  expect(stand.asked).toBe(3);
});

test('a caller is good for 60 s after the changes were last read, then the store’s error stands', async () => {
  const { clock, stand, changes, ask } = await openNode();
  await changes.look();
  await ask();
  clock.goOn(30_000);
  await changes.look();
  stand.isAway = true;
  clock.goOn(60_000);
  expect(await changes.look()).toBe(false);
  expect((await ask())?.key.keyId).toBe('a');
  expect(stand.asked).toBe(1);
  clock.goOn(1);
  await expect(ask()).rejects.toThrow('away');
  stand.isAway = false;
  expect((await ask())?.key.keyId).toBe('a');
});

test('without a reader of changes the store is asked each time, and counts for 60 s', async () => {
  const { clock, stand, ask } = await openNode();
  await ask();
  await ask();
  expect(stand.asked).toBe(2);
  stand.isAway = true;
  clock.goOn(60_000);
  expect((await ask())?.key.keyId).toBe('a');
  clock.goOn(1);
  await expect(ask()).rejects.toThrow('away');
});

test('an answer that was under way when its key was revoked is not remembered', async () => {
  const { store, clock, changes, callers, ask } = await openNode();
  await changes.look();
  clock.goOn(1);
  const late = callers.ask('a', async () => {
    const before = await store.findCaller('a', AbortSignal.timeout(30_000));
    await revokeKeyOf(store.of('default'), 'a');
    clock.goOn(1);
    await changes.look();
    return before;
  });
  expect((await late)?.key.revokedAt).toBe(undefined);
  clock.goOn(1);
  await changes.look();
  expect((await ask())?.key.revokedAt).toBe(4);
});

test('what this process changes itself it forgets before the change is answered', async () => {
  const { seen, clock, stand, changes, ask } = await openNode();
  const own = tellingChanges(seen, changes);
  changes.start();
  onTestFinished(() => changes.stop());
  await changes.look();
  await ask();
  clock.goOn(1);
  await changes.look();
  await revokeKeyOf(own.of('default'), 'a');
  expect((await ask())?.key.revokedAt).toBe(4);
  clock.goOn(1);
  await changes.look();
  const { asked } = stand;
  await ask();
  expect(stand.asked).toBe(asked);
  // A change whose number cannot be read drops everything.
  const failing = { ...seen, apply: async () => 'done' as const };
  stand.isAway = true;
  const plan = { name: 'p', limits: {} as never, createdAt: 1 };
  await tellingChanges(failing, changes).apply(
    { what: 'plan.put', plan, isNew: true },
    {} as never,
  );
  await expect(ask()).rejects.toThrow('away');
});
