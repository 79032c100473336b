import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { runCli } from '../support/cli.ts';
import { validConfig } from '../support/config.ts';
import { homeWith } from '../support/home.ts';

// Many processes on a machine that may be busy.
vi.setConfig({ testTimeout: 60_000 });

const config = { ...validConfig(), proxy: { port: 0 } };

function place(value: unknown = config) {
  const home = homeWith(value);
  return { home, env: { SVC_DATA_HOME: join(home, 'data') } };
}

test('wrong usage points to the help of the command that was meant', async () => {
  const { stderr } = await runCli(['memory', 'get'], place());
  expect(stderr).toContain('See: svc memory get --help');
  const nested = await runCli(['service', 'keys', 'bogus'], place());
  expect(nested.stderr).toContain('See: svc service keys --help');
});

test('a client that is not installed starts no proxy', async () => {
  const { home, env } = place();
  // Nothing is on this path but the shell that starts svc.
  const bin = join(home, 'bin');
  mkdirSync(bin);
  symlinkSync('/bin/sh', join(bin, 'sh'));
  const { code, stderr } = await runCli(['run', 'claude'], { home, env: { ...env, PATH: bin } });
  expect([code, stderr]).toEqual([1, expect.stringContaining('claude is not installed here.')]);
  expect(readdirSync(home)).not.toContain('data');
});

test('without a home folder it is HOME that is named, not a variable that nobody has set', async () => {
  const { home } = place();
  const { stderr } = await runCli(['requests'], { home, env: { HOME: 'relative' } });
  expect(stderr).toContain('HOME is not an absolute path.');
  expect(stderr).not.toContain('XDG');
});

test('stop names the port that nothing was stopped on, and refuses one that is none', async () => {
  const none = await runCli(['stop', '--port', '9000'], place());
  expect([none.code, none.stderr]).toEqual([0, 'svc is not running on port 9000.\n']);
  const wrong = await runCli(['stop', '--port', 'abc'], place());
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('--port: expected')]);
});

test('a configuration that cannot be read may say that memories are elsewhere: none are shown', async () => {
  const { stdout, stderr, code } = await runCli(['memory', 'list'], place('{'));
  expect([stdout, code]).toEqual(['', 1]);
  expect(stderr).toContain('config.json is not valid JSON');
});

test('what was asked of the memory in vain is not told as done', async () => {
  const where = place();
  const added = await runCli(['memory', 'add', 'Tests need Docker.'], where);
  const ref = added.stdout.trim();
  const beyond = await runCli(['memory', 'get', ref, '--lines', '5-9'], where);
  expect([beyond.code, beyond.stderr]).toEqual([
    1,
    expect.stringContaining('It has 1 line and no more.'),
  ]);
  const forgotten = await runCli(['memory', 'forget', 'm_0000000000000000'], where);
  expect(forgotten.stderr).not.toContain('It is not captured again');
  const moved = await runCli(['memory', 'move', ref, '--to', 'Bad Space'], where);
  expect(moved.stderr).toContain('--to: expected');
  writeFileSync(join(where.home, 'garbage'), 'no memory\n');
  const garbage = join(where.home, 'garbage');
  for (const more of [[], ['--dry-run']]) {
    const { stderr } = await runCli(['memory', 'import', garbage, ...more], where);
    expect(stderr).toContain('Lines that hold no memory: 1 of 1.');
    expect(stderr).not.toContain('The others were imported');
  }
});
