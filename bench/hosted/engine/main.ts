import { mkdtempSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { openPostgresStore } from '../../../service/src/adapters/postgres-store/postgres-service-store.ts';
import { openServiceStore } from '../../../service/src/adapters/service-store/sqlite-service-store.ts';
import type { ServerAddress } from '../../../service/src/adapters/postgres-store/server-url.ts';
import type { CaptureItem } from '../../../src/core/memory-api/contract.ts';
import type {
  CaptureBatch,
  ServiceStore,
  TenantStore,
} from '../../../service/src/ports/service-store.ts';
import { type PostgresServer, startPostgres } from '../../../service/test/support/postgres.ts';
import { addressOf } from '../../../service/test/support/postgres-address.ts';
import { passagesOf } from '../../../src/adapters/store/passage-index.ts';
import { drawWord, newItem, objectOf, seed } from './corpus.ts';
import { serverCpuMs } from './server-cpu.ts';
import { SETTINGS } from './servers.ts';

export { startServers } from './servers.ts';

/**
 * `npm run bench:hosted -- --engine postgres`: recall and capture of the two stores in one run, over
 * the same texts, and what a record takes by table. CPU of the server stands beside its times.
 */

export interface Sizes {
  /** Passages in the space that is asked, and in the whole table. */
  readonly space: number;
  readonly table: number;
  readonly questions: number;
  readonly captures: number;
}

/** A record of 2 kB, and its passages. */
const WORDS = 350;
const PASSAGES = 6;
const BATCH = 16;
const QUESTION_WORDS = 10;
const GROWTH_QUESTIONS = 100;
/** Connections and the compiler settle. */
const WARM_QUESTIONS = 10;
const SPACE = 'project/asked';

interface Target {
  readonly name: string;
  readonly store: ServiceStore;
  /** Milliseconds of CPU that its server has used. */
  readonly cpuMs: () => number;
}

const patience = (): AbortSignal => AbortSignal.timeout(600_000);

export async function measureEngines(sizes: Sizes): Promise<Record<string, unknown>> {
  const stores = await openStores();
  const { server, database, targets } = stores;
  try {
    await fill(targets, sizes);
    await server.run(database.database, 'ANALYZE');
    const bytesOfRecord = await bytesByTable(server, database.database);
    const questions = range(sizes.questions).map(newQuestion);
    const first = range(WARM_QUESTIONS).map(newQuestion);
    const results: Record<string, unknown> = { sizes, bytesOfRecord };
    for (const target of targets) {
      const ask = (text: string) => recall(target.store, text);
      results[target.name] = {
        first: await measure(target, first, ask),
        recallNew: await measure(target, questions, ask),
        recallAgain: await measure(target, questions, ask),
        capture: await measureCaptures(target, sizes.captures),
      };
    }
    results['elsewhere'] = await recallableElsewhere(targets, database);
    results['withStandby'] = await captureWithStandby(server, targets, sizes.captures);
    return results;
  } finally {
    await stores.close();
  }
}

/** Recall of each store while it grows, over spaces of the same name of so many tenants. */
export async function measureGrowth({ sizes, tenants }: GrowthSizes): Promise<object[]> {
  const stores = await openStores();
  const { server, database, targets } = stores;
  const rows: object[] = [];
  const names = tenants === 1 ? ['default'] : range(tenants).map((at) => `tenant-${at}`);
  const tenantAt = (at: number): string => names[at % names.length] ?? '';
  try {
    seed(1);
    let [passages, batches] = [0, 0];
    for (const size of sizes) {
      // So that each tenant has some of a thousand passages.
      const records = Math.min(BATCH, Math.ceil(size / tenants / PASSAGES));
      for (; passages < size; batches += 1) {
        passages += await captureIn(targets, { tenant: tenantAt(batches), space: SPACE, records });
      }
      await server.run(database.database, 'ANALYZE');
      const found = await recallsOf(targets, tenantAt);
      rows.push(...found.map((row) => ({ passages: size, tenants, ...row })));
      process.stderr.write(`${JSON.stringify(rows.slice(-4))} load ${loadavg()[0]}\n`);
    }
    return rows;
  } finally {
    await stores.close();
  }
}

/** The same questions twice: their words are new, and then known. */
async function recallsOf(
  targets: readonly Target[],
  tenantAt: (at: number) => string,
): Promise<object[]> {
  const rows: object[] = [];
  const asked = range(GROWTH_QUESTIONS).map((at) => ({ at, text: newQuestion() }));
  const first = range(WARM_QUESTIONS).map((at) => ({ at, text: newQuestion() }));
  for (const target of targets) {
    const ask = ({ at, text }: { readonly at: number; readonly text: string }) =>
      recall(target.store, text, tenantAt(at));
    await measure(target, first, ask);
    const recallNew = await measure(target, asked, ask);
    const recallAgain = await measure(target, asked, ask);
    rows.push({ engine: target.name, words: 'new', ...recallNew });
    rows.push({ engine: target.name, words: 'known', ...recallAgain });
  }
  return rows;
}

interface GrowthSizes {
  readonly sizes: readonly number[];
  readonly tenants: number;
}

async function openStores() {
  const server = await startPostgres({ settings: SETTINGS, within: tmpdir() });
  const folder = mkdtempSync(join(tmpdir(), 'svc-bench-'));
  const database = addressOf(await server.newDatabase());
  const targets: Target[] = [
    {
      name: 'sqlite',
      store: openServiceStore({ folder, serves: true, creates: true, report: () => undefined }),
      cpuMs: () => 0,
    },
    {
      name: 'postgres',
      store: openPostgresStore({ server: database, migrates: true, statementMs: 60_000 }),
      cpuMs: () => serverCpuMs(server.pid),
    },
  ];
  for (const { store } of targets) await store.health();
  return {
    server,
    database,
    targets,
    close: async () => {
      for (const { store } of targets) await store.close();
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Milliseconds from the end of a capture until another node finds it, at most. */
async function recallableElsewhere(
  targets: readonly Target[],
  server: ServerAddress,
): Promise<{ readonly mostMs: number }> {
  const own = targets.find(({ name }) => name === 'postgres')?.store;
  const other = openPostgresStore({ server, statementMs: 60_000 });
  await other.health();
  let mostMs = 0;
  for (const at of range(20)) {
    const object = objectOf(newItem(WORDS));
    const batch = { space: SPACE, ifGeneration: undefined, objects: [object], now: at };
    await own?.of('default').capture(batch, patience());
    const began = performance.now();
    const named = { spaces: { space: SPACE }, refs: [object.digest], bytesMax: Infinity };
    while ((await other.of('default').retrieve(named, patience())).objects.length === 0);
    await recall(other, object.texts[0]?.text.slice(0, 200) ?? '');
    mostMs = Math.max(mostMs, performance.now() - began);
  }
  await other.close();
  return { mostMs: round(mostMs) };
}

/** Captures, each of which waits until a standby has it. */
async function captureWithStandby(
  server: PostgresServer,
  targets: readonly Target[],
  captures: number,
): Promise<object | undefined> {
  const target = targets.find(({ name }) => name === 'postgres');
  if (target === undefined) return undefined;
  const standby = await startPostgres({ follows: server, settings: SETTINGS, within: tmpdir() });
  try {
    await server.run('postgres', `ALTER SYSTEM SET synchronous_standby_names = '*'`);
    await server.run('postgres', 'SELECT pg_reload_conf()');
    return await measureCaptures(target, captures);
  } finally {
    await server.run('postgres', 'ALTER SYSTEM RESET synchronous_standby_names');
    await server.run('postgres', 'SELECT pg_reload_conf()');
    await standby.stop();
  }
}

/** A third of the passages stands in the space that is asked, the rest in others of two tenants. */
async function fill(targets: readonly Target[], sizes: Sizes): Promise<void> {
  seed(1);
  let passages = 0;
  for (let at = 0; passages < sizes.table; at += 1) {
    const isOwn = passages < sizes.space;
    const space = isOwn ? SPACE : `project/other-${at % 7}`;
    const tenant = at % 5 === 4 && !isOwn ? 'acme' : 'default';
    passages += await captureIn(targets, { tenant, space, records: BATCH });
    if (at % 200 === 0) process.stderr.write(`${passages} of ${sizes.table} passages\n`);
  }
}

/** The same in each store. Gives how many passages it has. */
async function captureIn(
  targets: readonly Target[],
  {
    tenant,
    space,
    records,
  }: { readonly tenant: string; readonly space: string; readonly records: number },
): Promise<number> {
  const objects = range(records).map(() => objectOf(newItem(WORDS)));
  const batch = { space, ifGeneration: undefined, objects, now: 1 };
  await Promise.all(targets.map(({ store }) => captureNew(store.of(tenant), batch)));
  const texts = objects.flatMap((object) => object.texts);
  return texts.reduce((sum, { text }) => sum + passagesOf(text, 'user').length, 0);
}

function newQuestion(): string {
  return `${range(QUESTION_WORDS)
    .map(() => drawWord())
    .join(' ')}?`;
}

async function recall(store: ServiceStore, text: string, tenant = 'default'): Promise<void> {
  await store.of(tenant).recall(
    {
      space: SPACE,
      otherSpaces: ['global'],
      humanText: text,
      assistantText: '',
      excludeDigests: [],
      tokensMax: 512,
      itemsMax: 20,
      kinds: undefined,
      scoreMin: 0,
      candidates: [],
      nonce: new Uint8Array(32),
      ifGeneration: undefined,
      deadlineAt: Infinity,
      now: Date.now(),
    },
    patience(),
  );
}

/** The texts are there before: a client writes them. The service makes records of them. */
function measureCaptures(target: Target, captures: number): Promise<object> {
  const batches = range(captures).map(() => range(BATCH).map(() => newItem(WORDS)));
  return measure(target, batches, (items) => capture(target.store, items));
}

async function capture(store: ServiceStore, items: readonly CaptureItem[]): Promise<void> {
  const objects = items.map(objectOf);
  const batch = { space: SPACE, ifGeneration: undefined, objects, now: Date.now() };
  await captureNew(store.of('default'), batch);
}

/** Throws where anything of it was not stored, or was there before: that would cost less. */
async function captureNew(store: TenantStore, batch: CaptureBatch): Promise<void> {
  const { results = [] } = await store.capture(batch, patience());
  const others = new Set(results.filter((state) => state !== 'durable'));
  if (results.length === batch.objects.length && others.size === 0) return;
  throw new Error(`A capture was not stored: ${[...others].join(', ')}.`);
}

async function measure<T>(
  { cpuMs }: Target,
  asked: readonly T[],
  work: (one: T) => Promise<void>,
): Promise<object> {
  const before = cpuMs();
  const own = process.cpuUsage();
  const times: number[] = [];
  for (const one of asked) {
    const began = performance.now();
    await work(one);
    times.push(performance.now() - began);
  }
  const sorted = times.toSorted((a, b) => a - b);
  const at = (share: number): number => round(sorted[Math.floor(sorted.length * share)] ?? 0);
  const { user, system } = process.cpuUsage(own);
  return {
    p50: at(0.5),
    p99: at(0.99),
    serverCpuMs: round((cpuMs() - before) / asked.length),
    nodeCpuMs: round((user + system) / 1000 / asked.length),
  };
}

/** Bytes of one record of 2 kB, with its indexes, by table. */
async function bytesByTable(
  held: PostgresServer,
  database: string,
): Promise<Record<string, number>> {
  const sizes = await held.ask(
    database,
    `SELECT json_object_agg(name, bytes)::text FROM (SELECT
        CASE WHEN c.relname LIKE 'passages_%' THEN 'passages' ELSE c.relname END AS name,
        round(sum(pg_total_relation_size(c.oid)) / (SELECT count(*) FROM objects)) AS bytes
      FROM pg_class c WHERE c.relkind = 'r' AND c.relname ~
        '^(records|texts|sources|conversations|word_counts|passages_[0-9]+)$' GROUP BY 1) sizes`,
  );
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The statement says so.
  const byTable = JSON.parse(sizes) as Record<string, number>;
  return { ...byTable, whole: Object.values(byTable).reduce((sum, one) => sum + one, 0) };
}

function range(length: number): number[] {
  return Array.from({ length }, (_, at) => at);
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
