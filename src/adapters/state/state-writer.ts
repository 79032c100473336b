import { close, fdatasync, fstatSync, openSync, statSync } from 'node:fs';
import { failureText, type Statements } from '../store/driver.ts';
import { within } from '../within.ts';
import { isBusy } from '../store/driver.ts';
import type { StateFile } from './state-file.ts';

/**
 * Writes to `state.db` on the event loop. A commit takes 30 to 100 us. While another connection holds the lock, a timer
 * repeats the write, because waiting for the lock would block every stream.
 */

/** Pause before a write is repeated. Other connections of svc hold the lock for one to three milliseconds. */
const RETRY_MS = 2;
/**
 * Time for which a lock counts as short. Locks of svc seldom last longer. A longer lock may be another program's and
 * never end, so it counts as an error.
 */
const LOCK_MS = 1000;
/** Pause before a write is repeated after any other error, such as a full disk. */
const FAILED_RETRY_MS = 1000;
/** Bound on writes that wait while the disk is full or the file is locked: some 10 MB. */
const WAITING_MAX = 4096;
/** Shortest time between two warnings, which are logged on a disk that may be full. */
const WARNING_MS = 60_000;
/**
 * Time from a write to the next sync. A power cut loses the writes of this time and of the sync, together less than a
 * second.
 */
export const SYNC_MS = 500;
/** Size of the write-ahead log from which the store's thread moves it into the file. */
const LOG_BYTES_MAX = 4 * 1024 * 1024;
/** Size of the log from which the event loop moves it into the file, because the store's thread has not done so. */
const LOG_BYTES_ALONE = 16 * 1024 * 1024;

/** A write. If it throws an error, it may be called again later. */
type Work = (rows: Statements) => void;

/**
 * `waits`: another connection holds the lock. `failed`: another error, such as a full disk, or a lock for longer than
 * LOCK_MS. `refused`: the writer is closed, or too many writes wait.
 */
export type Written = 'done' | 'waits' | 'failed' | 'refused';

interface Waiting {
  readonly work: Work;
  /**
   * Called if the write fails or the writer closes. Undefined: the write is repeated until it succeeds, or until the
   * writer closes.
   */
  readonly giveUp?: (() => void) | undefined;
  readonly done: () => void;
}

export interface StateWriterOptions {
  readonly file: StateFile;
  /** Asks the store's thread to move the log into the file. */
  checkpoint(): void;
  report(line: string): void;
}

export class StateWriter {
  readonly #options: StateWriterOptions;
  readonly #file: StateFile;
  #waiting: Waiting[] = [];
  #retryTimer: NodeJS.Timeout | undefined;
  #syncTimer: NodeJS.Timeout | undefined;
  #log: { readonly descriptor: number; readonly identity: string } | undefined;
  #whenIdle: (() => void)[] = [];
  readonly #warn: (line: string) => void;
  /** True if the last write failed for another reason than a short lock. */
  #isFailing = false;
  /** When the first of the waiting writes met a lock, as `performance.now()`. */
  #lockedSince: number | undefined;
  #isClosed = false;

  constructor(options: StateWriterOptions) {
    this.#options = options;
    this.#file = options.file;
    this.#warn = seldom((line) => options.report(line));
  }

  get isBehind(): boolean {
    return this.#waiting.length > 0;
  }

  /** True while writes wait because of an error, such as a full disk, and not only for a short lock. */
  get isFailing(): boolean {
    return this.isBehind && this.#isFailing;
  }

  /**
   * Runs a write now. If the result is `waits` or `failed`, the write runs again until it succeeds or the writer
   * closes; if it is `refused`, the write never runs.
   */
  put(work: Work, done: () => void = () => undefined): Written {
    if (this.#isClosed) return 'refused';
    const behind = this.#isFailing ? 'failed' : 'waits';
    const written = this.isBehind ? behind : this.#tryFirst(work);
    if (written === 'done') {
      done();
      return 'done';
    }
    if (this.#waiting.length >= WAITING_MAX) return 'refused';
    this.#waiting.push({ work, done });
    this.#retrySoon(written);
    return written;
  }

  /**
   * Runs a write. Resolves to true once it has succeeded. Resolves to false after `withinMs`, after a failure, or if
   * the writer is closed; then the write is not tried again.
   */
  commit(work: Work, withinMs: number): Promise<boolean> {
    if (this.#isClosed) return Promise.resolve(false);
    if (!this.isBehind) {
      const written = this.#tryFirst(work);
      if (written !== 'waits') return Promise.resolve(written === 'done');
    }
    return new Promise((resolve) => {
      const end = (isDone: boolean): void => {
        clearTimeout(timer);
        this.#waiting = this.#waiting.filter((one) => one !== waiting);
        resolve(isDone);
      };
      const waiting: Waiting = { work, giveUp: () => end(false), done: () => end(true) };
      const timer = setTimeout(() => end(false), withinMs);
      this.#waiting.push(waiting);
      this.#retrySoon('waits');
    });
  }

  /** Resolves to true once no write waits; to false after `withinMs`. */
  async caughtUp(withinMs: number): Promise<boolean> {
    if (!this.isBehind) return true;
    const idle = new Promise<true>((resolve) => this.#whenIdle.push(() => resolve(true)));
    return (await within(withinMs, idle)) === true;
  }

  /** Runs the waiting writes as far as that is possible now. Drops the others, and accepts no more. */
  close(): void {
    this.retry();
    this.#isClosed = true;
    if (this.#waiting.some(({ giveUp }) => giveUp === undefined)) {
      this.#options.report(
        'svc stops, and what it could not write to the file of its state is lost.',
      );
    }
    clearTimeout(this.#retryTimer);
    clearTimeout(this.#syncTimer);
    for (const { giveUp } of this.#waiting) giveUp?.();
    this.#waiting = [];
    this.#leaveLog();
  }

  /** Tries a write while no other one waits. */
  #tryFirst(work: Work): Written {
    this.#lockedSince = undefined;
    return this.#try(work);
  }

  #try(work: Work): Written {
    try {
      this.#file.use(work);
      this.#isFailing = false;
      this.#lockedSince = undefined;
      this.#syncSoon();
      return 'done';
    } catch (error) {
      this.#isFailing = !isBusy(error) || this.#isLockedLong();
      if (!this.#isFailing) return 'waits';
      this.#warn(
        `The file of svc's state ${failureText(error)}. What cannot be written now waits.`,
      );
      return 'failed';
    }
  }

  #isLockedLong(): boolean {
    const now = performance.now();
    this.#lockedSince ??= now;
    return now - this.#lockedSince > LOCK_MS;
  }

  #retrySoon(after: Written): void {
    const ms = after === 'failed' ? FAILED_RETRY_MS : RETRY_MS;
    this.#retryTimer ??= setTimeout(() => {
      this.#retryTimer = undefined;
      const written = this.retry();
      if (written !== 'done') this.#retrySoon(written);
    }, ms).unref();
  }

  /** Runs the waiting writes as far as that is possible now. */
  retry(): Written {
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      const written = this.#try(next.work);
      if (written === 'done') {
        if (this.#waiting[0] === next) this.#waiting.shift();
        next.done();
        continue;
      }
      if (written === 'failed') {
        for (const { giveUp } of this.#waiting) giveUp?.();
      }
      if (this.isBehind) return written;
    }
    for (const resolve of this.#whenIdle.splice(0)) resolve();
    return 'done';
  }

  #syncSoon(): void {
    if (this.#syncTimer !== undefined) return;
    this.#syncTimer = setTimeout(() => {
      this.#syncTimer = undefined;
      this.#sync();
    }, SYNC_MS).unref();
  }

  /**
   * Syncs the write-ahead log, because commits do not sync it. The sync runs in the thread pool, where it does not
   * delay commits. The log may be opened with `node:fs`, because SQLite has no locks on it.
   */
  #sync(): void {
    const path = `${this.#file.path}-wal`;
    try {
      const stat = statSync(path);
      const identity = `${stat.dev} ${stat.ino}`;
      if (this.#log?.identity !== identity) {
        this.#leaveLog();
        const descriptor = openSync(path, 'r+');
        const opened = fstatSync(descriptor);
        this.#log = { descriptor, identity: `${opened.dev} ${opened.ino}` };
      }
      // Ignore a failed sync: the system still has the commits and writes them later.
      fdatasync(this.#log.descriptor, () => undefined);
      if (stat.size > LOG_BYTES_ALONE) {
        this.#file.use((rows) => rows.exec('PRAGMA wal_autocheckpoint = 1000'));
      } else if (stat.size > LOG_BYTES_MAX) this.#options.checkpoint();
    } catch {
      // There is no log now, and the next commit creates one; or the file fails, which the next write reports.
    }
  }

  #leaveLog(): void {
    if (this.#log !== undefined) close(this.#log.descriptor, () => undefined);
    this.#log = undefined;
  }
}

/** Returns a function that reports a line, unless it has reported one a short time ago. */
export function seldom(report: (line: string) => void): (line: string) => void {
  let reportedAt = -Infinity;
  return (line) => {
    const now = performance.now();
    if (now - reportedAt < WARNING_MS) return;
    reportedAt = now;
    report(line);
  };
}
