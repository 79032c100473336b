import { lstatSync } from 'node:fs';
import { databaseFile } from '../files/database-file.ts';
import { markReplaced, replacedAt } from '../files/marks.ts';
import { isPrivate } from '../files/private-folder.ts';
import { makePrivateFolder } from '../files/private-files.ts';
import type { Database } from './database.ts';
import { MemoryError } from '../../core/errors.ts';

/** The database was deleted or replaced while it was open: nothing of this connection counts any more. */
export class FileReplacedError extends Error {
  override readonly name = 'FileReplacedError';
}

/**
 * Throws MemoryError while another program writes the file, and FileReplacedError when the files at the path are not those that the connection has open. The
 * thread must then end: with it go the statements, and SQLite leaves a file when the last one is gone.
 */
export function leaveReplaced(
  database: Database,
  options: { readonly folder: string; report(line: string): void },
): void {
  const state = database.look();
  if (state === 'same' || state === 'written') return;
  if (state === 'overwriting' || (state === 'overwritten' && !database.detach())) {
    throw new MemoryError('unavailable', "Another program is writing to the memory's file.");
  }
  if (state === 'unlogged') database.checkpoint();
  if (state === 'replaced' && !database.isAtPath()) database.leaveMoved();
  const { folder } = options;
  const file = databaseFile(folder);
  // Another connection may have found it first: it is said once.
  if (replacedAt(folder) < database.openedAt) {
    options.report(
      `The memory's file ${file} was deleted or replaced while svc ran. svc continues with the new file.`,
    );
    tellOthers(folder);
  }
  throw new FileReplacedError(file);
}

/** The other processes on the folder, and the person who looks with `svc status` or `svc doctor`. */
function tellOthers(folder: string): void {
  try {
    // It was svc's own a moment ago. An open one in its place is judged when it is opened.
    const stat = lstatSync(folder, { throwIfNoEntry: false });
    makePrivateFolder(folder, { inside: stat !== undefined && isPrivate(stat.mode) });
    markReplaced(folder);
  } catch {
    // A folder that cannot be made: the memory is unavailable, and opening it says so.
  }
}
