import { closeSync, openSync, statSync, writeFileSync, writeSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  type Connection,
  failureText,
  isBusy,
  isDamage,
  sqliteCode,
} from '../../src/adapters/store/driver.ts';
import { tempFolder } from '../support/temp-folder.ts';

interface SqliteModule {
  readonly DatabaseSync: new (path: string, options?: { readonly readOnly: boolean }) => Connection;
}

const require = createRequire(import.meta.url);
const BUILTIN = process.getBuiltinModule('node:sqlite') as SqliteModule | undefined;
const MODULES = {
  '@photostructure/sqlite': require('@photostructure/sqlite') as SqliteModule,
  'node:sqlite': BUILTIN,
};

/** A statement is run by each of these, and each words its errors in its own way. */
const WAYS = {
  run: (connection: Connection, sql: string) => connection.prepare(sql).run(),
  get: (connection: Connection, sql: string) => connection.prepare(sql).get(),
  all: (connection: Connection, sql: string) => connection.prepare(sql).all(),
  exec: (connection: Connection, sql: string) => connection.exec(sql),
};

// Node 20 has no node:sqlite: there, the run says so by the skipped tests.
describe.each(Object.keys(MODULES) as (keyof typeof MODULES)[])('%s', (name) => {
  const module = MODULES[name];
  const open = (path: string, readOnly = false): Connection => {
    if (module === undefined) throw new Error(`${name} is not here`);
    return new module.DatabaseSync(path, { readOnly });
  };
  const failureOf = (work: () => unknown): unknown => {
    try {
      work();
    } catch (error) {
      return error;
    }
    return undefined;
  };

  describe.skipIf(module === undefined).each(Object.keys(WAYS) as (keyof typeof WAYS)[])(
    '%s()',
    (way) => {
      const run = WAYS[way];

      test('a file that is overwritten in use is damaged', () => {
        const path = join(tempFolder(), 'broken.db');
        const connection = open(path);
        connection.exec('PRAGMA journal_mode = WAL; CREATE TABLE t (x TEXT); BEGIN');
        const add = connection.prepare('INSERT INTO t VALUES (?)');
        for (let row = 0; row < 500; row += 1) add.run('x'.repeat(500));
        connection.exec('COMMIT; PRAGMA wal_checkpoint(TRUNCATE)');
        const { size } = statSync(path);
        const file = openSync(path, 'r+');
        writeSync(file, Buffer.alloc(size - 8192, 0x5a), 0, size - 8192, 8192);
        closeSync(file);
        connection.exec('PRAGMA shrink_memory');
        const failure = failureOf(() => run(connection, "UPDATE t SET x = 'y' RETURNING x"));
        expect([isDamage(failure), failureText(failure)]).toEqual([true, 'is damaged']);
        connection.close();
      });

      test('a file that is no database is damaged', () => {
        const path = join(tempFolder(), 'text.db');
        writeFileSync(path, 'Not a database. '.repeat(100));
        const failure = failureOf(() => run(open(path), 'SELECT * FROM sqlite_master'));
        expect(isDamage(failure)).toBe(true);
      });

      test('a lock, a full file and a file without leave to write are told apart', () => {
        const path = join(tempFolder(), 'shared.db');
        const [connection, other] = [open(path), open(path)];
        connection.exec('PRAGMA journal_mode = WAL; CREATE TABLE t (x TEXT)');
        connection.exec('BEGIN IMMEDIATE');
        const locked = failureOf(() => run(other, "INSERT INTO t VALUES ('a') RETURNING x"));
        expect([isBusy(locked), isDamage(locked)]).toEqual([true, false]);
        connection.exec('COMMIT; PRAGMA max_page_count = 3');
        const long = `INSERT INTO t VALUES ('${'x'.repeat(50_000)}') RETURNING 1`;
        const full = failureOf(() => run(connection, long));
        expect(failureText(full)).toBe('could not grow: its disk is full');
        const reader = open(path, true);
        const refused = failureOf(() => run(reader, "INSERT INTO t VALUES ('a') RETURNING x"));
        expect(failureText(refused)).toContain('cannot be written');
        for (const one of [connection, other, reader]) one.close();
      });

      test('an error of a statement is none of the file', () => {
        const connection = open(join(tempFolder(), 'well.db'));
        const failure = failureOf(() => run(connection, "SELECT json('{')"));
        expect(failure).toBeInstanceOf(Error);
        expect([isDamage(failure), isBusy(failure)]).toEqual([false, false]);
        expect([0, 1]).toContain(sqliteCode(failure));
        connection.close();
      });
    },
  );
});
