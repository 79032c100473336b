import type { ServiceAnswer, TenantStore } from '../../ports/service-store.ts';
import { type ControlEngine, tenantControl } from '../control/control-plane.ts';
import { capture } from './captures.ts';
import { Items } from './items.ts';
import { ledgerCalls } from './ledger.ts';
import type { TenantPlace } from './open-database.ts';
import { Purges } from './purges.ts';
import { Records } from './records.ts';
import { bareState, Spaces } from './spaces.ts';
import { keepCounts, type WordCount } from './postgres-source.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import { forgetOldest } from '../../../../src/core/bytes/recent.ts';
import { SIGNALS_MAX } from '../../../../src/core/recall/running-share.ts';
import type { SharedSignals } from '../../../../src/adapters/store/exchange-search.ts';
import { waitFor } from '../../../../src/adapters/store/steps.ts';
import type { Connections } from './connections.ts';
import type { Rows } from './rows.ts';
import { MEMORY } from './statements/memory.ts';

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

/** A prompt of a space that was compared. */
interface HeardSignal {
  readonly space: number;
  readonly prompt: string;
  readonly signal: number;
}

/** Spaces whose last prompt is remembered, some 2 kB each. */
const SPACES_MAX = 100;
const WAIT_MS = 50;

/**
 * How much the last prompts of each space shared with the memory; a new prompt is compared with
 * them. They are written after the answer, so no request waits; only the next recall of this node
 * does. A lost entry makes a share of 200 slightly less exact.
 */
class TenantSignals {
  readonly #tenant: string;
  /** The last counted prompt of each space. A repeated prompt is not counted again. */
  readonly #lastPrompts = new Map<number, string>();
  #writing: Promise<unknown> = Promise.resolve();

  constructor(tenant: string) {
    this.#tenant = tenant;
  }

  /** For one recall. `heard`: gets what is to be written after it. */
  in(rows: Rows, heard: HeardSignal[]): SharedSignals {
    return {
      of: (space) => waitFor(this.#of(rows, space)),
      add: (space, prompt, signal) => heard.push({ space, prompt, signal }),
    };
  }

  /** A moment at most: an answer is worth more than an exact share. */
  written(): Promise<unknown> {
    return Promise.race([this.#writing, sleep(WAIT_MS, undefined, { ref: false })]);
  }

  write(connections: Connections, heard: readonly HeardSignal[]): void {
    const fresh = heard.filter(({ space, prompt }) => this.#lastPrompts.get(space) !== prompt);
    if (fresh.length === 0) return;
    for (const { space, prompt } of fresh) {
      this.#lastPrompts.delete(space);
      this.#lastPrompts.set(space, prompt);
    }
    forgetOldest(this.#lastPrompts, SPACES_MAX);
    const written = connections.write((rows) => this.#note(rows, fresh));
    this.#writing = written.catch(() => undefined);
  }

  async #of(rows: Rows, space: number): Promise<readonly number[]> {
    const found = await rows.all<{ signal: number }>(MEMORY.signals, this.#tenant, space);
    return found.map(({ signal }) => signal);
  }

  async #note(rows: Rows, heard: readonly HeardSignal[]): Promise<void> {
    for (const { space, signal } of heard) {
      // oxlint-disable-next-line no-await-in-loop -- One connection answers one after the other.
      await rows.run(MEMORY.addSignal, this.#tenant, space, signal);
      // oxlint-disable-next-line no-await-in-loop
      await rows.run(MEMORY.dropSignals, this.#tenant, space, SIGNALS_MAX);
    }
  }
}
