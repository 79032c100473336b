import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import { requestDetails } from '../../src/cli/requests/requests.ts';
import { bar, table, wrapped } from '../../src/cli/text-table.ts';
import type { RequestRow } from '../../src/ports/request-log.ts';
import { type CliResult, runCli, runHere } from '../support/cli.ts';
import { blockEntry } from '../support/ledger-entries.ts';
import { requestRow } from '../support/request-row.ts';
import { tempFolder } from '../support/temp-folder.ts';

// Many processes on a machine that may be busy.
vi.setConfig({ testTimeout: 60_000 });

const DAY_MS = 24 * 3600 * 1000;

/** Runs the command beside a store that holds these rows. */
async function runOn(
  rows: readonly RequestRow[],
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<CliResult> {
  const folder = tempFolder();
  const store = openEmbeddedStore({ folder, report: () => undefined });
  for (const row of rows) store.requestLog.add(row);
  await store.close();
  // A process keeps its time zone.
  const run = env['TZ'] === undefined ? runHere : runCli;
  return run(args, { home: tempFolder(), env: { SVC_DATA_HOME: folder, ...env } });
}

function rowsOfThreeDays(): readonly RequestRow[] {
  const noon = new Date().setHours(12, 0, 0, 0);
  const { usage: _usage, ...unreported } = requestRow({ id: 'r4', at: noon - DAY_MS, status: 529 });
  return [
    requestRow({
      id: 'r1',
      at: noon,
      price: { paid: 6_000, direct: 10_000 },
      readings: 3,
    }),
    requestRow({
      id: 'r2',
      at: noon,
      memoryState: 'empty',
      recalledTokens: 0,
      space: 'other',
      lostThoughts: { prefix: 4, refused: 1 },
      prefixChangedBy: 'client',
    }),
    requestRow({
      id: 'r3',
      at: noon,
      client: 'codex',
      memoryState: 'degraded_timeout',
      price: { paid: 1_100, direct: 1_000 },
      lostThoughts: { prefix: 3, model: 2, other: 1 },
      prefixChangedBy: 'svc',
    }),
    unreported,
    // Passed on unread: nothing of it is a model request.
    requestRow({ id: 'r6', at: noon, kind: 'relayed' }),
    requestRow({ id: 'r7', at: noon, kind: 'count' }),
    requestRow({ id: 'r5', at: noon - 40 * DAY_MS }),
  ];
}

interface Stats {
  total: Record<string, number | object>;
  byDay: { name: string; requests: number }[];
  byClient: { name: string; requests: number; cacheRate: number | null }[];
  byProject: { name: string; requests: number }[];
}

test('stats sums by day, client and project what the log holds of these days', async () => {
  const { stdout, code } = await runOn(rowsOfThreeDays(), ['stats', '--json']);
  expect(code).toBe(0);
  const stats = JSON.parse(stdout) as Stats;
  expect(stats.total).toMatchObject({
    requests: 4,
    failed: 1,
    originalInputTokens: 4 * 48_200,
    forwardedInputTokens: 4 * 48_312,
    recalledTokens: 3 * 112,
    asked: 4,
    recalled: 2,
    degraded: 1,
    recallRate: 0.5,
    usage: { input: 3000, cacheRead: 141_000, cacheWrite: 900, output: 2436 },
    price: { paid: 7_100, direct: 11_000 },
    keptPrice: 3_900,
    readings: 3,
    thoughts: { dropped: 9, unfit: 7, refused: 1, bySvc: 3 },
  });
  expect(stats.byDay.map(({ requests }) => requests)).toEqual([3, 1]);
  const today = new Date();
  expect(stats.byDay[0]?.name).toMatch(new RegExp(`-${String(today.getDate()).padStart(2, '0')}$`));
  expect(stats.byClient.map(({ name, requests }) => [name, requests])).toEqual([
    ['claude-code', 3],
    ['codex', 1],
  ]);
  expect(stats.byClient[1]?.cacheRate).toBeCloseTo(47_000 / 48_300);
  expect(stats.byProject.map(({ name, requests }) => [name, requests])).toEqual([
    ['/home/me/shop', 3],
    ['other', 1],
  ]);
});

test.each([
  // Clocks of Berlin go back an hour on the 25th of October, and ahead on the 29th of March.
  ['2099-10-26T12:00:00+01:00', '2099-10-24T00:30:00+02:00', '2099-10-23T23:30:00+02:00'],
  ['2099-03-30T12:00:00+02:00', '2099-03-28T00:30:00+01:00', '2099-03-27T23:30:00+01:00'],
])(
  'the first of three days begins at midnight across a clock change: %s',
  async (now, inside, outside) => {
    const rows = [inside, outside].map((at) => requestRow({ id: at, at: Date.parse(at) }));
    const clock = join(tempFolder(), 'clock');
    writeFileSync(clock, String(Date.parse(now) - Date.now()));
    const preload = new URL('../support/moved-clock.mjs', import.meta.url).href;
    const env = {
      TZ: 'Europe/Berlin',
      NODE_OPTIONS: `--import=${preload}`,
      SVC_TEST_CLOCK: clock,
    };
    const { stdout } = await runOn(rows, ['stats', '--days', '3', '--json'], env);
    const { byDay } = JSON.parse(stdout) as Stats;
    expect(byDay.map(({ name, requests }) => [name, requests])).toEqual([[inside.slice(0, 10), 1]]);
  },
);

test('for people there are tables with bars, and nothing is an answer too', async () => {
  const { stdout } = await runOn(rowsOfThreeDays(), ['stats', '--days', '1']);
  expect(stdout).toContain('Today: 3 requests');
  expect(stdout).toContain('Recall    1 of 3 requests carried memories (33 %)');
  expect(stdout).toMatch(
    /^Client {7}requests +in +to provider +answered +cached +kept +again +recalled$/m,
  );
  expect(stdout).toMatch(/^claude-code +2 +96k +97k +1\.6k +97 % +40 % +3 +1\/2 {2}█+$/m);
  expect(stdout).toMatch(/^codex +1 .* -10 % +0 +0\/1/m);
  expect(stdout).toContain(
    'Price     that of 7.1k input tokens at full price; direct about 11k: 3.9k kept (35 %)',
  );
  expect(stdout).toContain('Again     a model read left-out outputs again 3 times');
  const none = await runOn([], ['stats']);
  expect([none.code, none.stdout]).toEqual([0, '']);
  expect(none.stderr).toContain('svc handled no request');
  const wrong = await runOn([], ['stats', '--days', '91']);
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('--days')]);
});

test('one request in full: what was changed, and the milliseconds of every step', async () => {
  const row = requestRow();
  const { stdout } = await runOn([row], ['requests', row.id]);
  expect(stdout).toContain('Changed       about 112 recalled tokens added');
  expect(stdout).toContain('47000 from its cache (97 %)');
  expect(stdout).toMatch(/^ +3\.1 ms {2}recall/m);
  expect(stdout).toMatch(/^ +800\.0 ms {2}the provider’s first byte +█/m);
  expect(stdout).toMatch(/^ +5005\.2 ms {2}together$/m);
  const same = await runOn([row], ['requests', row.id, '--json']);
  expect(JSON.parse(same.stdout)).toEqual([row]);
  expect((await runOn([row], ['requests', 'req_none'])).code).toBe(1);
});

test('a request of a clock that was ahead counts, because it was paid for, and has its own day', async () => {
  const rows = [
    requestRow({ id: 'r1', at: Date.now() }),
    requestRow({ id: 'r2', at: Date.now() + 2 * DAY_MS }),
  ];
  const { stdout } = await runOn(rows, ['stats', '--json']);
  expect(JSON.parse(stdout)).toMatchObject({
    total: { requests: 2 },
    byDay: [{ requests: 1 }, { requests: 1 }],
  });
});

test('money leads for keys and tokens for logins, and what doctor asked is nobody’s', async () => {
  const at = new Date().setHours(12, 0, 0, 0);
  const priced = { at, model: 'claude-opus-4-8', price: { paid: 600_000, direct: 1_000_000 } };
  const usage = { input: 0, cacheRead: 0, cacheWrite: 0, output: 40_000 };
  const { stdout } = await runOn(
    [
      requestRow({ ...priced, id: 'r1', usage, recall: { exchange: 0, refs: [], isUsed: true } }),
      requestRow({
        ...priced,
        id: 'r2',
        usage: { ...usage, output: 0 },
        price: { paid: 100_000, direct: 200_000 },
        readings: 1,
        recall: { exchange: 0, refs: [], isUsed: false },
      }),
      requestRow({
        at,
        id: 'r3',
        model: 'nobody-knows',
        usage: { input: 400, cacheRead: 0, cacheWrite: 0, output: 0 },
        recall: { exchange: 1, refs: [], isUsed: false },
      }),
      requestRow({ ...priced, id: 'r4', isLogin: true, usage: { ...usage, input: 60_000 } }),
      requestRow({ ...priced, id: 'r5', space: 'svc-doctor' }),
    ],
    ['stats'],
  );
  const [head, money, logins, price] = stdout.split('\n');
  expect(head).toMatch(/: 4 requests$/);
  expect(money).toBe(
    '  Money     $4.50 to providers for requests with a key, by list prices of 2026-11-30, cache and answers included: $2.50 less than without svc',
  );
  expect(logins).toBe('  Logins    100k tokens with your logins');
  expect(price).toContain('59 % of direct, or 65 % with all calls that read left-out text again');
  expect(stdout).toContain('the model used the memories of 1 of 2 prompts that got some');
});

test.each([100, -100, 0])('less than half a cent is no difference: %i tokens', async (kept) => {
  const price = { paid: 1000, direct: 1000 + kept };
  const usage = { input: 1000, cacheRead: 0, cacheWrite: 0, output: 0 };
  const at = new Date().setHours(12, 0, 0, 0);
  const row = requestRow({ at, id: 'r1', model: 'claude-opus-4-8', price, usage });
  const { stdout } = await runOn([row], ['stats']);
  expect(stdout).toContain('answers included: about as much as without svc\n');
});

test('dollars are not shown where models without a list price took more than a tenth of the tokens', async () => {
  const at = new Date().setHours(12, 0, 0, 0);
  const price = { paid: 600_000, direct: 1_000_000 };
  const usage = { input: 8_000, cacheRead: 0, cacheWrite: 0, output: 0 };
  const rows = [
    requestRow({ at, id: 'r1', model: 'claude-opus-4-8', price, usage }),
    requestRow({ at, id: 'r2', model: 'nobody-knows', price, usage: { ...usage, input: 2_000 } }),
  ];
  const { stdout } = await runOn(rows, ['stats']);
  expect(stdout).toContain(
    '  Money     unknown: svc has list prices for 80 % of the tokens that your keys paid\n',
  );
  expect(stdout).not.toContain('$');
});

test('a block that only names earlier sessions is counted apart from what was recalled', async () => {
  const recall = (exchange: number, isBrief?: true) => ({
    exchange,
    refs: [],
    isUsed: false,
    ...(isBrief && { isBrief }),
  });
  const at = Date.now();
  const rows = [
    requestRow({ at, id: 'r1', recall: recall(0, true) }),
    requestRow({ at, id: 'r2', recall: recall(1) }),
  ];
  const { stdout } = await runOn(rows, ['stats']);
  expect(stdout).toContain(
    '1 of 2 requests carried memories (50 %), 1 more only the list of earlier sessions',
  );
  expect(stdout).toContain('the memories of 0 of 1 prompt that got some');
});

test('one request in full shows the added block word for word, and says when it was forgotten', async () => {
  const folder = tempFolder();
  const store = openEmbeddedStore({ folder, report: () => undefined });
  const block =
    '<svc-memory note="x">\nEarlier sessions here:\n- 2026-05-01: Pin undici 7\n</svc-memory>';
  const items = ['f1', 'f2'].map((fingerprint) => {
    return { edit: 'block' as const, count: 0, tokens: 9, refs: [fingerprint] };
  });
  const row = requestRow({ items });
  store.requestLog.add(row);
  await store.ledger.record([
    blockEntry('f1', { space: row.space, conversation: row.conversation, block }),
  ]);
  await store.close();
  const env = { SVC_DATA_HOME: folder };
  const { stdout } = await runHere(['requests', row.id], { home: tempFolder(), env });
  expect(stdout).toContain(`\nAdded, 1 of 2:\n${block}\n`);
  expect(stdout).toContain('\nAdded, 2 of 2:\n(forgotten since)\n');
});

test('money that nobody can know is not called nothing', async () => {
  const { stdout } = await runOn(
    [requestRow({ at: Date.now(), model: 'nobody-knows' })],
    ['stats'],
  );
  expect(stdout).toContain('  Money     unknown: svc has no list price of these models\n');
});

test('no line of the sums breaks a word on a narrow screen', () => {
  const text = `  Recall    ${'requests carried memories '.repeat(8)}`.trimEnd();
  for (const columns of [40, 60, 80]) {
    const lines = wrapped(text, columns, ' '.repeat(12));
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(columns);
    expect(lines.map((line) => line.trim()).join(' ')).toBe(text.trim());
    expect(lines[0]).toMatch(/^ {2}Recall {4}requests/);
  }
});

test('a table is as wide as it needs and never wider than the screen', () => {
  const rows = [
    ['name', 'n', ''],
    ['x', '10', '██'],
  ];
  expect(table(rows, { columns: 80, left: [0, 2] })).toEqual(['name   n', 'x     10  ██']);
  // A column that does not fit whole is left out; the first one is cut.
  expect(table(rows, { columns: 7, left: [0, 2] })).toEqual(['name', 'x']);
  expect(table(rows, { columns: 3, left: [0, 2] })).toEqual(['nam', 'x']);
  expect(['', '▏', '█', '███▌', '████']).toEqual([0, 0.03, 0.25, 0.88, 2].map((it) => bar(it, 4)));
});

test('stats and a request say what second looks wrote, and what later requests read again', async () => {
  const secondLooks = { tokens: 180, written: 80 };
  const rows = [
    requestRow({ id: 'r1', at: Date.now(), secondLooks }),
    requestRow({ id: 'r2', at: Date.now(), secondLooks: { tokens: 180, written: 0 } }),
    requestRow({ id: 'r3', at: Date.now() }),
  ];
  const { stdout } = await runOn(rows, ['stats', '--json']);
  expect((JSON.parse(stdout) as Stats).total).toMatchObject({
    looks: 1,
    lookTokens: 80,
    lookTokensRepeated: 280,
  });
  expect(requestDetails(requestRow({ id: 'r1', secondLooks })).join('\n')).toContain(
    'of them 80 written now and 100 of earlier requests by second looks',
  );
});
