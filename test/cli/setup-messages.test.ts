import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { runCli, tempFolder } from '../support/cli.ts';

// Many processes on a machine that may be busy.
vi.setConfig({ testTimeout: 60_000 });

const ANTHROPIC = ['--upstream', 'anthropic', '--key-env', 'ANTHROPIC_API_KEY'];

function setup(args: readonly string[], home: string, env: Readonly<Record<string, string>> = {}) {
  return runCli(['setup', '--yes', ...args], { home, env });
}

function configIn(home: string) {
  const text = readFileSync(join(home, '.config/svc/config.json'), 'utf8');
  return JSON.parse(text) as { proxy: { port: number }; localToken: string };
}

test('a refused change says that nothing was saved, and what to add', async () => {
  const home = tempFolder();
  const flags = ['--upstream', 'work', '--base-url', 'http://10.0.0.1/v1', '--key-env', 'WORK_KEY'];
  const refused = await setup([...flags, '--api-style', 'openai_responses'], home);
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain('Nothing was saved.');
  expect(refused.stderr).toContain('--allow-private');
  expect(readdirSync(join(home, '.config/svc'))).toEqual([]);
});

test('what a variable of this shell holds says nothing about the file', async () => {
  const home = tempFolder();
  await setup(ANTHROPIC, home);
  const env = { ANTHROPIC_API_KEY: configIn(home).localToken };
  const { code, stderr } = await setup(['--port', '9000'], home, env);
  expect([code, configIn(home).proxy.port]).toEqual([0, 9000]);
  expect(stderr).toContain('which svc print-config puts there for clients');
});

test('what comes next is a client that the providers can serve', async () => {
  const home = tempFolder();
  const none = await setup([], home);
  expect(none.stderr).toContain('svc setup --yes --upstream anthropic');
  expect(none.stderr).toContain(
    'Next, add a provider: svc setup --yes --upstream anthropic --key-env ANTHROPIC_API_KEY\n',
  );
  const ollama = await setup(['--upstream', 'ollama'], home);
  expect(ollama.stderr).toContain(
    'Next: svc start, and set the base URL of your client to its address',
  );
  const claude = await setup(ANTHROPIC, home);
  expect(claude.stderr).toContain('Next: svc run claude\n');
  const codex = ['--upstream', 'openai', '--key-env', 'OPENAI_API_KEY', '--replace'];
  const both = await setup(codex, home);
  expect(both.stderr).toContain('Next: svc run claude, or svc run codex\n');
});
