import { MemoryError } from '../../../../src/core/errors.ts';
import { databaseBytes } from '../../../../src/adapters/files/database-file.ts';
import type { LoopOptions } from '../../../../src/adapters/store/call-loop.ts';
import type { Database } from '../../../../src/adapters/store/database.ts';
import type { Descriptors } from '../../../../src/adapters/store/descriptors.ts';
import { type Connection, failureText, loadDriver } from '../../../../src/adapters/store/driver.ts';
import { SchemaTooNewError } from '../../../../src/adapters/store/schema.ts';
import { type NewSignal, Signals } from '../../../../src/adapters/store/signals.ts';
import type { Transactions } from '../../ports/rows.ts';
import type { KeptDays, ServiceStoreHealth } from '../../ports/service-store.ts';
import { dropStale, serviceControl } from '../control/control-plane.ts';
import { heldIn, tenantStores, unfinishedPurges } from '../memory/tenant-memory.ts';
import { lockServiceFolder, openServiceDatabase, serviceFile } from './database.ts';
import { sqliteMemory } from './memory-engine.ts';
import { ServiceFileError } from './schema.ts';
import { SQLITE_NOW, SqliteTransactions } from './transactions.ts';

/**
 * The service's store inside its worker: it runs one call after the other. Every error becomes a MemoryError, whose
 * message never contains a record's text or SQLite's message.
 */

/** The input of every call to the worker. The call's name is that of the store's method. */
export interface BridgedCall {
  /** The tenant whose store has the method; undefined for a method of the whole store. */
  readonly tenant?: string;
  readonly args: readonly unknown[];
}

export interface ServiceStoreExtra {
  /** True: take the folder's lock, because this process serves. Most commands open the store without the lock. */
  readonly serves: boolean;
  readonly creates: boolean;
  readonly spaceBytesMax: number;
}

type Methods = Readonly<Record<string, ((...args: never[]) => unknown) | undefined>>;

interface Opened {
  readonly database: Database;
  /** Returns the methods of a tenant's store, or of the whole store. */
  readonly methods: (tenant: string | undefined) => Methods;
  readonly lock: Connection | undefined;
}

export interface WorkerStoreOptions extends ServiceStoreExtra {
  readonly folder: string;
  readonly descriptors: Descriptors;
}

export class WorkerStore {
  readonly #options: WorkerStoreOptions;
  #opened: Opened | undefined;
  #failure: MemoryError | undefined;

  constructor(options: WorkerStoreOptions) {
    this.#options = options;
  }

  async open(): Promise<void> {
    await this.#open().catch(() => undefined);
  }

  /** Throws MemoryError and nothing else. */
  async call(name: string, input: unknown): Promise<unknown> {
    if (name === 'close') return this.#close();
    const { methods, database } = await this.#open();
    // Refuse every call once the file was deleted, replaced or overwritten while it was open.
    if (!isOwnFile(database)) this.#failure = replaced();
    if (this.#failure !== undefined) throw this.#failure;
    try {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Only sqlite-service-store.ts calls.
      const { tenant, args } = input as BridgedCall;
      const method = methods(tenant)[name];
      if (method === undefined) throw new TypeError('There is no such method.');
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion
      return await method(...(args as never[]));
    } catch (error) {
      throw asMemoryError(error);
    }
  }

  // A failed opening is not tried again: all later calls fail with the same error, so that the operator notices it.
  async #open(): Promise<Opened> {
    if (this.#opened !== undefined) return this.#opened;
    if (this.#failure !== undefined) throw this.#failure;
    try {
      this.#opened = await this.#openNow();
      return this.#opened;
    } catch (error) {
      this.#failure = asMemoryError(error);
      throw this.#failure;
    }
  }

  async #openNow(): Promise<Opened> {
    const { folder, descriptors, serves, creates } = this.#options;
    const driver = loadDriver();
    const lock = serves ? lockServiceFolder(folder) : undefined;
    if (serves && lock === undefined) {
      throw new MemoryError('unavailable', 'Another svc service runs on this folder.');
    }
    try {
      const database = openServiceDatabase({ folder, driver, descriptors, creates });
      // Only one process serves a file, so the leases of earlier services are void. A running command loses its lease
      // too.
      if (serves) database.run('DELETE FROM leases');
      return { database, lock, methods: this.#methodsOn(database) };
    } catch (error) {
      lock?.close();
      throw error;
    }
  }

  #methodsOn(database: Database): Opened['methods'] {
    const transactions = new SqliteTransactions(database);
    const engine = { open: async () => transactions, now: SQLITE_NOW };
    const signals = new Signals(database);
    const bytesMax = this.#options.spaceBytesMax;
    const memory = sqliteMemory({ database, transactions, signals, bytesMax });
    const whole = {
      ...serviceControl(engine),
      unfinishedPurges: () => unfinishedPurges(memory),
      keepDays: (kept: KeptDays) => dropStale(engine, kept),
      noteSignals: (given: readonly NewSignal[]) =>
        database.unsyncedTransaction(() => signals.write(given)),
      health: () => this.#health(database, transactions),
    };
    const storeOf = tenantStores(engine, memory);
    return (tenant) => (tenant === undefined ? whole : storeOf(tenant));
  }

  async #health(database: Database, transactions: Transactions): Promise<ServiceStoreHealth> {
    return {
      engine: `SQLite ${database.sqliteVersion} (${database.journalMode})`,
      bytes: databaseBytes(serviceFile(this.#options.folder)),
      ...(await transactions.read(heldIn)),
    };
  }

  #close(): void {
    const { database, lock } = this.#opened ?? {};
    this.#opened = undefined;
    try {
      database?.close();
    } catch {
      // Committed data is on disk, and the connection holds nothing else.
    }
    lock?.close();
  }
}

function isOwnFile(database: Database): boolean {
  const state = database.look();
  return state === 'same' || state === 'written';
}

function replaced(): MemoryError {
  const message =
    "The service's file was deleted or replaced while it was open. Restart the service.";
  return new MemoryError('unavailable', message);
}

/** Returns an error of the service's file as MemoryError `unavailable`, and a MemoryError as it is. */
export function asMemoryError(error: unknown): MemoryError {
  if (error instanceof MemoryError) return error;
  return new MemoryError('unavailable', `The service's file ${whatOf(error)}.`, { cause: error });
}

function whatOf(error: unknown): string {
  if (error instanceof ServiceFileError) return error.message;
  if (error instanceof SchemaTooNewError) return 'was made by a later version of svc';
  return failureText(error);
}

/** How the store's worker answers. Urgent calls run before others, because requests and clients wait for them. */
export const STORE_LOOP: LoopOptions = {
  makeStore: ({ folder, extra, descriptors }) =>
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Only sqlite-service-store.ts starts the worker.
    new WorkerStore({ folder, descriptors, ...(extra as ServiceStoreExtra) }),
  urgent: new Set(['findCaller', 'findAdmin', 'spaceState', 'recall', 'findAnswer']),
};
