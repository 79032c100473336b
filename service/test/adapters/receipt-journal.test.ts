import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { ReceiptJournal, recoverReceipts } from '../../src/adapters/journals/receipt-journal.ts';
import { verifyObject } from '../../src/core/jws.ts';
import { NOTHING_DECIDED } from '../../src/core/receipts.ts';
import { JournalFullError } from '../../src/ports/receipt-store.ts';
import {
  closingOf,
  openingOf,
  RECEIVED_AT,
  rememberingStore,
  testSigner,
} from '../support/receipt-facts.ts';
import { tempFolder } from '../../../test/support/temp-folder.ts';

function open({ folder = tempFolder(), node = 'node_a', bytesMax = 1 << 20 } = {}) {
  const store = rememberingStore();
  const { sign, jwk } = testSigner();
  const reports: string[] = [];
  const options = {
    folder,
    node,
    version: '0.1.2',
    store,
    sign,
    now: () => RECEIVED_AT,
    report: (line: string) => reports.push(line),
  };
  return {
    journal: new ReceiptJournal({ ...options, bytesMax }),
    options,
    store,
    jwk,
    reports,
    folder,
  };
}

function filesIn(folder: string): readonly string[] {
  return readdirSync(folder).filter((name) => name.startsWith('receipts_'));
}

test('texts of callers and providers take no more room than a receipt has for them, and no form loses one', async () => {
  const { journal, store, folder } = open();
  const long = 'x'.repeat(1 << 20);
  const deep = JSON.parse(`${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`) as object;
  const wide = Object.fromEntries(Array.from({ length: 100_000 }, (_, at) => [`n${at}`, at]));
  const names = { upstreamRequestId: long, upstreamResponseId: long, modelReported: long };
  journal.reject(openingOf({ model: long, sessionId: long, space: long }), closingOf());
  const receipts = [deep, wide, { input_tokens: 5, deep }].map((providerUsage) => {
    return { receipt: journal.open(openingOf()), providerUsage };
  });
  for (const { receipt, providerUsage } of receipts) {
    receipt.close(closingOf({ ...names, providerUsage }));
  }
  const [file = ''] = filesIn(folder);
  expect(statSync(join(folder, file)).size).toBeLessThan(20_000);
  await vi.waitFor(() => expect(store.rows).toHaveLength(4));
  const bodies = store.rows.map(({ body }) => JSON.parse(body) as Record<string, unknown>);
  expect(bodies.map(({ model_reported: model }) => model)).toEqual([null, null, null, null]);
  expect(bodies[0]).toMatchObject({ model_requested: null, session_id: 'x'.repeat(256) });
  expect(bodies[3]?.['provider_usage']).toMatchObject({ input_tokens: 5 });
  expect(journal.waiting).toBe(0);
  await journal.close();
});

test('a receipt is on disk when it is opened, and signed and stored after it is closed', async () => {
  const { journal, store, jwk, folder } = open();
  const opening = openingOf();
  const receipt = journal.open(opening);
  const [file = ''] = filesIn(folder);
  expect(readFileSync(join(folder, file), 'utf8')).toContain(opening.receiptId);
  expect(statSync(join(folder, file)).mode & 0o777).toBe(0o600);
  receipt.close(closingOf());
  receipt.close(closingOf({ status: 'internal_error' }));
  await vi.waitFor(() => expect(store.rows).toHaveLength(1));
  const stored = JSON.parse(store.rows[0]?.body ?? '');
  expect(verifyObject(stored, [jwk])).toBe('valid');
  expect(stored).toMatchObject({ status: 'completed', issuer: { node: 'node_a', seq: 1 } });
  expect(store.rows[0]?.counts).toMatchObject({ spentTokens: 117, inputTokens: 110, failed: 0 });
  await journal.close();
  expect(store.heads).toMatchObject([{ tenant: 'default', node: 'node_a', lastSeq: 1 }]);
  expect(verifyObject(JSON.parse(store.heads[0]?.body ?? ''), [jwk])).toBe('valid');
  expect(filesIn(folder)).toEqual([]);
});

test('numbers count 1, 2, 3 by tenant, rejected requests among them', async () => {
  const { journal, store } = open();
  const rejected = closingOf({ status: 'rejected', httpStatus: 422, errorCode: 'MODE_INVALID' });
  for (const tenant of ['acme', 'globex', 'acme']) {
    journal.open(openingOf({ tenant })).close(closingOf());
    journal.reject(openingOf({ tenant, provider: null }), rejected);
  }
  await journal.close();
  const seqs = (tenant: string) =>
    store.rows.filter((row) => row.tenant === tenant).map((row) => row.seq);
  expect([seqs('acme'), seqs('globex')].map((list) => list.toSorted((a, b) => a - b))).toEqual([
    [1, 2, 3, 4],
    [1, 2],
  ]);
  expect(store.heads.map(({ tenant, lastSeq }) => [tenant, lastSeq])).toEqual([
    ['acme', 4],
    ['globex', 2],
  ]);
});

test('what a dead process left open becomes unknown, what it closed is stored, and no number is missing', async () => {
  const dead = open();
  dead.store.isAway = true;
  const lost = dead.journal.open(openingOf({ at: RECEIVED_AT + 1 }));
  dead.journal.open(openingOf()).close(closingOf());
  dead.journal.reject(openingOf(), closingOf({ status: 'rejected', httpStatus: 404 }));
  void lost;
  const next = open({ folder: dead.folder, node: 'node_b' });
  const found = await recoverReceipts(next.options);
  expect(found).toEqual({ nodes: 1, receipts: 3, unknown: 1 });
  const statuses = next.store.rows.toSorted((a, b) => a.seq - b.seq).map(({ status }) => status);
  expect(statuses).toEqual(['unknown', 'completed', 'rejected']);
  const unknown = JSON.parse(next.store.rows.find(({ seq }) => seq === 1)?.body ?? '');
  expect(unknown).toMatchObject({ error_code: 'NODE_LOST', http_status: null });
  expect(next.store.rows.find(({ seq }) => seq === 1)?.counts.spentTokens).toBe(100);
  expect(next.store.heads).toMatchObject([{ node: 'node_a', lastSeq: 3 }]);
  expect(filesIn(dead.folder)).toEqual([]);
  expect(await recoverReceipts(next.options)).toEqual({ nodes: 0, receipts: 0, unknown: 0 });
});

test('an empty file of a dead process still says that its head is not closed', async () => {
  const dead = open();
  dead.journal.open(openingOf()).close(closingOf());
  await dead.journal.flush();
  expect(filesIn(dead.folder)).toHaveLength(1);
  const next = open({ folder: dead.folder, node: 'node_b' });
  next.store.rows.push(...dead.store.rows);
  expect(await recoverReceipts(next.options)).toMatchObject({ nodes: 1, receipts: 0 });
  expect(next.store.heads).toMatchObject([{ node: 'node_a', lastSeq: 1 }]);
});

test('a head that cannot be stored at the end is closed by the next process', async () => {
  const { journal, store, folder } = open();
  journal.open(openingOf()).close(closingOf());
  await journal.flush();
  store.isAway = true;
  await journal.close();
  expect(filesIn(folder)).toHaveLength(1);
  const next = open({ folder, node: 'node_b' });
  next.store.rows.push(...store.rows);
  expect(await recoverReceipts(next.options)).toMatchObject({ nodes: 1, receipts: 0 });
  expect(next.store.heads).toMatchObject([{ node: 'node_a', lastSeq: 1 }]);
  expect(filesIn(folder)).toEqual([]);
});

test('a recovery that cannot store keeps the files, and stores each receipt once', async () => {
  const dead = open();
  dead.journal.open(openingOf());
  const next = open({ folder: dead.folder, node: 'node_b' });
  next.store.isAway = true;
  await expect(recoverReceipts(next.options)).rejects.toThrow('away');
  expect(filesIn(dead.folder)).toHaveLength(1);
  next.store.isAway = false;
  await recoverReceipts(next.options);
  expect(next.store.rows).toHaveLength(1);
});

test('a line that was torn by a kill opens nothing, and the others are found', async () => {
  const dead = open();
  dead.journal.open(openingOf());
  const [file = ''] = filesIn(dead.folder);
  const path = join(dead.folder, file);
  writeFileSync(path, `${readFileSync(path, 'utf8')}000000ff 12345678 {"opened":`);
  const next = open({ folder: dead.folder, node: 'node_b' });
  expect(await recoverReceipts(next.options)).toMatchObject({ receipts: 1, unknown: 1 });
});

test('a full journal refuses further receipts and still closes the open ones', async () => {
  const { journal, store, options } = open({ bytesMax: 24_000 });
  store.isAway = true;
  const opened = [journal.open(openingOf())];
  expect(() => {
    for (let more = 0; more < 99; more += 1) opened.push(journal.open(openingOf()));
  }).toThrow(JournalFullError);
  // Not ready, because the next request would be refused: a balancer must not send it here.
  expect(journal.problem()).toContain('full');
  expect(opened.length).toBeGreaterThan(2);
  for (const receipt of opened) receipt.close(closingOf());
  const lines = filesIn(options.folder).map((name) =>
    readFileSync(join(options.folder, name), 'utf8'),
  );
  expect(lines.join('').match(/"closed"/g)).toHaveLength(opened.length);
  store.isAway = false;
  expect(await journal.flush()).toBe(true);
  expect(store.rows).toHaveLength(opened.length);
  journal.open(openingOf()).close(closingOf());
  await journal.close();
  expect(store.heads[0]?.lastSeq).toBe(opened.length + 1);
});

test('the journal has a problem exactly while the next receipt would be refused, whatever its texts', () => {
  // Each character takes six bytes in JSON.
  const long = '\u0001'.repeat(256);
  const texts = [{}, { model: long, sessionId: long, space: long }];
  for (let bytesMax = 8_000; bytesMax < 60_000; bytesMax += 773) {
    const { journal, store } = open({ bytesMax });
    store.isAway = true;
    let wasReady = true;
    for (let count = 0; wasReady; count += 1) {
      const isReady = journal.problem() === undefined;
      const opening = openingOf(texts[count % 2]);
      if (isReady) journal.open(opening);
      else expect(() => journal.open(opening)).toThrow(JournalFullError);
      wasReady = isReady;
    }
  }
});

test('the longest line that opens a receipt takes no more room than is kept for it', () => {
  const { journal, folder } = open();
  const long = '\u0001'.repeat(1000);
  const provider = { id: 'prov_'.padEnd(64, 'a'), kind: 'custom', host: 'h'.repeat(253) } as const;
  const decided = Object.fromEntries(
    Object.entries(NOTHING_DECIDED).map(([name, value]) => [name, value === 0 ? 2 ** 53 : value]),
  );
  const tenant = 't'.repeat(64);
  const names = { tenant, keyId: 'k'.repeat(64), model: long, sessionId: long, space: long };
  journal.open(openingOf({ ...names, provider, decided: { ...NOTHING_DECIDED, ...decided } }));
  const [file = ''] = filesIn(folder);
  expect(statSync(join(folder, file)).size).toBeLessThan(6144);
});

test('a folder that cannot be written refuses receipts until it can', async () => {
  const folder = join(tempFolder(), 'service');
  const { journal } = open({ folder });
  writeFileSync(folder, 'in the way');
  expect(() => journal.open(openingOf())).toThrow(JournalFullError);
  expect(journal.problem()).toContain('cannot be written');
  rmSync(folder);
  expect(journal.problem()).toBe(undefined);
  journal.open(openingOf()).close(closingOf());
  await journal.close();
});

test('receipts wait while the store is away, in order, and are said once', async () => {
  const { journal, store, reports } = open();
  store.isAway = true;
  for (let number = 0; number < 450; number += 1) journal.open(openingOf()).close(closingOf());
  expect(await journal.flush()).toBe(false);
  expect([journal.waiting, reports.length]).toEqual([450, 1]);
  store.isAway = false;
  expect(await journal.flush()).toBe(true);
  expect(store.rows.map(({ seq }) => seq)).toEqual(Array.from({ length: 450 }, (_, at) => at + 1));
  await journal.close();
});
