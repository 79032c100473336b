import { close, fdatasync, fstatSync, openSync, statSync } from 'node:fs';
import { failureText, type Statements } from '../store/driver.ts';
import { within } from '../within.ts';
import { isBusy } from '../store/driver.ts';
import type { StateFile } from './state-file.ts';

/**
 * Writes to `state.db` on the event loop. A commit takes 30 to 100 us. While another connection holds the
 * lock, a write is tried again by a timer and never waited for, because a wait would hold up every stream.
 */

/** A lock is held for a millisecond or two; a checkpoint of another process for up to three. */
const RETRY_MS = 2;
/** After an error of the disk. */
const FAILED_RETRY_MS = 1000;
/** Writes that wait while the disk is full or the file is locked: some 10 MB. */
const WAITING_MAX = 4096;
/** A full disk must not fill what is left with warnings. */
const WARNING_MS = 60_000;
/** A power cut takes at most the last half second and the time of a sync; R27 allows a second. */
const SYNC_MS = 500;
/** From this size on the store's thread moves the write-ahead log into the file. */
const LOG_BYTES_MAX = 4 * 1024 * 1024;
/** From this size on the event loop moves the log itself: the store's thread should have done it long ago. */
const LOG_BYTES_ALONE = 16 * 1024 * 1024;

/** Throws what SQLite throws; it is then called again. */
type Work = (rows: Statements) => void;

/** `waits`: another connection holds the lock. `failed`: the disk is full, gone or read-only. */
export type Written = 'done' | 'waits' | 'failed';

interface Waiting {
  readonly work: Work;
  /** Undefined for a write that is tried until it is done. */
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
  #warnedAt = -Infinity;
  #isClosed = false;

  constructor(options: StateWriterOptions) {
    this.#options = options;
    this.#file = options.file;
  }

  /** Something waits to be written. */
  get isBehind(): boolean {
    return this.#waiting.length > 0;
  }

  /** Writes now, or as soon as it can be done; `waits` and `failed` say that only this process has it yet. */
  put(work: Work, done: () => void = () => undefined): Written {
    if (this.#isClosed) return 'failed';
    const written = this.isBehind ? 'waits' : this.#try(work);
    if (written === 'done') {
      done();
      return 'done';
    }
    if (this.#waiting.length >= WAITING_MAX) return 'failed';
    this.#waiting.push({ work, done });
    this.#retrySoon(written);
    return written;
  }

  /** True once it is written; false after `withinMs` or a failure, and then it is never written. */
  commit(work: Work, withinMs: number): Promise<boolean> {
    if (this.#isClosed) return Promise.resolve(false);
    if (!this.isBehind) {
      const written = this.#try(work);
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

  /** True once all that waits now is written; false after `withinMs`. */
  async caughtUp(withinMs: number): Promise<boolean> {
    if (!this.isBehind) return true;
    const idle = new Promise<true>((resolve) => this.#whenIdle.push(() => resolve(true)));
    return (await within(withinMs, idle)) === true;
  }

  /** Writes what can be written, and ends. */
  close(): void {
    this.#writeWaiting();
    this.#isClosed = true;
    clearTimeout(this.#retryTimer);
    clearTimeout(this.#syncTimer);
    for (const { giveUp } of this.#waiting) giveUp?.();
    this.#waiting = [];
    this.#leaveLog();
  }

  #try(work: Work): Written {
    try {
      this.#file.use(work);
      this.#syncSoon();
      return 'done';
    } catch (error) {
      if (isBusy(error)) return 'waits';
      this.#warn(failureText(error));
      return 'failed';
    }
  }

  #retrySoon(after: Written): void {
    const ms = after === 'failed' ? FAILED_RETRY_MS : RETRY_MS;
    this.#retryTimer ??= setTimeout(() => {
      this.#retryTimer = undefined;
      const written = this.#writeWaiting();
      if (written !== 'done') this.#retrySoon(written);
    }, ms).unref();
  }

  #writeWaiting(): Written {
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
   * Commits are synced by no statement. The log may be opened and closed here: it carries no lock. The
   * sync runs in the thread pool, where it does not slow down a commit.
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
      // A sync that fails changes nothing that could be done: the commits are with the system.
      fdatasync(this.#log.descriptor, () => undefined);
      if (stat.size > LOG_BYTES_ALONE) {
        this.#file.use((rows) => rows.exec('PRAGMA wal_autocheckpoint = 1000'));
      } else if (stat.size > LOG_BYTES_MAX) this.#options.checkpoint();
    } catch {
      // The log is gone; the next write looks for it.
    }
  }

  #leaveLog(): void {
    if (this.#log !== undefined) close(this.#log.descriptor, () => undefined);
    this.#log = undefined;
  }

  #warn(what: string): void {
    const now = performance.now();
    if (now - this.#warnedAt < WARNING_MS) return;
    this.#warnedAt = now;
    this.#options.report(`The file of svc's state ${what}. What cannot be written now waits.`);
  }
}
