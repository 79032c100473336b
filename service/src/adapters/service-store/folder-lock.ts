import { loadDriver } from '../../../../src/adapters/store/driver.ts';
import { takeServiceLock } from './database.ts';

/**
 * One service a folder, also where its data are on a server: the journal of its receipts lies there.
 * Undefined when another process has it.
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
