import { Client, Pool, type PoolConfig, types } from 'pg';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DatabaseOrigin } from '../../core/database-origin.ts';
import { MemoryError } from '../../../../src/ports/memory.ts';
import { answered, codeOf, isFull, isRefused, NO_CONNECTION_LEFT } from './lost.ts';
import type { ServerAddress } from './server-url.ts';
import { SERVER } from './statements/server.ts';

/**
 * Finds the host that accepts writes, and searches again when the connection is lost. Neither `pg`
 * nor libpq's rules do this reliably. If two hosts accept writes, the later timeline wins: the
 * other host is a former primary that still runs.
 */

type Host = ServerAddress['hosts'][number];

export interface FoundServer {
  readonly host: Host;
  readonly pool: Pool;
  readonly origin: DatabaseOrigin;
}

export interface SearchOptions {
  readonly server: ServerAddress;
  readonly connectionsMax: number;
  /** Runs before any caller gets the server. If it throws, the server is not used. */
  readonly settle: (found: FoundServer) => Promise<void>;
}

const CONNECT_MS = 2000;
const ANSWER_MS = 2000;
/** How long a call waits for the host that writes, from the moment when it was lost. */
const SEARCH_MS = 3000;
const PAUSE_MS = 250;
/** A second host that writes shows within this time. */
const STRAGGLER_MS = 150;
const CLOSE_MS = 5000;
const INT8 = 20;
/** A server that lacks this function, or does not allow it, has no known timeline. */
const UNTOLD: ReadonlySet<string> = new Set(['42883', '42501', '0A000', '42704']);

interface Probed {
  readonly host: Host;
  /** Undefined: it does not write. */
  readonly origin?: DatabaseOrigin;
  readonly error?: unknown;
}

export class HostSearch {
  readonly #options: SearchOptions;
  #found: FoundServer | undefined;
  #search: Promise<FoundServer> | undefined;
  #startedAt = 0;
  #newest: DatabaseOrigin | undefined;
  #reason = 'No host of the database accepts writes.';
  #isClosed = false;

  constructor(options: SearchOptions) {
    this.#options = options;
  }

  /** Throws MemoryError when it is not found in time. The search continues by itself. */
  async writing(): Promise<FoundServer> {
    if (this.#found !== undefined) return this.#found;
    if (this.#isClosed) throw new MemoryError('unavailable', 'The memory is closed.');
    const search = (this.#search ??= this.#start());
    const left = this.#startedAt + SEARCH_MS - performance.now();
    const timer = new AbortController();
    const late = sleep(Math.max(0, left), undefined, { signal: timer.signal }).then(() => {
      throw new MemoryError('unavailable', this.#reason);
    });
    try {
      return await Promise.race([search, late]);
    } finally {
      timer.abort();
      late.catch(() => undefined);
    }
  }

  /** Discards this server; the next call searches again. */
  lose(found: FoundServer): void {
    if (found !== this.#found) return;
    this.#found = undefined;
    endPool(found.pool);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const timer = new AbortController();
    // A server that hangs must not keep a process from ending.
    const late = sleep(CLOSE_MS, undefined, { signal: timer.signal }).catch(() => undefined);
    await Promise.race([this.#found?.pool.end(), late]);
    timer.abort();
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
      // oxlint-disable-next-line no-await-in-loop -- The next look follows a failed one.
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
    const probed = await probeAll(this.#options.server);
    const writing = probed.filter((one) => one.origin !== undefined);
    const [best] = writing
      .filter(({ origin }) => !isBehind(origin, this.#newest))
      .toSorted((one, other) => compareTimelines(other.origin, one.origin));
    if (best?.origin === undefined) {
      const refused = probed.find(({ error }) => isRefused(error));
      if (refused !== undefined && writing.length === 0) throw refused.error;
      this.#reason = reasonOf(probed, writing.length > 0);
      return undefined;
    }
    const { host, origin } = best;
    const found = { host, origin, pool: newPool(this.#options, host) };
    try {
      await this.#options.settle(found);
      return found;
    } catch (error) {
      endPool(found.pool);
      if (error instanceof MemoryError) this.#reason = error.message;
      return undefined;
    }
  }
}

function reasonOf(probed: readonly Probed[], isEarlier: boolean): string {
  if (isEarlier) return 'Only a former primary of the database answers.';
  if (probed.some(({ error }) => isFull(error))) return NO_CONNECTION_LEFT;
  return 'No host of the database accepts writes.';
}

/** Probes all hosts at once, so a frozen host costs no time if another one accepts writes. */
async function probeAll(server: ServerAddress): Promise<readonly Probed[]> {
  const probed: Probed[] = [];
  const all = server.hosts.map(async (host) => {
    const one = await probe(server, host);
    probed.push(one);
    // The first that writes ends the round a moment later.
    if (one.origin === undefined) throw new Error('It does not write.');
  });
  const enough = Promise.any(all).then(() => sleep(STRAGGLER_MS, undefined, { ref: false }));
  await Promise.race([Promise.allSettled(all), enough]).catch(() => undefined);
  return probed;
}

async function probe(server: ServerAddress, host: Host): Promise<Probed> {
  const client = new Client({ ...clientOptions(server, host), query_timeout: ANSWER_MS });
  client.on('error', () => undefined);
  try {
    await client.connect();
    const origin = await originOf(client);
    return origin === undefined ? { host } : { host, origin };
  } catch (error) {
    return { host, error };
  } finally {
    client.end().catch(() => undefined);
  }
}

interface OriginRow {
  readonly standby: boolean;
  readonly system?: string | null;
  readonly timeline?: string | null;
  readonly synchronous?: boolean;
}

/** Undefined of a standby. */
async function originOf(client: Client): Promise<DatabaseOrigin | undefined> {
  const ask = async (statement: string): Promise<OriginRow | undefined> =>
    (await answered(client.query<OriginRow>(statement), ANSWER_MS)).rows[0];
  const row = await ask(SERVER.origin).catch((error: unknown) => {
    if (UNTOLD.has(codeOf(error))) return ask(SERVER.isStandby);
    throw error;
  });
  if (row?.standby !== false) return undefined;
  const { system, timeline, synchronous } = row;
  return {
    system: system ?? '',
    timeline: timeline ?? '',
    isSynchronous: synchronous === true,
  };
}

function compareTimelines(one?: DatabaseOrigin, other?: DatabaseOrigin): number {
  return timelineNumber(one) - timelineNumber(other);
}

/** From eight hexadecimal digits. */
function timelineNumber(origin?: DatabaseOrigin): number {
  return Number.parseInt(`0${origin?.timeline ?? ''}`, 16);
}

/** A former primary: writes to it would be lost. */
function isBehind(origin: DatabaseOrigin | undefined, newest: DatabaseOrigin | undefined): boolean {
  return origin?.system === newest?.system && compareTimelines(origin, newest) < 0;
}

function newPool({ server, connectionsMax }: SearchOptions, host: Host): Pool {
  const pool = new Pool({
    ...clientOptions(server, host),
    max: connectionsMax,
    allowExitOnIdle: true,
  });
  pool.on('error', () => undefined);
  return pool;
}

function clientOptions(server: ServerAddress, host: Host): PoolConfig {
  return {
    ...host,
    user: server.user,
    password: server.password,
    database: server.database,
    ssl: server.tls,
    connectionTimeoutMillis: CONNECT_MS,
    application_name: 'svc',
    keepAlive: true,
    types: { getTypeParser },
  };
}

function endPool(pool: Pool): void {
  pool.end().catch(() => undefined);
}

/** Numbers of 64 bits as numbers: none of them is above 2^53. */
export function getTypeParser(oid: number): (value: string) => unknown {
  return oid === INT8 ? Number : types.getTypeParser(oid);
}
