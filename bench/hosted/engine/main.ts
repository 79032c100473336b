import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openPostgresStore } from '../../../src/adapters/postgres-store/postgres-service-store.ts';
import { openServiceStore } from '../../../src/adapters/service-store/sqlite-service-store.ts';
import type { ServiceStore } from '../../../src/ports/service-store.ts';
import { type PostgresServer, startPostgres } from '../../../test/support/postgres.ts';
import { addressOf } from '../../../test/support/postgres-address.ts';
import { drawWord, newObject, seed } from './corpus.ts';

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

/** 60 words are a passage of about 400 characters; 2 kB of them are six. */
const WORDS = 350;
const PASSAGES = 6;
const BATCH = 16;
const QUESTION_WORDS = 10;
const SPACE = 'project/asked';
/** As a person's server has them. */
const SETTINGS = [
  'fsync=on',
  'synchronous_commit=on',
  'full_page_writes=on',
  'autovacuum=on',
  'shared_buffers=256MB',
];

interface Target {
  readonly name: string;
  readonly store: ServiceStore;
  /** Milliseconds of CPU that its server has used. */
  readonly cpuMs: () => number;
}

const patience = (): AbortSignal => AbortSignal.timeout(600_000);

export async function measureEngines(sizes: Sizes): Promise<Record<string, unknown>> {
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
  try {
    for (const { store } of targets) await store.health();
    await fill(targets, sizes);
    await server.run(database.database, 'ANALYZE');
    const bytesOfRecord = await bytesByTable(server, database.database);
    const questions = range(sizes.questions).map(newQuestion);
    const results: Record<string, unknown> = { sizes, bytesOfRecord };
    for (const target of targets) {
      const ask = (text: string) => recall(target.store, text);
      results[target.name] = {
        recallNew: await measure(target, questions, ask),
        recallAgain: await measure(target, questions, ask),
        capture: await measure(target, range(sizes.captures), () => capture(target.store)),
      };
    }
    return results;
  } finally {
    for (const { store } of targets) await store.close();
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A third of the passages stands in the space that is asked, the rest in others of two tenants. */
async function fill(targets: readonly Target[], sizes: Sizes): Promise<void> {
  const batches = Math.ceil(sizes.table / PASSAGES / BATCH);
  const own = Math.ceil(sizes.space / PASSAGES / BATCH);
  seed(1);
  for (let at = 0; at < batches; at += 1) {
    const objects = range(BATCH).map(() => newObject(WORDS));
    const space = at < own ? SPACE : `project/other-${at % 7}`;
    const batch = { space, ifGeneration: undefined, objects, now: at };
    await Promise.all(
      targets.map(({ store }) =>
        store.of(at % 5 === 4 && at >= own ? 'acme' : 'default').capture(batch, patience()),
      ),
    );
    if (at % 200 === 0) process.stderr.write(`${at} of ${batches} batches\n`);
  }
}

function newQuestion(): string {
  return `${range(QUESTION_WORDS)
    .map(() => drawWord())
    .join(' ')}?`;
}

async function recall(store: ServiceStore, text: string): Promise<void> {
  await store.of('default').recall(
    {
      space: SPACE,
      otherSpaces: ['global'],
      text,
      recent: '',
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

async function capture(store: ServiceStore): Promise<void> {
  const objects = range(BATCH).map(() => newObject(WORDS));
  const batch = { space: SPACE, ifGeneration: undefined, objects, now: Date.now() };
  await store.of('default').capture(batch, patience());
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

/** Of the server and all that it has started, also of those that have ended. */
function serverCpuMs(pid: number): number {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
  const ticks = [String(pid), ...children].map((one) => {
    try {
      const fields = readFileSync(`/proc/${one}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
      // Its own, and for the server those of its children that have ended.
      return [11, 12, 13, 14].reduce((sum, field) => sum + Number(fields[field] ?? 0), 0);
    } catch {
      return 0;
    }
  });
  const perSecond = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));
  return (ticks.reduce((sum, one) => sum + one, 0) * 1000) / perSecond;
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
        round(sum(pg_total_relation_size(c.oid)) / (SELECT count(*) FROM records)) AS bytes
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
