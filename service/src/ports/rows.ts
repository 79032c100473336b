export type SqlScalar = string | number | null | Uint8Array;
export type SqlValue = SqlScalar | readonly SqlScalar[];

/**
 * Runs the statements of one transaction, on SQLite or PostgreSQL. A shared statement is written for PostgreSQL: `$1`
 * is the first value, and `x = ANY($1)` finds x in a list. The translation for SQLite has no casts such as `$1::text`
 * and no `FOR UPDATE`. A caller need not wait for a statement before it calls the next: they run in the order of the
 * calls.
 */
export interface Rows {
  all<Row>(statement: string, ...values: SqlValue[]): Promise<Row[]>;
  get<Row>(statement: string, ...values: SqlValue[]): Promise<Row | undefined>;
  /** Runs a statement that changes rows. Returns the number of changed rows. */
  run(statement: string, ...values: SqlValue[]): Promise<number>;
  /** Runs `statement`, which inserts one row, for each list of values. Resolves with the returned rows. */
  each<Row>(statement: string, lists: readonly (readonly SqlScalar[])[]): Promise<Row[]>;
}

/** A statement that changes nothing, with its values. */
export interface Look {
  readonly statement: string;
  readonly values: readonly SqlValue[];
}

/**
 * Runs transactions. Each method rejects with MemoryError: 'timeout' once its signal fires or its own deadline is over,
 * otherwise 'unavailable'.
 */
export interface Transactions {
  /** Runs a transaction that only reads. All its statements see the same state. */
  read<T>(run: (rows: Rows) => Promise<T>, signal?: AbortSignal): Promise<T>;
  /** Runs one statement that changes nothing. */
  look<Row>(asked: Look, signal?: AbortSignal): Promise<Row[]>;
  /**
   * Commits all changes or none, and resolves once they are on disk. If the result of a commit is unknown, `run` runs
   * again, so it must detect that its work is done.
   */
  write<T>(run: (rows: Rows) => Promise<T>, signal?: AbortSignal): Promise<T>;
  /** Commits like `write`, for work that cannot run twice: if the result of the commit is unknown, the call fails. */
  writeOnce<T>(run: (rows: Rows) => Promise<T>): Promise<T>;
  /** Commits like `write`, for data whose loss does no harm: a power cut may lose them, a killed process does not. */
  note<T>(run: (rows: Rows) => Promise<T>): Promise<T>;
  /** Commits like `write`, for background work that no request waits for. */
  job<T>(run: (rows: Rows) => Promise<T>): Promise<T>;
}
