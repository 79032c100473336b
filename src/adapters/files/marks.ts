import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Empty files in the data folder whose time says when something last happened, for the other
 * processes on the folder. A proxy that runs keeps blocks in its cache, and `svc memory forget` is
 * another process.
 */

/** Something was forgotten, or the database was replaced: cached blocks are invalid. */
const FORGOTTEN = 'forgotten';
/** The database was deleted or replaced while a process had it open. */
const REPLACED = 'replaced';

export function markForgotten(folder: string): void {
  mark(folder, FORGOTTEN);
}

/**
 * Reads when something was last forgotten, in milliseconds since 1970; 0 when nothing was yet. A look costs
 * 3 us, whether the file is there or not.
 */
export function forgottenIn(folder: string): () => number {
  const path = join(folder, FORGOTTEN);
  return () => markedAt(path);
}

export function markReplaced(folder: string): void {
  mark(folder, REPLACED);
}

/** Milliseconds since 1970; 0 when the database was never replaced. */
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
    // A folder that cannot be read, in which nothing can have happened.
    return 0;
  }
}
