import { isTenantId } from '../../core/tenants.ts';
import type { Page } from '../../ports/control-store.ts';
import type {
  AnswerKey,
  PageFilter,
  Purge,
  ServiceItem,
  ServiceStore,
  SpaceChoice,
  SpaceState,
  StoredObject,
  TenantPurge,
  TenantStore,
} from '../../ports/service-store.ts';
import type { StoreClient } from '../../../../src/adapters/store/client.ts';
import { answerLeaseName } from './leases.ts';
import type { ServiceCalls } from './protocol.ts';

/**
 * Binds the tables to a tenant. A space is stored as `tenant:space`, which is unique in the file, so
 * each row of a space belongs to one tenant. This file alone puts the tenant in front and takes it
 * off again: what it is asked for is looked for under its own tenant, and what it returns must be of
 * its own tenant.
 */

export type Call = StoreClient<ServiceCalls>['call'];

export interface StoreCalls {
  readonly read: Call;
  readonly write: Call;
}

export function tenantStore(tenant: string, { read, write }: StoreCalls): TenantStore {
  if (!isTenantId(tenant)) throw new TypeError('This is not the id of a tenant.');
  const names = new TenantNames(tenant);
  const calls = { read, write };
  const own = {
    ...controlCalls(tenant, calls),
    ...receiptCalls(tenant, calls),
    ...purgeCalls(names, calls),
    ...leaseCalls(tenant, calls),
    ...answerCalls(names, calls),
  };
  return {
    ...own,
    spaceState: async (space, signal) =>
      names.bareState(await read('spaceState', names.whole(space), signal)),
    capture: async (batch, signal) => {
      const outcome = await write('capture', { ...batch, space: names.whole(batch.space) }, signal);
      return { ...outcome, state: names.bareState(outcome.state) };
    },
    recall: async (question, signal) => {
      const space = names.whole(question.space);
      const otherSpaces = question.otherSpaces.map((other) => names.whole(other));
      const olderSpaces = question.olderSpaces?.map((older) => names.whole(older)) ?? [];
      const asked = { ...question, space, otherSpaces, olderSpaces };
      const { signals, exchanges, sessions, ...answer } = await read('recall', asked, signal);
      // No call waits for these. A lost entry makes a share of 200 slightly less exact.
      if (signals.length > 0) void write('noteSignals', signals).catch(() => undefined);
      return {
        ...answer,
        state: names.bareState(answer.state),
        items: answer.items.map((item) => names.bareItem(item)),
        ...(exchanges === undefined
          ? {}
          : { exchanges: exchanges.map((one) => ({ ...one, space: names.bare(one.space) })) }),
        ...(sessions === undefined
          ? {}
          : { sessions: sessions.map((one) => ({ ...one, space: names.bare(one.space) })) }),
      };
    },
    retrieve: async (question, signal) => {
      const spaces = names.wholeChoice(question.spaces);
      const { state, objects, missing } = await read('retrieve', { ...question, spaces }, signal);
      return {
        state: state === undefined ? undefined : names.bareState(state),
        objects: objects.map((object) => names.bareItem(object)),
        missing,
      };
    },
    listItems: async (filter, signal) => {
      const items = await read('listItems', names.wholeFilter(filter), signal);
      return items.map((item) => names.bareItem(item));
    },
    lookUp: async (asked, signal) => {
      const spaces = names.wholeChoice(asked.spaces);
      const found = await read('lookUp', { ...asked, spaces }, signal);
      return found.map((record) => ({ ...record, space: names.bare(record.space) }));
    },
    findItem: (asked, signal) =>
      read('findItem', { ...asked, space: names.whole(asked.space) }, signal),
    listSources: async (filter, signal) => {
      const sources = await read('listSources', names.wholeFilter(filter), signal);
      return sources.map((source) => ({ ...source, space: names.bare(source.space) }));
    },
  };
}

/** The unfinished purges of all tenants. */
export async function unfinishedPurges(read: Call): ReturnType<ServiceStore['unfinishedPurges']> {
  const found = await read('unfinishedPurges', undefined);
  return found.map(({ space, purgeId }): TenantPurge => {
    const [tenant = ''] = space.split(':', 1);
    return { tenant, purgeId };
  });
}

/** A tenant without a plan's limit has some hundred keys. */
const EVERY: Page = { limit: 10_000, after: undefined };

function controlCalls(tenant: string, { read, write }: StoreCalls) {
  return {
    listKeys: (page = EVERY) => read('listKeys', { tenant, page }),
    getKey: (keyId) => read('getKey', { tenant, keyId }),
    noteKeyUse: (keyId, at) => write('noteKeyUse', { tenant, keyId, at }),
    listAudit: (page) => read('listAudit', { tenant, page }),
    listProviders: () => read('listProviders', tenant),
    getSettings: () => read('getSettings', tenant),
    findLedger: (keys) => read('findLedger', { tenant, keys }),
    recordLedger: (rows) => write('recordLedger', { tenant, rows }),
    findSecret: (secretId) => read('findSecret', { tenant, secretId }),
    apply: (change, note) => write('applyTenant', { tenant, change, note }),
  } satisfies Partial<TenantStore>;
}

function receiptCalls(tenant: string, { read, write }: StoreCalls) {
  return {
    findReceipt: (receiptId, signal) => read('findReceipt', { tenant, receiptId }, signal),
    listReceipts: (filter, signal) => read('listReceipts', { tenant, filter }, signal),
    listHeads: (page) => read('listHeads', { tenant, page }),
    listUsage: (filter) => read('listUsage', { tenant, filter }),
    tokensSpent: (asked, signal) => read('tokensSpent', { tenant, asked }, signal),
    dropReceipts: (asked) => write('dropReceipts', { tenant, ...asked }),
  } satisfies Partial<TenantStore>;
}

function leaseCalls(tenant: string, { read, write }: StoreCalls) {
  return {
    takeLease: (lease) => write('takeLease', { tenant, lease }),
    renewLease: (lease) => write('renewLease', { tenant, lease }),
    endLease: (lease) => write('endLease', { tenant, lease }),
    listLeases: (start) => read('listLeases', { tenant, start }),
  } satisfies Partial<TenantStore>;
}

function answerCalls(names: TenantNames, { read, write }: StoreCalls) {
  const whole = (asked: AnswerKey): AnswerKey => ({ ...asked, keyId: names.whole(asked.keyId) });
  return {
    findAnswer: (asked, signal) => read('findAnswer', whole(asked), signal),
    beginAnswer: (asked, begun) =>
      write('beginAnswer', { asked: whole(asked), begun, tenant: names.tenant }),
    keepAnswer: (asked, answer) =>
      write('keepAnswer', { asked: whole(asked), answer, tenant: names.tenant }),
    leaveAnswer: (asked, holder) => {
      const lease = { name: answerLeaseName(whole(asked)), holder };
      return write('endLease', { tenant: names.tenant, lease });
    },
  } satisfies Partial<TenantStore>;
}

function purgeCalls(names: TenantNames, { read, write }: StoreCalls) {
  return {
    beginPurge: async (order) =>
      names.barePurge(await write('beginPurge', { ...order, space: names.whole(order.space) })),
    continuePurge: async (purgeId, now) => {
      const purge = await read('findPurge', purgeId);
      if (purge === undefined || !names.owns(purge.space)) return true;
      return write('continuePurge', { purgeId, now });
    },
    findPurge: async (purgeId, signal) => {
      const purge = await read('findPurge', purgeId, signal);
      if (purge === undefined || !names.owns(purge.space)) return undefined;
      return names.barePurge(purge);
    },
    listPurges: async (filter, signal) => {
      const purges = await read('listPurges', names.wholeFilter(filter), signal);
      return purges.map((purge) => names.barePurge(purge));
    },
  } satisfies Partial<TenantStore>;
}

class TenantNames {
  readonly tenant: string;
  readonly #start: string;

  constructor(tenant: string) {
    this.tenant = tenant;
    this.#start = `${tenant}:`;
  }

  whole(name: string): string {
    return this.#start + name;
  }

  wholeChoice(choice: SpaceChoice): SpaceChoice {
    if ('space' in choice) return { space: this.whole(choice.space) };
    return { globs: (choice.globs ?? ['*']).map((glob) => this.whole(glob)) };
  }

  wholeFilter<Filter extends PageFilter>(filter: Filter): Filter {
    return { ...filter, spaces: this.wholeChoice(filter.spaces) };
  }

  owns(name: string): boolean {
    return name.startsWith(this.#start);
  }

  /** Throws on a row of another tenant: a query that found one must not be answered. */
  bare(name: string): string {
    if (!this.owns(name)) throw new TypeError('A row of another tenant was found.');
    return name.slice(this.#start.length);
  }

  bareState(state: SpaceState): SpaceState {
    return { ...state, space: this.bare(state.space) };
  }

  barePurge(purge: Purge): Purge {
    return { ...purge, space: this.bare(purge.space) };
  }

  bareItem<Item extends ServiceItem | StoredObject>(item: Item): Item {
    return { ...item, origin: { ...item.origin, space: this.bare(item.origin.space) } };
  }
}
