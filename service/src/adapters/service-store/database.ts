import { existsSync } from 'node:fs';
import { join } from 'node:path';
import {
  ensurePrivateFile,
  makePrivateFolder,
} from '../../../../src/adapters/files/private-files.ts';
import { Database } from '../../../../src/adapters/store/database.ts';
import type { Descriptors } from '../../../../src/adapters/store/descriptors.ts';
import {
  type Connection,
  type Driver,
  isBusy,
  loadDriver,
} from '../../../../src/adapters/store/driver.ts';
import { createTables } from '../../../../src/adapters/store/schema.ts';
import { newEpoch, checkSchema, makeTables, ServiceFileError } from './schema.ts';

/**
 * Opens the service's SQLite file. The local proxy replaces a broken file by a new one; the service does not, because
 * an empty service would refuse every key. Instead an operator restores a backup.
 */

interface ServiceFileOptions {
  readonly driver: Driver;
  readonly descriptors: Descriptors;
}

interface ServiceDatabaseOptions extends ServiceFileOptions {
  readonly folder: string;
  /** True: create the file if it is missing. */
  readonly creates: boolean;
}

export function serviceFile(folder: string): string {
  return join(folder, 'service.db');
}

export function openServiceDatabase(options: ServiceDatabaseOptions): Database {
  const path = serviceFile(options.folder);
  if (!options.creates && !existsSync(path)) throw new ServiceFileError('does not exist');
  makePrivateFolder(options.folder);
  return openServiceFile(path, options);
}

/** Opens a file, and creates tables if it has none. Throws ServiceFileError, SchemaTooNewError or SQLite's error. */
export function openServiceFile(
  path: string,
  { driver, descriptors }: ServiceFileOptions,
): Database {
  ensurePrivateFile(path);
  const connection = driver.open(path);
  let close = (): void => connection.close();
  try {
    const database = new Database(connection, path, { descriptors });
    close = () => database.close();
    checkSchema(database);
    createTables(database);
    makeTables(database, newEpoch());
    return database;
  } catch (error) {
    close();
    throw error;
  }
}

/**
 * Locks the folder, because only one service may run in it, even with its data on a server: the journal of its
 * receipts is in the folder. The lock is SQLite's on the file lock.db, which the system releases if the process is
 * killed. Returns the connection, whose close() releases the lock; undefined if another process has the lock.
 */
export function lockServiceFolder(folder: string): Connection | undefined {
  makePrivateFolder(folder);
  const path = join(folder, 'lock.db');
  ensurePrivateFile(path);
  const connection = loadDriver().open(path);
  try {
    connection.exec('PRAGMA busy_timeout = 0');
    connection.exec('BEGIN EXCLUSIVE');
    return connection;
  } catch (error) {
    connection.close();
    if (isBusy(error)) return undefined;
    throw error;
  }
}
