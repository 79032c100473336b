import type { Memory } from '../../ports/memory.ts';
import { type Driver, loadDriver } from '../store/driver.ts';
import { StateLedger } from './ledger.ts';
import { StateOutbox } from './outbox.ts';
import { StateFile } from './state-file.ts';
import { StateWriter } from './state-writer.ts';

/** Ledger, outboxes and request log in one file, which the thread that answers requests owns. */

/** Both connections of the process take 2 MB, and up to 8 when their caches are full. */
const CACHE_KIB = 2048;
/** A lock is held for some milliseconds; a disk that stays full is not waited for. */
const CLOSE_MS = 2000;

export interface StateOptions {
  readonly folder: string;
  /** Absent: the one of this machine. */
  readonly driver?: Driver;
  /** See StateFileOptions. */
  readonly openMs?: number | undefined;
  /** Asks another thread to move the write-ahead log into the file. */
  checkpoint?(): void;
  report(line: string): void;
}

export interface State {
  readonly ledger: StateLedger;
  readonly writer: StateWriter;
  /** Each memory has an outbox of its own. To be closed before the state. */
  outboxFor(name: string, target: Pick<Memory, 'capture'>): StateOutbox;
  /** Makes the file where there is none. False where it cannot be used; the calls that need it say why. */
  open(): boolean;
  /** Writes all that waits, and leaves the file without a log. */
  close(): Promise<void>;
}

/** Returns at once: the file is opened by the first use. */
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
