import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * A file that says when something was last forgotten, for the other processes on the folder: a proxy
 * that runs knows its blocks by heart, and `svc memory forget` is another process. It is empty.
 */
const NAME = 'forgotten';

export function markForgotten(folder: string): void {
  writeFileSync(join(folder, NAME), '', { mode: 0o600 });
}

/** Milliseconds since 1970; 0 when nothing was forgotten yet. Costs 3 us, whether it is there or not. */
export function forgottenAt(folder: string): number {
  try {
    return statSync(join(folder, NAME), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  } catch {
    // A folder that cannot be read, in which nothing can have been forgotten.
    return 0;
  }
}
