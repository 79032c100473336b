import { textsOf } from '../../core/objects.ts';
import { recordOfBytes } from '../../../../src/core/memory-api/records.ts';
import type {
  MovedBatch,
  MovedRow,
  MovedSpace,
  MovedTable,
  MoveSource,
} from '../../ports/service-move.ts';
import type { NewObject, ObjectKind } from '../../ports/service-store.ts';
import type { Database } from '../../../../src/adapters/store/database.ts';
import { Descriptors } from '../../../../src/adapters/store/descriptors.ts';
import { loadDriver } from '../../../../src/adapters/store/driver.ts';
import { openServiceDatabase } from './database.ts';
import { epochOf } from './schema.ts';

/** Reads a service's file for a move to a server. Nothing of the file changes. */

/** Rows in one message to the server; a receipt takes 2 kB. */
const ROWS_AT_ONCE = 500;
/** Records in one transaction: each is cut into passages, and has up to 1 MiB. */
const RECORDS_AT_ONCE = 64;
const RECORD_BYTES_AT_ONCE = 4 * 1024 * 1024;

const hex = (column: string): string => `'\\x' || hex(${column}) AS ${column}`;

/** The server's columns, from the file's. Ordered by a unique key, so that a page follows another. */
const SELECTS: Readonly<Record<MovedTable, string>> = {
  plans: 'SELECT name, limits, created_at FROM plans ORDER BY name',
  tenants: 'SELECT id AS tenant_id, name, plan, status, created_at FROM tenants ORDER BY id',
  master_keys: `SELECT id, state, ${hex('wrapped')}, ${hex('ciphertext')}, created_at, retired_at
    FROM master_keys ORDER BY id`,
  secrets: `SELECT tenant AS tenant_id, id, owner, purpose, version, kek, ${hex('wrapped')},
    ${hex('ciphertext')}, fingerprint, saved_at FROM secrets ORDER BY tenant, id`,
  signing_keys: 'SELECT kid, x, created_at, retired_at FROM signing_keys ORDER BY kid',
  service_keys: `SELECT tenant AS tenant_id, id, name, hash, retired, scopes, spaces, allowed_models,
    tokens_per_day, tokens_per_month, created_at, expires_at, revoked_at, used_at, rotated_at
    FROM service_keys ORDER BY id`,
  admins: `SELECT coalesce(tenant, '') AS tenant_id, id, name, role, hash, created_at, expires_at,
    revoked_at, used_at FROM admins ORDER BY id`,
  providers: `SELECT tenant AS tenant_id, id, name, version, facts FROM providers
    ORDER BY tenant, id`,
  account_settings: `SELECT tenant AS tenant_id, version, settings FROM account_settings
    ORDER BY tenant`,
  audit_heads: `SELECT tenant AS tenant_id, max(number) AS number, hash FROM audit
    GROUP BY tenant ORDER BY tenant`,
  audit: 'SELECT tenant AS tenant_id, number, at, event FROM audit ORDER BY tenant, number',
  usage_days: `SELECT tenant AS tenant_id, day, key AS key_id, provider AS provider_id, model, requests,
    failed, original_input, forwarded_input, recalled, elided, input, cache_read, output, spent
    FROM usage_days ORDER BY tenant, day, key, provider, model`,
  receipt_heads: `SELECT tenant AS tenant_id, node, last_seq, body FROM receipt_heads
    ORDER BY tenant, node`,
  receipts: `SELECT tenant AS tenant_id, id, key AS key_id, provider AS provider_id, model, status, body
    FROM receipts ORDER BY tenant, id`,
  tenant_ledger: `SELECT tenant AS tenant_id, key, block, form, at FROM tenant_ledger
    ORDER BY tenant, key`,
};

const PURGES = `SELECT id, scope, state, records, items, bytes, generation_before, generation_after,
  requested_by, requested_at, erased_at, upto FROM purges WHERE space = ? ORDER BY number`;

const PURGED = `SELECT p.digest, p.ref, p.text_ref, p.at FROM purged p JOIN spaces s ON s.id = p.space
  WHERE s.name = ? ORDER BY p.digest`;

const SOURCES = `SELECT c.session, c.client, c.first_seen, c.last_seen FROM sources c
  JOIN spaces s ON s.id = c.space WHERE s.name = ? ORDER BY c.id`;

const PAGE = ` LIMIT ${ROWS_AT_ONCE} OFFSET ?`;

const RECORDS = `SELECT o.digest, o.ref, o.kind, o.text_digest, o.observed_at, o.created_at, o.position,
    o.fingerprint, o.branch, o.dialect, o.tool_name, o.redactions, o.seq, o.id, o.bytes, c.session, c.client,
    (SELECT m.source FROM object_texts t JOIN records m ON m.id = t.record WHERE t.object = o.id
      ORDER BY t.message LIMIT 1) AS mark
  FROM objects o JOIN spaces s ON s.id = o.space JOIN sources c ON c.id = o.source
  WHERE s.name = ? AND (o.seq, o.id) > (?, ?) ORDER BY o.seq, o.id LIMIT ${RECORDS_AT_ONCE}`;

const SKIPPED = `SELECT o.seq, o.id FROM objects o JOIN spaces s ON s.id = o.space
  WHERE s.name = ? ORDER BY o.seq, o.id LIMIT 1 OFFSET ?`;

interface RecordRow {
  readonly digest: string;
  readonly ref: string;
  readonly kind: ObjectKind;
  readonly text_digest: string | null;
  readonly observed_at: number;
  readonly created_at: number;
  readonly position: number;
  readonly fingerprint: string;
  readonly branch: string | null;
  readonly dialect: string | null;
  readonly tool_name: string | null;
  readonly redactions: number;
  readonly seq: number;
  readonly id: number;
  readonly bytes: Uint8Array;
  readonly session: string;
  readonly client: string;
  readonly mark: 'unverified' | null;
}

/** Throws ServiceFileError where there is no file. */
export async function openMoveSource(folder: string): Promise<MoveSource> {
  const driver = loadDriver();
  const descriptors = new Descriptors();
  descriptors.addUser();
  const database = openServiceDatabase({ folder, driver, descriptors, creates: false });
  return {
    epoch: epochOf(database),
    unfinishedPurges: countOf(database, "purges WHERE state = 'tombstoned'"),
    rowsOf: (table) => pages(database, SELECTS[table]),
    spaces: () => spacesOf(database),
    recordsOf: (space, skip) => batchesOf(database, space, skip),
    sourcesOf: (space) => pages(database, SOURCES, wholeName(space)),
    purgesOf: (space) => pages(database, PURGES, wholeName(space)),
    purgedOf: (space) => pages(database, PURGED, wholeName(space)),
    close: () => {
      database.close();
      descriptors.removeUser();
    },
  };
}

function* pages(database: Database, select: string, ...values: string[]) {
  for (let offset = 0; ; offset += ROWS_AT_ONCE) {
    const rows = database.all<MovedRow>(select + PAGE, ...values, offset);
    if (rows.length > 0) yield rows.map(sendable);
    if (rows.length < ROWS_AT_ONCE) return;
  }
}

/** PostgreSQL has no text with a NUL in it. */
function sendable(row: MovedRow): MovedRow {
  const entries = Object.entries(row).map(([name, value]) => [
    name,
    typeof value === 'string' ? value.replaceAll('\0', '�') : value,
  ]);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The same names and kinds.
  return Object.fromEntries(entries) as MovedRow;
}

function spacesOf(database: Database): MovedSpace[] {
  const rows = database.all<{ name: string; records: number }>(
    `SELECT s.name, (SELECT count(*) FROM objects o WHERE o.space = s.id) AS records
      FROM spaces s ORDER BY s.name`,
  );
  return rows.flatMap(({ name, records }) => {
    const colon = name.indexOf(':');
    if (colon < 1) return [];
    return [{ tenant: name.slice(0, colon), space: name.slice(colon + 1), records }];
  });
}

function* batchesOf(database: Database, space: MovedSpace, skip: number): Iterable<MovedBatch> {
  const name = wholeName(space);
  let after = { seq: -1, id: -1 };
  if (skip > 0) {
    const last = database.get<{ seq: number; id: number }>(SKIPPED, name, skip - 1);
    if (last === undefined) return;
    after = last;
  }
  for (;;) {
    const rows = database.all<RecordRow>(RECORDS, name, after.seq, after.id);
    yield* takenTogether(rows);
    const last = rows.at(-1);
    if (last === undefined) return;
    after = last;
  }
}

/** Records that were taken in at one moment keep it, so rows of another time begin a new batch. */
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

function objectOf(row: RecordRow): NewObject {
  const { digest, ref, kind, bytes, session, client, fingerprint, position, redactions } = row;
  return {
    digest,
    ref,
    kind,
    bytes,
    session,
    client,
    fingerprint,
    position,
    redactions,
    texts: kind === 'tool_output' ? [] : textsOf(recordOfBytes(bytes)),
    observedAt: row.observed_at,
    ...(row.text_digest === null ? {} : { textDigest: row.text_digest }),
    ...(row.branch === null ? {} : { branch: row.branch }),
    ...(row.dialect === null ? {} : { dialect: row.dialect }),
    ...(row.tool_name === null ? {} : { toolName: row.tool_name }),
    ...(row.mark === null ? {} : { source: row.mark }),
  };
}

function wholeName({ tenant, space }: MovedSpace): string {
  return `${tenant}:${space}`;
}

function countOf(database: Database, from: string): number {
  return database.get<{ count: number }>(`SELECT count(*) AS count FROM ${from}`)?.count ?? 0;
}
