import type { PoolClient, Connection } from 'pg';
import type { DatabaseOrigin } from '../../core/database-origin.ts';
import { answered, isGone, LostConnection, Overdue, UncertainCommit } from './lost.ts';
import type { Rows, SqlScalar, SqlValue } from '../../ports/rows.ts';
import { SERVER } from './statements/server.ts';
import { getTypeParser } from './server-search.ts';
import { wireValue, type WireValue } from './wire-values.ts';

/** Runs one transaction on one connection. */

/**
 * How long svc waits for an answer after the server's own deadline of a statement, before it treats the connection as
 * lost.
 */
const ANSWER_SLACK_MS = 1000;
const COMMIT_MS = 5000;

interface SessionPlan {
  /** The statement that begins the transaction; undefined for a single statement, which needs none. */
  readonly begin: string | undefined;
  readonly statementMs: number;
  readonly origin: DatabaseOrigin;
  /** The deadline of the whole call, by `performance.now()`. */
  readonly until: number;
}

export class Session implements Rows {
  readonly #client: PoolClient;
  readonly #plan: SessionPlan;
  readonly #answerMs: number;
  #waiting: Asked[] = [];
  #isAsking = false;
  #hasBegun = false;
  #isElsewhere = false;

  constructor(client: PoolClient, plan: SessionPlan) {
    this.#client = client;
    this.#plan = plan;
    this.#answerMs = plan.statementMs + ANSWER_SLACK_MS;
  }

  /* oxlint-disable typescript/no-unsafe-type-assertion, typescript/no-unnecessary-type-parameters --
     Each caller gives the type of the rows beside its statement. */
  async all<Row>(statement: string, ...values: SqlValue[]): Promise<Row[]> {
    return (await this.#query(statement, values)).rows as Row[];
  }

  async get<Row>(statement: string, ...values: SqlValue[]): Promise<Row | undefined> {
    return (await this.#query(statement, values)).rows[0] as Row | undefined;
  }
  /* oxlint-enable typescript/no-unsafe-type-assertion, typescript/no-unnecessary-type-parameters */

  async run(statement: string, ...values: SqlValue[]): Promise<number> {
    return (await this.#query(statement, values)).rowCount;
  }

  async each<Row>(statement: string, lists: readonly (readonly SqlScalar[])[]): Promise<Row[]> {
    if (lists.length === 0) return [];
    return this.all<Row>(withRows(statement, lists.length), ...lists.flat());
  }

  /** Ends a transaction that changed nothing, without waiting for the answer. */
  leave(): void {
    if (this.#isOpen) this.#client.query('COMMIT').catch(() => undefined);
  }

  async commit(): Promise<void> {
    if (!this.#isOpen) return;
    let isWarned = false;
    const onNotice = ({ severity }: { readonly severity?: string | undefined }): void => {
      isWarned ||= severity === 'WARNING';
    };
    this.#client.on('notice', onNotice);
    try {
      // If a primary lacks its synchronous standbys, COMMIT waits for ever, without an error.
      await answered(this.#client.query('COMMIT'), COMMIT_MS);
    } catch (error) {
      if (isGone(error)) {
        throw new UncertainCommit('The database did not confirm the commit.', { cause: error });
      }
      throw error;
    } finally {
      this.#client.off('notice', onNotice);
    }
    // An operator ended the wait for the standby, so only this server has the commit.
    if (isWarned) throw new UncertainCommit('No standby has the commit.');
  }

  /** Rolls back. Resolves with an error of the connection if there is one, else with the given error. */
  async rollBack(error: unknown): Promise<unknown> {
    if (!this.#isOpen) return error;
    try {
      await answered(this.#client.query('ROLLBACK'), this.#answerMs);
      return error;
    } catch (failure) {
      return failure;
    }
  }

  /** True if a transaction is open on the server. Without BEGIN each message is a transaction of its own. */
  get #isOpen(): boolean {
    return this.#hasBegun && this.#plan.begin !== undefined;
  }

  async #query(text: string, values: readonly SqlValue[]): Promise<Result> {
    const asked = new Promise<Result>((resolve, reject) => {
      this.#waiting.push({ text, values, resolve, reject });
    });
    // Send in the next tick, together with all statements that callers add in this tick.
    if (this.#waiting.length === 1) process.nextTick(() => this.#send());
    try {
      return await this.#inTime(asked);
    } finally {
      this.#checkServer();
    }
  }

  /**
   * Throws if the server is no longer the one of the plan's origin, for example because a pooler has connected another.
   * This error replaces that server's answers and errors.
   */
  #checkServer(): void {
    if (!this.#isElsewhere) return;
    throw new LostConnection('The connection leads to another database server than before.');
  }

  /**
   * Sends the waiting statements in one message, once the previous message is answered. The first message begins with
   * the statements of #beginning().
   */
  #send(): void {
    if (this.#isAsking || this.#waiting.length === 0) return;
    this.#isAsking = true;
    const asked = this.#hasBegun ? this.#waiting : [...this.#beginning(), ...this.#waiting];
    this.#waiting = [];
    this.#hasBegun = true;
    const onEnd = (): void => {
      this.#isAsking = false;
      this.#send();
    };
    this.#client.query(new Batch(asked, onEnd));
  }

  /**
   * Returns the first statements. They begin the transaction, if there is one, and set the statement timeout. They also
   * check that the server is no standby and still has the timeline of the plan's origin.
   */
  #beginning(): Asked[] {
    const { begin, statementMs, origin } = this.#plan;
    const text = origin.timeline === '' ? SERVER.stillWritesUntold : SERVER.stillWrites;
    const check = ({ rows: [row] }: Result): void => {
      this.#isElsewhere = row?.['standby'] !== false || row['timeline'] !== origin.timeline;
    };
    const asked = { text, values: [String(statementMs)], resolve: check, reject: ignore };
    if (begin === undefined) return [asked];
    return [{ text: begin, values: [], resolve: ignore, reject: ignore }, asked];
  }

  async #inTime(asked: Promise<Result>): Promise<Result> {
    const left = this.#plan.until - performance.now();
    try {
      return await answered(asked, Math.max(0, Math.min(this.#answerMs, left)));
    } catch (error) {
      const isLate = error instanceof LostConnection && left < this.#answerMs;
      throw isLate
        ? new Overdue('The call did not finish before its deadline.', { cause: error })
        : error;
    }
  }
}

/** Ignores a result, or an error that the following statements report too. */
function ignore(): void {}

/** Repeats the placeholders of a statement for `count` rows: `($1, $2), ($3, $4)`. */
function withRows(statement: string, count: number): string {
  return statement.replace(/VALUES \(([^)]*)\)/, (_, marks: string) => {
    const width = marks.split(',').length;
    const rows = Array.from({ length: count }, (__, row) => {
      const own = Array.from({ length: width }, (___, at) => `$${row * width + at + 1}`);
      return `(${own.join(', ')})`;
    });
    return `VALUES ${rows.join(', ')}`;
  });
}

interface Result {
  readonly rows: readonly Record<string, unknown>[];
  readonly rowCount: number;
}

interface Asked {
  readonly text: string;
  readonly values: readonly SqlValue[];
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

/** The methods of pg's connection that write a message of the protocol. */
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

/**
 * Sends several statements in one message, which costs one round trip and one write. After an error the server skips
 * the later statements. All statements are unnamed, so a pooler in transaction mode may be between svc and the server.
 * A Batch is passed to `query` of pg's client, which calls `submit` and the handlers.
 */
class Batch {
  readonly #asked: readonly Asked[];
  readonly #onEnd: () => void;
  #answered = 0;
  #columns: readonly Column[] = [];
  #rows: Record<string, unknown>[] = [];

  /** `onEnd` is called when the server has answered all statements, or after an error. */
  constructor(asked: readonly Asked[], onEnd: () => void) {
    this.#asked = asked;
    this.#onEnd = onEnd;
  }

  submit(connection: Connection): void {
    const messages: Buffer[] = [];
    const send = (message: Buffer): void => void messages.push(message);
    // A copy of the connection whose messages are collected instead of being sent one by one.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- It inherits the methods.
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
    this.#columns = fields.map(({ name, dataTypeID }) => {
      return { name, parse: getTypeParser(dataTypeID) };
    });
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
