import { createRequire } from 'node:module';

/**
 * SQLite through the API of node:sqlite. Only what both drivers share may be used: the builtin
 * takes over, unchanged, where the runtime has a SQLite that is safe.
 */

export type SqlValue = string | number | Uint8Array | null;

export interface Statement {
  run(...values: SqlValue[]): { readonly changes: number | bigint };
  get(...values: SqlValue[]): unknown;
  all(...values: SqlValue[]): unknown[];
}

export interface Connection {
  exec(sql: string): void;
  prepare(sql: string): Statement;
  close(): void;
}

export interface Driver {
  readonly name: 'node:sqlite' | '@photostructure/sqlite';
  open(path: string, options?: { readonly readOnly?: boolean }): Connection;
}

/**
 * The first SQLite without the WAL-reset bug: with 3.7.0 to 3.51.2 two processes that write and
 * checkpoint one database, as proxy and command line do, can corrupt it.
 */
export const SAFE_WAL_VERSION = '3.51.3';

interface SqliteModule {
  readonly DatabaseSync: new (path: string, options: { readonly readOnly?: boolean }) => Connection;
}

/** The builtin where it is new enough, else the package; the old builtin where the package fails to load. */
export function loadDriver(): Driver {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Node 20's types do not know it.
  const builtin = process.getBuiltinModule?.('node:sqlite') as SqliteModule | undefined;
  if (builtin !== undefined && isAtLeast(process.versions['sqlite'] ?? '0', SAFE_WAL_VERSION)) {
    return driverOf('node:sqlite', builtin);
  }
  try {
    const require = createRequire(import.meta.url);
    // Not import(): looking for the names that a CommonJS module exports takes 7 ms.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    const module = require('@photostructure/sqlite') as SqliteModule;
    return driverOf('@photostructure/sqlite', module);
  } catch (error) {
    if (builtin !== undefined) return driverOf('node:sqlite', builtin);
    throw error;
  }
}

/** Compares dotted versions by number. */
export function isAtLeast(version: string, wanted: string): boolean {
  const have = version.split('.').map(Number);
  for (const [place, number] of wanted.split('.').map(Number).entries()) {
    const difference = (have[place] ?? 0) - number;
    if (difference !== 0) return difference > 0;
  }
  return true;
}

function driverOf(name: Driver['name'], module: SqliteModule): Driver {
  return { name, open: (path, options = {}) => new module.DatabaseSync(path, options) };
}

/** The primary result code of SQLite, 0 when the error is not SQLite's. */
export function sqliteCode(error: unknown): number {
  const code: unknown = error instanceof Error ? Reflect.get(error, 'errcode') : undefined;
  return typeof code === 'number' ? code & 0xff : 0;
}

/** The primary result codes that happen to people: https://www.sqlite.org/rescode.html */
const FAILURES: Readonly<Record<number, string>> = {
  3: 'cannot be opened: its owner or mode forbids it',
  5: 'is locked by another program',
  6: 'is locked by another program',
  7: 'cannot be used: this machine is out of memory',
  8: 'cannot be written: its owner, its mode or its disk forbids it',
  10: 'could not be read or written: its disk reports an error',
  11: 'is damaged',
  13: 'could not grow: its disk is full',
  14: 'cannot be opened: its folder is missing or not writable for you',
  23: 'cannot be opened: its owner or mode forbids it',
  26: 'is damaged, or not a database',
};

/**
 * The file's failure and its cause, as the end of a sentence; SQLite's numbers mean nothing to a
 * person.
 */
export function failureText(error: unknown): string {
  const known = FAILURES[sqliteCode(error)];
  if (known !== undefined) return known;
  const system: unknown = error instanceof Error ? Reflect.get(error, 'code') : undefined;
  // The system's own codes are looked up by people; those of Node and its drivers are not.
  const isSystem = typeof system === 'string' && /^E[A-Z0-9]+$/.test(system);
  return isSystem ? `cannot be used (${system})` : 'cannot be used';
}
