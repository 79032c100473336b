import type { Look, Rows, SqlScalar, SqlValue, Transactions } from '../../ports/rows.ts';
import type { Database } from '../../../../src/adapters/store/database.ts';

/**
 * Runs transactions on an SQLite file. The worker runs one call after the other, so no other call on its connection
 * runs between the statements of a transaction.
 */

/**
 * SQLite's form of each shared statement that has run. SQLite has no lists of values, needs no casts and locks no rows.
 */
const OWN_STATEMENTS = new Map<string, string>();

function ownStatement(statement: string): string {
  const known = OWN_STATEMENTS.get(statement);
  if (known !== undefined) return known;
  const own = statement
    .replaceAll(/::[a-z]+(?:\[\])?/g, '')
    .replaceAll(/\$(\d+)/g, '?$1')
    .replaceAll(/= ANY\((\?\d+)\)/g, 'IN (SELECT value FROM json_each($1))')
    .replace(/ FOR (?:SHARE|UPDATE)$/, '');
  OWN_STATEMENTS.set(statement, own);
  return own;
}

/** SQL expression for milliseconds since 1970. */
export const SQLITE_NOW = "CAST(unixepoch('subsec') * 1000 AS integer)";

export class SqliteTransactions implements Transactions {
  readonly #database: Database;
  readonly #rows: Rows;

  constructor(database: Database) {
    this.#database = database;
    this.#rows = rowsOf(database);
  }

  read<T>(run: (rows: Rows) => Promise<T>): Promise<T> {
    return this.#within('BEGIN', run);
  }

  look<Row>({ statement, values }: Look): Promise<Row[]> {
    return this.#rows.all<Row>(statement, ...values);
  }

  write<T>(run: (rows: Rows) => Promise<T>): Promise<T> {
    return this.#within('BEGIN IMMEDIATE', run);
  }

  writeOnce<T>(run: (rows: Rows) => Promise<T>): Promise<T> {
    return this.write(run);
  }

  async note<T>(run: (rows: Rows) => Promise<T>): Promise<T> {
    this.#database.exec('PRAGMA synchronous = NORMAL');
    try {
      return await this.write(run);
    } finally {
      this.#database.exec('PRAGMA synchronous = FULL');
    }
  }

  job<T>(run: (rows: Rows) => Promise<T>): Promise<T> {
    return this.write(run);
  }

  async #within<T>(begin: string, run: (rows: Rows) => Promise<T>): Promise<T> {
    this.#database.exec(begin);
    try {
      const result = await run(this.#rows);
      this.#database.exec('COMMIT');
      return result;
    } catch (error) {
      try {
        this.#database.exec('ROLLBACK');
      } catch {
        // A full disk has ended the transaction already. The earlier failure is reported.
      }
      throw error;
    }
  }
}

function rowsOf(database: Database): Rows {
  return {
    all: async <Row>(statement: string, ...values: SqlValue[]) =>
      database.all<Row>(ownStatement(statement), ...values.map(ownValue)),
    get: async <Row>(statement: string, ...values: SqlValue[]) =>
      database.get<Row>(ownStatement(statement), ...values.map(ownValue)),
    run: async (statement, ...values) =>
      database.run(ownStatement(statement), ...values.map(ownValue)),
    each: async <Row>(statement: string, lists: readonly (readonly SqlScalar[])[]) =>
      lists.flatMap((values) => database.all<Row>(ownStatement(statement), ...values)),
  };
}

function ownValue(value: SqlValue): SqlScalar {
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return value;
  return JSON.stringify(value);
}
