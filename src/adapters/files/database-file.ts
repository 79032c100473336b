import { lstatSync, statSync } from 'node:fs';
import { join } from 'node:path';

export function databaseFile(folder: string): string {
  return join(folder, 'memory.db');
}

/** Returns the path of the database for ledger, outbox and request log in the data folder. */
export function stateFile(folder: string): string {
  return join(folder, 'state.db');
}

/** Returns the paths of the two databases at which there is a folder, a link or a device, which svc does not use. */
export function blockedFiles(folder: string): readonly string[] {
  return [databaseFile(folder), stateFile(folder)].filter(
    (path) => lstatSync(path, { throwIfNoEntry: false })?.isFile() === false,
  );
}

/** Returns the size of a database with its write-ahead log, in bytes; 0 if there is none. */
export function databaseBytes(file: string): number {
  return bytesOf(file) + bytesOf(`${file}-wal`);
}

function bytesOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
