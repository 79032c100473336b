/** A database of rows, as the service needs it. Each engine is a small driver behind it. */

export type SqlScalar = string | number | null | Uint8Array;
export type SqlValue = SqlScalar | readonly SqlScalar[];

/**
 * The statements of one transaction. A statement is a constant in the SQL that SQLite and PostgreSQL
 * share: `$1` is its first value, `x = ANY($1)` finds x in a list, and SQLite leaves out casts such as
 * `$1::text`. Statements that are asked for at once run in their order.
 */
export interface Rows {
  all<Row>(statement: string, ...values: SqlValue[]): Promise<Row[]>;
  get<Row>(statement: string, ...values: SqlValue[]): Promise<Row | undefined>;
  /** The number of rows changed. */
  run(statement: string, ...values: SqlValue[]): Promise<number>;
  /** Inserts a row for each list of values. `statement` inserts one row; resolves with what it returns. */
  each<Row>(statement: string, lists: readonly (readonly SqlScalar[])[]): Promise<Row[]>;
}

export interface Look {
  readonly statement: string;
  readonly values: readonly SqlValue[];
}

/** Each rejects with MemoryError: 'timeout' once its signal fires, else 'unavailable'. */
export interface Transactions {
  /** All statements of `run` see one moment. */
  read<T>(run: (rows: Rows) => Promise<T>, signal?: AbortSignal): Promise<T>;
  /** One statement that changes nothing. */
  look<Row>(asked: Look, signal?: AbortSignal): Promise<Row[]>;
  /** All or nothing, on disk. `run` may run again, and must then detect its own earlier work. */
  write<T>(run: (rows: Rows) => Promise<T>, signal?: AbortSignal): Promise<T>;
  /** As `write`, for work that cannot run twice: an uncertain commit fails the call. */
  writeOnce<T>(run: (rows: Rows) => Promise<T>): Promise<T>;
  /** As `write`, for what is not missed: a power cut may take it, a kill of the process does not. */
  note<T>(run: (rows: Rows) => Promise<T>): Promise<T>;
  /** Background work that no request waits for. */
  job<T>(run: (rows: Rows) => Promise<T>): Promise<T>;
}
