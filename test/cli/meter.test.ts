import { expect, test, vi } from 'vitest';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import type { CacheMiss } from '../../src/core/meter/cache-miss.ts';
import { missText } from '../../src/core/meter/cache-words.ts';
import type { RequestRow } from '../../src/ports/request-log.ts';
import { type CliResult, runCli } from '../support/cli.ts';
import { requestRow } from '../support/request-row.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** `svc cache` and the line of `svc requests ID`. */

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

async function runOn(rows: readonly RequestRow[], args: readonly string[]): Promise<CliResult> {
  const folder = tempFolder();
  const store = openEmbeddedStore({ folder, report: () => undefined });
  for (const row of rows) store.requestLog.add(row);
  await store.close();
  return runCli(args, { home: tempFolder(), env: { SVC_DATA_HOME: folder } });
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
