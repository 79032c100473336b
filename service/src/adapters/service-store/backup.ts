import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { copyFile, open, rename, rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { codeOf, FileError } from '../../../../src/adapters/files/file-error.ts';
import { FILE_MODE, syncFolder } from '../../../../src/adapters/files/private-folder.ts';
import { Descriptors } from '../../../../src/adapters/store/descriptors.ts';
import { type Driver, loadDriver } from '../../../../src/adapters/store/driver.ts';
import { SchemaTooNewError } from '../../../../src/adapters/store/schema.ts';
import type { BackupFacts, CarriedOver, RestoreFacts } from '../../ports/service-store.ts';
import { carryOver } from './carry-over.ts';
import { openServiceFile, serviceFile, takeServiceLock } from './database.ts';
import { newEpoch } from './epoch.ts';
import { OtherSchemaError, setMeta } from './schema.ts';

/**
 * Copies a service's database while it serves, and restores it. A restored database begins a new
 * epoch: every client then knows that its facts about this service may no longer hold.
 */

/** One consistent moment of the database, 0600, synced; never over a file that is there. */
export async function backUpService(folder: string, target: string): Promise<BackupFacts> {
  const source = serviceFile(folder);
  if (!existsSync(source)) throw noService(folder);
  const file = resolve(target);
  if (existsSync(file)) {
    throw new FileError(`${file} exists already.`, 'Name a file that does not exist yet.');
  }
  const driver = loadDriver();
  const staged = `${file}.${randomBytes(4).toString('hex')}`;
  try {
    // Made before SQLite writes to it: private from its first byte.
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

/** Throws FileError while a service runs on the folder, and for a file that is no whole backup. */
export async function restoreService(
  folder: string,
  backup: string,
  now: number,
): Promise<RestoreFacts> {
  const driver = loadDriver();
  const lock = takeServiceLock(folder, driver);
  if (lock === undefined) {
    throw new FileError(
      'A service runs on this folder.',
      'Stop it first, because a restore replaces its file: svc-service stop',
    );
  }
  const descriptors = new Descriptors();
  descriptors.addUser();
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
    descriptors.removeUser();
    lock.close();
  }
}

/** Reads the whole file. Resolves with what SQLite finds wrong; '' when nothing is. */
export async function checkService(folder: string): Promise<string> {
  if (!existsSync(serviceFile(folder))) return 'it does not exist';
  const connection = loadDriver().open(serviceFile(folder));
  try {
    connection.exec('PRAGMA query_only = ON');
    const row = connection.prepare('PRAGMA integrity_check(1)').get();
    return resultOf(row) === 'ok' ? '' : 'the integrity check failed';
  } catch {
    return 'it cannot be read';
  } finally {
    connection.close();
  }
}

function checkFile(path: string, driver: Driver): number {
  const connection = driver.open(path);
  try {
    if (resultOf(connection.prepare('PRAGMA integrity_check(1)').get()) !== 'ok') throw broken();
    const row = connection.prepare('SELECT count(*) FROM objects').get();
    return Number(resultOf(row));
  } finally {
    connection.close();
  }
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
    let carried: CarriedOver | undefined;
    const path = serviceFile(folder);
    if (!existsSync(path)) carried = { revoked: 0, purged: 0 };
    else if (isReadable(path, { driver, descriptors }))
      carried = await carryOver(database, path, now);
    // The log stays behind when the file is moved: nothing may be left in it.
    const checkpoint = database.get<{ busy: number }>('PRAGMA wal_checkpoint(TRUNCATE)');
    if (checkpoint?.busy !== 0) throw broken();
    return carried;
  } finally {
    database.close();
  }
}

/** False for a database that is broken, which may be why there is a restore, or of another version. */
function isReadable(
  path: string,
  options: { readonly driver: Driver; readonly descriptors: Descriptors },
): boolean {
  try {
    openServiceFile(path, options).close();
    return true;
  } catch {
    return false;
  }
}

/** The write-ahead log is moved with its file: next to another database it would corrupt it. */
async function setAside(folder: string, now: number): Promise<string | undefined> {
  const path = serviceFile(folder);
  if (!existsSync(path)) return undefined;
  const aside = `${path}.before-${new Date(now).toISOString().replaceAll(':', '')}`;
  for (const suffix of ['-wal', '-shm', '']) {
    // oxlint-disable-next-line no-await-in-loop -- The file itself comes last.
    if (existsSync(path + suffix)) await rename(path + suffix, aside + suffix);
  }
  return aside;
}

async function removeDatabase(path: string): Promise<void> {
  await Promise.all(['', '-wal', '-shm', '-journal'].map((end) => rm(path + end, { force: true })));
}

function resultOf(row: unknown): unknown {
  return typeof row === 'object' && row !== null ? Object.values(row)[0] : undefined;
}

function broken(): FileError {
  return new FileError('The backup is damaged.', 'Nothing was changed. Use another backup.');
}

function noService(folder: string): FileError {
  return new FileError(`There is no service in ${folder}.`, 'Create one: svc-service init');
}

function explained(error: unknown, file: string): unknown {
  if (error instanceof FileError) return error;
  if (error instanceof OtherSchemaError) {
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
