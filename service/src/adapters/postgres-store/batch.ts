import type { Connection } from 'pg';
import { getTypeParser } from './server-search.ts';
import type { SqlValue } from './rows.ts';
import { wireValue, type WireValue } from './wire-values.ts';

/**
 * Several statements in one message to the server: they cost one round trip, and one write. After an error
 * the server skips those behind it. No statement has a name, so a pooler in transaction mode may be in
 * between.
 */

export interface Result {
  readonly rows: readonly Record<string, unknown>[];
  readonly rowCount: number;
}

export interface Asked {
  readonly text: string;
  readonly values: readonly SqlValue[];
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

/** The messages of pg's connection, each of which it would write by itself. */
interface Wire {
  parse(message: { readonly text: string }): void;
  bind(message: { readonly values: readonly WireValue[] }): void;
  describe(message: { readonly type: 'P' }): void;
  execute(): void;
  sync(): void;
}

interface Field {
  readonly name: string;
  readonly dataTypeID: number;
}

/** Given to `query` of a client of pg, in place of a statement. */
export class Batch {
  readonly #asked: readonly Asked[];
  readonly #onEnd: () => void;
  #answered = 0;
  #columns: readonly Column[] = [];
  #rows: Record<string, unknown>[] = [];

  /** `onEnd`: the server is done with all of them. */
  constructor(asked: readonly Asked[], onEnd: () => void) {
    this.#asked = asked;
    this.#onEnd = onEnd;
  }

  submit(connection: Connection): void {
    const messages: Buffer[] = [];
    const send = (message: Buffer): void => void messages.push(message);
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The same connection, but for one method.
    const wire = Object.create(connection, { _send: { value: send } }) as Wire;
    for (const { text, values } of this.#asked) {
      wire.parse({ text });
      wire.bind({ values: values.map(wireValue) });
      wire.describe({ type: 'P' });
      wire.execute();
    }
    wire.sync();
    if (connection.stream.writable) connection.stream.write(Buffer.concat(messages));
  }

  handleRowDescription({ fields }: { readonly fields: readonly Field[] }): void {
    this.#columns = fields.map(columnOf);
  }

  handleDataRow({ fields }: { readonly fields: readonly (string | null)[] }): void {
    const row: Record<string, unknown> = {};
    for (const [at, { name, parse }] of this.#columns.entries()) {
      const value = fields[at] ?? null;
      row[name] = value === null ? null : parse(value);
    }
    this.#rows.push(row);
  }

  handleCommandComplete({ text }: { readonly text: string }): void {
    const rows = this.#rows;
    this.#rows = [];
    this.#columns = [];
    const asked = this.#asked[this.#answered];
    this.#answered += 1;
    asked?.resolve({ rows, rowCount: Number(/\d+$/.exec(text)?.[0] ?? 0) });
  }

  handleReadyForQuery(): void {
    this.#onEnd();
  }

  handleError(error: unknown): void {
    for (const { reject } of this.#asked.slice(this.#answered)) reject(error);
    this.#onEnd();
  }
}

interface Column {
  readonly name: string;
  readonly parse: (value: string) => unknown;
}

function columnOf({ name, dataTypeID }: Field): Column {
  return { name, parse: getTypeParser(dataTypeID) };
}
