import { MemoryError } from '../../../../src/core/errors.ts';
import { isTenantId } from '../../core/tenants.ts';
import { isoDay } from '../../../../src/core/memory/times.ts';
import { firstReceiptIdAt } from '../../core/ids.ts';
import { SPACE_BYTES_MAX } from '../../core/limits.ts';
import type { KeptDays, ServerFacts, ServiceStore } from '../../ports/service-store.ts';
import { dropStale, serviceControl } from '../control/control-plane.ts';
import { heldIn, tenantStores, unfinishedPurges } from '../memory/tenant-memory.ts';
import { Connections, type ConnectionOptions } from './connections.ts';
import { migrate, readSchema, newEpochIn } from './migrations.ts';
import { type OpenDatabase, postgresMemory } from './memory-engine.ts';
import type { ServerAddress } from './server-url.ts';
import { POSTGRES_NOW, SERVER } from './statements/server.ts';
import { DAYS, type DayTable, dropDay, makeDay } from './statements/upkeep.ts';
import { Statistics } from './statistics.ts';
import { TermKeys } from './term-keys.ts';
import {
  type DatabaseOrigin,
  judgeOrigin,
  originText,
  type OriginVerdict,
  readOrigin,
} from '../../core/database-origin.ts';
import type { Rows, Transactions } from '../../ports/rows.ts';
import { SCHEMA } from './statements/schema.ts';

/** Implements the service's store on PostgreSQL, which several nodes may use at once. */

interface PostgresStoreOptions extends ConnectionOptions {
  /** True: run missing migrations. False: refuse a database that lacks some. */
  readonly migrates?: boolean;
  readonly spaceBytesMax?: number;
  /** Set if the operator guarantees that only a standby with every acknowledged commit is promoted. */
  readonly trustsFailover?: boolean;
  readonly report?: (line: string) => void;
  /** Milliseconds between two updates of the planner's statistics. */
  readonly statisticsMs?: number;
}

/** Opens the store and returns at once: calls wait until the database is found and its tables are checked. */
export function openPostgresStore(options: PostgresStoreOptions): ServiceStore {
  const { spaceBytesMax = SPACE_BYTES_MAX, trustsFailover = false } = options;
  const { report = () => undefined } = options;
  const connections = new Connections(options, {
    settle: (transactions, origin) => settleOrigin(transactions, origin, trustsFailover, report),
  });
  let opened: Promise<OpenDatabase> | undefined;
  const database = (): Promise<OpenDatabase> => {
    const asked = (opened ??= open(connections, options.migrates === true));
    // If the database is unavailable now, the next call tries to open it again.
    asked.catch(() => {
      if (opened === asked) opened = undefined;
    });
    return asked;
  };
  const connected = async (): Promise<Transactions> => (await database()).connections.all;
  const statistics = new Statistics(connected, options.statisticsMs);
  const engine = { open: connected, now: POSTGRES_NOW };
  const memory = postgresMemory(database, spaceBytesMax);
  const storeOf = tenantStores(engine, memory);
  return {
    isShared: true,
    of(tenant) {
      if (!isTenantId(tenant)) throw new TypeError('This is not the id of a tenant.');
      return storeOf(tenant);
    },
    ...serviceControl(engine),
    async keepDays(kept) {
      await keepDays(await connected(), kept);
      await dropStale(engine, kept);
    },
    unfinishedPurges: () => unfinishedPurges(memory),
    async health() {
      return (await connected()).read(async (rows) => {
        const row = await rows.get<{ version: string; bytes: number }>(SERVER.size);
        const { version = '', bytes = 0 } = row ?? {};
        return { engine: `PostgreSQL ${version}`, bytes, ...(await heldIn(rows)) };
      });
    },
    async close() {
      statistics.stop();
      await connections.close();
    },
  };
}

async function open(connections: Connections, migrates: boolean): Promise<OpenDatabase> {
  let state = await readSchema(connections.all);
  if (state.missing.length > 0 && migrates) {
    await migrate(connections.all, Date.now());
    // The origin of the database contains the id of a table that the migrations made, so read it again.
    await connections.lookAgain();
    state = await readSchema(connections.all);
  }
  if (state.missing.length > 0 || state.secret === undefined) {
    const message = 'The database lacks tables of this version: run svc-service migrate.';
    throw new MemoryError('unavailable', message);
  }
  if (state.isMoving === true) {
    const message = 'A move to this database is incomplete: run svc-service move again.';
    throw new MemoryError('unavailable', message);
  }
  return { connections, keys: new TermKeys(state.secret) };
}

/** The name of the row in `service_meta` with the database's origin. */
const ORIGIN = 'origin';

/**
 * Compares the origin (cluster and timeline) of a newly found server with the stored one. If the server may lack
 * commits, starts a new epoch: then no client relies on earlier acknowledgements.
 */
async function settleOrigin(
  transactions: Transactions,
  origin: DatabaseOrigin,
  trustsFailover: boolean,
  report: (line: string) => void,
): Promise<void> {
  const before = await transactions.read(readNoted);
  if (before === 'no tables' || isNoted(before, origin)) return;
  const settled = transactions.write(async (rows): Promise<OriginVerdict> => {
    await rows.get(SCHEMA.lockMeta);
    // Another node may have stored the origin a moment ago.
    const noted = await readNoted(rows);
    if (noted === 'no tables' || isNoted(noted, origin)) return 'same';
    const verdict = judgeOrigin(noted, origin, trustsFailover);
    if (verdict === 'replaced') await newEpochIn(rows);
    await rows.run(SCHEMA.putMeta, ORIGIN, originText(origin));
    await rows.run(SCHEMA.setMeta, ORIGIN, originText(origin));
    return verdict;
  });
  // A promoted standby may not accept commits yet, but it answers reads. If the epoch does not change, do not wait for
  // this commit.
  if (judgeOrigin(before, origin, trustsFailover) !== 'replaced') settled.catch(() => undefined);
  else if ((await settled) === 'replaced') {
    report(
      'The database is not the same as before: it is a promoted standby or a restored copy. A new epoch began, and clients capture again what they still hold.',
    );
  }
}

async function readNoted(rows: Rows): Promise<DatabaseOrigin | undefined | 'no tables'> {
  const made = await rows.get<{ found: number }>(SCHEMA.hasMeta);
  if ((made?.found ?? 0) < 2) return 'no tables';
  const row = await rows.get<{ value: string }>(SCHEMA.getMeta, ORIGIN);
  return readOrigin(row?.value);
}

function isNoted(noted: DatabaseOrigin | undefined, origin: DatabaseOrigin): boolean {
  return noted !== undefined && originText(noted) === originText(origin);
}

const DAY_MS = 86_400_000;
const DAYS_AHEAD = 7;

/**
 * Creates and drops day tables. Receipts and audit events have one table for each day, because dropping a table is
 * much cheaper than deleting its rows. Rows of a day without a table, such as those of a moved service, are in a
 * default table.
 */
async function keepDays(
  transactions: Transactions,
  { now, receiptsFrom, auditFrom }: KeptDays,
): Promise<void> {
  await makeDaysFrom(transactions, now);
  if (receiptsFrom !== undefined) await dropBefore(transactions, 'receipts', receiptsFrom);
  if (auditFrom !== undefined) await dropBefore(transactions, 'audit', auditFrom);
}

/** Makes the tables of this day and of the following week. */
async function makeDaysFrom(transactions: Transactions, at: number): Promise<void> {
  const made = await transactions.read((rows) => rows.all<{ name: string }>(DAYS.list));
  const names = new Set(made.map(({ name }) => name));
  const today = Math.floor(at / DAY_MS) * DAY_MS;
  for (let ahead = 0; ahead <= DAYS_AHEAD; ahead += 1) {
    const start = today + ahead * DAY_MS;
    for (const table of ['receipts', 'audit'] as const) {
      if (names.has(`${table}_${dayOf(start)}`)) continue;
      const statement = makeDay(table, dayOf(start), rangeOf(table, start));
      // PostgreSQL refuses if the default table has rows of that day already. The day's rows then stay in that table.
      // oxlint-disable-next-line no-await-in-loop -- Each takes a lock on the table for a moment.
      await transactions.write((rows) => rows.run(statement)).catch(() => undefined);
    }
  }
}

async function dropBefore(
  transactions: Transactions,
  table: DayTable,
  from: number,
): Promise<void> {
  const made = await transactions.read((rows) => rows.all<{ name: string }>(DAYS.list));
  // The day of `from` itself stays.
  const first = dayOf(from);
  for (const { name } of made) {
    const day = name.slice(table.length + 1);
    if (!name.startsWith(`${table}_`) || day >= first) continue;
    // If the table is locked now, the next run in an hour drops it.
    // oxlint-disable-next-line no-await-in-loop
    await transactions.write((rows) => rows.run(dropDay(table, day))).catch(() => undefined);
  }
}

function rangeOf(table: DayTable, start: number): { first: string; next: string } {
  const bounds = [start, start + DAY_MS];
  const [first = '', next = ''] = bounds.map(table === 'receipts' ? firstReceiptIdAt : String);
  return { first, next };
}

function dayOf(at: number): string {
  return isoDay(at).replaceAll('-', '');
}

interface StandbyRow {
  readonly name: string;
  readonly state: string | null;
  readonly sync: string | null;
}

/** Describes a database server for `svc-service doctor`. Throws MemoryError if it does not answer. */
export async function inspectServer(address: ServerAddress): Promise<ServerFacts> {
  const connections = new Connections({ server: address, connectionsMax: 1 });
  try {
    const { isSynchronous } = await connections.origin();
    return await connections.all.read(async (rows) => {
      const row = await rows.get<{ version: string }>(SERVER.size);
      const standbys = await rows.all<StandbyRow>(SERVER.standbys);
      return {
        version: row?.version ?? '',
        host: `${address.host}:${address.port}`,
        isSynchronous,
        standbys: standbys.map(({ name, state, sync }) => ({
          name,
          isStreaming: state === 'streaming',
          isSynchronous: sync === 'sync' || sync === 'quorum',
        })),
      };
    });
  } finally {
    await connections.close();
  }
}
