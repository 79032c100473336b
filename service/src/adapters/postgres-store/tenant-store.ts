import type { ServiceAnswer, TenantStore } from '../../ports/service-store.ts';
import { type ControlEngine, tenantControl } from '../control/control-plane.ts';
import { capture } from './captures.ts';
import { Items } from './items.ts';
import { ledgerCalls } from './ledger.ts';
import type { TenantPlace } from './open-database.ts';
import { Purges } from './purges.ts';
import { Records } from './records.ts';
import { type HeardSignal, TenantSignals } from './signals.ts';
import { bareState, Spaces } from './spaces.ts';
import { keepCounts, type WordCount } from './word-counts.ts';

/** One tenant's part of the store: every statement that it runs names the tenant. */

export function postgresTenantStore(engine: ControlEngine, place: TenantPlace): TenantStore {
  return {
    ...tenantControl(engine, place.tenant),
    ...memoryCalls(place),
    ...listCalls(place),
    ...purgeCalls(place),
    ...ledgerCalls(place),
  };
}

function memoryCalls({ tenant, database, spaceBytesMax }: TenantPlace) {
  const signals = new TenantSignals(tenant);
  return {
    async spaceState(space, signal) {
      const { connections } = await database();
      return connections.memory.read(
        async (rows) => bareState(await new Spaces(rows, tenant).state(space)),
        signal,
      );
    },
    async capture(batch, signal) {
      const { connections, keys, pending } = await database();
      const place = { tenant, keys: keys.of(tenant), bytesMax: spaceBytesMax };
      const { outcome, words } = await connections.memory.write(
        (rows) => capture(rows, place, batch),
        signal,
      );
      pending.note(connections, tenant, words);
      return outcome;
    },
    async recall(question, signal) {
      const { connections, keys } = await database();
      await signals.written();
      const heard: HeardSignal[] = [];
      const counted: WordCount[] = [];
      const answer = await connections.memory.read(async (rows): Promise<ServiceAnswer> => {
        heard.length = 0;
        counted.length = 0;
        const spaces = new Spaces(rows, tenant);
        const { text, deadlineAt } = question;
        const items = new Items(rows, { tenant, spaces, keys: keys.of(tenant) });
        const started =
          text === undefined ? undefined : items.begin({ ...question, text }, counted);
        const stating = spaces.state(question.space);
        const proving = new Records(rows, tenant, spaces).prove(question, stating);
        const [state, proven] = await Promise.all([stating, proving, started?.ready]);
        // The search is bounded, and takes some 20 ms: what cannot begin in time is left out.
        const isLate = started !== undefined && Date.now() > deadlineAt;
        const found =
          started === undefined || isLate
            ? { items: [], isTruncated: false }
            : await started.recall(signals.in(rows, heard));
        const isPartial = proven.isPartial || isLate;
        return { state: bareState(state), coverage: proven.coverage, ...found, isPartial };
      }, signal);
      signals.write(connections, heard);
      keepCounts(connections, tenant, counted);
      return answer;
    },
    async retrieve(question, signal) {
      const { connections } = await database();
      return connections.memory.read(
        (rows) => new Records(rows, tenant, new Spaces(rows, tenant)).retrieve(question),
        signal,
      );
    },
    async lookUp(asked, signal) {
      const { connections } = await database();
      return connections.memory.read(
        (rows) => new Records(rows, tenant, new Spaces(rows, tenant)).lookUp(asked),
        signal,
      );
    },
  } satisfies Partial<TenantStore>;
}

function listCalls({ tenant, database }: TenantPlace) {
  const inItems = async <T>(run: (items: Items) => Promise<T>, signal: AbortSignal): Promise<T> => {
    const { connections, keys } = await database();
    return connections.memory.read((rows) => {
      const spaces = new Spaces(rows, tenant);
      return run(new Items(rows, { tenant, spaces, keys: keys.of(tenant) }));
    }, signal);
  };
  return {
    listItems: (filter, signal) => inItems((items) => items.list(filter), signal),
    findItem: (asked, signal) => inItems((items) => items.digestOf(asked), signal),
    listSources: (filter, signal) => inItems((items) => items.sources(filter), signal),
  } satisfies Partial<TenantStore>;
}

function purgeCalls({ tenant, database }: TenantPlace) {
  return {
    async beginPurge(order) {
      const { connections } = await database();
      return connections.memory.write((rows) => new Purges(rows, tenant).begin(order));
    },
    async continuePurge(purgeId, now) {
      const { connections } = await database();
      return connections.memory.job((rows) => new Purges(rows, tenant).continue(purgeId, now));
    },
    async findPurge(purgeId, signal) {
      const { connections } = await database();
      return connections.memory.read((rows) => new Purges(rows, tenant).find(purgeId), signal);
    },
    async listPurges(filter, signal) {
      const { connections } = await database();
      return connections.memory.read((rows) => new Purges(rows, tenant).list(filter), signal);
    },
  } satisfies Partial<TenantStore>;
}
