import { databaseBytes } from '../../../../src/adapters/files/database-file.ts';
import type {
  Purge,
  PurgeOrder,
  ServiceAnswer,
  ServiceQuestion,
  ServiceStoreHealth,
} from '../../ports/service-store.ts';
import type { Database } from '../../../../src/adapters/store/database.ts';
import type { Descriptors } from '../../../../src/adapters/store/descriptors.ts';
import { type Connection, failureText, loadDriver } from '../../../../src/adapters/store/driver.ts';
import { SchemaTooNewError } from '../../../../src/adapters/store/schema.ts';
import { Answers } from './answers.ts';
import { openServiceDatabase, serviceFile, ServiceFileError, takeServiceLock } from './database.ts';
import { Items } from './items.ts';
import { Control } from './control.ts';
import { KeyTable } from './keys.ts';
import { Objects } from './objects.ts';
import type { ServiceCalls, ServiceStoreExtra } from './protocol.ts';
import { Purges } from './purges.ts';
import { AuditTable } from './audit-table.ts';
import { ReceiptTable } from './receipts.ts';
import { Signals } from '../../../../src/adapters/store/signals.ts';
import { markForgotten } from '../../../../src/adapters/files/marks.ts';
import { LeaseTable } from './leases.ts';
import { ServiceLedgerTable } from './ledger-table.ts';
import { Spaces } from './spaces.ts';
import { UsageTable } from './usage.ts';
import { MemoryError } from '../../../../src/core/errors.ts';

/**
 * The service's store inside its worker: one call after the other, each whole. Every error becomes
 * a MemoryError, never with a text of a record or of SQLite.
 */

interface Opened {
  readonly database: Database;
  readonly calls: ServiceCalls;
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
  async call(name: keyof ServiceCalls, input: unknown): Promise<unknown> {
    if (name === 'close') return this.#close();
    const { calls, database } = await this.#open();
    // Nothing is proven from a file that was deleted, replaced or overwritten while it was open.
    if (!isOwnFile(database)) this.#fail();
    if (this.#failure !== undefined) throw this.#failure;
    try {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The name chose the input.
      const call = calls[name] as (given: unknown) => unknown;
      return call(input);
    } catch (error) {
      throw asMemoryError(error);
    }
  }

  #fail(): void {
    this.#failure = replaced();
  }

  // A service that cannot open its file ends; it does not try again behind its operator's back.
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
    const lock = serves ? takeServiceLock(folder, driver) : undefined;
    if (serves && lock === undefined) {
      throw new MemoryError('unavailable', 'Another svc service runs on this folder.');
    }
    try {
      const database = openServiceDatabase({ folder, driver, descriptors, creates });
      // A process that serves has the file to itself, so every process that held a lease is gone.
      if (serves) new LeaseTable(database).clear();
      return { database, lock, calls: this.#callsOn(database) };
    } catch (error) {
      lock?.close();
      throw error;
    }
  }

  #callsOn(database: Database): ServiceCalls {
    const ledger = new ServiceLedgerTable(database);
    const spaces = new Spaces(database);
    const objects = new Objects(database, spaces, this.#options.spaceBytesMax);
    const signals = new Signals(database);
    const items = new Items(database, signals);
    const purges = new Purges(database, spaces, (...given) => ledger.forgetBlocks(...given));
    const answers = new Answers(database);
    return {
      ...controlCalls(database),
      ...receiptCalls(database),
      ...leaseCalls(database),
      findLedger: ({ tenant, keys }) => ledger.find(tenant, keys),
      recordLedger: ({ tenant, rows }) => ledger.record(tenant, rows),
      spaceState: (space) => spaces.state(space),
      capture: (batch) => objects.capture(batch),
      recall: (question) => ({
        ...database.snapshot(() => recall({ spaces, objects, items }, question)),
        signals: signals.take(),
      }),
      noteSignals: (given) => database.unsyncedTransaction(() => signals.write(given)),
      retrieve: (question) => database.snapshot(() => objects.retrieve(question)),
      listItems: (filter) => items.list(filter),
      lookUp: (asked) => objects.lookUp(asked),
      findItem: (asked) => items.digestOf(asked),
      listSources: (filter) => items.sources(filter),
      beginPurge: (order) => this.#beginPurge(purges, order),
      continuePurge: ({ purgeId, now }) => purges.continue(purgeId, now),
      findPurge: (purgeId) => purges.find(purgeId),
      listPurges: (filter) => purges.list(filter),
      unfinishedPurges: () => purges.unfinished(),
      findAnswer: (asked) => answers.find(asked, Date.now()),
      beginAnswer: ({ tenant, asked, begun }) => answers.begin(tenant, asked, begun),
      keepAnswer: ({ tenant, asked, answer }) => answers.keep(tenant, asked, answer),
      health: () => this.#health(database),
      close: () => this.#close(),
    };
  }

  /** From then on no process places a block that it found before. */
  #beginPurge(purges: Purges, order: PurgeOrder): Purge {
    const purge = purges.begin(order);
    if (!order.isDryRun) markForgotten(this.#options.folder);
    return purge;
  }

  #health(database: Database): ServiceStoreHealth {
    const file = serviceFile(this.#options.folder);
    const sizes = database.get<
      Pick<ServiceStoreHealth, 'spaces' | 'records' | 'keys' | 'tenants' | 'providers' | 'newestAt'>
    >(
      `SELECT count(*) AS spaces, coalesce(sum(records), 0) AS records,
         (SELECT count(*) FROM service_keys WHERE revoked_at IS NULL) AS keys,
         (SELECT count(*) FROM tenants WHERE status <> 'deleted') AS tenants,
         (SELECT count(*) FROM providers) AS providers,
         max(coalesce((SELECT created_at FROM objects ORDER BY id DESC LIMIT 1), 0),
           coalesce((SELECT max(created_at) FROM service_keys), 0)) AS newestAt
       FROM space_states`,
    );
    return {
      engine: `SQLite ${database.sqliteVersion} (${database.journalMode})`,
      spaces: sizes?.spaces ?? 0,
      records: sizes?.records ?? 0,
      keys: sizes?.keys ?? 0,
      tenants: sizes?.tenants ?? 0,
      providers: sizes?.providers ?? 0,
      newestAt: sizes?.newestAt ?? 0,
      bytes: databaseBytes(file),
    };
  }

  #close(): void {
    const { database, lock } = this.#opened ?? {};
    this.#opened = undefined;
    try {
      database?.close();
    } catch {
      // Committed data is on disk; nothing else is lost with the connection.
    }
    lock?.close();
  }
}

function controlCalls(database: Database) {
  const keys = new KeyTable(database);
  const control = new Control(database, keys);
  return {
    findCaller: (keyId) => {
      const key = keys.find(keyId);
      const tenant = key === undefined ? undefined : control.findTenant(key.tenant);
      return key === undefined || tenant === undefined ? undefined : { key, tenant };
    },
    listKeys: ({ tenant, page }) => keys.list(tenant, page),
    getKey: ({ tenant, keyId }) => keys.get(tenant, keyId),
    noteKeyUse: (given) => keys.noteUse(given),
    listTenants: (page) => control.listTenants(page),
    findTenant: (tenantId) => control.findTenant(tenantId),
    listPlans: (page) => control.listPlans(page),
    findAdmin: (adminId) => control.admins.find(adminId),
    listAdmins: ({ tenant, page }) => control.admins.list(tenant, page),
    noteAdminUse: ({ adminId, at }) => control.admins.noteUse(adminId, at),
    listAudit: ({ tenant, page }) => control.audit.list(tenant, page),
    listProviders: (tenant) => control.providers.list(tenant),
    getSettings: (tenant) => control.settings.get(tenant),
    findSecret: ({ tenant, secretId }) => control.vault.find(tenant, secretId),
    listMasterKeys: () => control.vault.masterKeys(),
    listSecrets: (filter) => control.vault.list(filter),
    listSigningKeys: () => control.vault.signingKeys(),
    changesSince: (after) => control.changes.since(after),
    applyService: ({ change, note }) => control.applyService(change, note),
    applyTenant: ({ tenant, change, note }) => control.applyTenant(tenant, change, note),
  } satisfies Partial<ServiceCalls>;
}

function receiptCalls(database: Database) {
  const usage = new UsageTable(database);
  const receipts = new ReceiptTable(database, usage);
  const audit = new AuditTable(database);
  return {
    storeReceipts: (rows) => receipts.store(rows),
    openHeads: ({ node, limit }) => receipts.openHeads(node, limit),
    closeHeads: (heads) => receipts.closeHeads(heads),
    findReceipt: ({ tenant, receiptId }) => receipts.find(tenant, receiptId),
    listReceipts: ({ tenant, filter }) => receipts.list(tenant, filter),
    listHeads: ({ tenant, page }) => receipts.heads(tenant, page),
    listUsage: ({ tenant, filter }) => usage.list(tenant, filter),
    tokensSpent: ({ tenant, asked }) => usage.spent(tenant, asked),
    dropAudit: (before) => audit.dropBefore(before),
    dropReceipts: ({ tenant, before, limit }) => receipts.drop(tenant, before, limit),
  } satisfies Partial<ServiceCalls>;
}

function leaseCalls(database: Database) {
  const leases = new LeaseTable(database);
  return {
    takeLease: ({ tenant, lease }) => leases.take(tenant, lease),
    renewLease: ({ tenant, lease }) => leases.renew(tenant, lease),
    endLease: ({ tenant, lease }) => leases.end(tenant, lease),
    listLeases: ({ tenant, start }) => leases.list(tenant, start),
  } satisfies Partial<ServiceCalls>;
}

function recall(
  { spaces, objects, items }: { spaces: Spaces; objects: Objects; items: Items },
  question: ServiceQuestion,
): ServiceAnswer {
  const state = spaces.state(question.space);
  const { coverage, isPartial } = objects.prove(question);
  // The search is bounded, and takes some 20 ms: what cannot begin in time is left out.
  const isLate = question.text !== undefined && Date.now() > question.deadlineAt;
  const found = isLate ? { items: [], isTruncated: false } : items.recall(question);
  return { state, coverage, ...found, isPartial: isPartial || isLate };
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

function asMemoryError(error: unknown): MemoryError {
  if (error instanceof MemoryError) return error;
  return new MemoryError('unavailable', `The service's file ${whatOf(error)}.`, { cause: error });
}

function whatOf(error: unknown): string {
  if (error instanceof ServiceFileError) return error.message;
  if (error instanceof SchemaTooNewError) return 'was made by a later version of svc';
  return failureText(error);
}
