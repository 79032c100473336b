import type { Rows as CommonRows, SqlScalar } from '../../ports/rows.ts';

export type SqlValue = SqlScalar | readonly SqlScalar[];

/**
 * One transaction. A statement is a constant, never put together from values. Statements that are asked
 * for at the same moment go to the server in one message.
 */
export interface Rows extends CommonRows {
  all<Row>(statement: string, ...values: SqlValue[]): Promise<Row[]>;
  get<Row>(statement: string, ...values: SqlValue[]): Promise<Row | undefined>;
  run(statement: string, ...values: SqlValue[]): Promise<number>;
  /** Runs `work` while the server executes the statements already sent. */
  meanwhile<T>(work: () => T): Promise<T>;
}
