import type { ServiceStore } from '../../ports/service-store.ts';
import { StoreClient } from '../../../../src/adapters/store/client.ts';
import { workerFile } from '../../../../src/adapters/processes/worker-file.ts';
import type { ServiceCalls, ServiceStoreExtra } from './protocol.ts';
import { type Call, tenantStore, unfinishedPurges } from './tenant-store.ts';

/** The service's store over a SQLite file in a worker thread. */

export interface ServiceStoreOptions extends Partial<ServiceStoreExtra> {
  readonly folder: string;
  /** One line for people; never a text of a record. */
  report(line: string): void;
}

/** The limit of one space: a busy team's records of ten years. */
const SPACE_BYTES_MAX = 16 * 1024 ** 3;

/** Returns at once: the file is opened in the worker, and calls wait until it is. */
export function openServiceStore(options: ServiceStoreOptions): ServiceStore {
  const clients = new Clients(options);
  const read: Call = (name, input, signal) => clients.read(name, input, signal);
  const write: Call = (name, input, signal) => clients.write(name, input, signal);
  return {
    isShared: false,
    of: (tenant) => tenantStore(tenant, { read, write }),
    findCaller: (keyId, signal) => read('findCaller', keyId, signal),
    listTenants: (page) => read('listTenants', page),
    findTenant: (tenantId) => read('findTenant', tenantId),
    listPlans: (page) => read('listPlans', page),
    findAdmin: (adminId, signal) => read('findAdmin', adminId, signal),
    listAdmins: (tenant, page) => read('listAdmins', { tenant, page }),
    noteAdminUse: (adminId, at) => write('noteAdminUse', { adminId, at }),
    listMasterKeys: () => read('listMasterKeys', undefined),
    listSecrets: (filter) => read('listSecrets', filter),
    listSigningKeys: () => read('listSigningKeys', undefined),
    changesSince: (after, signal) => read('changesSince', after, signal),
    apply: (change, note) => write('applyService', { change, note }),
    storeReceipts: (rows) => write('storeReceipts', rows),
    openHeads: (asked) => read('openHeads', asked),
    closeHeads: (heads) => write('closeHeads', heads),
    keepDays: async ({ auditFrom }) => {
      if (auditFrom !== undefined) await write('dropAudit', auditFrom);
    },
    unfinishedPurges: () => unfinishedPurges(read),
    health: () => read('health', undefined),
    close: () => clients.close(),
  };
}

/**
 * One worker writes and, while a service runs, another one reads. So recalls and key look-ups run
 * while a long text is indexed. A read sees everything that was committed before it, because both
 * use one log.
 */
class Clients {
  readonly #options: ServiceStoreOptions;
  readonly #writer: StoreClient<ServiceCalls>;
  #reader: Promise<StoreClient<ServiceCalls>> | undefined;

  constructor(options: ServiceStoreOptions) {
    this.#options = options;
    this.#writer = this.#start(options);
  }

  read: Call = async (name, input, signal) =>
    (await (this.#reader ??= this.#openReader())).call(name, input, signal);

  write: Call = (name, input, signal) => this.#writer.call(name, input, signal);

  async close(): Promise<void> {
    const reader = await this.#reader?.catch(() => undefined);
    await reader?.close();
    // Last: who closes the file last empties its log.
    await this.#writer.close();
  }

  /** After the writer, which makes the file, brings it to this version and holds the lock. */
  async #openReader(): Promise<StoreClient<ServiceCalls>> {
    if (this.#options.serves !== true) return this.#writer;
    await this.#writer.call('health', undefined);
    return this.#start({ ...this.#options, serves: false, creates: false });
  }

  #start(options: ServiceStoreOptions): StoreClient<ServiceCalls> {
    const { folder, serves = false, creates = false } = options;
    const { spaceBytesMax = SPACE_BYTES_MAX } = options;
    return new StoreClient<ServiceCalls>({
      folder,
      report: options.report.bind(options),
      worker: workerFile('service-store-worker', 'service/dist'),
      extra: { serves, creates, spaceBytesMax } satisfies ServiceStoreExtra,
    });
  }
}
