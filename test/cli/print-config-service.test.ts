import { expect, test } from 'vitest';
import { parse } from 'smol-toml';
import { runCli } from '../support/cli.ts';
import { tempFolder } from '../support/temp-folder.ts';

const KEY = `svc_live_${'a'.repeat(12)}_${'b'.repeat(43)}_${'c'.repeat(7)}`;
const URL_GIVEN = 'https://svc.example.com:8766';
const env = { SVC_SERVICE_KEY: KEY };

test('claude gets the address without /v1, the key, and the variable that stubs name', async () => {
  const args = ['print-config', 'claude', '--service', `${URL_GIVEN}/v1`, '--json'];
  const { stdout, code } = await runCli(args, { home: tempFolder(), env });
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toEqual({
    env: {
      ANTHROPIC_BASE_URL: URL_GIVEN,
      ANTHROPIC_API_KEY: KEY,
      SVC_SERVICE_KEY: KEY,
      CLAUDE_CODE_GATEWAY_HINT_HEADERS: '1',
    },
  });
  const shell = await runCli(args.slice(0, -1), { home: tempFolder(), env });
  expect(shell.stdout).toContain(`export ANTHROPIC_BASE_URL='${URL_GIVEN}'`);
});

test('codex gets a provider that reads the key from its variable', async () => {
  const args = ['print-config', 'codex', '--service', URL_GIVEN];
  const { stdout, code } = await runCli(args, { home: tempFolder(), env });
  expect(code).toBe(0);
  expect(parse(stdout)).toMatchObject({
    model_provider: 'svc',
    model_providers: {
      svc: { base_url: `${URL_GIVEN}/v1`, wire_api: 'responses', env_key: 'SVC_SERVICE_KEY' },
    },
  });
  expect(stdout).not.toContain(KEY);
});

test('without a key, with another address or a flag of the local proxy, it says what to do', async () => {
  const home = tempFolder();
  const run = (...args: string[]) => runCli(['print-config', ...args], { home });
  const without = await run('claude', '--service', URL_GIVEN);
  expect([without.code, without.stdout]).toEqual([1, '']);
  expect(without.stderr).toContain('SVC_SERVICE_KEY');
  const open = await run('codex', '--service', 'http://svc.example.com');
  expect([open.code, open.stdout]).toEqual([2, '']);
  const write = await run('codex', '--service', URL_GIVEN, '--auth-command');
  expect(write.code).toBe(2);
  expect(write.stderr).toContain('--auth-command');
});
