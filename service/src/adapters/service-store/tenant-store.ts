import { isTenantId } from '../../core/tenants.ts';
import type {
  PageFilter,
  Purge,
  ServiceAnswer,
  ServiceItem,
  ServiceQuestion,
  SpaceChoice,
  SpaceState,
  StoredObject,
  TenantStore,
} from '../../ports/service-store.ts';
import type { Database } from '../../../../src/adapters/store/database.ts';
import type { NewSignal } from '../../../../src/adapters/store/signals.ts';
import type { Items } from './items.ts';
import type { ServiceLedgerTable } from './ledger-table.ts';
import type { Objects } from './objects.ts';
import type { Purges } from './purges.ts';
import type { Spaces } from './spaces.ts';
import type { SqliteTransactions } from './transactions.ts';

/**
 * Binds the tables of the memory to a tenant, inside the worker. A space is stored as `tenant:space`,
 * which is unique in the file, so each row of a space belongs to one tenant. This file alone puts the
 * tenant in front and takes it off again: what it is asked for is looked for under its own tenant, and
 * what it returns must be of its own tenant.
 */

/** With the signals that are to be written. The worker that answers does not write. */
export interface FoundAnswer extends ServiceAnswer {
  readonly signals: readonly NewSignal[];
}

/** The tables of the memory, for all tenants. */
export interface Tables {
  readonly database: Database;
  readonly transactions: SqliteTransactions;
  readonly spaces: Spaces;
  readonly objects: Objects;
  readonly items: Items;
  readonly purges: Purges;
  readonly ledger: ServiceLedgerTable;
  readonly recall: (question: ServiceQuestion) => FoundAnswer;
  /** From then on no process places a block that it found before. */
  readonly noteForgotten: () => void;
}

/** The methods of a store as a worker has them: some answer at once, and no caller's signal is there. */
type InWorker<Store> = {
  readonly [Name in keyof Store]?: Store[Name] extends (
    ...args: infer Args
  ) => Promise<infer Result>
    ? (...args: Args) => Result | Promise<Result>
    : never;
};

export function tenantMemory(tenant: string, tables: Tables) {
  if (!isTenantId(tenant)) throw new TypeError('This is not the id of a tenant.');
  const { database, transactions, spaces, objects, items, purges, ledger } = tables;
  const names = new TenantNames(tenant);
  const ownPurge = (purgeId: string): Purge | undefined => {
    const purge = purges.find(purgeId);
    return purge === undefined || !names.owns(purge.space) ? undefined : purge;
  };
  return {
    spaceState: (space) => names.bareState(spaces.state(names.whole(space))),
    capture: (batch) => {
      const outcome = objects.capture({ ...batch, space: names.whole(batch.space) });
      return { ...outcome, state: names.bareState(outcome.state) };
    },
    recall: (question): FoundAnswer => {
      const space = names.whole(question.space);
      const otherSpaces = question.otherSpaces.map((other) => names.whole(other));
      const olderSpaces = question.olderSpaces?.map((older) => names.whole(older)) ?? [];
      const asked = { ...question, space, otherSpaces, olderSpaces };
      const { signals, exchanges, sessions, ...answer } = tables.recall(asked);
      const bared = <One extends { readonly space: string }>(found: readonly One[]): One[] =>
        found.map((one) => ({ ...one, space: names.bare(one.space) }));
      return {
        ...answer,
        signals,
        state: names.bareState(answer.state),
        items: answer.items.map((item) => names.bareItem(item)),
        ...(exchanges === undefined ? {} : { exchanges: bared(exchanges) }),
        ...(sessions === undefined ? {} : { sessions: bared(sessions) }),
      };
    },
    retrieve: (question) => {
      const asked = { ...question, spaces: names.wholeChoice(question.spaces) };
      const found = database.snapshot(() => objects.retrieve(asked));
      return {
        state: found.state === undefined ? undefined : names.bareState(found.state),
        objects: found.objects.map((object) => names.bareItem(object)),
        missing: found.missing,
      };
    },
    listItems: (filter) =>
      items.list(names.wholeFilter(filter)).map((item) => names.bareItem(item)),
    lookUp: (asked) => {
      const found = objects.lookUp({ ...asked, spaces: names.wholeChoice(asked.spaces) });
      return found.map((record) => ({ ...record, space: names.bare(record.space) }));
    },
    findItem: (asked) => items.digestOf({ ...asked, space: names.whole(asked.space) }),
    listSources: (filter) =>
      items
        .sources(names.wholeFilter(filter))
        .map((source) => ({ ...source, space: names.bare(source.space) })),
    beginPurge: async (order) => {
      const asked = { ...order, space: names.whole(order.space) };
      const purge = await transactions.write((rows) => purges.begin(rows, asked));
      if (!order.isDryRun) tables.noteForgotten();
      return names.barePurge(purge);
    },
    continuePurge: (purgeId, now) => {
      const isDone = ownPurge(purgeId) === undefined || purges.continue(purgeId, now);
      tables.noteForgotten();
      return isDone;
    },
    findPurge: (purgeId) => {
      const purge = ownPurge(purgeId);
      return purge === undefined ? undefined : names.barePurge(purge);
    },
    listPurges: (filter) =>
      purges.list(names.wholeFilter(filter)).map((purge) => names.barePurge(purge)),
    findLedger: (keys) => ledger.find(tenant, keys),
    recordLedger: (rows) => ledger.record(tenant, rows),
  } satisfies InWorker<TenantStore>;
}

class TenantNames {
  readonly #start: string;

  constructor(tenant: string) {
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
