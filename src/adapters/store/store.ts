import {
  type CaptureState,
  type ForgetFilter,
  MemoryError,
  type MemoryRecord,
} from '../../ports/memory.ts';
import {
  abandon,
  type Database,
  isCorruption,
  isWhole,
  openDatabase,
  type OpenOptions,
} from './database.ts';
import { type Driver, failureText, loadDriver } from './driver.ts';
import { isSpoken } from '../../core/memory/record.ts';
import type { StoreHealth } from '../../ports/local-store.ts';
import type { StoreCallName, StoreCalls } from './protocol.ts';
import { quotesOfTexts } from '../../core/recall/quotes-of-texts.ts';
import type { Descriptors } from './descriptors.ts';
import { deskCalls } from './desk-calls.ts';
import { databaseBytes, databaseFile } from '../files/database-file.ts';
import { markForgotten } from '../files/marks.ts';
import { leaveReplaced } from './replaced-file.ts';
import { Outputs } from './outputs.ts';
import { listProvenance, keepProvenance } from './provenance.ts';
import { Possessions } from './possessions.ts';
import { Records, referencesIn } from './records.ts';
import { SchemaTooNewError } from './schema.ts';
import { marksOf } from './recall-marks.ts';
import { FileSearch } from './file-search.ts';
import { StatePublisher } from './shared-state.ts';
import { Signals } from './signals.ts';
import { SpaceMover } from './space-mover.ts';
import { findRequests } from './request-search.ts';
import { LedgerTable, RequestTable } from './tables.ts';

/**
 * The store itself, inside its worker: one call after the other, each whole. Every error becomes a
 * MemoryError, never with a text of a record or of SQLite's own errors.
 */

/** A folder that cannot be opened is tried again, but not on every call. */
const REOPEN_MS = 1000;

/**
 * These calls write nothing, so the reported state of the files stays true. Reporting it again
 * takes 100 us, for which a recall would wait. So it is done only after the main thread's check has
 * failed.
 */
const READS: ReadonlySet<StoreCallName> = new Set<StoreCallName>([
  'recall',
  'findEntries',
  'conversationRequests',
  'list',
]);

interface Opened {
  readonly database: Database;
  readonly ledger: LedgerTable;
  readonly calls: StoreCalls;
}

export interface StoreOptions {
  readonly folder: string;
  readonly descriptors: Descriptors;
  report(line: string): void;
  /** Shared memory in which the main thread reads the state; see shared-state.ts. */
  readonly shared?: SharedArrayBuffer | undefined;
}

export class Store {
  readonly #options: StoreOptions;
  #driver: Driver | undefined;
  #opened: Opened | undefined;
  #openMs = 0;
  #failedAt = -Infinity;
  #failure: MemoryError | undefined;
  readonly #publisher: StatePublisher | undefined;

  constructor(options: StoreOptions) {
    this.#options = options;
    const { shared } = options;
    this.#publisher = shared === undefined ? undefined : new StatePublisher(shared);
  }

  /** Opens ahead of need; the first call reports a failure. */
  async open(): Promise<void> {
    await this.#open().catch(() => undefined);
  }

  /** Throws MemoryError, or FileReplacedError when the thread is to end. */
  async call(name: StoreCallName, input: unknown): Promise<unknown> {
    if (name === 'close') return this.#close();
    const { calls, database } = await this.#open();
    // Law 2: nothing is proven, recalled or given back from a file that no other process can open.
    this.#leaveReplaced(database);
    try {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The name chose the input.
      const call = calls[name] as (given: unknown) => unknown;
      const answer = call(input);
      const mayHaveWritten = !READS.has(name);
      if (mayHaveWritten) database.noteOwnChange();
      if (mayHaveWritten || this.#publisher?.isWanted === true) this.#publish();
      return answer;
    } catch (error) {
      if (isCorruption(error)) this.#abandon(database);
      throw asMemoryError(error);
    }
  }

  #leaveReplaced(database: Database): void {
    try {
      leaveReplaced(database, this.#options);
    } catch (error) {
      this.#publisher?.withdraw();
      throw error;
    }
  }

  /** Before the answer, so that its receiver finds the state in which it was true. */
  #publish(): void {
    if (this.#publisher === undefined || this.#opened === undefined) return;
    const { database, ledger } = this.#opened;
    this.#publisher.publish(database.openFiles(), {
      generation: () => database.generation(),
      isFiltered: () => ledger.keys.isWhole(),
    });
  }

  async #open(): Promise<Opened> {
    if (this.#opened !== undefined) return this.#opened;
    const isRecent = performance.now() - this.#failedAt < REOPEN_MS;
    if (this.#failure !== undefined && isRecent) throw this.#failure;
    const start = performance.now();
    try {
      this.#driver ??= await loadDriver().catch((error: unknown) => {
        throw unavailable('needs SQLite, and neither driver could be loaded', error);
      });
      const database = openDatabase(this.#openOptions(this.#driver));
      const ledger = new LedgerTable(database, this.#publisher?.filter);
      this.#opened = { database, ledger, calls: this.#callsOn(database, ledger) };
      this.#openMs = performance.now() - start;
      return this.#opened;
    } catch (error) {
      this.#failedAt = performance.now();
      this.#failure = asMemoryError(error);
      throw this.#failure;
    }
  }

  #callsOn(database: Database, ledger: LedgerTable): StoreCalls {
    const outputs = new Outputs(database);
    const signals = new Signals(database);
    const records = new Records(database, () => signals.write());
    const possessions = new Possessions(database, [outputs, records]);
    const search = new FileSearch(database, signals, marksOf(database));
    const mover = new SpaceMover(database);
    const requests = new RequestTable(database);
    return {
      recall: (question) => search.recall(question),
      warm: () => search.warm(),
      capture: (given) => captureAll({ records, outputs }, given),
      retrieve: (key) => records.retrieve(key) ?? outputs.retrieve(key),
      list: (filter) => records.list(filter),
      references: (start) => referencesIn(database, start),
      forget: (filter) => this.#forget({ database, records, outputs, ledger }, filter),
      moveSome: (move) => mover.moveSome(move),
      bury: (given) => records.bury(given, Date.now()),
      forgetPlaced: (texts) => this.#forgetPlaced({ database, ledger }, texts),
      hold: (question) => possessions.hold(question, Date.now()),
      heldOutputs: (refs) => outputs.heldRefs(refs),
      dropOutputs: (space) => {
        if (outputs.drop(space) > 0) database.checkpoint();
      },
      outputSpaces: (limit) => outputs.spaces(limit),
      findEntries: (keys) => ledger.find(keys),
      filterKeys: () => ledger.keys.fillSome(),
      recordEntries: (rows) => ledger.record(rows),
      addRequests: (rows) => requests.add(rows),
      listRequests: (filter) => requests.list(filter),
      findRequests: (filter) => findRequests(database, filter),
      conversationRequests: (filter) => requests.conversation(filter),
      sumRequests: (filter) => requests.sum(filter),
      ...deskCalls({
        database,
        records,
        signals,
        forget: (filter) => this.#forget({ database, records, outputs, ledger }, filter),
      }),
      keepProvenance: (notes) => keepProvenance(database, notes),
      listProvenance: (filter) => listProvenance(database, filter),
      health: () => this.#health(database),
      isWhole: () => isWhole(database),
      close: () => this.#close(),
    };
  }

  /** No trace of the words is left: neither in a table nor in the write-ahead log. */
  #forget({ database, records, outputs, ledger }: Tables, filter: ForgetFilter): number {
    const now = Date.now();
    const outputCount = outputs.forget(filter, now);
    const { count, quotes } = records.forget(filter, now);
    if (quotes.size > 0) this.#emptyBlocks(ledger, (quote) => quotes.has(quote));
    if (outputCount + count > 0) database.checkpoint();
    return outputCount + count;
  }

  /** Empties the blocks that quote memories of another store. */
  #forgetPlaced(
    { database, ledger }: Pick<Tables, 'database' | 'ledger'>,
    texts: readonly string[] | 'all',
  ): number {
    const isForgotten = texts === 'all' ? () => true : quotesOfTexts(texts);
    const blocks = texts.length === 0 ? 0 : this.#emptyBlocks(ledger, isForgotten);
    if (blocks > 0) database.checkpoint();
    return blocks;
  }

  /**
   * The other processes are notified even where no row had such a block: theirs may be on its way.
   */
  #emptyBlocks(ledger: LedgerTable, isForgotten: (quote: string) => boolean): number {
    return ledger.forget(isForgotten, () => markForgotten(this.#options.folder));
  }

  #health(database: Database): StoreHealth {
    const file = databaseFile(this.#options.folder);
    const sizes = database.get<{ spaces: number; passages: number; records: number }>(
      `SELECT count(*) AS spaces, coalesce(sum(passages), 0) AS passages,
        (SELECT count(*) FROM records) AS records FROM spaces`,
    );
    return {
      driver: this.#driver?.name ?? '',
      sqliteVersion: database.sqliteVersion,
      journalMode: database.journalMode,
      file,
      spaces: sizes?.spaces ?? 0,
      records: sizes?.records ?? 0,
      passages: sizes?.passages ?? 0,
      bytes: databaseBytes(file),
      openMs: this.#openMs,
    };
  }

  /** A file found broken in use: the next call begins a new one beside it. */
  #abandon(database: Database): void {
    if (this.#driver === undefined) return;
    const isAtPath = (): boolean => database.isAtPath();
    const close = (): void => this.#close();
    abandon({ isBroken: true, isAtPath, close }, this.#openOptions(this.#driver));
  }

  #openOptions(driver: Driver): OpenOptions {
    const { folder, descriptors } = this.#options;
    const report = this.#options.report.bind(this.#options);
    return { folder, driver, descriptors, now: Date.now(), report };
  }

  #close(): void {
    const { database } = this.#opened ?? {};
    this.#opened = undefined;
    this.#publisher?.withdraw();
    try {
      database?.close();
    } catch {
      // Committed data is on disk; nothing else is lost with the connection.
    }
  }
}

/** Outputs are kept apart; both in the order in which they were given. */
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
  readonly ledger: LedgerTable;
}

function unavailable(what: string, cause?: unknown): MemoryError {
  return new MemoryError('unavailable', `The memory's file ${what}.`, { cause });
}

function asMemoryError(error: unknown): MemoryError {
  if (error instanceof MemoryError) return error;
  if (error instanceof SchemaTooNewError) return unavailable('was made by a later version of svc');
  return unavailable(failureText(error), error);
}
