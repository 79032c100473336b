import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { runHere } from '../support/cli.ts';
import { validConfig } from '../support/config.ts';
import { homeWith } from '../support/home.ts';

vi.setConfig({ testTimeout: 30_000 });

function upstreamsIn(home: string): readonly unknown[] {
  const text = readFileSync(join(home, '.config/svc/config.json'), 'utf8');
  return (JSON.parse(text) as { upstreams: unknown[] }).upstreams;
}

test('R46: a login is turned on by a stated yes, and by nothing else', async () => {
  const home = homeWith({ ...validConfig(), upstreams: [] });
  for (const [args, input] of [
    [['setup', '--login', 'claude', '--yes'], ''],
    [['setup', '--login', 'claude'], 'no\n'],
    [['setup', '--login', 'claude'], 'yes please do\n'],
  ] as const) {
    const refused = await runHere(args, { home, input });
    expect([args, refused.code]).toEqual([args, 1]);
    expect(refused.stderr).toContain('svc never logs in');
    expect(refused.stderr).toContain('may limit or close an account');
    expect(upstreamsIn(home)).toEqual([]);
  }
  const done = await runHere(['setup', '--login', 'claude'], { home, input: 'yes\n' });
  expect([done.code, done.stderr]).toEqual([0, expect.stringContaining('svc run claude')]);
  expect(upstreamsIn(home)).toEqual([
    {
      name: 'claude-login',
      apiStyle: 'anthropic_messages',
      baseUrl: 'https://api.anthropic.com',
      auth: 'client',
    },
  ]);
});

test('R46: a key gives way to a login only with --replace, and leaves the file', async () => {
  const home = homeWith(validConfig());
  const taken = await runHere(['setup', '--login', 'claude'], { home, input: 'yes\n' });
  expect(taken.code).toBe(1);
  expect(taken.stderr).toContain('--replace');
  const args = ['setup', '--login', 'claude', '--replace'];
  expect(await runHere(args, { home, input: 'yes\n' })).toMatchObject({ code: 0 });
  expect(JSON.stringify(upstreamsIn(home))).not.toContain('providerKey');
  const wrong = await runHere(['setup', '--login', 'gemini'], { home });
  expect(wrong).toMatchObject({ code: 2, stdout: '' });
});

test('settings beside --login are written with it, and what is not for a login is refused before the question', async () => {
  const home = homeWith({ ...validConfig(), upstreams: [] });
  const beside = ['--port', '43299', '--memory-mode', 'read'];
  const done = await runHere(['setup', '--login', 'claude', ...beside], { home, input: 'yes\n' });
  expect([done.code, done.stderr]).toEqual([0, expect.stringContaining('svc run claude')]);
  const text = readFileSync(join(home, '.config/svc/config.json'), 'utf8');
  expect(JSON.parse(text)).toMatchObject({ proxy: { port: 43_299, memoryMode: 'read' } });
  for (const more of [
    ['--upstream', 'openai', '--key-env', 'OPENAI_API_KEY'],
    ['--memory', 'embedded'],
    ['--remove', 'openai'],
    ['--port', 'many'],
  ]) {
    const refused = await runHere(['setup', '--login', 'codex', ...more], { home, input: 'yes\n' });
    expect([more, refused.code]).toEqual([more, 2]);
    expect(refused.stderr).not.toContain('svc never logs in');
  }
  expect(upstreamsIn(home)).toHaveLength(1);
});

test('doctor says that a login is there and who pays', async () => {
  const home = homeWith(validConfig());
  mkdirSync(join(home, '.claude'));
  const login = { claudeAiOauth: { accessToken: 'sk-ant-oat01-secret' } };
  writeFileSync(join(home, '.claude/.credentials.json'), JSON.stringify(login), { mode: 0o600 });
  const told = await runHere(['doctor', '--offline'], { home });
  const all = told.stdout + told.stderr;
  expect(all).toContain('the provider bills the key per token');
  expect(all).toContain('svc setup --login claude');
  expect(all).not.toContain('sk-ant-oat01');
});
