import { existsSync, lstatSync, renameSync, statSync } from 'node:fs';
import { join } from 'node:path';

export function databaseFile(folder: string): string {
  return join(folder, 'memory.db');
}

/** Returns the path of the database for ledger, outbox and request log in the data folder. */
export function stateFile(folder: string): string {
  return join(folder, 'state.db');
}

/** Returns those paths of the two databases at which there is no regular file but a folder, a link or a device. */
export function blockedFiles(folder: string): readonly string[] {
  return [databaseFile(folder), stateFile(folder)].filter(
    (path) => lstatSync(path, { throwIfNoEntry: false })?.isFile() === false,
  );
}

/** Returns the size of a database with its write-ahead log, in bytes; 0 if there is none. */
export function databaseBytes(file: string): number {
  return bytesOf(file) + bytesOf(`${file}-wal`);
}

/**
 * Renames a damaged database with its logs, which may contain what the file has lost. Returns the new path. `now`:
 * milliseconds since 1970.
 */
export function setAside(path: string, now: number): string {
  const aside = `${path}.corrupt-${new Date(now).toISOString().replaceAll(':', '')}`;
  for (const suffix of ['', '-wal', '-shm']) {
    if (existsSync(path + suffix)) renameSync(path + suffix, aside + suffix);
  }
  return aside;
}

function bytesOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
