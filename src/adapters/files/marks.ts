import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Writes and reads empty files in the data folder. The modification time of such a file tells other processes when an
 * event last happened.
 */

/**
 * The file whose time says when a service's records were last purged. Blocks that were cached before that time are
 * invalid.
 */
const FORGOTTEN = 'forgotten';
/** The file whose time says when `memory.db` was last deleted or replaced while a process had it open. */
const REPLACED = 'replaced';

export function markForgotten(folder: string): void {
  mark(folder, FORGOTTEN);
}

/**
 * Returns a function that reads when records were last purged, in milliseconds since 1970; 0 if never, or if the folder
 * cannot be read. A call costs 3 us, whether the file exists or not.
 */
export function forgottenIn(folder: string): () => number {
  const path = join(folder, FORGOTTEN);
  return () => markedAt(path);
}

export function markReplaced(folder: string): void {
  mark(folder, REPLACED);
}

/**
 * Returns when `memory.db` was last deleted or replaced, in milliseconds since 1970; 0 if never, or if the folder
 * cannot be read.
 */
export function replacedAt(folder: string): number {
  return markedAt(join(folder, REPLACED));
}

function mark(folder: string, name: string): void {
  writeFileSync(join(folder, name), '', { mode: 0o600 });
}

function markedAt(path: string): number {
  try {
    return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  } catch {
    // The folder cannot be read. Treat it as if svc had never written the file.
    return 0;
  }
}
