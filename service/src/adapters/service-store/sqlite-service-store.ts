import { SPACE_BYTES_MAX } from '../../core/limits.ts';
import { isTenantId } from '../../core/tenants.ts';
import type { ServiceStore, TenantStore } from '../../ports/service-store.ts';
import { StoreClient } from '../../../../src/adapters/store/client.ts';
import { workerFile } from '../../../../src/adapters/processes/worker-file.ts';
import type { BridgedCall, ServiceStoreExtra } from './store.ts';
import type { FoundAnswer } from './memory-engine.ts';

/** Implements the service's store on an SQLite file, in worker threads. */

export interface ServiceStoreOptions extends Partial<ServiceStoreExtra> {
  readonly folder: string;
  /** Writes one line for the operator, which never contains a record's text. */
  report(line: string): void;
}

const READS = [
  'findCaller',
  'listTenants',
  'findTenant',
  'listPlans',
  'findAdmin',
  'listAdmins',
  'listMasterKeys',
  'listSecrets',
  'listSigningKeys',
  'changesSince',
  'openHeads',
  'unfinishedPurges',
  'health',
] as const satisfies readonly (keyof ServiceStore)[];
const WRITES = [
  'noteAdminUse',
  'apply',
  'storeReceipts',
  'closeHeads',
  'keepDays',
] as const satisfies readonly (keyof ServiceStore)[];
const TENANT_READS = [
  'listKeys',
  'getKey',
  'listAudit',
  'listProviders',
  'getSettings',
  'findSecret',
  'findReceipt',
  'listReceipts',
  'listHeads',
  'listUsage',
  'tokensSpent',
  'listLeases',
  'findAnswer',
  'spaceState',
  'retrieve',
  'listItems',
  'findItem',
  'listSources',
  'findPurge',
  'listPurges',
  'findLedger',
] as const satisfies readonly (keyof TenantStore)[];
const TENANT_WRITES = [
  'noteKeyUse',
  'apply',
  'dropReceipts',
  'takeLease',
  'renewLease',
  'endLease',
  'beginAnswer',
  'keepAnswer',
  'leaveAnswer',
  'capture',
  'beginPurge',
  'continuePurge',
  'recordLedger',
] as const satisfies readonly (keyof TenantStore)[];

type Call = (name: string, input: BridgedCall, signal?: AbortSignal) => Promise<unknown>;

/** Opens the store and returns at once: the worker opens the file, and calls wait for that. */
export function openServiceStore(options: ServiceStoreOptions): ServiceStore {
  const clients = new Clients(options);
  const { read, write } = clients;
  return {
    isShared: false,
    ...bridge<ServiceStore, (typeof READS)[number]>(READS, read),
    ...bridge<ServiceStore, (typeof WRITES)[number]>(WRITES, write),
    of: (tenant) => {
      if (!isTenantId(tenant)) throw new TypeError('This is not the id of a tenant.');
      return {
        ...bridge<TenantStore, (typeof TENANT_READS)[number]>(TENANT_READS, read, tenant),
        ...bridge<TenantStore, (typeof TENANT_WRITES)[number]>(TENANT_WRITES, write, tenant),
        recall: async (question, signal) => {
          const found = await read('recall', { tenant, args: [question] }, signal);
          // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The worker is of this build.
          const { signals, ...answer } = found as FoundAnswer;
          // No call waits for the signals. If a signal is lost, later recalls compare with fewer earlier prompts.
          if (signals.length > 0) {
            write('noteSignals', { args: [signals] }).catch(() => undefined);
          }
          return answer;
        },
      };
    },
    close: () => clients.close(),
  };
}

/** Makes methods that call the worker's methods of the same names. An AbortSignal is not sent to the worker. */
function bridge<Store, Name extends keyof Store & string>(
  names: readonly Name[],
  call: Call,
  tenant?: string,
): Pick<Store, Name> {
  const methods = names.map((name) => {
    const method = (...given: unknown[]): Promise<unknown> => {
      const signal = given.find((one) => one instanceof AbortSignal);
      const args = given.filter((one) => one !== signal || one === undefined);
      return call(name, tenant === undefined ? { args } : { tenant, args }, signal);
    };
    return [name, method];
  });
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The worker's methods have these types.
  return Object.fromEntries(methods) as Pick<Store, Name>;
}

/** The worker's calls by name, all with the same kind of input. */
type Calls = Record<string, (input: BridgedCall) => unknown>;

/**
 * Starts the workers. One worker writes. In a process that serves, another one reads, so that recalls and key look-ups
 * continue while a long text is indexed. A read sees everything that was committed before the read began.
 */
class Clients {
  readonly #options: ServiceStoreOptions;
  readonly #writer: StoreClient<Calls>;
  #reader: Promise<StoreClient<Calls>> | undefined;

  constructor(options: ServiceStoreOptions) {
    this.#options = options;
    this.#writer = this.#start(options);
  }

  readonly read: Call = async (name, input, signal) =>
    (await (this.#reader ??= this.#openReader())).call(name, input, signal);

  readonly write: Call = (name, input, signal) => this.#writer.call(name, input, signal);

  async close(): Promise<void> {
    const reader = await this.#reader?.catch(() => undefined);
    await reader?.close();
    // Close the writer last, because the last connection that closes the file empties its log.
    await this.#writer.close();
  }

  /** Opens the reader after the writer, which creates the file, checks its tables and holds the lock. */
  async #openReader(): Promise<StoreClient<Calls>> {
    if (this.#options.serves !== true) return this.#writer;
    await this.#writer.call('health', { args: [] });
    return this.#start({ ...this.#options, serves: false, creates: false });
  }

  #start(options: ServiceStoreOptions): StoreClient<Calls> {
    const { folder, serves = false, creates = false } = options;
    const { spaceBytesMax = SPACE_BYTES_MAX } = options;
    return new StoreClient<Calls>({
      folder,
      report: options.report.bind(options),
      worker: workerFile('service-store-worker', 'service/dist'),
      extra: { serves, creates, spaceBytesMax } satisfies ServiceStoreExtra,
    });
  }
}
