import { type BigIntStats, statSync } from 'node:fs';
import { databaseFile } from '../files/database-file.ts';
import { type Driver, loadDriver, Statements } from './driver.ts';

/**
 * Says on the event loop whether a proof of an earlier request still counts. `memory.db` counts the texts
 * that were deleted or changed, whichever process did it; a connection that only reads asks for that one
 * row (10 us). The count alone is not enough: a backup that is copied or renamed over the file may have the
 * same. So the identity of the file and its log, and the time of the file's last change, must be the same too.
 */

/** A file system notes times in steps: a second write in the same step changes no time. */
const TIME_STEP_MS = 50;
const CACHE_KIB = 64;

interface Opened {
  readonly rows: Statements;
  /** Device and number of the file that the connection has open. */
  readonly identity: string;
}

export class ProofState {
  readonly #path: string;
  #driver: Driver | undefined;
  #opened: Opened | undefined;
  #seen = '';
  #version = 0;
  #isOpen = false;

  constructor(folder: string) {
    this.#path = databaseFile(folder);
  }

  /** The store's thread has opened the file: from now on it is here to be read. */
  begin(): void {
    this.#isOpen = true;
  }

  /** Changes with each write to the file or its log, whichever process makes it. */
  changes(): string {
    return ['', '-wal']
      .map((suffix) => statSync(this.#path + suffix, { bigint: true, throwIfNoEntry: false }))
      .map((stat) => `${identityOf(stat)} ${stat?.ctimeNs}`)
      .join();
  }

  /**
   * Stays the same as long as no text can have gone; undefined when that is not certain now. It is true at
   * the moment of the call.
   */
  version(): number | undefined {
    if (!this.#isOpen) return undefined;
    try {
      const seen = this.#look();
      if (seen === undefined) return undefined;
      if (seen !== this.#seen) this.#version += 1;
      this.#seen = seen;
      return this.#version;
    } catch {
      // No file, or one that cannot be read: the store's thread says what is wrong with it.
      this.#leave();
      return undefined;
    }
  }

  /** True where the file was open: see `EmbeddedMemory.close`. */
  close(): boolean {
    const wasOpen = this.#opened !== undefined;
    this.#isOpen = false;
    this.#leave();
    return wasOpen;
  }

  #look(): string | undefined {
    const stat = statSync(this.#path, { bigint: true });
    const log = statSync(`${this.#path}-wal`, { bigint: true, throwIfNoEntry: false });
    if (Number(stat.ctimeNs / 1_000_000n) + TIME_STEP_MS >= Date.now()) return undefined;
    const row = this.#rowsOf(stat).get<{ id: number; count: number }>(
      'SELECT id, count FROM removals',
    );
    if (row === undefined) return undefined;
    return `${identityOf(stat)} ${stat.ctimeNs} ${identityOf(log)} ${row.id} ${row.count}`;
  }

  #rowsOf(stat: BigIntStats): Statements {
    const identity = identityOf(stat);
    if (this.#opened?.identity === identity) return this.#opened.rows;
    this.#leave();
    this.#driver ??= loadDriver();
    const rows = new Statements(this.#driver.open(this.#path, { readOnly: true }));
    this.#opened = { rows, identity };
    rows.exec('PRAGMA busy_timeout = 0');
    rows.exec('PRAGMA mmap_size = 0');
    rows.exec(`PRAGMA cache_size = -${CACHE_KIB}`);
    return rows;
  }

  #leave(): void {
    const opened = this.#opened;
    this.#opened = undefined;
    try {
      opened?.rows.close();
    } catch {
      // It only read.
    }
  }
}

function identityOf(stat: BigIntStats | undefined): string {
  return stat === undefined ? '' : `${stat.dev} ${stat.ino}`;
}
