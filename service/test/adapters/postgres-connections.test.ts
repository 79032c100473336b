import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Connections } from '../../src/adapters/postgres-store/connections.ts';
import type { Rows } from '../../src/ports/rows.ts';
import { readServerUrl } from '../../src/adapters/postgres-store/server-url.ts';
import { freePort } from '../../../test/support/free-port.ts';
import { missingPostgres } from '../support/postgres.ts';
import { addressOf, postgresStores } from '../support/postgres-stores.ts';

test.each([
  ['postgres://svc:p%40ss@db/svc', { user: 'svc', password: 'p@ss', database: 'svc' }],
  ['postgresql://db.example.com:6432/svc', { host: 'db.example.com', port: 6432 }],
  ['postgres://u@db/svc', { tls: { rejectUnauthorized: true }, password: undefined }],
  ['postgres://u@db/svc?sslmode=disable', { tls: false }],
  ['postgres://u@127.0.0.1/svc', { tls: false }],
  ['postgres://u@[::1]:5433/svc', { host: '::1', port: 5433, tls: false }],
  ['postgres://u@%2Frun%2Fpg/svc', { host: '/run/pg', port: 5432, tls: false }],
])('%s is an address', (url, facts) => {
  expect(readServerUrl(url)).toMatchObject(facts);
});

test.each([
  'mysql://u@db/svc',
  'postgres://u@db',
  'postgres://u@/svc',
  'postgres://u@db/svc?sslmode=require',
  'postgres://u@db/svc?options=-c%20x',
  'postgres://u@a b/svc',
  'postgres://u@db/%zz',
  'postgres://u@one:1,two/svc',
])('%s is none', (url) => {
  expect(readServerUrl(url)).toBe(undefined);
});

const missing = missingPostgres();

const IN_TRANSACTION = `SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'`;

describe.skipIf(missing !== undefined)('connections to PostgreSQL', () => {
  const stores = postgresStores();
  const ONE = 'SELECT 1 AS one';
  const one = (rows: Rows) => rows.get<{ one: number }>(ONE);

  function open(options: Partial<ConstructorParameters<typeof Connections>[0]> = {}): Connections {
    const server = addressOf(`postgres://svc@127.0.0.1:${stores.server().port}/postgres`);
    const connections = new Connections({ server, ...options });
    onTestFinished(() => connections.close());
    return connections;
  }

  /** A TCP relay in front of the server, which a test can break. */
  async function relay(): Promise<{
    readonly port: number;
    readonly server: Server;
    /** Messages of clients that came so far. */
    readonly messages: () => number;
    cut(): void;
    hold(): void;
  }> {
    const sockets = new Set<Socket>();
    let messages = 0;
    let isHeld = false;
    const server = createServer((inner) => {
      const outer = connect(stores.server().port, '127.0.0.1');
      for (const socket of [inner, outer]) {
        sockets.add(socket);
        socket.on('error', () => undefined);
        socket.on('close', () => sockets.delete(socket));
      }
      inner.on('data', (bytes) => {
        messages += 1;
        outer.write(bytes);
      });
      outer.on('data', (bytes) => {
        if (!isHeld) inner.write(bytes);
      });
      inner.on('close', () => outer.destroy());
      outer.on('close', () => inner.destroy());
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const cut = (): void => {
      for (const socket of sockets) socket.destroy();
    };
    onTestFinished(() => {
      cut();
      server.close();
    });
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    return { port, cut, hold: () => void (isHeld = true), server, messages: () => messages };
  }

  test('a host that is away fails a call within the deadline of the search', async () => {
    const away = await freePort();
    const server = addressOf(`postgres://svc@127.0.0.1:${away}/postgres`);
    await expect(open({ server }).all.read(one)).rejects.toMatchObject({
      name: 'MemoryError',
      reason: 'unavailable',
    });
  }, 60_000);

  test('work that loses its connection before it commits is done again', async () => {
    const between = await relay();
    const server = addressOf(`postgres://svc@127.0.0.1:${between.port}/postgres`);
    const connections = open({ server });
    let tries = 0;
    const result = await connections.all.writeOnce(async (rows) => {
      tries += 1;
      if (tries === 1) between.cut();
      return one(rows);
    });
    expect([result, tries]).toEqual([{ one: 1 }, 2]);
  }, 60_000);

  test('a commit that is not answered has a deadline; only work that may be done twice is', async () => {
    const between = await relay();
    const server = addressOf(`postgres://svc@127.0.0.1:${between.port}/postgres`);
    const connections = open({ server });
    let tries = 0;
    const asked = connections.all.writeOnce(async (rows) => {
      tries += 1;
      const found = await one(rows);
      between.hold();
      return found;
    });
    await expect(asked).rejects.toThrow('The database did not confirm the commit.');
    expect(tries).toBe(1);
  }, 60_000);

  test('a statement that takes too long ends on the server, and the connection stays', async () => {
    const connections = open({ statementMs: 200, connectionsMax: 1 });
    const slow = connections.all.read((rows) => rows.run('SELECT pg_sleep(20)'));
    await expect(slow).rejects.toThrow('failed with 57014');
    expect(await connections.all.read(one)).toEqual({ one: 1 });
  }, 60_000);

  test('a serialization conflict is tried again, and an error of the work is not', async () => {
    const connections = open();
    let tries = 0;
    const raise = (code: string) => async (): Promise<never> => {
      tries += 1;
      throw Object.assign(new Error('conflict'), { code });
    };
    await expect(connections.all.write(raise('40001'))).rejects.toThrow('failed with 40001');
    expect(tries).toBe(3);
    await expect(connections.all.write(raise('23505'))).rejects.toThrow('failed with 23505');
    expect(tries).toBe(4);
  });

  test('a pool that is full makes a call wait, and its signal ends the wait', async () => {
    const connections = open({ connectionsMax: 1 });
    const first = connections.all.read((rows) => rows.run('SELECT pg_sleep(1)'));
    const second = connections.all.read(one, AbortSignal.timeout(100));
    await expect(second).rejects.toMatchObject({ reason: 'timeout' });
    await first;
    expect(await connections.all.read(one)).toEqual({ one: 1 });
  }, 60_000);

  test('what is asked at the same moment is one message, and so is the beginning with it', async () => {
    const between = await relay();
    const server = addressOf(`postgres://svc@127.0.0.1:${between.port}/postgres`);
    const connections = open({ server, connectionsMax: 1 });
    await connections.all.write(one);
    const before = between.messages();
    const said = await connections.all.read(async (rows) => {
      const first = await Promise.all(
        ['a', 'b', 'c'].map((text) => rows.get<{ said: string }>('SELECT $1::text AS said', text)),
      );
      return [...first, await one(rows)];
    });
    expect(said).toEqual([{ said: 'a' }, { said: 'b' }, { said: 'c' }, { one: 1 }]);
    await connections.all.write(one);
    // Two and the end of the read, which nobody waits for, then one and the commit of the write.
    expect(between.messages() - before).toBe(5);
    await connections.all.read(async () => undefined);
    expect(between.messages() - before).toBe(5);
  }, 60_000);

  test('one statement alone is one message; it has the deadline of a statement, and leaves nothing', async () => {
    const between = await relay();
    const server = addressOf(`postgres://svc@127.0.0.1:${between.port}/postgres`);
    const connections = open({ server, connectionsMax: 1, statementMs: 300 });
    const look = (statement: string, ...values: string[]) =>
      connections.all.look<{ said: string }>({ statement, values });
    await look('SELECT 1');
    const before = between.messages();
    expect(await look('SELECT $1::text AS said', 'a')).toEqual([{ said: 'a' }]);
    expect(between.messages() - before).toBe(1);
    const setting = `SELECT current_setting('statement_timeout') AS said`;
    expect(await look(setting)).toEqual([{ said: '300ms' }]);
    await expect(look('SELECT pg_sleep(20)')).rejects.toThrow('failed with 57014');
    await expect(look('SELECT 1 / $1::integer AS said', '0')).rejects.toThrow('failed with 22012');
    // No transaction of its own stands open behind it.
    const [started] = await look('SELECT pg_current_xact_id_if_assigned()::text AS said');
    expect(started).toEqual({ said: null });
    expect(await stores.server().ask('postgres', IN_TRANSACTION)).toBe('0');
  }, 60_000);

  test('what is asked while a message is on its way waits for its answer, and goes together', async () => {
    const between = await relay();
    const server = addressOf(`postgres://svc@127.0.0.1:${between.port}/postgres`);
    const connections = open({ server });
    await connections.all.write(one);
    const before = between.messages();
    await connections.all.write(async (rows) => {
      const asked: Promise<unknown>[] = [rows.run('SELECT pg_sleep(0.2)')];
      for (const _ of [1, 2, 3]) {
        // oxlint-disable-next-line no-await-in-loop -- One after the other.
        await sleep(10);
        asked.push(one(rows));
      }
      await Promise.all(asked);
      expect(between.messages() - before).toBe(2);
    });
  }, 60_000);

  test('an error ends what was sent behind it, keeps what came before, and spares the connection', async () => {
    const connections = open({ connectionsMax: 1 });
    let settled: readonly PromiseSettledResult<unknown>[] = [];
    const asked = connections.all.write(async (rows) => {
      settled = await Promise.allSettled([
        rows.get<{ said: string }>('SELECT $1::text AS said', 'first'),
        rows.get('SELECT 1 / $1::integer AS none', 0),
        rows.get('SELECT $1::text AS said', 'last'),
      ]);
      return one(rows);
    });
    await expect(asked).rejects.toThrow('failed with 25P02');
    expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected']);
    expect(await connections.all.read(one)).toEqual({ one: 1 });
  }, 60_000);

  test('a text with a NUL is stored without it', async () => {
    const said = await open().all.read((rows) =>
      rows.get<{ said: string }>('SELECT $1::text AS said', 'a\0b'),
    );
    expect(said).toEqual({ said: 'a�b' });
  });
});
