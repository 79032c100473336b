import type { Memory } from '../../ports/memory.ts';
import { DESCRIPTORS } from '../store/descriptors.ts';
import { type Driver, loadDriver } from '../store/driver.ts';
import { StateLedger } from './ledger.ts';
import { StateOutbox } from './outbox.ts';
import { StateFile } from './state-file.ts';
import { StateWriter } from './state-writer.ts';

/** Opens the event loop's connection to `state.db`, with the ledger and the outboxes that use it. */

/** Bound on SQLite's page cache, in KiB. */
const CACHE_KIB = 2048;
/** How long closing waits for writes that are not written yet, because of a lock or a full disk. */
const CLOSE_MS = 2000;

export interface StateOptions {
  readonly folder: string;
  /** The SQLite driver; undefined: the one that loadDriver() chooses. */
  readonly driver?: Driver;
  readonly openMs?: number | undefined;
  /** Asks the store's thread to move the write-ahead log into the file. */
  checkpoint?(): void;
  report(line: string): void;
}

export interface State {
  readonly ledger: StateLedger;
  readonly file: StateFile;
  readonly writer: StateWriter;
  /** Returns the outbox for a memory. Close it before the state. */
  outboxFor(name: string, target: Pick<Memory, 'capture'>): StateOutbox;
  /** Opens the file, and creates it if it is missing. Returns false if that fails; later calls report why. */
  open(): boolean;
  /** Writes what waits, as far as that is possible within CLOSE_MS, moves the log into the file, and closes it. */
  close(): Promise<void>;
}

/** Returns the state without opening the file, which the first use does. */
export function openState(options: StateOptions): State {
  const { folder } = options;
  const report = (line: string): void => options.report(line);
  const checkpoint = (): void => options.checkpoint?.();
  let { driver } = options;
  const leaveDescriptors = DESCRIPTORS.addUser();
  const file = new StateFile({
    folder,
    driver: () => (driver ??= loadDriver()),
    descriptors: DESCRIPTORS,
    busyMs: 0,
    openMs: options.openMs,
    cacheKib: CACHE_KIB,
    creates: true,
    report,
  });
  const writer = new StateWriter({ file, checkpoint, report });
  return {
    ledger: new StateLedger({ file, writer }),
    file,
    writer,
    outboxFor: (name, target) => new StateOutbox({ file, writer, name, target, report }),
    open: () => file.canBeUsed(),
    close: async () => {
      await writer.caughtUp(CLOSE_MS);
      writer.close();
      file.close();
      leaveDescriptors();
    },
  };
}
