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

/** Milliseconds since 1970; 0 when nothing was forgotten yet. Costs 3 us, whether it is there or not. */
export function forgottenAt(folder: string): number {
  return markedAt(folder, FORGOTTEN);
}

export function markReplaced(folder: string): void {
  mark(folder, REPLACED);
}

/** Milliseconds since 1970; 0 when the database was never replaced. */
export function replacedAt(folder: string): number {
  return markedAt(folder, REPLACED);
}

function mark(folder: string, name: string): void {
  writeFileSync(join(folder, name), '', { mode: 0o600 });
}

function markedAt(folder: string, name: string): number {
  try {
    return statSync(join(folder, name), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  } catch {
    // A folder that cannot be read, in which nothing can have happened.
    return 0;
  }
}
