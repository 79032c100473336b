import { expect, test, vi } from 'vitest';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import type { CacheMiss } from '../../src/core/meter/cache-miss.ts';
import { missText } from '../../src/core/meter/cache-words.ts';
import type { QuotaRow } from '../../src/core/meter/quota.ts';
import type { RequestRow } from '../../src/ports/request-log.ts';
import { startProxy } from '../../src/cli/compose.ts';
import { Terminal } from '../../src/cli/terminal.ts';
import { promptOf } from '../support/dialect-wire.ts';
import { PROXY_SETTINGS, TOKEN } from '../support/local-server.ts';
import { startRecordingProvider } from '../support/story.ts';
import { upstreamSettings } from '../support/upstream.ts';
import { type CliResult, runCli, runHere } from '../support/cli.ts';
import { requestRow } from '../support/request-row.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** `svc cache`, `svc quota` and their lines in `svc requests ID` and the status line. */

vi.setConfig({ testTimeout: 60_000 });

const LATE: CacheMiss = {
  by: 'client',
  place: 'tools',
  change: 'added',
  name: 'jira',
  isServer: true,
  tokens: 170_000,
  price: 190_000,
};
const MIDNIGHT: CacheMiss = {
  by: 'client',
  place: 'system',
  change: 'date',
  tokens: 40_000,
  price: 46_000,
};

async function runOn(
  rows: readonly RequestRow[],
  args: readonly string[],
  quota: readonly QuotaRow[] = [],
): Promise<CliResult> {
  const folder = tempFolder();
  const store = openEmbeddedStore({ folder, report: () => undefined });
  for (const row of rows) store.requestLog.add(row);
  for (const row of quota) store.requestLog.addQuota(row);
  await store.close();
  const input = JSON.stringify({ session_id: 'c1' });
  // The status line reads the input of its process.
  const run = args[0] === 'statusline' ? runCli : runHere;
  return run(args, { home: tempFolder(), env: { SVC_DATA_HOME: folder }, input });
}

const model = 'claude-sonnet-4-5';
const at = Date.now();
const ROWS = [
  requestRow({ id: 'r1', at, model, miss: LATE }),
  requestRow({ id: 'r2', at, model, miss: LATE, isLogin: true }),
  requestRow({ id: 'r3', at, model, miss: MIDNIGHT, droppedThoughts: 2 }),
  requestRow({ id: 'r4', at, model }),
  requestRow({ id: 'r5', at: at - 9 * 24 * 3_600_000, model, miss: MIDNIGHT }),
];

test('svc cache ranks the causes of a week by tokens, with dollars of what a key paid', async () => {
  const { stdout } = await runOn(ROWS, ['cache']);
  const one = await runOn([requestRow({ at, miss: LATE })], ['cache']);
  expect(one.stdout).toMatch(/^1 cache miss in the last 7 days/);
  expect(stdout.split('\n').slice(0, 3)).toEqual([
    '3 cache misses in the last 7 days: 380k tokens were charged again',
    '  MCP server jira connected late and changed `tools`: 2 times, 340k tokens, $0.57',
    '  A date or time in the system prompt changed: once, 40k tokens, $0.14',
  ]);
});

test('svc cache says that it saw no miss, and prints JSON', async () => {
  const none = await runOn([requestRow({ at })], ['cache']);
  expect(none.stderr).toContain('svc saw no cache miss in the last 7 days.');
  const { stdout } = await runOn(ROWS, ['cache', '--days', '30', '--json']);
  const found = JSON.parse(stdout) as { culprits: unknown[] };
  expect(found.culprits).toHaveLength(2);
  expect(found.culprits[1]).toMatchObject({ by: 'client', times: 2, tokens: 80_000 });
});

test('svc requests ID says in one sentence why the cache missed', async () => {
  const { stdout } = await runOn(ROWS, ['requests', 'r3']);
  expect(stdout).toContain(
    'Cache missed  A date or time in the system prompt changed: 40000 tokens were charged again.',
  );
  expect(stdout).toContain('the client left out 2 earlier thoughts');
});

test.each<[CacheMiss, string]>([
  [
    { by: 'svc', own: 'outputs', place: 'message', message: 7, tokens: 5_000, price: 1 },
    'svc left out old tool outputs, from message 7 on: 5000 tokens were charged again.',
  ],
  [
    { by: 'svc', own: 'block', place: 'message', message: 3, pausedMs: 1e6, tokens: 9, price: 1 },
    'svc changed a recalled block, from message 3 on after a pause of 17 min (the cache had expired anyway): 9 tokens were charged again.',
  ],
  [
    { by: 'time', pausedMs: 9e6, tokens: 9, price: 1 },
    'The lifetime of the cache ran out after a pause of 3 h: 9 tokens were charged again.',
  ],
])('a miss reads as a sentence: %j', (miss, text) => {
  expect(missText(miss)).toBe(text);
});

function quotaRow(minutesAgo: number, share: number, changes: Partial<QuotaRow> = {}): QuotaRow {
  const windows = [
    { name: '5h', share, resetAt: at + 3 * 3_600_000 },
    { name: '7d', share: 0.1 },
  ];
  return {
    at: at - minutesAgo * 60_000,
    login: 'abcdefghijkl',
    reading: { provider: 'claude', windows, deciding: '5h' },
    client: 'claude-code',
    space: 'shop',
    conversation: 'c1',
    model,
    ...changes,
  };
}

const QUOTA = [
  quotaRow(50, 0.3),
  quotaRow(40, 0.34),
  quotaRow(30, 0.36, { space: 'unplaced/claude-code', conversation: 'c2' }),
  quotaRow(20, 0.42),
];

test('svc quota states what its ranges are once, and no decision of a window that is over', async () => {
  const windows = [{ name: '5h', share: 0.4, resetAt: at - 60_000 }];
  const over = quotaRow(300, 0.4, {
    login: 'mnopqrstuvwx',
    reading: { provider: 'claude', windows, deciding: '5h' },
  });
  const { stdout, stderr } = await runOn([], ['quota'], [...QUOTA, over]);
  expect(stderr.match(/Ranges are/g)).toHaveLength(1);
  expect(stdout).toContain('how much is used now is not known\n');
});

test('svc quota says what is left, until when, and who used it', async () => {
  const { stdout, stderr } = await runOn([], ['quota'], QUOTA);
  expect(stdout).toContain('Claude, account abcdef, as of ');
  expect(stdout).toMatch(/5-hour window: 58 % left, resets .*; at the pace of the last hour/);
  expect(stdout).toContain('(it decides)');
  expect(stdout).toContain('by project: shop 4 to 12, no project (claude-code) 0 to 8');
  expect(stdout).toContain('weekly window: 90 % left');
  expect(stderr).toContain('other machines and programs');
  const none = await runOn([], ['quota']);
  expect(none.stderr).toContain('No provider has stated a quota yet.');
  const json = JSON.parse((await runOn([], ['quota', '--json'], QUOTA)).stdout) as object[];
  expect(json).toMatchObject([{ provider: 'claude', windows: [{ name: '5h' }, { name: '7d' }] }]);
});

test('the status line ends with what is left of the plan', async () => {
  const price = { paid: 60_000, direct: 101_000 };
  const rows = [requestRow({ conversation: 'c1', model, isLogin: true, price })];
  const { stdout } = await runOn(rows, ['statusline'], QUOTA);
  expect(stdout).toBe('0 recalled · 41k tokens kept · 5h 58 % left · 7d 90 % left\n');
});

test('svc requests ID says which window a refusal was for, and for which model', async () => {
  const rows = [requestRow({ id: 'r1', model, status: 429, planLimit: { window: '7d_oi' } })];
  const { stdout } = await runOn(rows, ['requests', 'r1']);
  expect(stdout).toContain(
    `Plan          the weekly window of one kind of model (oi) is used up for ${model}.`,
  );
});

test('a running proxy relays quota headers untouched and keeps a copy, in one series whatever its token is', async () => {
  const headers = {
    'content-type': 'application/json',
    'anthropic-organization-id': 'org-1',
    'anthropic-ratelimit-unified-5h-utilization': '1.02',
    'anthropic-ratelimit-unified-5h-status': 'rejected',
    'anthropic-ratelimit-unified-7d-utilization': '1e309',
    'retry-after': '7999',
  };
  const folder = tempFolder();
  const provider = await startRecordingProvider();
  provider.reply = () => ({ status: 429, headers, body: '{"type":"error","error":{}}' });
  const upstream = upstreamSettings({ baseUrl: provider.url, allowPrivate: true });
  const quiet = { write: () => true };
  const ask = async (localToken: string): Promise<void> => {
    const proxy = await startProxy({
      settings: {
        proxy: PROXY_SETTINGS,
        memory: { kind: 'embedded' },
        upstreams: [upstream],
        localToken,
        ui: true,
      },
      dataFolder: folder,
      terminal: new Terminal({ stdout: quiet, stderr: quiet, environment: {} }),
    });
    const answer = await fetch(`http://127.0.0.1:${proxy.port}/v1/messages`, {
      method: 'POST',
      headers: { authorization: `Bearer ${localToken}`, 'content-type': 'application/json' },
      body: JSON.stringify(promptOf('anthropic_messages', 'Hello there')),
    });
    await answer.text();
    for (const [name, value] of Object.entries(headers))
      expect(answer.headers.get(name)).toBe(value);
    await proxy.stop();
  };
  await ask(TOKEN);
  await ask(TOKEN.toUpperCase().replace('SVC_LOCAL', 'svc_local'));
  const store = openEmbeddedStore({ folder, report: () => undefined });
  const reports = await store.requestLog.quota(Date.now());
  const [row] = await store.requestLog.list({ limit: 1 });
  await store.close();
  expect(reports).toMatchObject([{ provider: 'claude', windows: [{ name: '5h', share: 1 }] }]);
  expect(reports[0]?.login).toMatch(/^[\w-]{12}$/);
  expect(row).toMatchObject({ status: 429, planLimit: { window: '5h' } });
});

test('svc stats compares both groups of the hold-out, or says that there are too few', async () => {
  const usage = { input: 100, cacheRead: 0, cacheWrite: 0, output: 10 };
  const of = (trial: 'with' | 'without', count: number, input: number): RequestRow[] =>
    Array.from({ length: count }, (_, index) =>
      requestRow({
        id: `${trial}${index}`,
        at,
        conversation: `${trial}-${index}`,
        trial,
        usage: { ...usage, input: input + (index % 7) },
      }),
    );
  const few = await runOn([...of('with', 9, 100), ...of('without', 1, 100)], ['stats']);
  expect(few.stdout).toContain(
    "Hold-out: 9 conversations with svc's memory and shortening, 1 without",
  );
  expect(few.stdout).toContain('requests: 1.0 with, 1.0 without: too few to tell');
  const many = await runOn([...of('with', 60, 50), ...of('without', 40, 100)], ['stats']);
  expect(many.stdout).toMatch(/tokens: 63 with, 113 without: 4\d % to 4\d % less with svc/);
});
