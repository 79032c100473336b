import type { Connection, SqlValue, Statement } from './driver.ts';

/** A recall takes some 20 ms. A write to the ledger that waits for longer than 250 ms is given up. */
const READER_MS = 100;

/** A connection's statements, each prepared once. */
export class Statements {
  readonly #connection: Connection;
  readonly #statements = new Map<string, Statement>();

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  // The type of a row must match its SELECT; callers keep both next to each other.
  all<Row>(sql: string, ...values: SqlValue[]): Row[] {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    return this.#statement(sql).all(...values) as Row[];
  }

  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters
  get<Row>(sql: string, ...values: SqlValue[]): Row | undefined {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    return this.#statement(sql).get(...values) as Row | undefined;
  }

  /** The number of rows changed. */
  run(sql: string, ...values: SqlValue[]): number {
    return Number(this.#statement(sql).run(...values).changes);
  }

  exec(sql: string): void {
    this.#connection.exec(sql);
  }

  /** The value of a pragma, or of a SELECT of one value. */
  value(sql: string): unknown {
    return Object.values(this.#connection.prepare(sql).get() ?? {})[0];
  }

  /** All or nothing. It takes the lock for writing first: no read becomes a write halfway. */
  transaction<Result>(work: () => Result): Result {
    this.#statement('BEGIN IMMEDIATE').run();
    try {
      const result = work();
      this.#statement('COMMIT').run();
      return result;
    } catch (error) {
      this.#rollBack();
      throw error;
    }
  }

  /**
   * Moves the write-ahead log into the file and empties it. Returns false while another connection reads
   * what the file was before. Nobody can write while this waits for such a reader.
   */
  emptyLog(): boolean {
    // Nearly all of the work, while others write.
    this.value('PRAGMA wal_checkpoint(PASSIVE)');
    const usualMs = Number(this.value('PRAGMA busy_timeout'));
    this.exec(`PRAGMA busy_timeout = ${READER_MS}`);
    try {
      return this.value('PRAGMA wal_checkpoint(TRUNCATE)') === 0;
    } finally {
      this.exec(`PRAGMA busy_timeout = ${usualMs}`);
    }
  }

  close(): void {
    this.#statements.clear();
    this.#connection.close();
  }

  // Some failures (disk full, corruption) end the transaction themselves.
  #rollBack(): void {
    try {
      this.#connection.exec('ROLLBACK');
    } catch {
      // Nothing is open: the earlier failure is the one to report.
    }
  }

  #statement(sql: string): Statement {
    const known = this.#statements.get(sql);
    if (known !== undefined) return known;
    const statement = this.#connection.prepare(sql);
    this.#statements.set(sql, statement);
    return statement;
  }
}
