import { expect, onTestFinished, test } from 'vitest';
import { openProxyStage } from '../support/proxy-stage.ts';
import { tempFolder } from '../support/temp-folder.ts';

test('what is only relayed tells the modes and that nothing applied to it, in svc’s own words', async () => {
  const settings = { memoryMode: 'read' } as const;
  const stage = await openProxyStage({ folder: tempFolder(), settings });
  onTestFinished(() => stage.stop());
  stage.provider.options = { headers: { 'x-svc-memory-state': 'CANARY', 'x-svc-odd': 'CANARY' } };
  const told = {
    'x-svc-local-proxy': '0.1.2',
    'x-svc-memory-mode': 'read',
    'x-svc-memory-state': 'off',
    'x-svc-compression-mode': 'passthrough',
    'x-svc-continuity-state': 'not_applicable',
  };
  const list = await stage.sendTo('GET', '/v1/models', []);
  expect(list).toMatchObject({ status: 200, headers: told });
  expect(list.headers).not.toHaveProperty('x-svc-original-input-tokens');
  expect(list.rawHeaders.join(' ')).not.toContain('CANARY');
  const off = await stage.sendTo('GET', '/v1/models', ['x-svc-memory-mode', 'off']);
  expect(off.headers).toMatchObject({ ...told, 'x-svc-memory-mode': 'off' });
  // The gate refuses a mode that it does not know on a model route only.
  const odd = await stage.sendTo('GET', '/v1/models', ['x-svc-memory-mode', 'all']);
  expect(odd).toMatchObject({ status: 200, headers: told });
});

test('what is only relayed leaves a row too: who, when, how it ended, and nothing of what it said', async () => {
  const stage = await openProxyStage({ folder: tempFolder() });
  onTestFinished(() => stage.stop());
  const json = ['content-type', 'application/json'];
  const claude = [...json, 'user-agent', 'claude-cli/2.1.329', 'anthropic-version', '2023-06-01'];
  await stage.sendTo('POST', '/v1/messages/count_tokens', claude);
  await stage.sendTo('GET', '/v1/models', ['originator', 'codex_cli_rs']);
  await stage.sendTo('GET', '/v1/models/none/../such', []);
  expect(stage.rows).toMatchObject([
    { client: 'claude-code', kind: 'count', dialect: 'anthropic_messages', status: 200 },
    { client: 'codex', kind: 'relayed', status: 200, end: 'complete', originalInputTokens: 0 },
  ]);
  for (const row of stage.rows) {
    expect(row).toMatchObject({ conversation: '', space: '', memoryState: 'off', elidedItems: 0 });
    expect(row.ms['head']).toBeGreaterThan(0);
    expect(row.usage).toBeUndefined();
  }
  stage.provider.options = { hasExtraRoutes: false };
  await stage.sendTo('GET', '/v1/models', []);
  expect(stage.rows.at(-1)).toMatchObject({ client: 'unknown', status: 404, end: 'complete' });
});
