import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { copyFile, open, rename, rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { codeOf, FileError } from '../../../../src/adapters/files/file-error.ts';
import { FILE_MODE, syncFolder } from '../../../../src/adapters/files/private-folder.ts';
import { Descriptors } from '../../../../src/adapters/store/descriptors.ts';
import { type Connection, type Driver, loadDriver } from '../../../../src/adapters/store/driver.ts';
import { SchemaTooNewError } from '../../../../src/adapters/store/schema.ts';
import type {
  BackupFacts,
  CarriedOver,
  PurgeOrder,
  RestoreFacts,
} from '../../ports/service-store.ts';
import { lockServiceFolder, openServiceFile, serviceFile } from './database.ts';
import { newEpoch, ServiceFileError, setMeta } from './schema.ts';
import { batchesOf, groupBy } from '../../../../src/core/bytes/batches.ts';
import { PURGE_DIGESTS_MAX } from '../../../../src/core/memory-api/limits.ts';
import type { Database } from '../../../../src/adapters/store/database.ts';
import { Signals } from '../../../../src/adapters/store/signals.ts';
import type { TenantProvider } from '../../core/providers.ts';
import { SERVICE_TENANT } from '../../core/tenants.ts';
import { providerOf } from '../control/facts.ts';
import { purgeOf, type PurgeRow } from '../memory/row-shapes.ts';
import { tenantMemory } from '../memory/tenant-memory.ts';
import { sqliteMemory } from './memory-engine.ts';
import { SqliteTransactions } from './transactions.ts';

/**
 * Copies a service's database, also while the service runs, and restores a copy. A restored database begins a new
 * epoch, which tells every client not to rely on earlier acknowledgements.
 */

/** Writes a consistent snapshot of the database to a new file, with mode 0600, syncs it and checks it. */
export async function backUpService(folder: string, target: string): Promise<BackupFacts> {
  const source = serviceFile(folder);
  if (!existsSync(source)) {
    throw new FileError(`There is no service in ${folder}.`, 'Create one: svc-service init');
  }
  const file = resolve(target);
  if (existsSync(file)) {
    throw new FileError(`${file} exists already.`, 'Name a file that does not exist yet.');
  }
  const driver = loadDriver();
  const staged = `${file}.${randomBytes(4).toString('hex')}`;
  try {
    // Create the file before SQLite writes to it, so that it is private from the first byte.
    await (await open(staged, 'wx', FILE_MODE)).close();
    const connection = driver.open(source);
    try {
      connection.exec('PRAGMA busy_timeout = 5000');
      connection.prepare('VACUUM INTO ?').run(staged);
    } finally {
      connection.close();
    }
    const handle = await open(staged, 'r+');
    const bytes = (await handle.stat()).size;
    await handle.sync();
    await handle.close();
    const records = checkFile(staged, driver);
    await rename(staged, file);
    await syncFolder(dirname(file));
    return { file, records, bytes };
  } catch (error) {
    await removeDatabase(staged);
    throw explained(error, file);
  }
}

/** Restores a backup. Throws FileError while a service uses the folder, and for a file that is not a whole backup. */
export async function restoreService(
  folder: string,
  backup: string,
  now: number,
): Promise<RestoreFacts> {
  const driver = loadDriver();
  const lock = lockServiceFolder(folder);
  if (lock === undefined) {
    throw new FileError(
      'A service runs on this folder.',
      'Stop it first, because a restore replaces its file: svc-service stop',
    );
  }
  const descriptors = new Descriptors();
  const leave = descriptors.addUser();
  const staged = join(folder, `restoring-${randomBytes(4).toString('hex')}.db`);
  try {
    await copyFile(resolve(backup), staged);
    const handle = await open(staged, 'r+');
    await handle.chmod(FILE_MODE);
    await handle.close();
    const records = checkFile(staged, driver);
    const epoch = newEpoch();
    const carried = await prepare(staged, { folder, driver, descriptors, epoch, now });
    const kept = await setAside(folder, now);
    await rename(staged, serviceFile(folder));
    await removeDatabase(staged);
    await syncFolder(folder);
    return { records, carried, epoch, kept };
  } catch (error) {
    await removeDatabase(staged);
    throw explained(error, resolve(backup));
  } finally {
    leave();
    lock.close();
  }
}

/** Checks the service's whole database. Returns what is wrong with it, or ''. */
export async function checkService(folder: string): Promise<string> {
  if (!existsSync(serviceFile(folder))) return 'it does not exist';
  const connection = loadDriver().open(serviceFile(folder));
  try {
    connection.exec('PRAGMA query_only = ON');
    return isWhole(connection) ? '' : 'the integrity check failed';
  } catch {
    return 'it cannot be read';
  } finally {
    connection.close();
  }
}

function checkFile(path: string, driver: Driver): number {
  const connection = driver.open(path);
  try {
    if (!isWhole(connection)) throw broken();
    return Number(valueOf(connection, 'SELECT count(*) FROM objects'));
  } finally {
    connection.close();
  }
}

function isWhole(connection: Connection): boolean {
  return valueOf(connection, 'PRAGMA integrity_check(1)') === 'ok';
}

interface Preparation {
  readonly folder: string;
  readonly driver: Driver;
  readonly descriptors: Descriptors;
  readonly epoch: string;
  readonly now: number;
}

async function prepare(
  staged: string,
  { folder, driver, descriptors, epoch, now }: Preparation,
): Promise<CarriedOver | undefined> {
  const database = openServiceFile(staged, { driver, descriptors });
  try {
    setMeta(database, 'epoch', epoch);
    const path = serviceFile(folder);
    const carried = existsSync(path)
      ? await carryOver(database, path, now)
      : { revoked: 0, purged: 0 };
    // The write-ahead log does not move with the file, so it must be empty.
    const checkpoint = database.get<{ busy: number }>('PRAGMA wal_checkpoint(TRUNCATE)');
    if (checkpoint?.busy !== 0) throw broken();
    return carried;
  } finally {
    database.close();
  }
}

/**
 * Renames the present database with its write-ahead log, which would corrupt another database at this path. Returns the
 * new path; undefined if there is no database.
 */
async function setAside(folder: string, now: number): Promise<string | undefined> {
  const path = serviceFile(folder);
  if (!existsSync(path)) return undefined;
  const aside = `${path}.before-${new Date(now).toISOString().replaceAll(':', '')}`;
  for (const suffix of ['-wal', '-shm', '']) {
    // oxlint-disable-next-line no-await-in-loop -- The database itself is renamed last.
    if (existsSync(path + suffix)) await rename(path + suffix, aside + suffix);
  }
  return aside;
}

async function removeDatabase(path: string): Promise<void> {
  await Promise.all(['', '-wal', '-shm', '-journal'].map((end) => rm(path + end, { force: true })));
}

/** Returns the first column of a statement's first row. */
function valueOf(connection: Connection, statement: string): unknown {
  return Object.values(connection.prepare(statement).get() ?? {})[0];
}

function broken(): FileError {
  return new FileError('The backup is damaged.', 'Nothing was changed. Use another backup.');
}

function explained(error: unknown, file: string): unknown {
  if (error instanceof FileError) return error;
  if (error instanceof ServiceFileError) {
    return new FileError(`${file} ${error.message}.`, 'Nothing was changed.');
  }
  if (error instanceof SchemaTooNewError) {
    return new FileError(`${file} was made by a later version of svc.`, 'Update svc first.');
  }
  const code = codeOf(error);
  if (code === 'ENOENT') {
    const hint = 'Nothing was changed. Name a file in a folder that exists.';
    return new FileError(`${file} or its folder does not exist.`, hint, { cause: error });
  }
  const what =
    code === '' || code.startsWith('ERR_SQLITE')
      ? 'is not a backup of a service, or cannot be written'
      : `failed with ${code}`;
  return new FileError(`${file} ${what}.`, 'Nothing was changed.', { cause: error });
}

const BATCHES = { countMax: PURGE_DIGESTS_MAX, sizeMax: Infinity, sizeOf: () => 0 } as const;

/** Selects the providers that the replaced database has deleted: its audit events name them. */
const DELETED = `SELECT tenant_id, json_extract(event, '$.target.id') FROM present.audit
  WHERE json_extract(event, '$.kind') = 'provider.deleted'`;

/** Statements that carry over what a restore must not undo. The replaced database is attached as `present`. */
const STATEMENTS: readonly string[] = [
  `UPDATE service_keys AS k SET hash = p.hash, retired = p.retired, rotated_at = p.rotated_at
    FROM present.service_keys p WHERE p.tenant_id = k.tenant_id AND p.id = k.id
      AND p.rotated_at > coalesce(k.rotated_at, 0)`,
  // The replaced database has the current master keys; secrets of the backup may still need a retired one.
  `UPDATE master_keys SET state = 'decrypt_only' WHERE state = 'active'
    AND EXISTS (SELECT 1 FROM present.master_keys WHERE state = 'active')`,
  'INSERT INTO master_keys SELECT * FROM present.master_keys WHERE true ON CONFLICT DO NOTHING',
  `UPDATE master_keys SET state = 'active'
    WHERE id IN (SELECT id FROM present.master_keys WHERE state = 'active')`,
  // Providers that were deleted since the backup stay deleted, and their secrets stay destroyed.
  `DELETE FROM secrets WHERE (tenant_id, owner) IN (${DELETED})`,
  `DELETE FROM providers WHERE (tenant_id, id) IN (${DELETED})`,
  // The replaced database's signing key stays active; the backup's keys are kept to check older signatures.
  `INSERT INTO signing_keys SELECT * FROM present.signing_keys WHERE true
    ON CONFLICT (kid) DO UPDATE SET retired_at = excluded.retired_at`,
  `INSERT OR REPLACE INTO secrets SELECT s.* FROM present.secrets s
    JOIN present.signing_keys k ON s.tenant_id = '${SERVICE_TENANT}' AND s.id = k.kid`,
  `UPDATE tenants AS t SET status = p.status FROM present.tenants p
    WHERE p.tenant_id = t.tenant_id
      AND (p.status = 'deleted' OR (p.status = 'suspended' AND t.status = 'active'))`,
  'INSERT OR IGNORE INTO receipts SELECT * FROM present.receipts',
  // Heads and sums of usage only grow, so those of the replaced database include the backup's.
  'DELETE FROM receipt_heads',
  'INSERT INTO receipt_heads SELECT * FROM present.receipt_heads',
  'DELETE FROM usage_days',
  'INSERT INTO usage_days SELECT * FROM present.usage_days',
];

const REVOKED = ['service_keys', 'admins'].map(
  (table) => `UPDATE ${table} AS k SET revoked_at = p.revoked_at FROM present.${table} p
    WHERE p.tenant_id = k.tenant_id AND p.id = k.id AND p.revoked_at IS NOT NULL
      AND k.revoked_at IS NULL`,
);

/**
 * Carries over from the replaced database, whose path is `present`, what a restore must not undo: revoked and rotated
 * keys, revoked admin tokens, newer credentials, deleted providers, master and signing keys, suspensions and deletions
 * of tenants, receipts with their heads and sums, and purges. Returns undefined if that database has the tables of
 * another version or cannot be opened, which may be the reason for the restore. Attaches that database to the
 * connection of `to` instead of opening it: DETACH closes it at once, so that its file can be renamed afterwards.
 */
async function carryOver(
  to: Database,
  present: string,
  now: number,
): Promise<CarriedOver | undefined> {
  if (!hasAttached(to, present)) return undefined;
  try {
    const revoked = to.transaction(() => {
      for (const statement of STATEMENTS) to.run(statement);
      carryCredentials(to);
      return REVOKED.reduce((sum, statement) => sum + to.run(statement), 0);
    });
    return { revoked, purged: await purgeAgain(to, now) };
  } finally {
    to.exec('DETACH DATABASE present');
  }
}

function hasAttached(to: Database, present: string): boolean {
  try {
    to.run('ATTACH DATABASE ? AS present', present);
  } catch {
    return false;
  }
  try {
    const same = to.get(
      `SELECT 1 FROM main.service_meta m JOIN present.service_meta p ON p.name = m.name
       WHERE m.name = 'schema' AND p.value = m.value`,
    );
    if (same !== undefined) return true;
  } catch {
    // The file is not a database of a service.
  }
  to.exec('DETACH DATABASE present');
  return false;
}

/**
 * Copies the newer credentials, headers and query values of providers. The rest of a provider, such as its models,
 * returns to the backup's state.
 */
function carryCredentials(to: Database): void {
  const rows = to.all<{ tenant_id: string; id: string; before: string; now: string }>(
    `SELECT b.tenant_id, b.id, b.facts AS before, p.facts AS now FROM providers b
     JOIN present.providers p ON p.tenant_id = b.tenant_id AND p.id = b.id
     WHERE b.version < p.version`,
  );
  for (const { tenant_id: tenant, id, before, now } of rows) {
    const joined = withSecretsOf(providerOf({ facts: before }), providerOf({ facts: now }));
    to.run('DELETE FROM secrets WHERE tenant_id = ? AND owner = ?', tenant, id);
    to.run(
      `INSERT OR REPLACE INTO secrets SELECT * FROM present.secrets WHERE tenant_id = ? AND owner = ?`,
      tenant,
      id,
    );
    to.run(
      'UPDATE providers SET version = ?, facts = ? WHERE tenant_id = ? AND id = ?',
      joined.version,
      JSON.stringify(joined),
      tenant,
      id,
    );
  }
}

function withSecretsOf(then: TenantProvider, now: TenantProvider): TenantProvider {
  const { credential: _, ...rest } = then;
  const { credential, headers, query, version, updatedAt } = now;
  const given = credential === undefined ? {} : { credential };
  return { ...rest, ...given, headers, query, version, updatedAt };
}

async function purgeAgain(to: Database, now: number): Promise<number> {
  const rows = to.all<{ tenant: string; space: string; digest: string }>(
    `SELECT p.tenant_id AS tenant, s.name AS space, p.digest FROM present.purged p
     JOIN present.tenant_spaces s ON s.tenant_id = p.tenant_id AND s.id = p.space_id`,
  );
  const transactions = new SqliteTransactions(to);
  const signals = new Signals(to);
  const engine = sqliteMemory({ database: to, transactions, signals, bytesMax: Infinity });
  let purged = 0;
  const purge = async (tenant: string, order: PurgeOrder): Promise<void> => {
    const memory = tenantMemory(engine, tenant);
    purged += (await memory.beginPurge(order)).counts.records;
    // oxlint-disable-next-line no-await-in-loop -- One transaction after the other.
    while (!(await memory.continuePurge(order.purgeId, now)));
  };
  for (const [, digests] of groupBy(rows, ({ tenant, space }) => `${tenant}:${space}`)) {
    const [{ tenant, space } = { tenant: '', space: '' }] = digests;
    for (const some of batchesOf(digests, BATCHES)) {
      const scope = { digests: some.map(({ digest }) => digest) };
      const purgeId = `prg_${randomBytes(13).toString('hex')}`;
      const order = { purgeId, space, scope, isDryRun: false, requestedBy: 'restore', now };
      // oxlint-disable-next-line no-await-in-loop
      await purge(tenant, order);
    }
  }
  // An interrupted purge may have left no digests of the records that it did not erase, so it is repeated by its scope.
  const unfinished = to.all<PurgeRow & { readonly tenant: string }>(
    `SELECT p.*, p.tenant_id AS tenant, s.name AS space FROM present.purges p
     JOIN present.tenant_spaces s ON s.tenant_id = p.tenant_id AND s.id = p.space_id
     WHERE p.state = 'tombstoned' ORDER BY p.number`,
  );
  for (const { tenant, ...row } of unfinished) {
    const { purge_id: purgeId, space, scope } = purgeOf(row);
    const order = { purgeId, space, scope, isDryRun: false, requestedBy: row.requested_by, now };
    // oxlint-disable-next-line no-await-in-loop
    await purge(tenant, order);
  }
  return purged;
}
