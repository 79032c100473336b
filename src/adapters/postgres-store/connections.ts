import { Pool, type PoolClient, types } from 'pg';
import { setTimeout as sleep } from 'node:timers/promises';
import { MemoryError } from '../../ports/memory.ts';
import type { ServerAddress } from './server-url.ts';

/**
 * Connections to PostgreSQL, a pool of a few. Several hosts may be named: the one that writes is
 * taken, and looked for again when it is lost. Every wait has a deadline, on this side and on the server's.
 * Nothing is left behind in a session, so a pooler may stand in between.
 */

export type SqlValue =
  | string
  | number
  | null
  | Uint8Array
  | readonly (string | number | null | Uint8Array)[];

/** One transaction. A statement is a constant of statements/, never put together from values. */
export interface Rows {
  all<Row>(statement: string, ...values: SqlValue[]): Promise<Row[]>;
  get<Row>(statement: string, ...values: SqlValue[]): Promise<Row | undefined>;
  /** The number of rows changed. */
  run(statement: string, ...values: SqlValue[]): Promise<number>;
}

export interface ConnectionOptions {
  readonly server: ServerAddress;
  /** Connections of this node at most. */
  readonly connectionsMax?: number;
  /** A statement of a request ends after so long. */
  readonly statementMs?: number;
}

interface Work<T> {
  readonly begin: string;
  readonly run: (rows: Rows) => Promise<T>;
  readonly statementMs: number;
  /** The same work may be done twice: the second time finds it done. */
  readonly isRepeatable: boolean;
}

/** Half of what the smallest managed offers give one service of two nodes. */
const CONNECTIONS_MAX = 10;
const STATEMENT_MS = 2000;
/** Migrations, and the steps of a purge. */
const JOB_STATEMENT_MS = 60_000;
/** The server ends the statement itself; this much later it counts as lost. */
const ANSWER_SLACK_MS = 1000;
const CONNECT_MS = 2000;
const COMMIT_MS = 5000;
/** How long a call looks for the host that writes. */
const SEARCH_MS = 3000;
const SEARCH_PAUSE_MS = 250;
const ATTEMPTS = 3;

const READ_ONLY_TRANSACTION = '25006';
const CONFLICTS: ReadonlySet<string> = new Set(['40001', '40P01']);
const INT8 = 20;

/** The connection, or the host behind it, is of no use any more. */
class LostConnection extends Error {
  override readonly name = 'LostConnection';
}

/** Nobody knows whether the transaction is in the database. */
class UncertainCommit extends Error {
  override readonly name = 'UncertainCommit';
}

export class Connections {
  readonly #options: ConnectionOptions;
  readonly #statementMs: number;
  #pool: Promise<Pool> | undefined;
  /** The one that was found. */
  #current: Pool | undefined;
  #isClosed = false;
  #closing: Promise<void> | undefined;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#statementMs = options.statementMs ?? STATEMENT_MS;
  }

  /** All statements of it see one moment. */
  read<T>(run: (rows: Rows) => Promise<T>, signal?: AbortSignal): Promise<T> {
    const begin = 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY';
    const work = { begin, run, statementMs: this.#statementMs, isRepeatable: true };
    return this.#guarded(work, signal);
  }

  /** `run` is done again when its commit is uncertain, and must then find its own work. */
  write<T>(run: (rows: Rows) => Promise<T>, signal?: AbortSignal): Promise<T> {
    const work = { begin: 'BEGIN', run, statementMs: this.#statementMs, isRepeatable: true };
    return this.#guarded(work, signal);
  }

  /** Its second run would tell another outcome: an uncertain commit fails the call. */
  writeOnce<T>(run: (rows: Rows) => Promise<T>, signal?: AbortSignal): Promise<T> {
    const work = { begin: 'BEGIN', run, statementMs: this.#statementMs, isRepeatable: false };
    return this.#guarded(work, signal);
  }

  /** Work that nobody's request waits for. */
  job<T>(run: (rows: Rows) => Promise<T>): Promise<T> {
    return this.#guarded({
      begin: 'BEGIN',
      run,
      statementMs: JOB_STATEMENT_MS,
      isRepeatable: true,
    });
  }

  /** Waits for what was asked before. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#isClosed = true;
    const pool = await this.#pool?.catch(() => undefined);
    await pool?.end();
  }

  async #guarded<T>(work: Work<T>, signal?: AbortSignal): Promise<T> {
    if (signal?.aborted === true) throw timeout();
    if (this.#isClosed) throw new MemoryError('unavailable', 'The memory is closed.');
    const done = this.#attempts(work);
    if (signal === undefined) return done;
    let onAbort: (() => void) | undefined;
    const aborted = new Promise<never>((_, reject) => {
      onAbort = () => reject(timeout());
      signal.addEventListener('abort', onAbort, { once: true });
    });
    try {
      return await Promise.race([done, aborted]);
    } finally {
      if (onAbort !== undefined) signal.removeEventListener('abort', onAbort);
      // The transaction goes on to its end, or to its deadline: nobody waits for it.
      done.catch(() => undefined);
    }
  }

  async #attempts<T>(work: Work<T>): Promise<T> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        // oxlint-disable-next-line no-await-in-loop -- The next attempt follows a failed one.
        return await this.#attempt(work);
      } catch (error) {
        const isAgain = mayRunAgain(error, work.isRepeatable);
        if (!isAgain || attempt === ATTEMPTS || this.#isClosed) throw asMemoryError(error);
      }
    }
  }

  async #attempt<T>(work: Work<T>): Promise<T> {
    const pool = await this.#writingPool();
    const client = await pool.connect().catch((error: unknown) => {
      this.#drop(pool);
      throw lostBy(error);
    });
    // An error of an idle connection would end the process; the statement in hand fails anyway.
    client.on('error', ignoreError);
    const answerMs = work.statementMs + ANSWER_SLACK_MS;
    let failure: unknown;
    try {
      await answered(
        client.query(`${work.begin}; SET LOCAL statement_timeout = ${work.statementMs}`),
        answerMs,
      );
      const result = await work.run(rowsOf(client, answerMs));
      await committed(client);
      return result;
    } catch (error) {
      failure = error;
      if (!isGone(error)) await answered(client.query('ROLLBACK'), answerMs).catch(toFailure);
      throw error;
    } finally {
      client.off('error', ignoreError);
      const isLost = failure !== undefined && isGone(failure);
      client.release(isLost);
      if (isLost) this.#drop(pool);
    }

    function toFailure(error: unknown): void {
      failure = error;
    }
  }

  #drop(pool: Pool): void {
    if (pool !== this.#current || this.#isClosed) return;
    this.#pool = undefined;
    this.#current = undefined;
    void pool.end().catch(() => undefined);
  }

  #writingPool(): Promise<Pool> {
    const known = this.#pool;
    if (known !== undefined) return known;
    const search = this.#findWriting();
    this.#pool = search;
    search.catch(() => {
      if (this.#pool === search) this.#pool = undefined;
    });
    return search;
  }

  async #findWriting(): Promise<Pool> {
    const until = performance.now() + SEARCH_MS;
    for (;;) {
      for (const host of this.#options.server.hosts) {
        // oxlint-disable-next-line no-await-in-loop -- The first that writes is taken.
        const pool = await this.#tryHost(host);
        if (pool !== undefined) {
          this.#current = pool;
          return pool;
        }
      }
      if (performance.now() > until || this.#isClosed) {
        throw new MemoryError('unavailable', 'No host of the database takes writes.');
      }
      // oxlint-disable-next-line no-await-in-loop -- A standby is promoted in a moment.
      await sleep(SEARCH_PAUSE_MS);
    }
  }

  async #tryHost(host: ServerAddress['hosts'][number]): Promise<Pool | undefined> {
    const { server, connectionsMax = CONNECTIONS_MAX } = this.#options;
    const pool = new Pool({
      ...host,
      user: server.user,
      password: server.password,
      database: server.database,
      ssl: server.tls,
      max: connectionsMax,
      connectionTimeoutMillis: CONNECT_MS,
      application_name: 'svc',
      keepAlive: true,
      allowExitOnIdle: true,
      types: { getTypeParser },
    });
    pool.on('error', () => undefined);
    try {
      const asked = pool.query<{ standby: boolean }>('SELECT pg_is_in_recovery() AS standby');
      const { rows } = await answered(asked, CONNECT_MS + ANSWER_SLACK_MS);
      if (rows[0]?.standby === false) return pool;
    } catch (error) {
      void pool.end().catch(() => undefined);
      // A wrong password does not become right by waiting.
      if (codeOf(error).startsWith('28') || codeOf(error) === '3D000') throw error;
      return undefined;
    }
    void pool.end().catch(() => undefined);
    return undefined;
  }
}

function ignoreError(): void {
  // Told by the statement that fails.
}

function rowsOf(client: PoolClient, answerMs: number): Rows {
  const query = (statement: string, values: readonly SqlValue[]) =>
    answered(client.query(statement, values.map(sendable)), answerMs);
  return {
    // A row is what its statement says; the two stand side by side wherever these are called.
    /* oxlint-disable typescript/no-unsafe-type-assertion, typescript/no-unnecessary-type-parameters */
    async all<Row>(statement: string, ...values: SqlValue[]) {
      return (await query(statement, values)).rows as Row[];
    },
    async get<Row>(statement: string, ...values: SqlValue[]) {
      return (await query(statement, values)).rows[0] as Row | undefined;
    },
    /* oxlint-enable typescript/no-unsafe-type-assertion, typescript/no-unnecessary-type-parameters */
    async run(statement, ...values) {
      return (await query(statement, values)).rowCount ?? 0;
    },
  };
}

/** PostgreSQL has no text with a NUL in it. No name needs one. */
function sendable(value: unknown): unknown {
  if (typeof value === 'string') return value.includes('\0') ? value.replaceAll('\0', '�') : value;
  return Array.isArray(value) ? value.map(sendable) : value;
}

async function committed(client: PoolClient): Promise<void> {
  try {
    // A primary whose standbys are gone lets a COMMIT wait for ever, and says nothing.
    await answered(client.query('COMMIT'), COMMIT_MS);
  } catch (error) {
    if (isGone(error)) throw new UncertainCommit('The commit was not answered.', { cause: error });
    throw error;
  }
}

async function answered<T>(asked: Promise<T>, answerMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new LostConnection('The database is silent.')), answerMs);
  });
  try {
    return await Promise.race([asked, late]);
  } finally {
    clearTimeout(timer);
    asked.catch(() => undefined);
  }
}

/** Numbers of 64 bits as numbers: none of them is above 2^53. */
function getTypeParser(oid: number): unknown {
  return oid === INT8 ? Number : types.getTypeParser(oid);
}

function codeOf(error: unknown): string {
  const code: unknown = typeof error === 'object' && error !== null && Reflect.get(error, 'code');
  return typeof code === 'string' ? code : '';
}

function isSqlState(code: string): boolean {
  return /^[0-9A-Z]{5}$/.test(code);
}

/** The connection failed and not the statement: 57P01 to 57P03 say that the server goes. */
function isGone(error: unknown): boolean {
  if (error instanceof MemoryError || error instanceof TypeError) return false;
  if (error instanceof LostConnection || error instanceof UncertainCommit) return true;
  const code = codeOf(error);
  if (!isSqlState(code)) return true;
  return code === READ_ONLY_TRANSACTION || code.startsWith('08') || code.startsWith('57P');
}

function lostBy(error: unknown): unknown {
  return isGone(error)
    ? new LostConnection('No connection could be made.', { cause: error })
    : error;
}

function mayRunAgain(error: unknown, isRepeatable: boolean): boolean {
  if (error instanceof UncertainCommit) return isRepeatable;
  return CONFLICTS.has(codeOf(error)) || isGone(error);
}

function timeout(): MemoryError {
  return new MemoryError('timeout', 'The memory did not answer in time.');
}

/** Never with a text of the database: a detail of its error may quote a row. */
function asMemoryError(error: unknown): MemoryError {
  if (error instanceof MemoryError) return error;
  if (error instanceof LostConnection || error instanceof UncertainCommit) {
    return new MemoryError('unavailable', error.message);
  }
  const code = codeOf(error);
  const told = code === '' ? 'failed' : `failed with ${code}`;
  return new MemoryError('unavailable', `The database ${told}.`);
}
