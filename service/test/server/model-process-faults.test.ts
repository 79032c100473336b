import { spawnSync } from 'node:child_process';
import { readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { promptOf } from '../../../test/support/dialect-wire.ts';
import { callService } from '../support/memory-service.ts';
import {
  consoleOf,
  initModelHome,
  type ModelHome,
  providerBody,
} from '../support/model-process.ts';
import { errorIn } from '../support/model-service.ts';
import { missingPostgres, startPostgres } from '../support/postgres.ts';
import type { ServiceProcess } from '../support/service-process.ts';
import { ask, type ClientAnswer, pause } from '../../../test/support/sockets.ts';

/** The built service loses what it stands on while models are asked: its database, its disk, the catalog. */

const DIALECT = 'openai_responses';
/** The minute for which models go on without a database is waited for in the long run alone. */
const IS_LONG = process.env['SVC_TEST_LONG'] === '1';

interface Running {
  readonly service: ServiceProcess;
  readonly key: string;
}

async function prepare(place: ModelHome): Promise<Running> {
  const service = await place.start('--quiet');
  const console = consoleOf(service, place.token);
  await console('POST providers', providerBody(DIALECT, place.baseUrl));
  const scopes = ['read', 'write', 'receipt:read'];
  const { json } = await console('POST keys', { name: 'k', scopes });
  return { service, key: String(json.secret) };
}

function send({ service, key }: Running, parcel: string): Promise<ClientAnswer> {
  const text = `Remember this: parcel ${parcel} went to the harbour of Rotterdam.`;
  const headers = ['authorization', `Bearer ${key}`, 'content-type', 'application/json'];
  const body = Buffer.from(JSON.stringify(promptOf(DIALECT, text)));
  return ask(service.port, { path: '/v1/responses', headers, body });
}

function idOf({ headers }: ClientAnswer): string {
  return String(headers['x-svc-receipt-id']);
}

async function isReady({ service }: Running): Promise<boolean> {
  return (await callService(service.url, '/readyz')).status === 200;
}

/** Each receipt, as soon as it is stored. */
async function expectReceipts(running: Running, ids: readonly string[]): Promise<void> {
  const { service, key } = running;
  for (const id of ids) {
    const read = () => callService(service.url, `/v1/svc/requests/${id}`, { key });
    // oxlint-disable-next-line no-await-in-loop
    await expect
      .poll(async () => (await read()).json.status, { timeout: 60_000 })
      .toBe('completed');
  }
}

async function expectRefusedAfterAMinute(running: Running): Promise<void> {
  if (!IS_LONG) return;
  await pause(61_500);
  const refused = await send(running, 'late');
  expect([refused.status, errorIn(refused).code]).toEqual([503, 'STORE_UNAVAILABLE']);
}

test('the database is taken away: models go on, receipts and captures wait, and are there after a restart', async () => {
  const place = await initModelHome();
  const running = await prepare(place);
  const { service, key } = running;
  expect((await send(running, 'one')).headers['x-svc-memory-state']).toBe('empty');
  const file = join(place.folder, 'service.db');
  const files = readdirSync(place.folder).filter((name) => name.startsWith('service.db'));
  expect(files.length).toBeGreaterThan(1);
  // Its log goes with it: the file alone would lack what was written last.
  for (const name of files) renameSync(join(place.folder, name), join(place.home, name));
  const ids: string[] = [];
  for (const parcel of ['two', 'three']) {
    // oxlint-disable-next-line no-await-in-loop
    const answer = await send(running, parcel);
    expect([answer.status, answer.headers['x-svc-memory-state']]).toEqual([
      200,
      'degraded_unavailable',
    ]);
    ids.push(idOf(answer));
  }
  expect(await isReady(running)).toBe(false);
  await expectRefusedAfterAMinute(running);
  expect(await service.end('SIGTERM')).toBe(0);
  expect(service.stderr()).toContain(
    'The store accepts no receipts now, so they wait in the journal.',
  );
  expect(service.stderr()).toContain('deleted or replaced');
  for (const name of files) renameSync(join(place.home, name), join(place.folder, name));
  expect(file).toContain(place.folder);
  const again = { service: await place.start('--quiet'), key };
  await expectReceipts(again, ids);
  const texts = async () => {
    const list = await callService(again.service.url, '/v1/svc/memory/items?limit=100', { key });
    return list.json.data.map(({ text }: { text: string }) => text).join('\n');
  };
  await expect.poll(texts, { timeout: 30_000 }).toMatch(/parcel three[^]*parcel two|two[^]*three/);
  const verified = join(place.home, 'export');
  expect((await place.svc('receipts', 'export', verified)).code).toBe(0);
  const verdict = await place.svc('receipts', 'verify', verified);
  expect([verdict.code, verdict.stderr.trim()]).toEqual([
    0,
    expect.stringMatching(/ 0 wrong, 0 missing\.$/),
  ]);
}, 300_000);

const hasLimits = spawnSync('prlimit', ['--version']).status === 0;

test.skipIf(!hasLimits)(
  `a disk that takes no byte: not ready, and nothing is forwarded${hasLimits ? '' : ': SKIPPED, there is no prlimit'}`,
  async () => {
    const place = await initModelHome();
    const running = await prepare(place);
    const limit = (bytes: string): void => {
      const words = [`--fsize=${bytes}`, '--pid', String(running.service.child.pid)];
      expect(spawnSync('prlimit', words).status).toBe(0);
    };
    const first = await send(running, 'one');
    expect(first.status).toBe(200);
    await expectReceipts(running, [idOf(first)]);
    limit('1:unlimited');
    for (const parcel of ['two', 'three']) {
      // oxlint-disable-next-line no-await-in-loop
      const refused = await send(running, parcel);
      expect([refused.status, errorIn(refused).code, errorIn(refused).receipt]).toEqual([
        503,
        'JOURNAL_FULL',
        null,
      ]);
    }
    expect(place.provider.seen).toHaveLength(1);
    expect(await isReady(running)).toBe(false);
    limit('unlimited:unlimited');
    await expect.poll(() => isReady(running), { timeout: 10_000 }).toBe(true);
    const well = await send(running, 'four');
    expect(well.status).toBe(200);
    await expectReceipts(running, [idOf(well)]);
    expect(await running.service.end('SIGTERM')).toBe(0);
    const into = join(place.home, 'export');
    expect((await place.svc('receipts', 'export', into)).code).toBe(0);
    expect((await place.svc('receipts', 'verify', into)).code).toBe(0);
  },
  180_000,
);

test('without the catalog a service starts, serves, and offers the presets of its package', async () => {
  const place = await initModelHome(undefined, {
    environment: { SVC_CATALOG_URL: 'http://127.0.0.1:9/none' },
  });
  const running = await prepare(place);
  const console = consoleOf(running.service, place.token);
  expect((await console('GET presets')).json.data.length).toBeGreaterThan(5);
  expect((await send(running, 'one')).status).toBe(200);
}, 120_000);

const missing = missingPostgres();

describe.skipIf(missing !== undefined)('on PostgreSQL', () => {
  test.each([
    ['is killed', 'SIGKILL'],
    ['answers nothing', 'SIGSTOP'],
  ] as const)(
    'a database that %s: models go on, and everything is stored when it is back',
    async (_, signal) => {
      // A key that was just made outlives the kill, as it would with PostgreSQL's own settings.
      const server = await startPostgres({ settings: ['synchronous_commit=on'] });
      try {
        const url = await server.newDatabase();
        const place = await initModelHome(url);
        const running = await prepare(place);
        expect((await send(running, 'one')).status).toBe(200);
        if (signal === 'SIGSTOP') server.signal(signal);
        else await server.kill();
        const ids: string[] = [];
        for (const parcel of ['two', 'three']) {
          const began = performance.now();
          // oxlint-disable-next-line no-await-in-loop
          const answer = await send(running, parcel);
          expect([answer.status, answer.headers['x-svc-memory-state']]).toEqual([
            200,
            expect.stringMatching(/^degraded_/),
          ]);
          expect(performance.now() - began).toBeLessThan(15_000);
          ids.push(idOf(answer));
        }
        expect(await isReady(running)).toBe(false);
        await expectRefusedAfterAMinute(running);
        if (signal === 'SIGSTOP') server.signal('SIGCONT');
        else await server.crash();
        await expectReceipts(running, ids);
        await expect.poll(() => isReady(running), { timeout: 30_000 }).toBe(true);
        expect((await send(running, 'four')).status).toBe(200);
        expect(await running.service.end('SIGTERM')).toBe(0);
      } finally {
        await server.stop();
      }
    },
    300_000,
  );
});
