import { join } from 'node:path';

/** The database of the embedded store, in the data folder. */
export function databaseFile(folder: string): string {
  return join(folder, 'memory.db');
}
