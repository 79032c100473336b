import { type Connection, Query, type QueryResult, type QueryResultRow } from 'pg';
import { getTypeParser } from './host-search.ts';

/**
 * Several statements in one message to the server: they cost one round trip. After an error the server
 * skips those behind it. No statement has a name, so a pooler in transaction mode may be in between.
 */

export type Result = QueryResult<QueryResultRow>;

export interface Asked {
  readonly text: string;
  readonly values: readonly unknown[];
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

/** The part of pg's own statement by which a connection answers it. */
interface Answerable {
  submit(connection: Connection): void;
  handleRowDescription(message: unknown): void;
  handleDataRow(message: unknown): void;
  handleCommandComplete(message: unknown, connection: Connection): void;
  handleReadyForQuery(connection: Connection): void;
  handleError(error: unknown, connection: Connection): void;
}

/** Given to `query` of a client of pg, in place of a statement. */
export class Batch implements Answerable {
  readonly #statements: readonly Answerable[];
  readonly #onEnd: () => void;
  #answered = 0;

  /** `onEnd`: the server is done with all of them. */
  constructor(asked: readonly Asked[], onEnd: () => void) {
    this.#statements = asked.map(statementOf);
    this.#onEnd = onEnd;
  }

  submit(connection: Connection): void {
    // Each statement would end the message behind itself.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The same connection, but for one method.
    const open = Object.create(connection, { sync: { value: ignore } }) as Connection;
    connection.stream.cork();
    for (const statement of this.#statements) statement.submit(open);
    connection.sync();
    connection.stream.uncork();
  }

  handleRowDescription(message: unknown): void {
    this.#statements[this.#answered]?.handleRowDescription(message);
  }

  handleDataRow(message: unknown): void {
    this.#statements[this.#answered]?.handleDataRow(message);
  }

  handleCommandComplete(message: unknown, connection: Connection): void {
    const statement = this.#statements[this.#answered];
    this.#answered += 1;
    statement?.handleCommandComplete(message, connection);
    statement?.handleReadyForQuery(connection);
  }

  handleReadyForQuery(): void {
    this.#onEnd();
  }

  handleError(error: unknown, connection: Connection): void {
    for (const statement of this.#statements.slice(this.#answered)) {
      statement.handleError(error, connection);
    }
    this.#onEnd();
  }
}

function ignore(): void {
  // The message has one end, behind the last statement.
}

function statementOf({ text, values, resolve, reject }: Asked): Answerable {
  const config = { text, values: [...values], types: { getTypeParser }, queryMode: 'extended' };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The types of pg leave these methods out.
  return new Query(config, (error: unknown, result: Result) => {
    if (error instanceof Error) reject(error);
    else resolve(result);
  }) as unknown as Answerable;
}
