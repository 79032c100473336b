import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { ServiceStore } from '../../src/ports/service-store.ts';
import { missingPgbouncer, startPgbouncer } from '../support/pgbouncer.ts';
import { missingPostgres, urlOf } from '../support/postgres.ts';
import {
  openNode,
  type PostgresPair,
  setSynchronous,
  startPair,
  until,
} from '../support/postgres-pair.ts';
import { addressOf } from '../support/postgres-stores.ts';
import { itemsOf, objectOf, questionTo, SPACE } from '../support/service-objects.ts';

const missing = missingPostgres();
const patience = (): AbortSignal => AbortSignal.timeout(60_000);
const WRITERS = 4;
/** A statement has 2 s, a commit 5, and a call is not tried again after 10: with all of it done once more. */
const CALL_MS = 20_000;
/** For a machine that does much else; a node by itself needs half a second. */
const BACK_MS = 3000;

const keep = (store: ServiceStore, texts: readonly string[], ifGeneration?: string) =>
  store
    .of('default')
    .capture(
      { space: SPACE, ifGeneration, objects: texts.map((text) => objectOf(text)), now: 5 },
      patience(),
    );
const stateOf = (store: ServiceStore) => store.of('default').spaceState(SPACE, patience());
const textsOf = async (store: ServiceStore): Promise<readonly string[]> => {
  const items = await store.of('default').listItems(itemsOf({ limit: 100_000 }), patience());
  return items.map(({ text }) => text);
};

/** Milliseconds until it works; it fails within its deadline until then. */
async function backAfter(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  for (;;) {
    const tried = performance.now();
    // oxlint-disable-next-line no-await-in-loop -- One try after the other.
    const isBack = await work().then(
      () => true,
      () => false,
    );
    expect(performance.now() - tried).toBeLessThan(CALL_MS);
    if (isBack) return performance.now() - began;
    // oxlint-disable-next-line no-await-in-loop
    await sleep(50);
  }
}

/** Writers that send again what failed, as a client does. */
function startWriters(store: ServiceStore) {
  const acknowledged: string[] = [];
  const over = new AbortController();
  const write = async (writer: number): Promise<void> => {
    for (let at = 0; !over.signal.aborted; at += 1) {
      const texts = [0, 1, 2].map((one) => `writer ${writer} said ${at} and ${one}`);
      // oxlint-disable-next-line no-await-in-loop -- One after the other.
      await backAfter(() => keep(store, texts));
      acknowledged.push(...texts);
    }
  };
  const running = Array.from({ length: WRITERS }, (_, writer) => write(writer));
  const atLeast = async (more: number): Promise<void> => {
    const before = acknowledged.length;
    await expect
      .poll(() => acknowledged.length - before, { timeout: 60_000 })
      .toBeGreaterThan(more);
  };
  return {
    acknowledged,
    atLeast,
    end: async () => {
      over.abort();
      await Promise.all(running);
    },
  };
}

describe.skipIf(missing !== undefined)('a primary that is lost', () => {
  test('with a synchronous standby nothing acknowledged is lost, and the epoch stays', async () => {
    const pair = await startPair();
    const store = await openNode(pair.address, { trustsFailover: true });
    const other = await openNode(pair.address, { trustsFailover: true });
    const writers = startWriters(store);
    await writers.atLeast(30);
    const before = await stateOf(store);
    await pair.primary.kill();
    await sleep(5000);
    await pair.promote();
    const backMs = await backAfter(() => stateOf(store));
    expect(backMs).toBeLessThan(BACK_MS);
    await writers.atLeast(30);
    await writers.end();
    const texts = await textsOf(store);
    expect(new Set(texts).size).toBe(texts.length);
    const held = new Set(texts);
    expect(writers.acknowledged.filter((text) => !held.has(text))).toEqual([]);
    const after = await stateOf(store);
    expect(after.generation).toBe(before.generation);
    expect(after.commit_seq).toBe(texts.length);
    expect(await stateOf(other)).toEqual(after);
  }, 240_000);

  test.each([
    ['an asynchronous standby', false, true],
    ['a synchronous one that the operator does not trust', true, false],
  ])(
    'with %s a new epoch begins, at every node',
    async (_, isSynchronous, trustsFailover) => {
      const pair = await startPair({ isSynchronous });
      const told: string[] = [];
      const options = { trustsFailover, report: (line: string) => void told.push(line) };
      const store = await openNode(pair.address, options);
      const other = await openNode(pair.address, options);
      const { state } = await keep(store, ['The port is 6543.']);
      expect((await stateOf(other)).generation).toBe(state.generation);
      await caughtUp(pair);
      await pair.primary.kill();
      await pair.promote();
      expect(await backAfter(() => stateOf(store))).toBeLessThan(BACK_MS + CALL_MS);
      const after = await stateOf(store);
      expect(after.generation).not.toBe(state.generation);
      // Whatever a client was told before counts no more: it reads the state, and captures anew.
      expect((await keep(store, ['x'], state.generation)).results).toBe(undefined);
      expect((await stateOf(other)).generation).toBe(after.generation);
      const candidates = [objectOf('The port is 6543.').digest];
      const asked = questionTo({ candidates, ifGeneration: state.generation });
      const { coverage } = await other.of('default').recall(asked, patience());
      expect(coverage).toMatchObject([{ state: 'stale_generation' }]);
      expect(told.join(' ')).toContain('A new epoch began');
      // A restart changes nothing again.
      const late = await openNode(pair.address, options);
      expect((await stateOf(late)).generation).toBe(after.generation);
    },
    240_000,
  );

  test('a primary from before that comes back is not written to', async () => {
    const pair = await startPair();
    const store = await openNode(pair.address);
    await keep(store, ['one']);
    await pair.primary.kill();
    await pair.promote();
    await backAfter(() => keep(store, ['two']));
    await pair.primary.crash();
    await pair.standby.kill();
    pair.proxy.ports = [pair.primary.port];
    await expect(keep(store, ['three'])).rejects.toMatchObject({ reason: 'unavailable' });
    expect(await pair.primary.ask(pair.database, 'SELECT count(*) FROM objects')).toBe('1');
    await pair.standby.crash();
    pair.proxy.ports = [pair.standby.port];
    await backAfter(() => keep(store, ['three']));
    expect((await textsOf(store)).toSorted()).toEqual(['one', 'three', 'two']);
  }, 240_000);

  test.skipIf(missingPgbouncer() !== undefined)(
    'a pooler that moves to the promoted standby: the next transaction notices',
    async () => {
      const pair = await startPair({ isSynchronous: false });
      const pooler = await startPgbouncer(pair.primary.port);
      onTestFinished(() => pooler.stop());
      const store = await openNode(addressOf(urlOf(pooler.port, pair.database)));
      const { state } = await keep(store, ['one']);
      await caughtUp(pair);
      await pair.promote();
      pooler.repoint(pair.standby.port);
      await expect
        .poll(async () => (await stateOf(store)).generation, { timeout: 10_000 })
        .not.toBe(state.generation);
      await keep(store, ['two']);
      expect(await pair.standby.ask(pair.database, 'SELECT count(*) FROM objects')).toBe('2');
    },
    240_000,
  );

  test('a commit whose wait is ended by somebody is not acknowledged', async () => {
    const pair = await startPair();
    const store = await openNode(pair.address);
    await keep(store, ['one']);
    pair.standby.signal('SIGSTOP');
    const asked = keep(store, ['two']).then(
      () => 'acknowledged',
      () => 'failed',
    );
    const own = "FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    await until(pair.primary, `SELECT count(*) ${own}`, '1');
    // The server then says that the commit is done, with a warning.
    await pair.primary.run('postgres', `SELECT pg_cancel_backend(pid) ${own}`);
    const first = await Promise.race([asked, sleep(1000)]);
    expect(first).not.toBe('acknowledged');
    pair.standby.signal('SIGCONT');
    // With the standby back the same work is found done, and now the standby has it.
    await asked;
    await backAfter(() => keep(store, ['two']));
    expect((await stateOf(store)).records).toBe(2);
  }, 240_000);

  test('a promoted standby that waits for a standby of its own: questions are answered, commits end', async () => {
    const pair = await startPair();
    // It counts only once the standby is a primary.
    await setSynchronous(pair.standby, '*');
    const store = await openNode(pair.address, { trustsFailover: true });
    await keep(store, ['one']);
    await pair.primary.kill();
    await pair.promote();
    await backAfter(() => stateOf(store));
    const began = performance.now();
    await expect(keep(store, ['two'])).rejects.toMatchObject({ reason: 'unavailable' });
    expect(performance.now() - began).toBeLessThan(CALL_MS);
    expect((await textsOf(store)).length).toBeGreaterThan(0);
    // The waits were ended on the server too: they hold no lock and no connection.
    const waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    await until(pair.standby, waiting, '0');
    await setSynchronous(pair.standby, '');
    expect(await backAfter(() => keep(store, ['two']))).toBeLessThan(BACK_MS);
    expect((await textsOf(store)).toSorted()).toEqual(['one', 'two']);
  }, 240_000);
});

/** The standby has shown all that the primary has. */
async function caughtUp({ primary, standby }: PostgresPair): Promise<void> {
  const lsn = await primary.ask('postgres', 'SELECT pg_current_wal_lsn()');
  await until(standby, `SELECT pg_last_wal_replay_lsn() >= '${lsn}'`, 'true');
}
