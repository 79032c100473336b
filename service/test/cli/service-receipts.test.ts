import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { ReceiptJournal } from '../../src/adapters/journals/receipt-journal.ts';
import { runServiceHere, tempFolder } from '../../../test/support/cli.ts';
import { closingOf, openingOf, rememberingStore, testSigner } from '../support/receipt-facts.ts';
import { initService, makeServiceKey } from '../support/service-process.ts';

const DAY = 86_400_000;

interface Opened {
  readonly home: string;
  readonly folder: string;
  readonly run: (
    ...words: readonly string[]
  ) => Promise<{ code: number | null; stdout: string; stderr: string }>;
}

async function open(): Promise<Opened> {
  const home = tempFolder();
  const folder = join(home, 'svc');
  await initService(home, '--folder', folder);
  const run = (...words: readonly string[]) =>
    runServiceHere([...words, '--folder', folder], { home });
  return { home, folder, run };
}

/** What a process leaves that is killed while requests run: receipts, of which all but the first and third are open. */
function leaveReceipts(
  folder: string,
  node: string,
  at = Date.now(),
  { receipts = 3, apartMs = 1 } = {},
): readonly string[] {
  const store = rememberingStore();
  store.isAway = true;
  const { sign } = testSigner();
  const report = (): void => undefined;
  const options = { folder, node, version: '0.1.2', store, sign, now: Date.now, report };
  const journal = new ReceiptJournal(options);
  const times = Array.from({ length: receipts }, (_, number) => at + number * apartMs);
  const openings = times.map((time) => openingOf({ at: time }));
  const [first, , third] = openings.map((opening) => journal.open(opening));
  first?.close(closingOf());
  third?.close(closingOf({ status: 'upstream_error', httpStatus: 529 }));
  return openings.map(({ receiptId }) => receiptId);
}

test('receipts that a dead process left are recovered, listed, exported and verified', async () => {
  const { home, folder, run } = await open();
  const ids = leaveReceipts(folder, 'node_0a');
  const checks = JSON.parse((await run('doctor', '--json')).stdout).checks;
  expect(checks).toContainEqual(
    expect.objectContaining({ subject: 'Receipts', level: 'warning', found: expect.any(String) }),
  );
  const recovered = await run('receipts', 'recover', '--json');
  expect(JSON.parse(recovered.stdout)).toEqual({ nodes: 1, receipts: 3, unknown: 1 });
  expect((await run('receipts', 'recover')).stderr).toContain('No receipts are waiting.');
  const listed = await run('receipts', 'list');
  expect(listed.stdout.split('\n').map((line) => line.slice(0, 31))).toEqual([
    ...ids.toReversed(),
    '',
  ]);
  const failed = await run('receipts', 'list', '--status', 'unknown', '--json');
  expect(JSON.parse(failed.stdout)).toMatchObject([{ receipt_id: ids[1] }]);
  const one = JSON.parse((await run('receipts', 'get', ids[0] ?? '')).stdout);
  expect(one).toMatchObject({ receipt_id: ids[0], status: 'completed', issuer: { seq: 1 } });
  expect((await run('receipts', 'get', 'rcpt_x')).code).toBe(2);

  const into = join(home, 'export');
  expect((await run('receipts', 'export', into)).code).toBe(0);
  expect((await run('receipts', 'export', into)).code).toBe(2);
  const verify = (path = into, ...more: readonly string[]) =>
    runServiceHere(['receipts', 'verify', path, ...more], { home });
  const whole = await verify();
  expect([whole.code, whole.stderr.trim()]).toEqual([0, '3 receipts, 0 wrong, 0 missing.']);
  // An export of some days alone begins in the middle of the numbers.
  const later = join(home, 'later');
  const [{ created_at: from }] = JSON.parse(failed.stdout);
  expect((await run('receipts', 'export', later, '--from', from)).stderr).toContain('--partial');
  expect((await verify(later)).stdout).toContain('number 1 missing');
  expect((await verify(later, '--partial')).code).toBe(0);
  const file = join(into, 'receipts.ndjson');
  const lines = readFileSync(file, 'utf8').trim().split('\n');
  writeFileSync(file, lines.filter((_, at) => at !== 1).join('\n'));
  const missing = await verify();
  expect([missing.code, missing.stdout]).toEqual([1, 'default node_0a  number 2 missing\n']);
  writeFileSync(file, lines.join('\n').replace('"http_status":529', '"http_status":200'));
  const altered = await verify();
  expect(altered.code).toBe(1);
  expect(altered.stdout).toContain(`${ids[2]}  differs from the signed receipt`);
  const [first = '', ...rest] = lines;
  const receipt = JSON.parse(first) as Record<string, unknown>;
  const { space: _, ...less } = receipt;
  const { signature } = JSON.parse(lines[2] ?? '') as { signature: unknown };
  for (const changed of [{ ...receipt, surplus: 1 }, less, { ...receipt, signature }]) {
    writeFileSync(file, [JSON.stringify(changed), ...rest].join('\n'));
    // oxlint-disable-next-line no-await-in-loop
    const { code, stdout } = await verify();
    expect([code, stdout]).toEqual([
      1,
      expect.stringContaining(`${ids[0]}  differs from the signed receipt`),
    ]);
    // It stands for no number any more.
    expect(stdout).toContain('number 1 missing');
  }
  writeFileSync(file, lines.join('\n'));
  const others = join(home, 'others.json');
  writeFileSync(others, JSON.stringify({ keys: [testSigner().jwk] }));
  expect((await verify(into, '--keys', others)).stdout).toContain('is signed with a key');
  writeFileSync(file, `${lines.join('\n')}\nnot json`);
  expect((await verify()).code).toBe(2);
}, 240_000);

test('old receipts move to files, one a day, and a killed run goes on', async () => {
  const { home, folder, run } = await open();
  const old = leaveReceipts(folder, 'node_0b', Date.now() - 3 * DAY);
  leaveReceipts(folder, 'node_0c');
  await run('receipts', 'recover');
  await run('receipts', 'export', join(home, 'keys'));
  const into = join(home, 'archive');
  const archived = await run('receipts', 'archive', into, '--older-than', '2d', '--json');
  expect(JSON.parse(archived.stdout)).toMatchObject({ receipts: 3 });
  const [name = ''] = readdirSync(into);
  expect(name).toMatch(/^receipts-default-\d{4}-\d\d-\d\d\.ndjson\.gz$/);
  const text = gunzipSync(readFileSync(join(into, name))).toString('utf8');
  for (const id of old) expect(text).toContain(id);
  expect(JSON.parse((await run('receipts', 'list', '--json')).stdout)).toHaveLength(3);
  const keys = join(home, 'keys', 'keys.json');
  const words = ['receipts', 'verify', into, '--keys', keys];
  expect((await runServiceHere(words, { home })).stderr).toContain(
    '3 receipts, 0 wrong, 0 missing.',
  );
  const again = await run('receipts', 'archive', into, '--older-than', '2d', '--json');
  expect(JSON.parse(again.stdout)).toMatchObject({ receipts: 0 });
  expect((await run('receipts', 'archive', into, '--older-than', 'soon')).code).toBe(2);
}, 240_000);

test('an archive has the receipts of all old days, also of more than a page of usage has', async () => {
  const { home, folder, run } = await open();
  leaveReceipts(folder, 'node_0e', Date.now() - 110 * DAY, { receipts: 104, apartMs: DAY });
  await run('receipts', 'recover');
  const into = join(home, 'archive');
  const archived = await run('receipts', 'archive', into, '--older-than', '2d', '--json');
  expect(JSON.parse(archived.stdout)).toMatchObject({ receipts: 104 });
  expect(readdirSync(into)).toHaveLength(104);
}, 240_000);

test('usage, account defaults, sources and purges of a tenant', async () => {
  const { folder, home, run } = await open();
  leaveReceipts(folder, 'node_0d', Date.parse('2026-11-20T10:00:00Z'));
  await run('receipts', 'recover');
  const usage = await run(
    'usage',
    '--by',
    'model,day',
    '--from',
    '2026-11-20',
    '--to',
    '2026-11-20',
  );
  expect(usage.stdout).toMatch(/^2026-11-20 +gpt-5 +3 requests +2 failed /);
  expect((await run('usage', '--by', 'colour')).code).toBe(2);
  const set = await run('settings', 'set', '--input-budget', '16000', '--elision', 'off', '--json');
  expect(JSON.parse(set.stdout)).toMatchObject({ input_budget: 16_000, version: 1 });
  expect((await run('settings', 'show')).stdout).toContain('elision_enabled  false');
  expect((await run('settings', 'set')).code).toBe(2);
  expect((await run('settings', 'set', '--input-budget', '7')).code).toBe(2);
  await makeServiceKey(home, '--folder', folder, '--tokens-per-day', '5000');
  const [key] = JSON.parse((await run('keys', 'list', '--json')).stdout);
  expect(key).toMatchObject({ tokens_per_day: 5000 });
  expect((await run('keys', 'create', '--tokens-per-day', 'many')).code).toBe(2);
  expect((await run('sources', '--space', 'default', '--json')).stdout.trim()).toBe('[]');
  const counted = await run('purge', '--space', 'default', '--all');
  expect(counted.stderr).toContain('0 records would be purged');
  expect((await run('purge', '--space', 'default')).code).toBe(2);
  expect((await run('purge', '--space', 'default', '--all', '--yes')).stderr).toContain('prg_');
}, 240_000);
