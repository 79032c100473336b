import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import type { RequestRow } from '../../src/ports/request-log.ts';
import { runCli } from '../support/cli.ts';
import { requestRow } from '../support/request-row.ts';
import { tempFolder } from '../support/temp-folder.ts';

// Many processes on a machine that may be busy.
vi.setConfig({ testTimeout: 60_000 });

const SESSION = '0b6cfa5e-6d0e-4a53-9f0a-2f5b1c9d8e77';
const recall = (exchange: number) => ({ exchange, refs: [], isUsed: false });
const price = { paid: 60_000, direct: 101_000 };

async function lineOf(rows: readonly RequestRow[], input: string): Promise<string> {
  const folder = tempFolder();
  const store = openEmbeddedStore({ folder, report: () => undefined });
  for (const row of rows) store.requestLog.add(row);
  // The proxy goes on while the line is asked for.
  const { stdout, stderr, code } = await runCli(['statusline'], {
    home: tempFolder(),
    env: { SVC_DATA_HOME: folder },
    input,
  });
  await store.close();
  expect([code, stderr]).toEqual([0, '']);
  return stdout;
}

const asked = JSON.stringify({ session_id: SESSION, cwd: '/x', model: { id: 'm' } });
const row = (changes: Partial<RequestRow>) =>
  requestRow({ conversation: SESSION, model: 'claude-sonnet-4-5', ...changes });

test('the status line tells one session: recalls, tokens kept, and their list price', async () => {
  const rows = [
    row({ id: 'r1', recall: recall(0), price }),
    row({ id: 'r2', recall: recall(0) }),
    row({ id: 'r3', recall: recall(2) }),
    row({ id: 'r4', recall: recall(1), conversation: `${SESSION}/agent-1` }),
    row({ id: 'r5', recall: recall(7), conversation: 'another', price }),
  ];
  expect(await lineOf(rows, asked)).toBe('3 recalled · 41k tokens kept · $0.12\n');
  const login = rows.map((one) => ({ ...one, isLogin: true as const }));
  expect(await lineOf(login, asked)).toBe('3 recalled · 41k tokens kept\n');
  const dear = [row({ price: { paid: 101_000, direct: 60_000 } })];
  expect(await lineOf(dear, asked)).toBe('0 recalled · 41k tokens more than direct · $0.12\n');
});

test('the status line shows no dollars for models without a price, and a brief alone is no recall', async () => {
  const rows = [
    row({ id: 'r1', recall: { ...recall(0), isBrief: true }, price }),
    row({ id: 'r2', model: 'nobody-knows', price }),
  ];
  expect(await lineOf(rows, asked)).toBe('0 recalled · 82k tokens kept\n');
});

test('what is no question of a client, or a session that nobody saw, is an empty line', async () => {
  const rows = [row({ price })];
  for (const input of [
    '',
    '{',
    '[]',
    '{"session_id":7}',
    '{"session_id":"x\' OR 1"}',
    'x'.repeat(300_000),
  ]) {
    expect(await lineOf(rows, input)).toBe('\n');
  }
  expect(await lineOf(rows, JSON.stringify({ session_id: 'unseen' }))).toBe('\n');
});

test('without a store the status line makes none', async () => {
  const home = tempFolder();
  const env = { SVC_DATA_HOME: join(home, 'data') };
  const { stdout, code } = await runCli(['statusline'], { home, env, input: asked });
  expect([stdout, code, existsSync(env.SVC_DATA_HOME)]).toEqual(['\n', 0, false]);
});
