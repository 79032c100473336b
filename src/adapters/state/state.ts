import type { Memory } from '../../ports/memory.ts';
import { type Driver, loadDriver } from '../store/driver.ts';
import { StateLedger } from './ledger.ts';
import { StateOutbox } from './outbox.ts';
import { StateFile } from './state-file.ts';
import { StateWriter } from './state-writer.ts';

/** Opens ledger, outboxes and request log in one file, which the thread that answers requests owns. */

/** Cache of each connection, in KiB. Both connections of the process take 2 MB, and up to 8 with full caches. */
const CACHE_KIB = 2048;
/** How long closing waits for a lock, which is held for some milliseconds. It does not wait for a full disk. */
const CLOSE_MS = 2000;

export interface StateOptions {
  readonly folder: string;
  /** The SQLite driver; undefined: the one of this machine. */
  readonly driver?: Driver;
  readonly openMs?: number | undefined;
  /** Asks another thread to move the write-ahead log into the file. */
  checkpoint?(): void;
  report(line: string): void;
}

export interface State {
  readonly ledger: StateLedger;
  readonly writer: StateWriter;
  /** Returns the outbox of a memory. Close it before the state. */
  outboxFor(name: string, target: Pick<Memory, 'capture'>): StateOutbox;
  /** Creates the file if it is missing. Returns false if it cannot be used; calls that need it report why. */
  open(): boolean;
  /** Writes everything that waits, and leaves the file without a log. */
  close(): Promise<void>;
}

/** Returns at once; the first use opens the file. */
export function openState(options: StateOptions): State {
  const { folder } = options;
  const report = (line: string): void => options.report(line);
  const checkpoint = (): void => options.checkpoint?.();
  let { driver } = options;
  const file = new StateFile({
    folder,
    driver: () => (driver ??= loadDriver()),
    busyMs: 0,
    openMs: options.openMs,
    cacheKib: CACHE_KIB,
    creates: true,
    report,
  });
  const writer = new StateWriter({ file, checkpoint, report });
  return {
    ledger: new StateLedger({ file, writer }),
    writer,
    outboxFor: (name, target) => new StateOutbox({ file, writer, name, target, report }),
    open: () => file.canBeUsed(),
    close: async () => {
      await writer.caughtUp(CLOSE_MS);
      writer.close();
      file.close();
    },
  };
}
