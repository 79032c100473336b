import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parseJson } from '../../../src/core/bytes/json-fields.ts';
import type { Receipt } from '../../src/core/receipts.ts';
import { LEASE_MS } from '../../src/core/limits.ts';
import { type AnswerChoices, answerTo } from '../../../test/support/dialect-wire.ts';
import { type Random, randomFrom } from '../support/kill-client.ts';
import { NodeKillClient } from '../support/node-kill-client.ts';
import { missingPgbouncer, type Pgbouncer, startPgbouncer } from '../support/pgbouncer.ts';
import { missingPostgres } from '../support/postgres.ts';
import { missingRedis, type RedisServer, startRedis } from '../support/redis.ts';
import { allTexts } from '../support/service-kills.ts';
import { startTwoNodes, type TwoNodes } from '../support/two-nodes.ts';

/**
 * kill -9 of nodes, PostgreSQL, Redis and pgbouncer at random moments under traffic. The long run is
 * `SVC_TEST_NODE_KILLS=100 npx vitest run service/test/server/node-kills.test.ts`;
 * SVC_TEST_KILL_SEED asks for other moments.
 */
const KILLS = Number(process.env['SVC_TEST_NODE_KILLS'] ?? '5');
const SEED = Number(process.env['SVC_TEST_KILL_SEED'] ?? '20261122');
const CLIENTS = 4;
const VICTIMS = ['first node', 'PostgreSQL', 'second node', 'Redis', 'pgbouncer'] as const;
/** An acknowledged commit outlives a kill of the server. */
const DURABLE = ['synchronous_commit=on'];

const missing = [missingPostgres(), missingRedis(), missingPgbouncer()].find(
  (reason) => reason !== undefined,
);

interface Stage {
  readonly two: TwoNodes;
  redis: RedisServer;
  pooler: Pgbouncer;
}

describe.skipIf(missing !== undefined)('two nodes under kills', () => {
  test(
    'R27: nothing acknowledged is missing or there twice, every request that the provider saw has one receipt, and no lease outlives its time',
    async () => {
      const random = randomFrom(SEED);
      const stage = await openStage();
      const { two } = stage;
      const answers = new Map<string, AnswerChoices>();
      two.place.provider.reply = (request) => {
        const pieces = { count: 3, pauseMs: random() * 20 };
        return { ...answerTo(request, answers.get(modelIn(request.body))), pieces };
      };
      const clients = await makeClients(two, { random, answers });
      let isOver = false;
      const talks = clients.map((client) => client.talk(() => isOver));
      for (let kill = 0; kill < KILLS; kill += 1) {
        // Each is met in a short run too; the long one draws them.
        const drawn = KILLS > VICTIMS.length ? Math.floor(random() * VICTIMS.length) : kill;
        const before = acknowledgedBy(clients);
        // oxlint-disable-next-line no-await-in-loop -- One kill after the other.
        await expect.poll(() => acknowledgedBy(clients), POLL).toBeGreaterThan(before);
        // oxlint-disable-next-line no-await-in-loop
        await sleep(random() * 400);
        // oxlint-disable-next-line no-await-in-loop
        await killOne(stage, VICTIMS[drawn % VICTIMS.length] ?? 'Redis');
        // oxlint-disable-next-line no-await-in-loop
        expect(await leasesBeyond(two)).toBe(0);
      }
      const last = acknowledgedBy(clients);
      await expect.poll(() => acknowledgedBy(clients), POLL).toBeGreaterThan(last);
      isOver = true;
      await Promise.all(talks);
      // Nothing else is answered than what is served, and what cannot be now.
      const refused = clients.flatMap(({ statuses }) => [...statuses.keys()]);
      expect(refused.filter((status) => ![0, 200, 409, 503].includes(status))).toEqual([]);
      await expectTextsOnce(two, clients);
      await expectOneReceiptEach(two);
      if (KILLS > VICTIMS.length) process.stderr.write(`${summaryOf(clients, two)}\n`);
    },
    300_000 + KILLS * 20_000,
  );
});

const POLL = { timeout: 60_000 };

async function openStage(): Promise<Stage> {
  let pooler: Pgbouncer | undefined;
  const two = await startTwoNodes({
    postgresSettings: DURABLE,
    databasePort: async (port) => {
      pooler = await startPgbouncer(port);
      return pooler.port;
    },
  });
  if (pooler === undefined) throw new Error('pgbouncer was not started.');
  const stage = { two, redis: two.redis, pooler };
  onTestFinished(async () => {
    await stage.pooler.stop();
    await stage.redis.stop();
  });
  // A limit that nobody reaches: each request asks the limiter.
  const limits = { requests_per_minute: 1_000_000, memory_calls_per_minute: 1_000_000 };
  await two.console('POST plans', { name: 'large', limits });
  await two.console('PATCH tenants/default', { plan: 'large' });
  return stage;
}

async function makeClients(
  two: TwoNodes,
  { random, answers }: { readonly random: Random; readonly answers: Map<string, AnswerChoices> },
): Promise<readonly NodeKillClient[]> {
  const names = Array.from({ length: CLIENTS }, (_, at) => `c${at}`);
  return Promise.all(
    names.map(async (name) => {
      const { secret: key } = await two.makeKey();
      const own = randomFrom(random() * 2 ** 32);
      return new NodeKillClient({ name, key, two, random: own, answers });
    }),
  );
}

async function killOne(stage: Stage, victim: (typeof VICTIMS)[number]): Promise<void> {
  const { two } = stage;
  switch (victim) {
    case 'first node':
    case 'second node': {
      const at = victim === 'first node' ? 0 : 1;
      await two.nodes[at]?.end('SIGKILL');
      await two.start(at);
      return;
    }
    case 'PostgreSQL':
      await two.postgres.crash();
      return;
    case 'Redis': {
      const { port } = new URL(stage.redis.url);
      await stage.redis.stop();
      stage.redis = await startRedis(Number(port));
      return;
    }
    case 'pgbouncer': {
      const { port } = stage.pooler;
      await stage.pooler.stop();
      stage.pooler = await startPgbouncer(two.postgres.port, port);
    }
  }
}

/** Leases that stand for longer than any holder may ask for. */
async function leasesBeyond({ place, postgres }: TwoNodes): Promise<number> {
  const database = new URL(place.environment['SVC_DATABASE_URL'] ?? '').pathname.slice(1);
  const ends = `extract(epoch FROM clock_timestamp()) * 1000 + ${LEASE_MS}`;
  return Number(await postgres.ask(database, `SELECT count(*) FROM leases WHERE ends > ${ends}`));
}

function acknowledgedBy(clients: readonly NodeKillClient[]): number {
  return clients.reduce((sum, { acknowledged }) => sum + acknowledged.length, 0);
}

async function expectTextsOnce(two: TwoNodes, clients: readonly NodeKillClient[]): Promise<void> {
  const url = two.nodes[0]?.url ?? '';
  for (const { space, key, acknowledged } of clients) {
    // The last kill may have been a moment ago: what waits arrives when the engines are back.
    const wrong = async (): Promise<readonly string[]> => {
      const texts = await allTexts(url, key, space);
      const stored = new Set(texts);
      const twice = texts.filter((text, at) => texts.indexOf(text) !== at);
      return [...acknowledged.filter((text) => !stored.has(text)), ...twice];
    };
    // oxlint-disable-next-line no-await-in-loop
    await expect.poll(wrong, POLL).toEqual([]);
  }
}

/** Signatures, numbers and heads are judged by the command that an auditor has. */
async function expectOneReceiptEach({ place, nodes }: TwoNodes): Promise<void> {
  for (const node of nodes) {
    // oxlint-disable-next-line no-await-in-loop
    expect(await node.end('SIGTERM')).toBe(0);
  }
  const folder = join(place.home, 'export');
  const exported = await place.svc('receipts', 'export', folder);
  expect(exported.code, exported.stderr).toBe(0);
  const verified = await place.svc('receipts', 'verify', folder);
  expect([verified.code, verified.stdout], verified.stderr).toEqual([0, '']);
  const lines = readFileSync(join(folder, 'receipts.ndjson'), 'utf8').trim().split('\n');
  const receipts = lines.map((line) => parseJson(line) as Receipt);
  const byModel = new Map<string, number>();
  for (const receipt of receipts) {
    const model = String(receipt['model_requested']);
    byModel.set(model, (byModel.get(model) ?? 0) + 1);
  }
  const seen = place.provider.seen.map(({ body }) => modelIn(body));
  expect(seen.length).toBeGreaterThan(CLIENTS);
  expect(new Set(seen).size).toBe(seen.length);
  expect(seen.filter((model) => byModel.get(model) !== 1)).toEqual([]);
}

function modelIn(body: Buffer): string {
  return String((parseJson(body.toString()) as { model?: unknown }).model);
}

function summaryOf(clients: readonly NodeKillClient[], { place }: TwoNodes): string {
  const statuses = new Map<number, number>();
  for (const client of clients) {
    for (const [status, count] of client.statuses) {
      statuses.set(status, (statuses.get(status) ?? 0) + count);
    }
  }
  const told = [...statuses].map(([status, count]) => `${count} of ${status}`).join(', ');
  return `${KILLS} kills of seed ${SEED}: ${place.provider.seen.length} requests seen, ${acknowledgedBy(clients)} texts acknowledged; answers: ${told}`;
}
