import { loadDriver } from '../../../../src/adapters/store/driver.ts';
import { takeServiceLock } from './database.ts';

/**
 * Locks the folder for one service, even if its data are on a server, because the journal of its receipts is there.
 * Undefined if another process has it.
 */
export async function lockServiceFolder(folder: string): Promise<{ close(): void } | undefined> {
  const lock = takeServiceLock(folder, loadDriver());
  if (lock === undefined) return undefined;
  let isHeld = true;
  return {
    close() {
      if (isHeld) lock.close();
      isHeld = false;
    },
  };
}
