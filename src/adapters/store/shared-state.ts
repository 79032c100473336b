import { readSync, statSync, type BigIntStats } from 'node:fs';
import { OnceATurn } from '../files/once-a-turn.ts';
import { KEY_FILTER_BYTES, KeyFilter } from './key-filter.ts';

/**
 * Lets the main thread detect, without asking the store's thread, that nothing has changed since
 * the last answer. The store's thread writes the state of its files and a change counter into
 * shared memory. The main thread reads the files itself, and believes the count only if they
 * are exactly in that state: 15 us instead of the 400 us of a question.
 *
 * The files show every commit of every process: the index of the write-ahead log begins with a
 * count of commits, and without such a log the database's own header has one. So a commit that the
 * store's thread has not seen makes the files differ from what it wrote.
 */

/** On Windows a read of a file need not show what another process wrote through a mapping of it. */
const IS_COHERENT = process.platform === 'linux' || process.platform === 'darwin';

/** A file system notes times in steps: a second write in the same step changes no time. */
const TIME_STEP_MS = 50;

const LOG_SUFFIXES = ['-wal', '-shm'] as const;
/** Device, file and, for the database, the time of its last change: eight bytes each. */
const STAT_BYTES = 7 * 8;
const CHANGED_AT = 2 * 8;
/** Both copies of the header of the log's index: a half-written one differs from the other. */
const INDEX_BYTES = 96;
/** In SQLite's file header: writes of the first page, and pages in the file. */
const COUNT_AT = 24;
const COUNT_BYTES = 8;
const FILES_BYTES = STAT_BYTES + INDEX_BYTES + COUNT_BYTES;

/** Places in the shared memory, as 32-bit numbers. The first is odd while the others are written. */
const SEQUENCE = 0;
/** 0 while nothing is known. */
const VERSION = 1;
const DATABASE_FILE = 2;
const INDEX_FILE = 3;
/** 1 when the filter holds every key of the table. */
const IS_FILTERED = 4;
/** 1 when the main thread's last look told it nothing. */
const IS_WANTED = 5;
const NUMBERS = 8;
const FILES_START = NUMBERS * 4;
const FILTER_START = 256;

/** The files that a connection has open. Both descriptors belong to the store's thread. */
export interface OpenFiles {
  readonly path: string;
  readonly database: number;
  /** -1 where there is no write-ahead log. */
  readonly index: number;
}

/** `filterBytes`: of the filter of the ledger's keys. */
export function makeSharedState(filterBytes = KEY_FILTER_BYTES): SharedArrayBuffer {
  return new SharedArrayBuffer(FILTER_START + filterBytes);
}

/** The main thread's side. */
export class StateReader {
  readonly #path: string;
  readonly #numbers: Int32Array;
  readonly #published: Buffer;
  readonly #seen = Buffer.alloc(FILES_BYTES);
  readonly #filter: KeyFilter;
  /** A request asks for the ledger's keys, and then for the proofs. */
  readonly #state = new OnceATurn(() => this.#look());

  constructor(memory: SharedArrayBuffer, path: string) {
    this.#path = path;
    this.#numbers = new Int32Array(memory, 0, NUMBERS);
    this.#published = Buffer.from(memory, FILES_START, FILES_BYTES);
    this.#filter = new KeyFilter(memory, FILTER_START);
  }

  /**
   * Stays the same as long as no text can have gone and no other process has committed anything;
   * undefined when that is not certain now. Reads the files, so what it says is true in this turn of the
   * event loop.
   */
  version(): number | undefined {
    const seen = this.#state.get();
    return seen.isSettled ? seen.version : undefined;
  }

  /**
   * Those of the keys that may be in the ledger's table; undefined when that is not certain now. Every
   * commit shows, whatever the time of the file's last change says.
   */
  mayHold(keys: readonly string[]): readonly string[] | undefined {
    const { isFiltered } = this.#state.get();
    return isFiltered ? keys.filter((key) => this.#filter.mayHave(key)) : undefined;
  }

  #look(): SeenState {
    const seen = this.#read();
    if (!seen.isSettled) Atomics.store(this.#numbers, IS_WANTED, 1);
    return seen;
  }

  #read(): SeenState {
    const numbers = this.#numbers;
    const sequence = Atomics.load(numbers, SEQUENCE);
    const version = Atomics.load(numbers, VERSION);
    const isFiltered = Atomics.load(numbers, IS_FILTERED) === 1;
    if (sequence % 2 === 1 || version === 0) return UNKNOWN;
    const files = {
      path: this.#path,
      database: Atomics.load(numbers, DATABASE_FILE),
      index: Atomics.load(numbers, INDEX_FILE),
    };
    if (!readFiles(files, this.#seen)) return UNKNOWN;
    const isSame = this.#seen.equals(this.#published);
    const isWhole = Atomics.load(numbers, SEQUENCE) === sequence;
    if (!isSame || !isWhole) return UNKNOWN;
    return { version, isFiltered, isSettled: isSettled(this.#seen) };
  }
}

interface SeenState {
  readonly version: number | undefined;
  readonly isFiltered: boolean;
  /** The file's modification time is so old that a later write would have changed it. */
  readonly isSettled: boolean;
}

const UNKNOWN: SeenState = { version: undefined, isFiltered: false, isSettled: false };

export interface PublishedFacts {
  /** Changes as soon as a text may have gone or another connection has committed. */
  readonly generation: () => string;
  /** Whether the filter holds every key of the ledger's table. */
  readonly isFiltered: () => boolean;
}

/**
 * The store's side. Its thread calls `publish` before it answers a call that may have written, and where
 * `isWanted` says so.
 */
export class StatePublisher {
  readonly #numbers: Int32Array;
  readonly #published: Buffer;
  readonly #files = Buffer.alloc(FILES_BYTES);
  readonly filter: KeyFilter;
  #generation = '';

  constructor(memory: SharedArrayBuffer) {
    this.#numbers = new Int32Array(memory, 0, NUMBERS);
    this.#published = Buffer.from(memory, FILES_START, FILES_BYTES);
    this.filter = new KeyFilter(memory, FILTER_START);
  }

  /** The main thread has looked in vain since the last `publish`. */
  get isWanted(): boolean {
    return Atomics.load(this.#numbers, IS_WANTED) === 1;
  }

  /** Asks for the facts after it has read the files: a commit in between changes one of the two. */
  publish(open: OpenFiles, { generation, isFiltered }: PublishedFacts): void {
    Atomics.store(this.#numbers, IS_WANTED, 0);
    if (!IS_COHERENT || !readFiles(open, this.#files)) return this.withdraw();
    const now = generation();
    const filtered = isFiltered() ? 1 : 0;
    const version = Atomics.load(this.#numbers, VERSION);
    // It never goes back to a number that it had: also not when another thread takes over.
    const next = now === this.#generation ? version : (version % (2 ** 31 - 1)) + 1;
    this.#generation = now;
    this.#write(() => {
      Atomics.store(this.#numbers, VERSION, next);
      Atomics.store(this.#numbers, DATABASE_FILE, open.database);
      Atomics.store(this.#numbers, INDEX_FILE, open.index);
      Atomics.store(this.#numbers, IS_FILTERED, filtered);
      this.#files.copy(this.#published);
    });
  }

  /** Nothing is certain from now on. To be called before the files are closed. */
  withdraw(): void {
    this.#generation = '';
    this.#write(() => this.#published.fill(0));
  }

  #write(work: () => void): void {
    Atomics.add(this.#numbers, SEQUENCE, 1);
    work();
    Atomics.add(this.#numbers, SEQUENCE, 1);
  }
}

/** False when they cannot be read, or are not all there. */
function readFiles({ path, database, index }: OpenFiles, into: Buffer): boolean {
  into.fill(0);
  try {
    const stat = statSync(path, STAT_OPTIONS);
    if (stat === undefined) return false;
    writeIdentity(stat, into, 0);
    into.writeBigInt64LE(stat.ctimeNs, CHANGED_AT);
    for (const [place, suffix] of LOG_SUFFIXES.entries()) {
      const log = index === -1 ? undefined : statSync(path + suffix, STAT_OPTIONS);
      if (log !== undefined) writeIdentity(log, into, CHANGED_AT + 8 + place * 16);
    }
    if (index !== -1 && readSync(index, into, STAT_BYTES, INDEX_BYTES, 0) !== INDEX_BYTES) {
      return false;
    }
    const start = STAT_BYTES + INDEX_BYTES;
    return readSync(database, into, start, COUNT_BYTES, COUNT_AT) === COUNT_BYTES;
  } catch {
    // A descriptor that the store's thread has just closed, or a folder that cannot be read.
    return false;
  }
}

const STAT_OPTIONS = { bigint: true, throwIfNoEntry: false } as const;

function writeIdentity({ dev, ino }: BigIntStats, into: Buffer, at: number): void {
  into.writeBigUInt64LE(BigInt.asUintN(64, dev), at);
  into.writeBigUInt64LE(BigInt.asUintN(64, ino), at + 8);
}

function isSettled(files: Buffer): boolean {
  const changedMs = Number(files.readBigInt64LE(CHANGED_AT) / 1_000_000n);
  return changedMs + TIME_STEP_MS < Date.now();
}
