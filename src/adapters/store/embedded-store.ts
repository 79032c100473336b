import type { MemoryDesk } from '../../ports/memory-desk.ts';
import type { LocalStore } from '../../ports/local-store.ts';
import type { ProvenanceStore } from '../../ports/provenance.ts';
import type { StateLedger, PlacedRecords } from '../state/ledger.ts';
import { CLOSE_FLUSH_MS, type StateOutbox, STORE_TARGET } from '../state/outbox.ts';
import { StateRequestLog } from '../state/request-log.ts';
import { openState, type State } from '../state/state.ts';
import { type StoreCaller, StoreClient, type StoreClientOptions } from './client.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import { batchesOf } from '../../core/bytes/batches.ts';
import {
  type CaptureState,
  type ForgetFilter,
  type Holding,
  type HoldQuestion,
  type Memory,
  type MemoryRecord,
  type RecordKey,
  REST_MS,
} from '../../ports/memory.ts';
import type { ForgottenElsewhere } from './protocol.ts';
import { MemoryError } from '../../core/errors.ts';
import {
  cleanOutputFiles,
  outputFileRefs,
  removeOutputFiles,
  writeOutputFile,
} from '../files/output-files.ts';
import { Recent } from '../../core/bytes/recent.ts';
import { ownSecrets } from '../../core/redaction/own-secrets.ts';
import { referenceOf } from '../../core/memory/reference.ts';
import { type BigIntStats, statSync } from 'node:fs';
import { databaseFile } from '../files/database-file.ts';
import { type Driver, loadDriver, Statements } from './driver.ts';
import { identityIn, TIME_STEP_MS } from './opened-file.ts';

/**
 * Opens the databases in svc's data folder, with memories, ledger, outbox and request log. Several processes may have
 * the folder open.
 */

/** Interval of endInterrupted(). A forgetting without progress between two calls counts as interrupted. */
const LOOK_MS = 3000;

/** Number of recalls that warm the index. The first takes 30 ms; a fourth would be no faster than the third. */
const WARMING_TIMES = 3;

interface EmbeddedStoreOptions {
  /** The folder of the database. It is made with mode 0700 if it does not exist. */
  readonly folder: string;
  /** Writes one line for the user, which never contains a record's text. */
  report(line: string): void;
  /** Opens a client that runs the store's calls; undefined: a worker thread runs them. */
  readonly openClient?: (options: StoreClientOptions) => StoreCaller;
  /** How long the first use of `state.db` waits for a lock, in milliseconds; undefined: a second. */
  readonly openMs?: number;
  /** The interval of endInterrupted(), in milliseconds; undefined: LOOK_MS. */
  readonly lookMs?: number;
  /** The pause between two attempts to erase forgotten texts, in milliseconds; undefined: ERASE_REST_MS. */
  readonly eraseRestMs?: number;
}

export interface EmbeddedStore extends LocalStore {
  readonly memory: EmbeddedMemory;
  readonly ledger: StateLedger;
  readonly outbox: StateOutbox;
  readonly requestLog: StateRequestLog;
  readonly state: Pick<State, 'outboxFor' | 'file' | 'writer'>;
  readonly provenance: ProvenanceStore;
  readonly desk: MemoryDesk;
  /**
   * Runs some recalls, so that the first one of a request is fast. Calls for requests may run between them. Never
   * rejects: later calls report a failing memory.
   */
  warm(): Promise<void>;
}

/**
 * Opens the store and returns at once. The files are opened afterwards, `memory.db` by a worker unless a hook runs the
 * store in its own thread; calls wait for that.
 */
export function openEmbeddedStore(options: EmbeddedStoreOptions): EmbeddedStore {
  const { folder, lookMs = LOOK_MS, eraseRestMs = ERASE_REST_MS } = options;
  const report = options.report.bind(options);
  const proofs = new ProofState(folder);
  const { openClient = (parts) => new StoreClient(parts) } = options;
  const client = openClient({
    folder,
    report,
    onReplaced: () => {
      state.ledger.forget();
      outbox.forgetSettled();
      mirror.forgetLooked();
    },
  });
  const state = openState({
    folder,
    report,
    openMs: options.openMs,
    checkpoint: () => void client.call('checkpointState', undefined).catch(() => undefined),
  });
  const mirror = new OutputMirror({
    folder,
    report,
    textOf: async (key) => (await client.call('retrieve', key))?.text,
    heldOf: (refs) => client.call('heldOutputs', refs),
  });
  const memory = new EmbeddedMemory({
    client,
    mirror,
    proofs,
    report,
    eraseRestMs,
    settle: async () => {
      // Store the waiting captures, also those of ended processes. If some still wait after CLOSE_FLUSH_MS,
      // `beginForget` writes tombstones for those that its filter selects, so that they are not stored later.
      await outbox.flush(CLOSE_FLUSH_MS);
      state.open();
    },
  });
  const outbox = state.outboxFor(STORE_TARGET, memory);
  // The store's thread opens `state.db` only if it exists, so this thread creates it first.
  setImmediate(() => {
    state.open();
    memory.begin().catch(() => undefined);
  });
  const looking = setInterval(() => void memory.endInterrupted().catch(() => undefined), lookMs);
  looking.unref();
  const close = async (): Promise<void> => {
    clearInterval(looking);
    await outbox.flush(CLOSE_FLUSH_MS);
    outbox.close();
    await memory.close();
    await state.close();
  };
  return {
    memory,
    ledger: state.ledger,
    outbox,
    state,
    requestLog: new StateRequestLog(state.writer, (name, input, signal) => {
      state.open();
      return client.call(name, input, signal);
    }),
    provenance: {
      keep: async (notes) => void (await client.call('keepProvenance', notes)),
      list: (filter) => client.call('listProvenance', filter),
    },
    desk: deskOver(client, memory),
    health: () => client.call('health', undefined),
    warm: () => warm(client).catch(() => undefined),
    isWhole: () => client.call('isWhole', undefined),
    close,
  };
}

function deskOver(client: StoreCaller, memory: EmbeddedMemory): MemoryDesk {
  return {
    shelves: () => client.call('shelves', undefined),
    days: (space) => client.call('days', space),
    browse: (filter) => client.call('browse', filter),
    look: (question) => client.call('look', question),
    beginnings: (conversations) => client.call('beginnings', conversations),
    sightings: (refs) => client.call('sightings', refs),
    rules: (filter) => client.call('rules', filter),
    markRule: (change) => client.call('markRule', change),
    pin: (change) => client.call('pin', change),
    edit: async (change) => {
      const state = await client.call('edit', change);
      if (state === 'edited') await memory.endForgetting();
      return state;
    },
    restore: (records) => client.call('restore', records),
  };
}

async function warm(client: StoreCaller): Promise<void> {
  for (let times = 0; times < WARMING_TIMES; times += 1) await client.call('warm', undefined);
}

/**
 * Bounds of a transaction that stores captures. Other processes wait while it holds the lock, for 2 ms and a sync of
 * the disk. A text of more than `sizeMax` characters has a transaction of its own: 12 ms for 32 kB.
 */
const BATCHES = {
  countMax: 8,
  sizeMax: 8_192,
  sizeOf: ({ text }: MemoryRecord) => text.length,
} as const;

/** Attempts to erase forgotten texts from the files, ten seconds in all. Another program may read a file for hours. */
const ERASE_ATTEMPTS = 40;
const ERASE_REST_MS = 250;
/**
 * The number of calls of endInterrupted() from one failed attempt to the next. A full disk or a long read lasts a
 * while, and each attempt may write the whole file.
 */
const LOOKS_BETWEEN = 5;
const READ_BY_OTHERS =
  "Another program reads the memory's files, so they may still have the forgotten words. svc removes them as soon as that program lets it.";

interface EmbeddedMemoryParts {
  readonly client: StoreCaller;
  readonly mirror: OutputMirror;
  readonly proofs: ProofState;
  /** Stores the captures in the outbox, as far as that is possible now. */
  readonly settle: () => Promise<void>;
  readonly report: (line: string) => void;
  readonly eraseRestMs: number;
}

/** Implements the memory port over the store's worker. */
class EmbeddedMemory implements Memory {
  readonly supports = { kind: 'embedded', read: true, write: true } as const;
  readonly #client: StoreCaller;
  readonly #parts: EmbeddedMemoryParts;
  /** The state of the unfinished forgetting that the last call of endInterrupted() found; see forgetting.ts. */
  #unended = '';
  /** The files' state at the last call of endInterrupted(); see ProofState.changes. */
  #changes = '';
  /** Counts down to the next attempt after a failed one: endInterrupted() does nothing while this is above 0. */
  #pause = 0;

  readonly recall: Memory['recall'] = (question, signal) =>
    this.#client.call('recall', question, signal);
  readonly retrieve: Memory['retrieve'] = (key, signal) =>
    this.#client.call('retrieve', key, signal);
  readonly list: Memory['list'] = (filter, signal) => this.#client.call('list', filter, signal);
  readonly page: Required<Memory>['page'] = (filter, signal) =>
    this.#client.call('page', filter, signal);
  readonly references: Memory['references'] = (start, signal) =>
    this.#client.call('references', start, signal);
  readonly moveSome: Required<Memory>['moveSome'] = (move, signal) =>
    this.#client.call('moveSome', move, signal);
  readonly placed = (): Promise<PlacedRecords> => this.#client.call('placed', undefined);
  readonly outputSpaces = (limit: number): Promise<readonly string[]> =>
    this.#client.call('outputSpaces', limit);

  constructor(parts: EmbeddedMemoryParts) {
    this.#client = parts.client;
    this.#parts = parts;
  }

  async capture(
    records: readonly MemoryRecord[],
    signal: AbortSignal,
  ): Promise<readonly CaptureState[]> {
    const states: CaptureState[] = [];
    for (const batch of batchesOf(records, BATCHES)) {
      if (states.length > 0) await sleep(REST_MS);
      const given = { records: batch, ownSecrets: ownSecrets() };
      states.push(...(await this.#client.call('capture', given, signal)));
    }
    return states;
  }

  async forget(
    filter: ForgetFilter,
    signal: AbortSignal,
    progress?: (forgotten: number, all: number) => void,
  ): Promise<number> {
    await this.#parts.settle();
    const all = await this.#client.call('beginForget', filter, signal);
    try {
      await this.#forgetBegun(signal, (done) => progress?.(Math.min(done, all), all));
    } finally {
      // Do this after an error too: a deleted text must not stay in a block, in the log or in unused bytes of a file.
      await this.endForgetting();
    }
    return all;
  }

  /** Erases deleted texts from all files. If another program reads one of them, endInterrupted() does it later. */
  async endForgetting(): Promise<void> {
    const failure = await this.#parts.mirror.sweep().catch((cause: unknown) => {
      const message = 'svc forgot a tool output, but could not remove its file.';
      return new MemoryError('unavailable', message, { cause });
    });
    const last = await this.#client.call('emptyForgotten', undefined);
    for (let attempt = 1; !(await this.#erase(last)); attempt += 1) {
      if (attempt === ERASE_ATTEMPTS) {
        this.#parts.report(READ_BY_OTHERS);
        break;
      }
      await sleep(this.#parts.eraseRestMs);
    }
    if (failure !== undefined) throw failure;
  }

  /** Finishes a forgetting that another process has begun. Call it once, when `state.db` exists. */
  async begin(): Promise<void> {
    const unended = await this.#client.call('unended', undefined);
    this.#parts.proofs.begin();
    if (unended !== '') await this.#endBegun();
  }

  /**
   * Finishes a forgetting of this or another process that has made no progress since the last call. Call it every few
   * seconds.
   */
  async endInterrupted(): Promise<void> {
    this.#pause = Math.max(0, this.#pause - 1);
    const changes = this.#parts.proofs.changes();
    // If nothing has changed, do not wake an idle worker.
    if (this.#pause > 0 || (this.#unended === '' && changes === this.#changes)) return;
    this.#changes = changes;
    const before = this.#unended;
    this.#unended = await this.#client.call('unended', undefined);
    if (this.#unended === '' || this.#unended !== before) return;
    this.#pause = LOOKS_BETWEEN;
    if (await this.#endBegun()) this.#pause = 0;
  }

  async #endBegun(): Promise<boolean> {
    await this.#forgetBegun();
    await this.#parts.mirror.sweep();
    return this.#erase(await this.#client.call('emptyForgotten', undefined));
  }

  async #erase(last: number): Promise<boolean> {
    return last === 0 || this.#client.call('eraseForgotten', last);
  }

  async #forgetBegun(signal?: AbortSignal, progress?: (done: number) => void): Promise<void> {
    for (let done = 0; ;) {
      const some = await this.#client.call('forgetSome', undefined, signal);
      if (some === 0) return;
      done += some;
      progress?.(done);
      await sleep(REST_MS);
    }
  }

  /** Empties the placed blocks that quote records which a memory service has purged. */
  async forgetPlaced(forgotten: ForgottenElsewhere): Promise<number> {
    const emptied = await this.#client.call('forgetPlaced', forgotten);
    await this.endForgetting();
    return emptied;
  }

  async hold(question: HoldQuestion, signal: AbortSignal): Promise<readonly Holding[]> {
    const holdings = await this.#client.call('hold', question, signal);
    // A caller asks for proofs because it is about to leave these texts out, so write their files.
    const digests = holdings.map(({ digest }) => digest);
    this.keepFiles(question.space, digests);
    return holdings;
  }

  holdVersion(): number | undefined {
    return this.#parts.proofs.version();
  }

  /**
   * Deletes the local copies of a space's outputs, which a memory service stores. Call it when the space has a new
   * generation, because the service may have forgotten one of these outputs.
   */
  async dropOutputs(space: string): Promise<void> {
    await this.#client.call('dropOutputs', space);
    await this.endForgetting();
  }

  /** Removes files whose output no longer exists, as after a kill between the deletion of a row and of its file. */
  sweepFiles(): Promise<void> {
    return this.#parts.mirror.sweep();
  }

  /** Writes these outputs as files, for clients in a read-only sandbox. Returns at once. */
  keepFiles(space: string, digests: readonly string[]): void {
    this.#parts.mirror.keep(space, digests);
  }

  async close(): Promise<void> {
    await this.#parts.mirror.close();
    // The last connection that closes a file empties its log. On Node 20 a connection ends only when its statements are
    // garbage-collected, so empty the log explicitly.
    if (this.#parts.proofs.close())
      await this.#client.call('emptyLog', undefined).catch(() => undefined);
    await this.#client.close();
  }
}

/** Time after which the file of an output is checked again. */
const FILE_LOOK_MS = 3_600_000;
/** Bound on outputs that wait to be written: more than a long session leaves out. Later requests name the rest. */
const WAITING_MAX = 4_096;
/** Bound on the outputs for which the time of the last check is known. */
const LOOKED_MAX = 20_000;
/** Writes between two cleanings, which read the sizes of all files. */
const WRITES_PER_CLEAN = 256;

interface OutputMirrorOptions {
  readonly folder: string;
  /** Returns a stored text; undefined if it is not stored. */
  textOf(key: RecordKey): Promise<string | undefined>;
  /** Returns those of the references that name a stored output. */
  heldOf(refs: readonly string[]): Promise<readonly string[]>;
  report(line: string): void;
}

interface Waiting {
  readonly space: string;
  readonly digest: string;
}

/**
 * Writes a file for each output that svc leaves out of a prompt, while the request is sent. The row in the store is
 * authoritative: if it is deleted, the file is deleted too.
 */
class OutputMirror {
  readonly #options: OutputMirrorOptions;
  readonly #waiting = new Map<string, Waiting>();
  /** When the file of an output was last checked, by space and digest; milliseconds since 1970. */
  readonly #looked = new Recent<string, number>(LOOKED_MAX);
  #working: Promise<void> | undefined;
  #writes = 0;
  #isClosed = false;
  #hasFailed = false;

  constructor(options: OutputMirrorOptions) {
    this.#options = options;
  }

  /** Starts writing the files of outputs. Returns at once. */
  keep(space: string, digests: readonly string[]): void {
    const now = Date.now();
    for (const digest of digests) {
      const key = `${space} ${digest}`;
      const isFresh = now - (this.#looked.get(key) ?? -Infinity) < FILE_LOOK_MS;
      if (!isFresh && this.#waiting.size < WAITING_MAX) this.#waiting.set(key, { space, digest });
    }
    if (this.#waiting.size > 0) this.#working ??= this.#work();
  }

  /** Removes files whose text no longer exists. Throws if one cannot be removed. */
  async sweep(): Promise<void> {
    const { folder } = this.#options;
    const refs = await outputFileRefs(folder);
    if (refs.length === 0) return;
    const held = new Set(await this.#options.heldOf(refs));
    await removeOutputFiles(
      folder,
      refs.filter((ref) => !held.has(ref)),
    );
    this.#looked.clear();
  }

  /** Makes keep() check every file again, because the store was replaced. */
  forgetLooked(): void {
    this.#looked.clear();
  }

  /** Stops writing. Resolves when the current file is written. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#working;
  }

  async #work(): Promise<void> {
    for (const [key, { space, digest }] of this.#waiting) {
      if (this.#isClosed) break;
      try {
        // oxlint-disable-next-line no-await-in-loop -- No request waits for this.
        await this.#keepOne({ space, digest });
        this.#looked.set(key, Date.now());
      } catch {
        if (!this.#hasFailed) {
          this.#options.report(
            'svc cannot write left-out outputs as files, so a client in a read-only sandbox cannot read them again.',
          );
        }
        this.#hasFailed = true;
      }
      this.#waiting.delete(key);
    }
    this.#working = undefined;
  }

  async #keepOne({ space, digest }: Waiting): Promise<void> {
    const { folder } = this.#options;
    if (this.#writes % WRITES_PER_CLEAN === 0) await cleanOutputFiles(folder, Date.now());
    this.#writes += 1;
    const text = await this.#options.textOf({ space, digest });
    if (text === undefined) return;
    const ref = referenceOf(digest);
    await writeOutputFile(folder, { ref, text }, Date.now());
    // Another process may have forgotten the output meanwhile, and may have looked for the file before it was written.
    if ((await this.#options.textOf({ ref })) === undefined) await removeOutputFiles(folder, [ref]);
  }
}

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

class ProofState {
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
