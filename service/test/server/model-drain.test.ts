import { EventEmitter, once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { answerTo, promptOf } from '../../../test/support/dialect-wire.ts';
import { callService } from '../support/memory-service.ts';
import {
  consoleOf,
  initModelHome,
  type ModelHome,
  providerBody,
} from '../support/model-process.ts';
import type { ServiceProcess } from '../support/service-process.ts';
import { ask, type ClientAnswer, until } from '../../../test/support/sockets.ts';
import { errorIn } from '../support/model-service.ts';

/** SIGTERM while a built service streams: answers end in order, callers are told, receipts are closed. */

const STREAMS = 100;
const DIALECT = 'openai_responses';
const PATH = '/v1/responses';

interface Started {
  readonly place: ModelHome;
  readonly service: ServiceProcess;
  readonly key: string;
}

async function start(settings: object = {}): Promise<Started> {
  const place = await initModelHome();
  const file = join(place.folder, 'service.json');
  const own = JSON.parse(readFileSync(file, 'utf8')) as object;
  writeFileSync(file, JSON.stringify({ ...own, ...settings }));
  const service = await place.start('--quiet');
  const console = consoleOf(service, place.token);
  await console('POST providers', providerBody(DIALECT, place.baseUrl));
  const scopes = ['read', 'write', 'receipt:read'];
  const { json } = await console('POST keys', { name: 'k', scopes });
  return { place, service, key: String(json.secret) };
}

function stream({ service, key }: Started): Promise<ClientAnswer> {
  const body = Buffer.from(JSON.stringify(promptOf(DIALECT, 'Tell me more.', { stream: true })));
  const headers = ['authorization', `Bearer ${key}`, 'content-type', 'application/json'];
  return ask(service.port, { path: PATH, headers, body });
}

/** Every receipt of the service, after it has ended, and the verdict of `receipts verify`. */
async function receiptsOf({ place }: Started): Promise<readonly Record<string, unknown>[]> {
  const into = join(place.home, 'export');
  const exported = await place.svc('receipts', 'export', into);
  expect(exported.code, exported.stderr).toBe(0);
  const verified = await place.svc('receipts', 'verify', into);
  expect(verified.code, verified.stdout + verified.stderr).toBe(0);
  const lines = readFileSync(join(into, 'receipts.ndjson'), 'utf8').trim().split('\n');
  const values = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  return values.filter(({ object }) => object === 'svc.receipt');
}

test(`SIGTERM with ${STREAMS} streams: all end whole, new requests are told, every receipt is closed`, async () => {
  const started = await start();
  const { place, service, key } = started;
  // The service ends as soon as the last answer has: until then it refuses what is asked below.
  const refusing = new EventEmitter();
  const last = once(refusing, 'all');
  place.provider.reply = (request) => ({
    ...answerTo(request),
    pieces: { count: 8, pauseMs: 100, last },
  });
  const streams = Array.from({ length: STREAMS }, () => stream(started));
  await until(() => place.provider.seen.length === STREAMS);
  const began = performance.now();
  service.child.kill('SIGTERM');
  await expect
    .poll(async () => (await callService(service.url, '/readyz')).json)
    .toEqual({ status: 'shutting_down' });
  const refusals = await Promise.all(Array.from({ length: 3 }, () => stream(started)));
  expect(refusals.map(({ status }) => status)).toEqual([503, 503, 503]);
  for (const answer of refusals) {
    expect([errorIn(answer).code, answer.headers.connection]).toEqual(['SHUTTING_DOWN', 'close']);
    expect(answer.headers).toMatchObject({ 'x-should-retry': 'true', 'retry-after': '2' });
  }
  const other = await callService(service.url, '/v1/svc/whoami', { key });
  expect([other.status, other.json.error.code]).toEqual([503, 'SHUTTING_DOWN']);
  refusing.emit('all');
  const answers = await Promise.all(streams);
  expect(answers.filter(({ isCut }) => isCut)).toEqual([]);
  expect(new Set(answers.map(({ body }) => body.toString())).size).toBe(1);
  if (service.child.exitCode === null) await once(service.child, 'exit');
  expect(service.child.exitCode).toBe(0);
  expect(performance.now() - began).toBeLessThan(12_000);
  const receipts = await receiptsOf(started);
  const statusOf = new Map(receipts.map((one) => [one['receipt_id'], one]));
  for (const { headers } of answers) {
    expect(statusOf.get(headers['x-svc-receipt-id'])).toMatchObject({ status: 'completed' });
  }
  for (const refused of refusals) {
    expect(statusOf.get(errorIn(refused).receipt)).toMatchObject({
      status: 'rejected',
      http_status: 503,
      error_code: 'SHUTTING_DOWN',
    });
  }
}, 180_000);

test('a stream that outlives the drain is cut, and its receipt says who cut it', async () => {
  const started = await start({ drainMs: 500 });
  const { place, service } = started;
  place.provider.reply = (request) => {
    const whole = answerTo(request);
    return { ...whole, body: whole.body.slice(0, 40), hangs: true };
  };
  const running = stream(started);
  running.catch(() => undefined);
  await until(() => place.provider.seen.length === 1);
  const agent = httpRequest({ port: service.port, host: '127.0.0.1', path: '/livez' });
  agent.end();
  await once(agent, 'response');
  const began = performance.now();
  expect(await service.end('SIGTERM')).toBe(0);
  expect(performance.now() - began).toBeLessThan(8_000);
  expect((await running).isCut).toBe(true);
  const [receipt, ...more] = await receiptsOf(started);
  expect(more).toEqual([]);
  expect(receipt).toMatchObject({
    status: 'internal_error',
    http_status: 200,
    error_code: 'SHUTTING_DOWN',
    error_source: 'service',
  });
}, 120_000);
