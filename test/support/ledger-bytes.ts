import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** Bytes of the ledger's journals in a data folder; 0 when its table holds all that was recorded. */
export function ledgerBytes(folder: string): number {
  return readdirSync(folder)
    .filter((file) => file.startsWith('ledger-'))
    .reduce((sum, file) => sum + statSync(join(folder, file)).size, 0);
}
