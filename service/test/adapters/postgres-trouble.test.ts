import { execFile } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Client } from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Connections } from '../../src/adapters/postgres-store/connections.ts';
import { openPostgresStore } from '../../src/adapters/postgres-store/postgres-service-store.ts';
import type { ServiceStore } from '../../src/ports/service-store.ts';
import { missingPostgres, type PostgresServer, startPostgres } from '../support/postgres.ts';
import { openNode } from '../support/postgres-pair.ts';
import { addressOf } from '../support/postgres-stores.ts';
import { objectOf, SPACE } from '../support/service-objects.ts';

/** A server that is there, and still no good: each trouble has its answer, and ends by itself. */

const missing = missingPostgres();
const run = promisify(execFile);
const patience = (): AbortSignal => AbortSignal.timeout(60_000);
/** A call is not tried again after 10 s; an attempt that began before has a commit of 5 s. */
const CALL_MS = 20_000;
/** Longer than any one wait; SVC_TEST_FROZEN_MS=30000 asks for more. */
const FROZEN_MS = Number(process.env['SVC_TEST_FROZEN_MS'] ?? '8000');

const keep = (store: ServiceStore, text: string) =>
  store
    .of('default')
    .capture(
      { space: SPACE, ifGeneration: undefined, objects: [objectOf(text)], now: 5 },
      patience(),
    );

async function ownServer(
  settings: readonly string[] = [],
  within?: string,
): Promise<PostgresServer> {
  const server = await startPostgres({ settings, ...(within === undefined ? {} : { within }) });
  onTestFinished(() => server.stop());
  return server;
}

describe.skipIf(missing !== undefined)('a PostgreSQL in trouble', () => {
  test('frozen: every call ends at its deadline, and afterwards all goes on', async () => {
    const server = await ownServer();
    const store = await openNode(addressOf(await server.newDatabase()));
    await keep(store, 'before');
    const times: number[] = [];
    const thawed = new AbortController();
    const ask = async (work: () => Promise<unknown>): Promise<void> => {
      while (!thawed.signal.aborted) {
        const began = performance.now();
        // oxlint-disable-next-line no-await-in-loop -- One after the other.
        await work().catch(() => undefined);
        times.push(performance.now() - began);
        // oxlint-disable-next-line no-await-in-loop
        await sleep(20);
      }
    };
    server.signal('SIGSTOP');
    const asking = [
      ask(() => keep(store, 'during')),
      ask(() => store.of('default').getSettings()),
      ask(() => store.findCaller('k1', patience())),
    ];
    await sleep(FROZEN_MS);
    server.signal('SIGCONT');
    const began = performance.now();
    thawed.abort();
    await Promise.all(asking);
    await expect
      .poll(() =>
        keep(store, 'after').then(
          () => true,
          () => false,
        ),
      )
      .toBe(true);
    expect(performance.now() - began).toBeLessThan(CALL_MS);
    expect(Math.max(...times)).toBeLessThan(CALL_MS);
    // Once the server is known to be away, calls do not wait for it one by one.
    expect(times.filter((ms) => ms < 100).length).toBeGreaterThan(10);
    const { records, commit_seq } = await store.of('default').spaceState(SPACE, patience());
    expect([3, 2]).toContain(records);
    expect(commit_seq).toBe(records);
  }, 240_000);

  test('with all connections taken by others: said at once, and over when one is free', async () => {
    const server = await ownServer(['max_connections=8', 'superuser_reserved_connections=0']);
    const address = addressOf(await server.newDatabase());
    const store = openPostgresStore({ server: address, migrates: true });
    onTestFinished(() => store.close());
    await store.health();
    const others: Client[] = [];
    const take = async (): Promise<boolean> => {
      const client = new Client({
        host: '127.0.0.1',
        port: server.port,
        user: 'svc',
        database: 'postgres',
      });
      client.on('error', () => undefined);
      const isIn = await client.connect().then(
        () => true,
        () => false,
      );
      if (isIn) others.push(client);
      return isIn;
    };
    // oxlint-disable-next-line no-await-in-loop -- One after the other.
    while (await take());
    // What the node has it keeps: all of these share one connection.
    const shared = Array.from({ length: 12 }, (_, at) => keep(store, `shared ${at}`));
    expect((await Promise.all(shared)).map(({ results }) => results)).toEqual(
      shared.map(() => ['durable']),
    );
    const late = openPostgresStore({ server: address });
    onTestFinished(() => late.close());
    const told = (): Promise<string> =>
      late.health().then(
        () => 'it answers',
        (error: Error) => error.message,
      );
    // A busy machine may not even be refused within the first deadline.
    await expect.poll(told, { timeout: 20_000 }).toBe('The database has no connection left.');
    await Promise.all(others.map((one) => one.end()));
    await expect
      .poll(
        () =>
          late.health().then(
            () => true,
            () => false,
          ),
        { timeout: 10_000 },
      )
      .toBe(true);
  }, 240_000);

  test('a full pool keeps recalls and captures waiting, and never a key', async () => {
    const server = await ownServer();
    const url = await server.newDatabase();
    const store = await openNode(addressOf(url));
    const connections = new Connections({ server: addressOf(url), statementMs: 10_000 });
    onTestFinished(() => connections.close());
    const slow = Array.from({ length: 20 }, () =>
      connections.memory
        .read((rows) => rows.run('SELECT pg_sleep(4)'))
        .then(
          () => 'done',
          (error: Error) => error.message,
        ),
    );
    await sleep(200);
    const began = performance.now();
    await connections.all.read((rows) => rows.run('SELECT 1'));
    expect(performance.now() - began).toBeLessThan(1000);
    const outcomes = await Promise.all(slow);
    expect(outcomes.filter((one) => one === 'done')).toHaveLength(7);
    expect(
      outcomes.filter((one) => one === 'All connections to the database are in use.'),
    ).toHaveLength(13);
    const open = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'svc'";
    expect(Number(await server.ask('postgres', open))).toBeLessThanOrEqual(12);
    await store.of('default').getSettings();
  }, 240_000);

  test('a dump that is read into another database begins a new epoch by itself', async () => {
    const server = await ownServer();
    const url = await server.newDatabase();
    const store = await openNode(addressOf(url));
    const { state } = await keep(store, 'one');
    const copy = await server.newDatabase();
    const file = join(mkdtempSync(join(tmpdir(), 'svc-dump-')), 'dump');
    onTestFinished(() => rmSync(join(file, '..'), { recursive: true, force: true }));
    await run('pg_dump', ['--format=custom', '--file', file, url]);
    await run('pg_restore', ['--no-owner', '--dbname', copy, file]);
    const told: string[] = [];
    const restored = await openNode(addressOf(copy), { report: (line) => void told.push(line) });
    const now = await restored.of('default').spaceState(SPACE, patience());
    expect([now.records, now.commit_seq]).toEqual([1, 1]);
    expect(now.generation).not.toBe(state.generation);
    expect(told).toHaveLength(1);
    // The one from before stays as it is.
    const again = await openNode(addressOf(url));
    expect(await again.of('default').spaceState(SPACE, patience())).toEqual(state);
  }, 240_000);

  test('a disk that is full: captures fail and nothing is lost, and they go on once there is room', async (context) => {
    const room = await smallDisk();
    if (room === undefined) {
      process.stderr.write(
        'SKIPPED ALOUD: no disk of 160 MB can be made here (mount needs root)\n',
      );
      context.skip();
      return;
    }
    const server = await ownServer(['max_wal_size=32MB', 'min_wal_size=32MB'], room);
    const store = await openNode(addressOf(await server.newDatabase()));
    await keep(store, 'before');
    await run('dd', ['if=/dev/zero', `of=${room}/ballast`, 'bs=1M']).catch(() => undefined);
    const big = 'marmalade '.repeat(20_000);
    let failed: unknown;
    for (let at = 0; at < 200 && failed === undefined; at += 1) {
      // oxlint-disable-next-line no-await-in-loop -- Until there is no room.
      failed = await keep(store, `${big}${at}`).then(
        () => undefined,
        (error: unknown) => error,
      );
    }
    expect(failed).toMatchObject({ name: 'MemoryError', reason: 'unavailable' });
    rmSync(join(room, 'ballast'));
    await expect
      .poll(
        () =>
          keep(store, 'after').then(
            () => true,
            () => false,
          ),
        { timeout: 30_000 },
      )
      .toBe(true);
    const refs = [objectOf('before').digest];
    const asked = { spaces: { space: SPACE }, refs, bytesMax: 9e6 };
    expect((await store.of('default').retrieve(asked, patience())).objects).toHaveLength(1);
  }, 240_000);
});

/** Undefined where this user may not mount. */
async function smallDisk(): Promise<string | undefined> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-disk-'));
  const made = await run('mount', ['-t', 'tmpfs', '-o', 'size=160m', 'tmpfs', folder]).then(
    () => true,
    () => false,
  );
  onTestFinished(async () => {
    if (made) await run('umount', ['-l', folder]);
    rmSync(folder, { recursive: true, force: true });
  });
  if (made) chmodSync(folder, 0o777);
  return made ? folder : undefined;
}
