import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { parseJson } from '../../../src/core/bytes/json-fields.ts';
import type { Receipt } from '../../src/core/receipts.ts';
import { SERVICE_BIN } from '../../../test/support/cli.ts';
import { type AnswerChoices, answerTo, DIALECTS } from '../../../test/support/dialect-wire.ts';
import { KillClient, type Random, randomFrom, sha256 } from '../support/kill-client.ts';
import { callService } from '../support/memory-service.ts';
import {
  type ConsoleCaller,
  consoleOf,
  initModelHome,
  type ModelHome,
  providerBody,
} from '../support/model-process.ts';
import { missingPostgres } from '../support/postgres.ts';
import { postgresStores } from '../support/postgres-stores.ts';
import { allTexts, captureUntilGone, KILL_SPACE } from '../support/service-kills.ts';
import { until } from '../../../test/support/sockets.ts';

/**
 * R27: a service whose streams run is killed at random moments. SVC_TEST_KILLS=200 asks for the long
 * run, and SVC_TEST_KILL_SEED for other moments.
 */
const KILLS = Number(process.env['SVC_TEST_KILLS'] ?? '4');
const SEED = Number(process.env['SVC_TEST_KILL_SEED'] ?? '20261122');
const TENANTS = ['default', 'acme', 'globex'] as const;
const STREAMS = 8;
/** At most so many requests between two kills. */
const REQUESTS_MAX = 40;
/** Every eighth process lives longer: an output leaves a prompt once it is known to be stored. */
const LONG_EVERY = 8;
const LONG_REQUESTS = 120;
/** Every sixth kill meets the start, when the receipts of the last run are recovered. */
const START_EVERY = 6;
/** Every tenth start comes after `svc-service receipts recover`. */
const RECOVER_EVERY = 10;

/** What the provider saw: by the model that a body names, its digests and what was left out of it. */
interface Seen {
  readonly bodies: Map<string, string[]>;
  /** The name of a client and the reference of an output, with a blank between. */
  readonly leftOut: Set<string>;
}

const STUB = /\[svc left out this [^\]]*?\b((?:m|to)_[a-z2-7]{16})/g;

function law(kills: number, open: () => Promise<ModelHome>): void {
  const title =
    'R27: after kills under model traffic every request that the provider saw has one receipt, and every answered text is kept once';
  test(title, { timeout: 240_000 + kills * 20_000 }, async () => {
    const random = randomFrom(SEED);
    const place = await open();
    const seen: Seen = { bodies: new Map(), leftOut: new Set() };
    const answers = new Map<string, AnswerChoices>();
    place.provider.reply = (request) => {
      const { model } = JSON.parse(request.body.toString()) as { model: string };
      const pieces = { count: 4, pauseMs: random() * 30 };
      return { ...answerTo(request, answers.get(model)), pieces };
    };
    const clients = await makeClients(place, { random, answers });
    const safe: string[] = [];
    for (let kill = 0; kill < kills; kill += 1) {
      /* oxlint-disable no-await-in-loop -- One kill after the other. */
      if (kill % START_EVERY === START_EVERY - 1) await killAtStart(place, random);
      if (kill % RECOVER_EVERY === RECOVER_EVERY - 1) {
        const { code, stderr } = await place.svc('receipts', 'recover');
        expect(code, stderr).toBe(0);
      }
      const requests = kill % LONG_EVERY === 1 ? LONG_REQUESTS : 1 + random() * REQUESTS_MAX;
      await killWhileStreaming(place, { clients, random, safe, requests });
      drainSeen(place, seen);
      /* oxlint-enable no-await-in-loop */
    }
    const receipts = await whatIsLeft(place, { clients, safe, seen });
    expectOneReceiptEach(seen, clients, receipts);
    if (kills > 4) {
      process.stderr.write(`${kills} kills: ${summaryOf(seen, { clients, safe }, receipts)}\n`);
    }
  });
}

describe('on SQLite', () => law(KILLS, () => initModelHome()));

describe.skipIf(missingPostgres() !== undefined)('on PostgreSQL', () => {
  const stores = postgresStores();
  law(Math.ceil(KILLS / 2), async () => initModelHome(await stores.server().newDatabase()));
});

interface Making {
  readonly random: Random;
  readonly answers: Map<string, AnswerChoices>;
}

/** Three tenants with a provider for each dialect, and eight clients with keys of their own. */
async function makeClients(
  place: ModelHome,
  { random, answers }: Making,
): Promise<readonly KillClient[]> {
  const service = await place.start('--quiet');
  const console = consoleOf(service, place.token);
  for (const tenant of TENANTS) {
    /* oxlint-disable no-await-in-loop */
    if (tenant !== 'default') await console('POST tenants', { tenant_id: tenant });
    for (const dialect of DIALECTS) {
      await console('POST providers', providerBody(dialect, place.baseUrl), { tenant });
    }
    await shortenEarly(console, tenant);
    /* oxlint-enable no-await-in-loop */
  }
  const clients = Array.from({ length: STREAMS }, async (_, at) => {
    const tenant = TENANTS[at % TENANTS.length] ?? 'default';
    const dialect = DIALECTS[Math.floor(at / TENANTS.length) % DIALECTS.length];
    const scopes = ['read', 'write', 'receipt:read'];
    const { json } = await console('POST keys', { name: `c${at}`, scopes }, { tenant });
    return new KillClient({
      name: `c${at}`,
      tenant,
      key: String(json.secret),
      dialect: dialect ?? 'openai_responses',
      isStreamed: at % 4 !== 3,
      hasHistory: at % 4 === 0,
      random: randomFrom(random() * 2 ** 32),
      onSend: (model, answer) => answers.set(model, answer),
    });
  });
  const made = await Promise.all(clients);
  await service.end('SIGTERM');
  return made;
}

/** Tool outputs leave these short conversations too. */
async function shortenEarly(console: ConsoleCaller, tenant: string): Promise<void> {
  await console(
    'PATCH settings',
    { input_budget: 1024, elision_keep_rounds: 2 },
    { tenant, ifVersion: 0 },
  );
}

interface Killing {
  readonly clients: readonly KillClient[];
  /** Texts that the memory API acknowledged, to the first client. */
  readonly safe: string[];
}

async function killWhileStreaming(
  place: ModelHome,
  {
    clients,
    safe,
    random,
    requests,
  }: Killing & { readonly random: Random; readonly requests: number },
): Promise<void> {
  const service = await place.start('--quiet');
  const { seen } = place.provider;
  const before = seen.length;
  const talks = clients.map((client) => client.talk(service.port));
  const run = `run${Math.floor(random() * 2 ** 32)}`;
  const captures = captureUntilGone(service, clients[0]?.key ?? '', { run, safe });
  const gone = Promise.all([...talks, captures]);
  // Kills that all come before the first stream would prove nothing, and a busy machine streams late.
  await Promise.race([until(() => seen.length >= before + requests), gone]);
  await sleep(random() * 200);
  await service.end('SIGKILL');
  await gone;
}

async function killAtStart({ home, environment }: ModelHome, random: Random): Promise<void> {
  const child = spawn(process.execPath, [SERVICE_BIN, 'start', '--quiet'], {
    cwd: home,
    env: { PATH: process.env['PATH'] ?? '', HOME: home, ...environment },
    stdio: 'ignore',
  });
  const gone = once(child, 'close');
  await sleep(100 + random() * 1200);
  child.kill('SIGKILL');
  await gone;
}

function drainSeen({ provider }: ModelHome, seen: Seen): void {
  for (const { body } of provider.seen.splice(0)) {
    const { model } = JSON.parse(body.toString()) as { model: string };
    seen.bodies.set(model, [...(seen.bodies.get(model) ?? []), sha256(body)]);
    const [, client = ''] = model.split('-');
    for (const [, ref] of body.toString().matchAll(STUB)) seen.leftOut.add(`${client} ${ref}`);
  }
}

/** Looks at memory and usage of a service that runs again, and at the receipts once it has ended. */
async function whatIsLeft(
  place: ModelHome,
  { clients, safe, seen }: Killing & { readonly seen: Seen },
): Promise<ReadonlyMap<string, readonly Receipt[]>> {
  const service = await place.start('--quiet');
  for (const client of clients) {
    /* oxlint-disable no-await-in-loop */
    await expect.poll(() => missingTexts(service.url, client)).toEqual([]);
    const texts = await allTexts(service.url, client.key, client.space);
    expect(texts.length).toBe(new Set(texts).size);
    /* oxlint-enable no-await-in-loop */
  }
  for (const name of seen.leftOut) {
    const [client = '', ref = ''] = name.split(' ');
    const { key, space } = clients.find((one) => one.space.endsWith(`-${client}`)) ?? {};
    const path = `/v1/svc/memory/objects/${ref}?space=${space}`;
    // oxlint-disable-next-line no-await-in-loop
    const { status } = await callService(service.url, path, key === undefined ? {} : { key });
    expect([name, status]).toEqual([name, 200]);
  }
  const captured = await allTexts(service.url, clients[0]?.key ?? '', KILL_SPACE);
  expect(captured.length).toBe(new Set(captured).size);
  expect(safe.filter((text) => !captured.includes(text))).toEqual([]);
  const console = consoleOf(service, place.token);
  const usage = await Promise.all(
    TENANTS.map(async (tenant) => {
      const { json } = await console('GET usage?group_by=key', undefined, { tenant });
      const rows = json.data as { requests: number }[];
      return rows.reduce((sum, { requests }) => sum + requests, 0);
    }),
  );
  expect(await service.end('SIGTERM')).toBe(0);
  const found = new Map<string, readonly Receipt[]>();
  for (const [at, tenant] of TENANTS.entries()) {
    // oxlint-disable-next-line no-await-in-loop
    const receipts = await exportedReceipts(place, tenant);
    found.set(tenant, receipts);
    expect(usage[at]).toBe(receipts.length);
  }
  return found;
}

async function missingTexts(url: string, client: KillClient): Promise<readonly string[]> {
  const stored = new Set(await allTexts(url, client.key, client.space));
  return client.acknowledged.filter((text) => !stored.has(text));
}

/** Signatures, numbers and heads are judged by the command that an auditor has. */
async function exportedReceipts(place: ModelHome, tenant: string): Promise<readonly Receipt[]> {
  const folder = join(place.home, `export-${tenant}`);
  const exported = await place.svc('receipts', 'export', folder, '--tenant', tenant);
  expect(exported.code, exported.stderr).toBe(0);
  const verified = await place.svc('receipts', 'verify', folder);
  expect([verified.code, verified.stdout], verified.stderr).toEqual([0, '']);
  const receipts = valuesIn(join(folder, 'receipts.ndjson')) as readonly Receipt[];
  const held = valuesIn(join(folder, 'heads.ndjson')) as readonly {
    readonly object: string;
    node: string;
    last_seq: number;
    closed: boolean;
  }[];
  const heads = held.filter(({ object }) => object === 'svc.receipt_head');
  const last = new Map<string, number>();
  for (const { issuer } of receipts) {
    last.set(issuer.node, Math.max(last.get(issuer.node) ?? 0, issuer.seq));
  }
  expect(heads.filter(({ closed }) => !closed)).toEqual([]);
  expect(new Map(heads.map(({ node, last_seq: seq }) => [node, seq]))).toEqual(last);
  return receipts;
}

function valuesIn(file: string): readonly unknown[] {
  return readFileSync(file, 'utf8').trim().split('\n').filter(Boolean).map(parseJson);
}

/** A closed one agrees with the bytes that provider and client have, to the digest. */
function expectOneReceiptEach(
  seen: Seen,
  clients: readonly KillClient[],
  receipts: ReadonlyMap<string, readonly Receipt[]>,
): void {
  const sent = new Map(clients.flatMap((client) => [...client.sent]));
  const byModel = new Map<string, { readonly tenant: string; readonly receipt: Receipt }[]>();
  for (const [tenant, own] of receipts) {
    for (const receipt of own) {
      const model = String(receipt['model_requested']);
      byModel.set(model, [...(byModel.get(model) ?? []), { tenant, receipt }]);
    }
  }
  expect(seen.bodies.size).toBeGreaterThan(STREAMS);
  for (const [model, bodies] of seen.bodies) {
    expect(bodies.length, model).toBe(1);
    const found = byModel.get(model) ?? [];
    expect(found.length, model).toBe(1);
    const [{ tenant, receipt } = { tenant: '', receipt: undefined }] = found;
    const known = sent.get(model);
    expect(tenant).toBe(known?.tenant);
    if (receipt === undefined || receipt.status === 'unknown') continue;
    expect(receipt['forwarded_sha256'], model).toBe(bodies[0]);
    expect(receipt['request_sha256'], model).toBe(known?.requestSha256);
    if (known?.responseSha256 === undefined) continue;
    expect([receipt.status, receipt['response_sha256']]).toEqual([
      'completed',
      known.responseSha256,
    ]);
  }
  for (const [model, found] of byModel) expect(found.length, model).toBe(1);
}

function summaryOf(
  seen: Seen,
  { clients, safe }: Killing,
  receipts: ReadonlyMap<string, readonly Receipt[]>,
): string {
  const all = [...receipts.values()].flat();
  const unknown = all.filter(({ status }) => status === 'unknown').length;
  const shortened = all.filter((one) => Number(one['elided_tool_outputs']) > 0).length;
  const { leftOut } = seen;
  const refused = clients.reduce((sum, client) => sum + client.refused, 0);
  const texts = clients.reduce((sum, { acknowledged }) => sum + acknowledged.length, 0);
  return [
    `seed ${SEED}, ${seen.bodies.size} requests seen`,
    `${all.length} receipts, ${unknown} of them unknown, ${shortened} of shortened requests`,
    `${leftOut.size} outputs left out, each can be read`,
    `${texts} texts answered and ${safe.length} captured, each there once; ${refused} refused`,
  ].join('; ');
}
