import { connect } from 'node:net';
import { join } from 'node:path';
import type { PoolClient } from 'pg';
import type { DatabaseOrigin } from '../../core/database-origin.ts';
import { type FoundServer, ServerSearch } from './server-search.ts';
import {
  asMemoryError,
  ignoreError,
  isFull,
  isGone,
  LostConnection,
  mayRunAgain,
  Overdue,
  timeout,
} from './lost.ts';
import type { Look, Rows, Transactions } from '../../ports/rows.ts';
import type { ServerAddress } from './server-url.ts';
import { Session } from './session.ts';
import { MemoryError } from '../../../../src/core/errors.ts';

/**
 * Runs transactions on PostgreSQL over a pool of a few connections. Every wait has a deadline, in this process and on
 * the server. svc uses no session state, so a connection pooler may be between svc and the server. `look` sends one
 * message and opens no transaction. `note` is the same as `write`.
 */

export interface ConnectionOptions {
  readonly server: ServerAddress;
  /** Bound on connections of this node. */
  readonly connectionsMax?: number;
  /** Deadline of one statement of a request, in milliseconds. */
  readonly statementMs?: number;
}

interface ConnectionHooks {
  /** Called when a server is found, before any caller gets it. If this throws, the server is not used. */
  readonly settle?: (transactions: Transactions, origin: DatabaseOrigin) => Promise<void>;
}

interface Work<T> {
  /** The statement that begins the transaction; undefined if the work is a single statement. */
  readonly begin: string | undefined;
  readonly run: (rows: Rows) => Promise<T>;
  readonly statementMs: number;
  /** True if the work may run twice: a second run after an unnoticed commit does no harm. */
  readonly isRepeatable: boolean;
}

type Runner = <T>(work: Work<T>, signal?: AbortSignal) => Promise<T>;

/** Default bound on connections of a node, so that two nodes fit into the smallest managed databases. */
const CONNECTIONS_MAX = 10;
/**
 * Share of connections that calls of the memory may not take. These are left for look-ups of keys and settings, the
 * ledger and receipts.
 */
const RESERVED_SHARE = 0.3;
/** Default deadline of one statement. */
const STATEMENT_MS = 2000;
/** Deadline of one statement of a background job, such as a migration or a purge. */
const JOB_STATEMENT_MS = 60_000;
/** Deadline of a call with all its attempts, as a multiple of the deadline of one statement. */
const STATEMENTS_IN_CALL = 5;
/** How long work waits for a free connection: longer than a recall takes. */
const SLOT_MS = 2000;
/**
 * Bound on the attempts of work that may run again. If the server refuses further connections while this node has some,
 * the work is tried until its deadline instead.
 */
const ATTEMPTS = 3;
/** Deadline of the connection that sends a cancel request. */
const CANCEL_MS = 1000;
/** The code of PostgreSQL's protocol for a cancel request. */
const CANCEL_REQUEST = 80_877_102;

const READ = 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY';
const WRITE = 'BEGIN';

export class Connections {
  readonly all: Transactions;
  /** Transactions of the memory's calls. They leave some connections free for all other work: see RESERVED_SHARE. */
  readonly memory: Transactions;
  readonly #statementMs: number;
  readonly #server: ServerAddress;
  readonly #search: ServerSearch;
  readonly #slots: Slots;
  #isClosed = false;
  #closing: Promise<void> | undefined;

  constructor(options: ConnectionOptions, { settle }: ConnectionHooks = {}) {
    const { server, connectionsMax = CONNECTIONS_MAX } = options;
    this.#statementMs = options.statementMs ?? STATEMENT_MS;
    this.#server = server;
    this.#search = new ServerSearch({
      server,
      connectionsMax,
      settle: async (found) => settle?.(this.#on(found), found.origin),
    });
    this.#slots = new Slots(connectionsMax);
    const guarded: Runner = (work, signal) => this.#guarded(() => this.#attempts(work), signal);
    this.all = this.#transactions(guarded);
    const memory = new Slots(Math.ceil(connectionsMax * (1 - RESERVED_SHARE)));
    this.memory = this.#transactions((work, signal) => {
      return this.#guarded(() => this.#placed(work, memory, signal), signal);
    });
  }

  /** Returns the origin of the database in use: see DatabaseOrigin. Throws MemoryError. */
  async origin(): Promise<DatabaseOrigin> {
    return (await this.#search.writing()).origin;
  }

  /** Drops the found server, so that the next call connects and runs `settle` again. */
  async lookAgain(): Promise<void> {
    this.#search.lose(await this.#search.writing());
  }

  /** Refuses new calls. Resolves when the running calls have ended and the connections are closed, or after 5 s. */
  close(): Promise<void> {
    this.#isClosed = true;
    this.#closing ??= this.#search.close();
    return this.#closing;
  }

  /** Returns transactions on a server that was just found, for `settle`. */
  #on(found: FoundServer): Transactions {
    return this.#transactions(async (work) => {
      const until = performance.now() + work.statementMs * STATEMENTS_IN_CALL;
      try {
        return await this.#attempt(found, work, until);
      } catch (error) {
        throw asMemoryError(error);
      }
    });
  }

  #transactions(done: Runner): Transactions {
    const common = { statementMs: this.#statementMs, isRepeatable: true };
    return {
      read: (run, signal) => done({ ...common, begin: READ, run }, signal),
      look: <Row>({ statement, values }: Look, signal?: AbortSignal) => {
        const run = (rows: Rows) => rows.all<Row>(statement, ...values);
        return done({ ...common, begin: undefined, run }, signal);
      },
      write: (run, signal) => done({ ...common, begin: WRITE, run }, signal),
      writeOnce: (run) => done({ ...common, begin: WRITE, run, isRepeatable: false }),
      note: (run) => done({ ...common, begin: WRITE, run }),
      job: (run) => done({ ...common, begin: WRITE, run, statementMs: JOB_STATEMENT_MS }),
    };
  }

  async #guarded<T>(run: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    if (signal?.aborted === true) throw timeout();
    if (this.#isClosed) throw new MemoryError('unavailable', 'The memory is closed.');
    const done = run();
    if (signal === undefined) return done;
    let onAbort: () => void = ignoreError;
    const aborted = new Promise<never>((_, reject) => {
      onAbort = () => reject(timeout());
      signal.addEventListener('abort', onAbort, { once: true });
    });
    try {
      // After an abort the transaction continues to its end or deadline, but no caller waits for it.
      return await Promise.race([done, aborted]);
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }

  async #placed<T>(work: Work<T>, slots: Slots, signal?: AbortSignal): Promise<T> {
    const give = await slots.take(SLOT_MS);
    try {
      if (signal?.aborted === true) throw timeout();
      return await this.#attempts(work);
    } finally {
      give();
    }
  }

  async #attempts<T>(work: Work<T>): Promise<T> {
    const until = performance.now() + work.statementMs * STATEMENTS_IN_CALL;
    for (let attempt = 1; ; attempt += 1) {
      const found = await this.#search.writing();
      // oxlint-disable-next-line no-await-in-loop -- The next attempt follows a failed one.
      const give = await this.#slots.take(SLOT_MS);
      try {
        // oxlint-disable-next-line no-await-in-loop
        return await this.#attempt(found, work, until);
      } catch (error) {
        const isLate = this.#isClosed || performance.now() > until;
        // If the server allows no further connection, all calls share those that this node has.
        if (isFull(error)) this.#slots.narrow(found.pool.totalCount);
        const isLast = attempt >= ATTEMPTS && !(isFull(error) && found.pool.totalCount > 0);
        if (!mayRunAgain(error, work.isRepeatable) || isLate || isLast) throw asMemoryError(error);
      } finally {
        give();
      }
    }
  }

  async #attempt<T>(found: FoundServer, work: Work<T>, until: number): Promise<T> {
    const client = await this.#connect(found);
    // Without a listener, an 'error' event ends the process. The running statement reports the error itself.
    client.on('error', ignoreError);
    const { begin, statementMs } = work;
    const session = new Session(client, { begin, statementMs, until, origin: found.origin });
    let failure: unknown;
    try {
      const result = await work.run(session);
      if (begin === READ) session.leave();
      else await session.commit();
      return result;
    } catch (error) {
      failure = error;
      if (isBroken(error)) cancel(this.#server, client);
      else failure = await session.rollBack(error);
      throw error;
    } finally {
      client.off('error', ignoreError);
      client.release(failure !== undefined && isBroken(failure));
      if (failure !== undefined && isGone(failure)) this.#search.lose(found);
    }
  }

  async #connect(found: FoundServer): Promise<PoolClient> {
    try {
      return await found.pool.connect();
    } catch (error) {
      if (!isGone(error)) throw error;
      this.#search.lose(found);
      throw new LostConnection('No connection could be made.', { cause: error });
    }
  }
}

/** Says whether a connection must be closed: it is lost, or a statement may still run on it. */
function isBroken(error: unknown): boolean {
  return isGone(error) || error instanceof Overdue;
}

/**
 * Asks the server to end the statement that still runs on this connection. A server that waits for its standby does not
 * notice that the client is gone, and the statement would keep its locks.
 */
function cancel({ host, port }: ServerAddress, client: PoolClient): void {
  const [id, secret] = ['processID', 'secretKey'].map((name) => Number(Reflect.get(client, name)));
  if (!Number.isInteger(id) || !Number.isInteger(secret)) return;
  const message = Buffer.alloc(16);
  for (const [at, word] of [message.length, CANCEL_REQUEST, id ?? 0, secret ?? 0].entries()) {
    message.writeInt32BE(word, at * 4);
  }
  const isPath = host.startsWith('/');
  const socket = isPath ? connect(join(host, `.s.PGSQL.${port}`)) : connect(port, host);
  socket.on('error', () => undefined);
  socket.setTimeout(CANCEL_MS, () => socket.destroy());
  socket.end(message);
  socket.unref();
}

/** How long svc uses fewer connections after the server has refused a connection. */
const NARROW_MS = 5000;

/** Bounds concurrent work by a number of places. Further work waits for a place, up to a deadline. */
class Slots {
  readonly #count: number;
  #limit: number;
  #taken = 0;
  #wider: NodeJS.Timeout | undefined;
  readonly #waiting = new Set<() => void>();

  constructor(count: number) {
    this.#count = count;
    this.#limit = count;
  }

  /** Takes a place. Resolves with a function that gives it back. Throws MemoryError if none was free in time. */
  async take(withinMs: number): Promise<() => void> {
    if (this.#taken < this.#limit) this.#taken += 1;
    else await this.#wait(withinMs);
    return () => {
      this.#taken -= 1;
      this.#hand();
    };
  }

  /** Reduces the places for NARROW_MS, to at least one, because the server refuses further connections. */
  narrow(limit: number): void {
    this.#limit = Math.min(this.#limit, Math.max(1, limit));
    clearTimeout(this.#wider);
    this.#wider = setTimeout(() => {
      this.#limit = this.#count;
      this.#hand();
    }, NARROW_MS).unref();
  }

  #wait(withinMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const handed = (): void => {
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(() => {
        this.#waiting.delete(handed);
        reject(new MemoryError('unavailable', 'All connections to the database are in use.'));
      }, withinMs);
      this.#waiting.add(handed);
    });
  }

  /** Gives a free place to the work that waits longest. */
  #hand(): void {
    for (const next of this.#waiting) {
      if (this.#taken >= this.#limit) return;
      this.#waiting.delete(next);
      this.#taken += 1;
      next();
    }
  }
}
