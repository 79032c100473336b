import { type BigIntStats, statSync } from 'node:fs';
import { databaseFile } from '../files/database-file.ts';
import { type Driver, loadDriver, Statements } from './driver.ts';
import { identityIn, TIME_STEP_MS } from './opened-file.ts';

/**
 * Says on the event loop whether a proof of an earlier request is still valid. The table `removals` of `memory.db`
 * counts the texts that any process has deleted or changed; a read-only connection reads its row in 10 us. A backup
 * that is copied or renamed over the file may have the same count. So the identity of the file and of its log, and the
 * file's time of change, must be the same too.
 */

/** Bound on SQLite's page cache of a connection that reads one row. */
const CACHE_KIB = 64;

interface Opened {
  readonly rows: Statements;
  /** Device and inode number of the connection's file. */
  readonly identity: string;
}

export class ProofState {
  readonly #path: string;
  #driver: Driver | undefined;
  #opened: Opened | undefined;
  #seen = '';
  #version = 0;
  /** True between begin() and close(). */
  #isOpen = false;

  constructor(folder: string) {
    this.#path = databaseFile(folder);
  }

  /** Lets version() read the file. Call it after the store's thread has opened the file. */
  begin(): void {
    this.#isOpen = true;
  }

  /** Returns a value that shows, by times of change, whether any process has written to the file or its log. */
  changes(): string {
    return ['', '-wal']
      .map((suffix) => statSync(this.#path + suffix, { bigint: true, throwIfNoEntry: false }))
      .map((stat) => (stat === undefined ? '' : `${identityIn(stat)} ${stat.ctimeNs}`))
      .join();
  }

  /**
   * Returns a number that stays the same as long as no text can have been deleted or changed until this call; undefined
   * if that is not certain.
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
      // The file is missing or unreadable; the store's thread will report why.
      this.#leave();
      return undefined;
    }
  }

  /** Closes the connection. Returns true if the file was open: see `EmbeddedMemory.close`. */
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
    return `${identityIn(stat)} ${stat.ctimeNs} ${log === undefined ? '' : identityIn(log)} ${row.id} ${row.count}`;
  }

  #rowsOf(stat: BigIntStats): Statements {
    const identity = identityIn(stat);
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
      // Ignore an error: the connection has only read.
    }
  }
}
