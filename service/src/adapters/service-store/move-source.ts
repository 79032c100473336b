import { textsOf } from '../../core/objects.ts';
import { recordOfBytes } from '../../../../src/core/memory-api/records.ts';
import type { SqlScalar } from '../../ports/rows.ts';
import type { NewObject } from '../../ports/service-store.ts';
import type { Database } from '../../../../src/adapters/store/database.ts';
import { Descriptors } from '../../../../src/adapters/store/descriptors.ts';
import { loadDriver } from '../../../../src/adapters/store/driver.ts';
import { readerOf, type Row } from '../control/facts.ts';
import { shapeOf } from '../control/tables.ts';
import { openServiceDatabase } from './database.ts';
import { epochOf } from './schema.ts';
import { asMemoryError } from './store.ts';

/** Reads a service's file for a move to PostgreSQL, and changes no data in the file. */

/** Tables that are copied row by row, each after those to which its rows refer. */
export const MOVED_TABLES = [
  'plans',
  'tenants',
  'master_keys',
  'secrets',
  'signing_keys',
  'service_keys',
  'admins',
  'providers',
  'account_settings',
  'audit_heads',
  'audit',
  'usage_days',
  'receipt_heads',
  'receipts',
  'tenant_ledger',
  'tenant_spaces',
] as const;
/**
 * Tables that are copied after the records. Capturing the records on PostgreSQL fills `sources`. The copy then replaces
 * these rows, because a source's first time may be that of a purged record. `purged` keeps purged texts out for ever.
 */
export const TABLES_BEHIND = ['sources', 'purges', 'purged'] as const;
export type MovedTable = (typeof MOVED_TABLES)[number] | (typeof TABLES_BEHIND)[number];

/** A row for PostgreSQL: the values by the names of its columns. Bytes are text: `\x` and hexadecimal digits. */
export type MovedRow = Readonly<Record<string, string | number | boolean | null>>;

export interface MovedSpace {
  readonly tenant: string;
  readonly space: string;
  readonly records: number;
}

/** Records that were captured at the same time. */
export interface MovedBatch {
  readonly now: number;
  readonly objects: readonly NewObject[];
}

/** Rows in one message to the server; a receipt takes 2 kB. */
const ROWS_AT_ONCE = 500;
/** Bounds of a transaction. Each record is cut into passages, and has up to 1 MiB. */
const RECORDS_AT_ONCE = 64;
const RECORD_BYTES_AT_ONCE = 4 * 1024 * 1024;

const RECORDS = `SELECT o.digest, o.ref, o.kind, o.text_digest, o.observed_at, o.created_at, o.position,
    o.fingerprint, o.branch, o.dialect, o.tool_name, o.redactions, o.seq, o.id, o.bytes, c.session, c.client,
    (SELECT m.source FROM texts m WHERE m.record_id = o.id ORDER BY m.n LIMIT 1) AS source,
    (SELECT m.last_from FROM texts m WHERE m.record_id = o.id ORDER BY m.n LIMIT 1) AS last_from
  FROM objects o JOIN tenant_spaces s ON s.tenant_id = o.tenant_id AND s.id = o.space_id
  JOIN sources c ON c.id = o.source_id
  WHERE s.tenant_id = ? AND s.name = ? AND (o.seq, o.id) > (?, ?) ORDER BY o.seq, o.id
  LIMIT ${RECORDS_AT_ONCE}`;

const SKIPPED = `SELECT o.seq, o.id FROM objects o
  JOIN tenant_spaces s ON s.tenant_id = o.tenant_id AND s.id = o.space_id
  WHERE s.tenant_id = ? AND s.name = ? ORDER BY o.seq, o.id LIMIT 1 OFFSET ?`;

/** A row of a record: the members of NewObject without `texts`, and three columns that NewObject does not have. */
interface RecordRow extends Row {
  readonly id: number;
  readonly seq: number;
  readonly created_at: number;
  readonly bytes: Uint8Array;
}

const objectIn = readerOf<Omit<NewObject, 'texts'>>();

/** Opens the service's file. Throws MemoryError `unavailable` if there is none, or svc cannot read it. */
export function openMoveSource(folder: string) {
  const driver = loadDriver();
  const descriptors = new Descriptors();
  const leave = descriptors.addUser();
  const database = openOrExplain({ folder, driver, descriptors, creates: false });
  return {
    /** The epoch, which identifies the database. */
    epoch: epochOf(database),
    /** The number of purges that have begun but not ended. They must end before a move. */
    unfinishedPurges: database.all("SELECT id FROM purges WHERE state = 'tombstoned'").length,
    rowsOf: (table: MovedTable) => pages(database, table),
    spaces: () => spacesOf(database),
    /** Returns records in the order of their commits, without the first `skip`. */
    recordsOf: (space: MovedSpace, skip: number) => batchesOf(database, space, skip),
    close: () => {
      database.close();
      leave();
    },
  };
}

export type MoveSource = ReturnType<typeof openMoveSource>;

function openOrExplain(options: Parameters<typeof openServiceDatabase>[0]): Database {
  try {
    return openServiceDatabase(options);
  } catch (error) {
    throw asMemoryError(error);
  }
}

function* pages(database: Database, table: MovedTable) {
  const { key, columns } = shapeOf(table);
  const select = `SELECT ${columns.join(', ')} FROM ${table} ORDER BY ${key} LIMIT ? OFFSET ?`;
  for (let offset = 0; ; offset += ROWS_AT_ONCE) {
    const rows = database.all<Readonly<Record<string, SqlScalar>>>(select, ROWS_AT_ONCE, offset);
    if (rows.length > 0) yield rows.map(sendable);
    if (rows.length < ROWS_AT_ONCE) return;
  }
}

function sendable(row: Readonly<Record<string, SqlScalar>>): MovedRow {
  const entries = Object.entries(row).map(([name, value]) => [name, sendableValue(value)] as const);
  return Object.fromEntries(entries);
}

function sendableValue(value: SqlScalar): string | number | null {
  return value instanceof Uint8Array ? `\\x${Buffer.from(value).toString('hex')}` : value;
}

function spacesOf(database: Database): MovedSpace[] {
  return database.all<MovedSpace>(
    `SELECT s.tenant_id AS tenant, s.name AS space,
       (SELECT count(*) FROM objects o WHERE o.tenant_id = s.tenant_id AND o.space_id = s.id) AS records
     FROM tenant_spaces s ORDER BY s.tenant_id, s.name`,
  );
}

function* batchesOf(database: Database, space: MovedSpace, skip: number): Iterable<MovedBatch> {
  const name = [space.tenant, space.space] as const;
  let after = { seq: -1, id: -1 };
  if (skip > 0) {
    const last = database.get<{ seq: number; id: number }>(SKIPPED, ...name, skip - 1);
    if (last === undefined) return;
    after = last;
  }
  for (;;) {
    const rows = database.all<RecordRow>(RECORDS, ...name, after.seq, after.id);
    yield* takenTogether(rows);
    const last = rows.at(-1);
    if (last === undefined) return;
    after = last;
  }
}

/** Groups records by the time at which they were captured, because a batch has one time, and by size. */
function* takenTogether(rows: readonly RecordRow[]): Iterable<MovedBatch> {
  let batch: RecordRow[] = [];
  let bytes = 0;
  for (const row of rows) {
    const isOther = batch[0] !== undefined && batch[0].created_at !== row.created_at;
    if (isOther || bytes + row.bytes.length > RECORD_BYTES_AT_ONCE) {
      if (batch.length > 0) yield batchOf(batch);
      batch = [];
      bytes = 0;
    }
    batch.push(row);
    bytes += row.bytes.length;
  }
  if (batch.length > 0) yield batchOf(batch);
}

function batchOf(rows: readonly RecordRow[]): MovedBatch {
  return { now: rows[0]?.created_at ?? 0, objects: rows.map(objectOf) };
}

function objectOf({ id: _id, seq: _seq, created_at: _at, ...columns }: RecordRow): NewObject {
  return { ...objectIn(columns), texts: textsOf(recordOfBytes(columns.bytes)) };
}
