import { MemoryError } from '../../../../src/core/errors.ts';
import type { RecallQuestion } from '../../../../src/ports/memory.ts';
import type { Rows, Transactions } from '../../ports/rows.ts';
import type {
  CaptureBatch,
  CaptureOutcome,
  ServiceAnswer,
  ServiceQuestion,
  ServiceStoreHealth,
  TenantPurge,
  TenantStore,
} from '../../ports/service-store.ts';
import { type ControlEngine, tenantControl } from '../control/control-plane.ts';
import { type PurgedIndex, Purges } from './purges.ts';
import { Records, type WordSearch } from './records.ts';
import { Spaces } from './spaces.ts';
import { MEMORY } from './statements.ts';

/**
 * The memory of one tenant, whose statements name the tenant. For the operator and the jobs, it also counts the rows
 * and lists the unfinished purges of all tenants. SQLite and PostgreSQL share it, except for captures and recalls,
 * because each has its own index.
 */

export interface MemoryEngine extends PurgedIndex {
  /** Resolves once the tables exist in their current form. */
  readonly open: () => Promise<Transactions>;
  /** Returns the search for words in lists. */
  readonly wordsOf: (tenant: string) => Promise<WordSearch>;
  capture(tenant: string, batch: CaptureBatch, signal: AbortSignal): Promise<CaptureOutcome>;
  recall(tenant: string, question: ServiceQuestion, signal: AbortSignal): Promise<ServiceAnswer>;
  /** Rewrites the database's file, because it still has bytes of deleted rows. Rejects while others read it. */
  rewrite?(): Promise<void>;
}

/** Returns a function that returns the store of a tenant. Each store is made only once. */
export function tenantStores(control: ControlEngine, memory: MemoryEngine) {
  const storeOf = (tenant: string) => ({
    ...tenantControl(control, tenant),
    ...tenantMemory(memory, tenant),
  });
  const made = new Map<string, ReturnType<typeof storeOf>>();
  return (tenant: string) => {
    const store = made.get(tenant) ?? storeOf(tenant);
    made.set(tenant, store);
    return store;
  };
}

export function tenantMemory(engine: MemoryEngine, tenant: string) {
  const { open } = engine;
  const inSpaces = async <T>(
    run: (rows: Rows, spaces: Spaces) => Promise<T>,
    signal: AbortSignal,
  ) => (await open()).read((rows) => run(rows, new Spaces(rows, tenant)), signal);
  const inRecords = <T>(run: (records: Records) => Promise<T>, signal: AbortSignal) =>
    inSpaces((rows, spaces) => run(new Records(rows, tenant, spaces)), signal);
  const purgesOn = (rows: Rows): Purges => new Purges(rows, tenant, engine);
  return {
    spaceState: (space, signal) => inSpaces((_, spaces) => spaces.state(space), signal),
    capture: (batch, signal) => engine.capture(tenant, batch, signal),
    recall: (question, signal) => engine.recall(tenant, question, signal),
    retrieve: (question, signal) => inRecords((records) => records.retrieve(question), signal),
    listItems: async (filter, signal) => {
      const words = await engine.wordsOf(tenant);
      return inRecords((records) => records.list(filter, words), signal);
    },
    findItem: (asked, signal) => inRecords((records) => records.digestOf(asked), signal),
    listSources: (filter, signal) => inRecords((records) => records.sources(filter), signal),
    beginPurge: async (order) => (await open()).write((rows) => purgesOn(rows).begin(order)),
    continuePurge: async (purgeId, now) => {
      const transactions = await open();
      const state = await transactions.job((rows) => purgesOn(rows).eraseSome(purgeId, now));
      if (state !== 'empty') return state === 'over';
      await engine.rewrite?.();
      await transactions.job((rows) => purgesOn(rows).finish(purgeId, now));
      return true;
    },
    findPurge: async (purgeId, signal) =>
      (await open()).read((rows) => purgesOn(rows).find(purgeId), signal),
    listPurges: async (filter, signal) =>
      (await open()).read((rows) => purgesOn(rows).list(filter), signal),
  } satisfies Partial<TenantStore>;
}

export async function unfinishedPurges({
  open,
}: Pick<MemoryEngine, 'open'>): Promise<TenantPurge[]> {
  const transactions = await open();
  return transactions.look<TenantPurge>({ statement: MEMORY.unfinishedPurges, values: [] });
}

/** Counts the rows of all tenants, for the operator. */
export async function heldIn(rows: Rows): Promise<Omit<ServiceStoreHealth, 'engine' | 'bytes'>> {
  type Held = Omit<ServiceStoreHealth, 'engine' | 'bytes' | 'newestAt'>;
  const row = await rows.get<Held & { newest_record: number; newest_key: number }>(MEMORY.health);
  if (row === undefined) throw new MemoryError('unavailable', 'The counts cannot be read.');
  const { newest_record: newestRecord, newest_key: newestKey, ...held } = row;
  return { ...held, newestAt: Math.max(newestRecord, newestKey) };
}

/** A question with a text to search for. */
export type AskedText = ServiceQuestion & RecallQuestion;
export type FoundItems = Pick<ServiceAnswer, 'items' | 'exchanges' | 'sessions' | 'isTruncated'>;

export interface StartedSearch {
  /** Resolves when the search's first queries are answered. These share a round trip with the queries for proofs. */
  readonly ready?: Promise<unknown>;
  recall(): Promise<FoundItems>;
}

/** Answers a recall request. `rows`: an open transaction. `begin`: starts the search of the database for a text. */
export async function answerTo(
  rows: Rows,
  { tenant, question }: { readonly tenant: string; readonly question: ServiceQuestion },
  begin: (asked: AskedText, records: Records) => StartedSearch,
): Promise<ServiceAnswer> {
  const spaces = new Spaces(rows, tenant);
  const { space, olderSpaces = [], otherSpaces, candidates, humanText, deadlineAt } = question;
  const records = new Records(rows, tenant, spaces);
  const started = humanText === undefined ? undefined : begin({ ...question, humanText }, records);
  const stating = spaces.state(space);
  const proving = records.prove(question, stating);
  const hiding = spaces.erasing();
  const [state, proven, erasing] = await Promise.all([stating, proving, hiding, started?.ready]);
  const asked = new Set([space, ...olderSpaces, ...otherSpaces]);
  if (erasing.some(({ name }) => asked.has(name))) {
    const coverage = candidates.map((digest) => ({ digest, state: 'not_checked' as const }));
    return { state, coverage, items: [], isTruncated: false, isPartial: true };
  }
  // A search takes some 20 ms and is not interrupted. It is left out if the deadline has passed before it begins.
  const isLate = started !== undefined && Date.now() > deadlineAt;
  const found =
    started === undefined || isLate ? { items: [], isTruncated: false } : await started.recall();
  const isPartial = proven.isPartial || isLate;
  return { state, coverage: proven.coverage, ...found, isPartial };
}
