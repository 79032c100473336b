import type { CaptureState, ForgetFilter, MemoryRecord } from '../../ports/memory.ts';
import {
  abandon,
  type Database,
  isCorruption,
  isWhole,
  LockedError,
  openDatabase,
  type OpenOptions,
  leaveReplaced,
} from './database.ts';
import { type Driver, failureText, isBusy, loadDriver, type Statements } from './driver.ts';
import { beingWritten, isBeingWritten } from './opened-file.ts';
import { isSpoken, readRecord } from '../../core/memory/record.ts';
import { rememberOwnSecrets } from '../../core/redaction/own-secrets.ts';
import type { StoreHealth } from '../../ports/local-store.ts';
import type { LoopOptions } from './call-loop.ts';
import { type ForgottenElsewhere, type StoreCallName, type StoreCalls } from './protocol.ts';
import { pruneAcknowledged } from '../memory-client/acknowledgements.ts';
import { emptyBlocks, placedRecords, pruneLedger, retireBlocks } from '../state/ledger.ts';
import { RequestTable } from '../state/request-log.ts';
import { STATE_VERSION, StateFile } from '../state/state-file.ts';
import { deskCalls } from './desk.ts';
import { databaseBytes, databaseFile } from '../files/database-file.ts';
import { endForgetting, forgettingIn, noteForgetting, unended } from './forgetting.ts';
import { Outputs } from './outputs.ts';
import { keepProvenance, listProvenance } from './provenance.ts';
import { proveHeld } from './possessions.ts';
import { Records, referencesIn, listTerms } from './records.ts';
import { SchemaTooNewError } from './schema.ts';
import { marksOf } from './recall-marks.ts';
import { FileSearch } from './file-search.ts';
import { Signals } from './signals.ts';
import { SpaceMover } from './space-mover.ts';
import { MemoryError } from '../../core/errors.ts';
import { termsOf } from '../../core/recall/terms.ts';
import { referenceOf } from '../../core/memory/reference.ts';
import { type OutboxRow, STORE_TARGET } from '../state/outbox.ts';

/**
 * Runs the calls of StoreCalls on the files of the data folder, in the store's thread. An error of a call becomes a
 * MemoryError, whose message never contains a record's text or SQLite's own message.
 */

/** After a failure to open the file, calls fail with the same error for this time. */
const REOPEN_MS = 1000;

/**
 * The most frequent writes of a running proxy. If such a call is run again from its beginning, it stores nothing twice.
 */
const REPEATABLE: ReadonlySet<StoreCallName> = new Set<StoreCallName>([
  'capture',
  'keepProvenance',
]);
/** How long one of these writes waits for another process's lock before the worker answers waiting calls. */
const LOCK_MS = 50;

/** How long a statement on `state.db` waits for a lock, which the event loop holds for less than a millisecond. */
const STATE_BUSY_MS = 5000;
/** Bound on SQLite's page cache for `state.db`, in KiB. Lists of the request log read much, but rarely. */
const STATE_CACHE_KIB = 512;
/** Pages in the write-ahead log of `state.db` from which a checkpoint makes SQLite start the log anew. */
const RESTART_PAGES = 3000;

interface Opened {
  readonly database: Database;
  readonly calls: StoreCalls;
  readonly signals: Signals;
}

type StoreOptions = Omit<OpenOptions, 'driver' | 'now'>;

export class Store {
  readonly #options: StoreOptions;
  #driver: Driver | undefined;
  #opened: Opened | undefined;
  #failedAt = -Infinity;
  #failure: MemoryError | undefined;
  readonly #state: StateFile;

  constructor(options: StoreOptions) {
    this.#options = options;
    this.#state = new StateFile({
      folder: options.folder,
      driver: () => (this.#driver ??= loadDriver()),
      descriptors: options.descriptors,
      busyMs: options.busyMs ?? STATE_BUSY_MS,
      cacheKib: STATE_CACHE_KIB,
      creates: false,
      report: (line) => options.report(line),
    });
  }

  /** Opens the store in advance. Never rejects: the first call reports a failure. */
  async open(): Promise<void> {
    await this.#open().catch(() => undefined);
  }

  /** Runs a call. Rejects with MemoryError, or with FileReplacedError if the thread must end. */
  async call(name: StoreCallName, input: unknown): Promise<unknown> {
    if (name === 'close') {
      this.#state.close();
      return this.#close();
    }
    const { calls, database } = await this.#open();
    // Invariant 2 of ARCHITECTURE.md: never use a file that was deleted or replaced, because a proof from it would be
    // worthless.
    leaveReplaced(database, this.#options);
    try {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The caller's types make the input fit the name.
      const call = calls[name] as (given: unknown) => unknown;
      if (!REPEATABLE.has(name)) return call(input);
      return database.waitingAtMost(this.#options.busyMs ?? LOCK_MS, () => call(input));
    } catch (error) {
      if (isCorruption(error)) this.#abandon(database);
      const isLocked = REPEATABLE.has(name) && isBusy(error);
      throw isLocked ? new LockedError(error) : asMemoryError(error);
    }
  }

  async #open(): Promise<Opened> {
    if (this.#opened !== undefined) return this.#opened;
    const isRecent = performance.now() - this.#failedAt < REOPEN_MS;
    if (this.#failure !== undefined && isRecent) throw this.#failure;
    try {
      this.#driver ??= driverOrExplain();
      const database = openDatabase(this.#openOptions(this.#driver));
      const signals = new Signals(database);
      this.#opened = { database, signals, calls: this.#callsOn(database, signals) };
      return this.#opened;
    } catch (error) {
      this.#failedAt = performance.now();
      this.#failure = asMemoryError(error);
      throw this.#failure;
    }
  }

  #callsOn(database: Database, signals: Signals): StoreCalls {
    const outputs = new Outputs(database);
    const records = new Records(database, () => signals.write());
    const search = new FileSearch(database, signals, marksOf(database));
    const mover = new SpaceMover(database);
    const forget = (filter: ForgetFilter): void => {
      this.#beginForget({ database, records, outputs }, filter);
      while (records.forgetSome(Date.now()) > 0);
    };
    const requests = <Result>(read: (table: RequestTable) => Result): Result =>
      this.#onState((rows) => read(new RequestTable(rows)));
    return {
      recall: (question) => search.recall(question),
      warm: () => search.warm(),
      capture: ({ records: given, ownSecrets }) => {
        rememberOwnSecrets(ownSecrets);
        return captureAll({ records, outputs }, given);
      },
      retrieve: (key) => records.retrieve(key) ?? outputs.retrieve(key),
      list: (filter) => records.list(filter),
      page: (filter) => records.page(filter),
      references: (start) => referencesIn(database, start),
      beginForget: (filter) => this.#beginForget({ database, records, outputs }, filter),
      forgetSome: () => records.forgetSome(Date.now()),
      moveSome: (move) => mover.moveSome(move),
      unended: () => unended(database),
      emptyForgotten: () => this.#emptyForgotten(database, records),
      eraseForgotten: (last) => this.#eraseForgotten(database, last),
      placed: () => (this.#state.isThere ? this.#onState(placedRecords) : new Map()),
      forgetPlaced: (forgotten) => this.#forgetPlaced(database, forgotten),
      hold: (question) => proveHeld([outputs, records], question, Date.now()),
      heldOutputs: (refs) => outputs.heldRefs(refs),
      dropOutputs: (space) => outputs.drop(space),
      outputSpaces: (limit) => outputs.spaces(limit),
      listRequests: (filter) => requests((table) => table.list(filter)),
      findRequests: (filter) => requests((table) => table.find(filter)),
      conversationRequests: (filter) => requests((table) => table.conversation(filter)),
      sumRequests: (filter) => requests((table) => table.sum(filter)),
      trial: (since) => requests((table) => table.trial(since)),
      quota: (now) => requests((table) => table.quota(now)),
      sightings: (refs) => requests((table) => table.sightings(refs)),
      emptyLog: () => database.checkpoint(),
      pruneState: () => this.#pruneState(),
      checkpointState: () => this.#onState(checkpointState),
      ...deskCalls({ database, records, signals, forget, retire: (ref) => this.#retire(ref) }),
      keepProvenance: (notes) => keepProvenance(database, notes),
      listProvenance: (filter) => listProvenance(database, filter),
      health: () => this.#health(database),
      isWhole: () => isWhole(database),
      close: () => this.#close(),
    };
  }

  /** See StoreCalls.beginForget. */
  #beginForget({ database, records, outputs }: Tables, filter: ForgetFilter): number {
    const now = Date.now();
    const buried = this.#bury(records, filter, now);
    return (
      database.transaction(() => buried + records.beginForget(filter)) + outputs.forget(filter, now)
    );
  }

  /** Writes tombstones for captures in the outbox that the filter selects, so that they are not stored later. */
  #bury(records: Records, filter: ForgetFilter, now: number): number {
    if (!this.#state.isThere) return 0;
    const waiting = this.#onState((rows) => waitingRecords(rows, matcherOf(filter)));
    return records.bury(
      waiting.map(({ record }) => record),
      now,
    );
  }

  /** Empties the blocks that quote forgotten texts, and deletes forgotten captures from the outbox. */
  #emptyForgotten(database: Database, records: Records): number {
    const forgetting = forgettingIn(database);
    if (forgetting === undefined) return 0;
    if (this.#state.isThere) {
      this.#onState((rows) => {
        const waiting = waitingRecords(rows, (record) => records.isBuried(record));
        const numbers = JSON.stringify(waiting.map(({ n }) => n));
        rows.run('DELETE FROM outbox WHERE n IN (SELECT value FROM json_each(?))', numbers);
        emptyBlocks(rows, ({ ref }) => forgetting.has(ref));
      });
    }
    return forgetting.last;
  }

  /**
   * Rewrites both files from their rows (VACUUM). It rewrites neither while another program reads one of the files for
   * long: then each VACUUM would lengthen the file's log by the size of the file.
   */
  #eraseForgotten(database: Database, last: number): boolean {
    const inBoth = (work: (file: Pick<Statements, 'emptyLog' | 'exec'>) => unknown): boolean =>
      (!this.#state.isThere || this.#onState(work) !== false) && work(database) !== false;
    const emptyLogs = (): boolean => inBoth((file) => file.emptyLog());
    const isErased = emptyLogs() && inBoth((file) => file.exec('VACUUM')) && emptyLogs();
    if (isErased) endForgetting(database, last);
    return isErased;
  }

  /** Empties the blocks that quote these records of a memory service. */
  #forgetPlaced(database: Database, { space, refs }: ForgottenElsewhere): number {
    noteForgetting(database);
    const gone = new Set(refs);
    return this.#onState((rows) =>
      emptyBlocks(rows, (quoted) => quoted.space === space && gone.has(quoted.ref)),
    );
  }

  /** Keeps placed blocks that quote this record out of new conversations. */
  #retire(ref: string): void {
    if (!this.#state.isThere) return;
    this.#onState((rows) => retireBlocks(rows, (quoted) => quoted.ref === ref));
  }

  /**
   * Runs work on `state.db`. Every failure becomes a MemoryError, so that call() does not take it for damage of
   * `memory.db` and rename that file.
   */
  #onState<Result>(work: (rows: Statements) => Result): Result {
    try {
      return this.#state.use(work);
    } catch (error) {
      const message = `The file of svc's state ${failureText(error)}.`;
      throw new MemoryError('unavailable', message, { cause: error });
    }
  }

  #pruneState(): void {
    this.#onState((rows) => {
      pruneLedger(rows);
      pruneAcknowledged(rows);
      new RequestTable(rows).prune();
    });
  }

  #health(database: Database): StoreHealth {
    const file = databaseFile(this.#options.folder);
    const sizes = database.get<{ passages: number; records: number }>(
      `SELECT coalesce(sum(passages), 0) AS passages,
        (SELECT count(*) FROM records) AS records FROM spaces`,
    );
    return {
      driver: this.#driver?.name ?? '',
      sqliteVersion: database.sqliteVersion,
      journalMode: database.journalMode,
      file,
      records: sizes?.records ?? 0,
      passages: sizes?.passages ?? 0,
      bytes: databaseBytes(file),
    };
  }

  /**
   * Renames a file that turned out to be damaged; the next call creates a new one. Throws MemoryError if another
   * program may be writing the file: then the damage may be that of an unfinished copy.
   */
  #abandon(database: Database): void {
    if (this.#driver === undefined) return;
    if (isBeingWritten(databaseFile(this.#options.folder))) throw beingWritten();
    const isAtPath = (): boolean => database.isAtPath();
    const close = (): void => this.#close();
    abandon({ isBroken: true, isAtPath, close }, this.#openOptions(this.#driver));
  }

  #openOptions(driver: Driver): OpenOptions {
    const report = this.#options.report.bind(this.#options);
    return { ...this.#options, driver, now: Date.now(), report };
  }

  #close(): void {
    const { database, signals } = this.#opened ?? {};
    this.#opened = undefined;
    try {
      // A process that runs only one recall stores no capture, with which signals are normally written.
      if (signals?.hasWaiting === true) database?.unsyncedTransaction(() => signals.write());
    } catch {
      // Without these signals the next prompt is compared with fewer.
    }
    try {
      database?.close();
    } catch {
      // Ignore it: all committed data are on disk.
    }
  }
}

/** Stores records and outputs, which have different tables. Returns the states in the given order. */
function captureAll(
  { records, outputs }: Pick<Tables, 'records' | 'outputs'>,
  given: readonly MemoryRecord[],
): readonly CaptureState[] {
  const spoken = given.filter(isSpoken);
  const said = spoken.length === 0 ? [] : records.capture(spoken);
  if (spoken.length === given.length) return said;
  const kept = outputs.keep(
    given.filter((record) => !isSpoken(record)),
    Date.now(),
  );
  const [saidNext, keptNext] = [said.values(), kept.values()];
  return given.map((record) => (isSpoken(record) ? saidNext : keptNext).next().value ?? 'rejected');
}

interface Tables {
  readonly database: Database;
  readonly records: Records;
  readonly outputs: Outputs;
}

/**
 * Moves the write-ahead log of `state.db` into the file. Under steady traffic the mode PASSIVE alone never lets SQLite
 * start the log anew, so a long log needs RESTART. The first commit after that syncs the log's new header; it is made
 * here, so that the event loop does not wait for the sync.
 */
function checkpointState(rows: Statements): void {
  const done = rows.get<{ readonly checkpointed: number }>('PRAGMA wal_checkpoint(PASSIVE)');
  if ((done?.checkpointed ?? 0) < RESTART_PAGES) return;
  rows.exec('PRAGMA wal_checkpoint(RESTART)');
  rows.transaction(() => rows.exec(`PRAGMA user_version = ${STATE_VERSION}`));
}

function driverOrExplain(): Driver {
  try {
    return loadDriver();
  } catch (error) {
    throw unavailable('needs SQLite, and neither driver could be loaded', error);
  }
}

function unavailable(what: string, cause?: unknown): MemoryError {
  return new MemoryError('unavailable', `The memory's file ${what}.`, { cause });
}

function asMemoryError(error: unknown): MemoryError {
  if (error instanceof MemoryError) return error;
  if (error instanceof SchemaTooNewError) return unavailable('was made by a later version of svc');
  return unavailable(failureText(error), error);
}

/** Returns the captures in the store's outbox that `isMeant` accepts. */
function waitingRecords(
  rows: Statements,
  isMeant: (record: MemoryRecord) => boolean,
): readonly { readonly n: number; readonly record: MemoryRecord }[] {
  return rows
    .all<OutboxRow>('SELECT n, record FROM outbox WHERE target = ? ORDER BY n', STORE_TARGET)
    .flatMap(({ n, record: text }) => {
      const record = readRecord(JSON.parse(text));
      return record !== undefined && isMeant(record) ? [{ n, record }] : [];
    });
}

/**
 * Returns a function that says whether a filter selects a record, as whereOf() in records.ts does for stored records.
 */
function matcherOf(filter: ForgetFilter): (record: MemoryRecord) => boolean {
  const isInSpace = ({ space }: MemoryRecord): boolean => space === (filter.space ?? space);
  if ('refs' in filter) {
    const refs = new Set(filter.refs);
    return (record) => isInSpace(record) && refs.has(referenceOf(record.digest));
  }
  if (!('words' in filter)) return isInSpace;
  const terms = listTerms(filter.words);
  return (record) => {
    if (!isInSpace(record) || terms.length === 0) return false;
    const held = new Set(termsOf(record.text));
    return terms.every((term) => held.has(term));
  };
}

/** How the store's worker answers. The urgent calls only read, and a request or a user waits for them. */
export const STORE_LOOP: LoopOptions = {
  makeStore: (options) => new Store(options),
  urgent: new Set<StoreCallName>(['recall', 'hold', 'conversationRequests', 'retrieve', 'list']),
};
