import { Pool, type PoolClient, types } from 'pg';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DatabaseOrigin } from '../../core/database-origin.ts';
import { within } from '../../../../src/adapters/within.ts';
import { answered, codeOf, ignoreError, isFull, isRefused, NO_CONNECTION_LEFT } from './lost.ts';
import type { ServerAddress } from './server-url.ts';
import { SERVER } from './statements/server.ts';
import { MemoryError } from '../../../../src/core/errors.ts';

/**
 * Tries to connect to the database's address until the server there accepts writes, and tries again when the connection
 * is lost. The address may then lead to another server, because a proxy or a managed endpoint follows the primary. A
 * former primary that still runs has an earlier timeline and is not used.
 */

export interface FoundServer {
  readonly pool: Pool;
  readonly origin: DatabaseOrigin;
}

export interface SearchOptions {
  readonly server: ServerAddress;
  readonly connectionsMax: number;
  /** Called before any caller gets the server. If this throws, the server is not used. */
  readonly settle: (found: FoundServer) => Promise<void>;
}

const CONNECT_MS = 2000;
const ANSWER_MS = 2000;
/** How long calls wait for a server that accepts writes, counted from the start of the search. */
const SEARCH_MS = 3000;
/** Pause between two attempts. */
const PAUSE_MS = 250;
const CLOSE_MS = 5000;
/** The OID of PostgreSQL's type bigint. */
const INT8 = 20;
/** SQLSTATE codes of a server that cannot report its timeline, because a function is missing or forbidden. */
const UNTOLD: ReadonlySet<string> = new Set(['42883', '42501', '0A000', '42704']);

const NO_WRITES = 'The database does not accept writes.';

export class ServerSearch {
  readonly #options: SearchOptions;
  #found: FoundServer | undefined;
  #search: Promise<FoundServer> | undefined;
  #startedAt = 0;
  #newest: DatabaseOrigin | undefined;
  #reason = NO_WRITES;
  #isClosed = false;

  constructor(options: SearchOptions) {
    this.#options = options;
  }

  /**
   * Returns the server that accepts writes. Throws MemoryError if none is found in time, and the search continues; or
   * PostgreSQL's error if the server refuses the user or lacks the database, which ends the search.
   */
  async writing(): Promise<FoundServer> {
    if (this.#found !== undefined) return this.#found;
    if (this.#isClosed) throw new MemoryError('unavailable', 'The memory is closed.');
    const search = (this.#search ??= this.#start());
    const left = this.#startedAt + SEARCH_MS - performance.now();
    const found = await within(Math.max(0, left), search);
    if (found === undefined) throw new MemoryError('unavailable', this.#reason);
    return found;
  }

  /** Discards this server; the next call searches again. */
  lose(found: FoundServer): void {
    if (found !== this.#found) return;
    this.#found = undefined;
    endPool(found.pool);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    // A hanging server must not keep the process from ending.
    if (this.#found !== undefined) await within(CLOSE_MS, this.#found.pool.end());
  }

  #start(): Promise<FoundServer> {
    this.#startedAt = performance.now();
    const search = this.#run().finally(() => {
      this.#search = undefined;
    });
    search.catch(() => undefined);
    return search;
  }

  async #run(): Promise<FoundServer> {
    for (;;) {
      // oxlint-disable-next-line no-await-in-loop -- The next attempt follows a failed one.
      const found = await this.#look();
      if (this.#isClosed) {
        if (found !== undefined) endPool(found.pool);
        throw new MemoryError('unavailable', 'The memory is closed.');
      }
      if (found !== undefined) {
        this.#found = found;
        this.#newest = found.origin;
        return found;
      }
      // oxlint-disable-next-line no-await-in-loop -- A standby is promoted in a moment.
      await sleep(PAUSE_MS, undefined, { ref: false });
    }
  }

  async #look(): Promise<FoundServer | undefined> {
    const pool = newPool(this.#options);
    try {
      const origin = await originOf(pool);
      if (origin !== undefined && !isBehind(origin, this.#newest)) {
        const found = { pool, origin };
        await this.#options.settle(found);
        return found;
      }
      this.#reason =
        origin === undefined ? NO_WRITES : 'Only a former primary of the database answers.';
    } catch (error) {
      if (isRefused(error)) {
        endPool(pool);
        throw error;
      }
      this.#reason = reasonOf(error);
    }
    endPool(pool);
    return undefined;
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof MemoryError) return error.message;
  return isFull(error) ? NO_CONNECTION_LEFT : 'The database does not answer.';
}

interface OriginRow {
  readonly standby: boolean;
  readonly system?: string | null;
  readonly timeline?: string | null;
  readonly synchronous?: boolean;
}

/** Returns the origin of a server's database; undefined for a standby. */
async function originOf(pool: Pool): Promise<DatabaseOrigin | undefined> {
  const client = await pool.connect();
  client.on('error', ignoreError);
  let row: OriginRow | undefined;
  try {
    row = await ask(client, SERVER.origin).catch((error: unknown) => {
      if (UNTOLD.has(codeOf(error))) return ask(client, SERVER.isStandby);
      throw error;
    });
  } catch (error) {
    client.release(true);
    throw error;
  }
  client.off('error', ignoreError);
  client.release();
  if (row?.standby !== false) return undefined;
  const { system, timeline, synchronous } = row;
  return { system: system ?? '', timeline: timeline ?? '', isSynchronous: synchronous === true };
}

async function ask(client: PoolClient, statement: string): Promise<OriginRow | undefined> {
  return (await answered(client.query<OriginRow>(statement), ANSWER_MS)).rows[0];
}

/** Parses the eight hexadecimal digits of a timeline. */
function timelineNumber(origin?: DatabaseOrigin): number {
  return Number.parseInt(`0${origin?.timeline ?? ''}`, 16);
}

/** Says whether a server is a former primary: writes to it would be lost. */
function isBehind(origin: DatabaseOrigin | undefined, newest: DatabaseOrigin | undefined): boolean {
  return origin?.system === newest?.system && timelineNumber(origin) < timelineNumber(newest);
}

function newPool({ server, connectionsMax }: SearchOptions): Pool {
  const { tls: ssl, ...address } = server;
  const pool = new Pool({
    ...address,
    ssl,
    max: connectionsMax,
    allowExitOnIdle: true,
    connectionTimeoutMillis: CONNECT_MS,
    application_name: 'svc',
    keepAlive: true,
    types: { getTypeParser },
  });
  pool.on('error', () => undefined);
  return pool;
}

function endPool(pool: Pool): void {
  pool.end().catch(() => undefined);
}

/**
 * Returns the parser of a type. 64-bit integers become numbers: only the keys of words exceed 2^53, and svc reads those
 * in binary.
 */
export function getTypeParser(oid: number): (value: string) => unknown {
  return oid === INT8 ? Number : types.getTypeParser(oid);
}
