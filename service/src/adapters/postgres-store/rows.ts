export type SqlValue =
  | string
  | number
  | null
  | Uint8Array
  | readonly (string | number | null | Uint8Array)[];

/**
 * One transaction. A statement is a constant of statements/, never put together from values. Statements
 * that are asked for at the same moment go to the server in one message.
 */
export interface Rows {
  all<Row>(statement: string, ...values: SqlValue[]): Promise<Row[]>;
  get<Row>(statement: string, ...values: SqlValue[]): Promise<Row | undefined>;
  /** The number of rows changed. */
  run(statement: string, ...values: SqlValue[]): Promise<number>;
  /** Runs `work` while the server is at the statements that were asked for before. */
  meanwhile<T>(work: () => T): Promise<T>;
}
