import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { BIN, runCli, runHere, runServiceCli } from '../support/cli.ts';
import { validConfig } from '../support/config.ts';
import { homeWith } from '../support/home.ts';
import { keepThreads } from '../support/same-thread.ts';

keepThreads();

// Many processes on a machine that may be busy.
vi.setConfig({ testTimeout: 60_000 });

const config = { ...validConfig(), proxy: { port: 0 } };

function place(value: unknown = config) {
  const home = homeWith(value);
  return { home, env: { SVC_DATA_HOME: join(home, 'data') } };
}

test('wrong usage points to the help of the command that was meant', async () => {
  const { stderr } = await runHere(['memory', 'get'], place());
  expect(stderr).toContain('See: svc memory get --help');
  const nested = await runServiceCli(['keys', 'bogus'], place());
  expect(nested.stderr).toContain('See: svc-service keys --help');
});

test('svc service says how to get the program of the service', async () => {
  const { code, stdout, stderr } = await runHere(['service', 'init', '--port', '0'], place());
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr).toContain('npm install -g svc-service');
});

test('a client that is not installed starts no proxy', async () => {
  const { home, env } = place();
  // Nothing is on this path but the shell that starts svc.
  const bin = join(home, 'bin');
  mkdirSync(bin);
  symlinkSync('/bin/sh', join(bin, 'sh'));
  const { code, stderr } = await runHere(['run', 'claude'], { home, env: { ...env, PATH: bin } });
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
  const none = await runHere(['stop', '--port', '9000'], place());
  expect([none.code, none.stderr]).toEqual([0, 'svc is not running on port 9000.\n']);
  const wrong = await runHere(['stop', '--port', 'abc'], place());
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('--port: expected')]);
});

test('a configuration that cannot be read may say that memories are elsewhere: none are shown', async () => {
  const { stdout, stderr, code } = await runHere(['memory', 'list'], place('{'));
  expect([stdout, code]).toEqual(['', 1]);
  expect(stderr).toContain('config.json is not valid JSON');
});

test('a configuration without a token names the command that makes one', async () => {
  const { localToken: _, ...rest } = validConfig();
  for (const command of ['status', 'stop', 'start']) {
    // oxlint-disable-next-line no-await-in-loop -- One process after the other.
    const { code, stderr } = await runHere([command], place({ ...rest, proxy: { port: 0 } }));
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining('\n  Make a new token with: svc doctor --fix\n'),
    ]);
  }
});

test('status names the value that prevents a start, not the command that would fail', async () => {
  const where = place({ ...config, proxy: { port: 0, drainMs: 'soon' } });
  const { code, stderr } = await runHere(['status'], where);
  expect(code).toBe(1);
  expect(stderr).toContain('svc is not running, and cannot be started:\nsvc: proxy.drainMs: ');
  expect(stderr).toContain('config.json, then check it with: svc doctor\n');
  expect(stderr).not.toContain('svc start');
});

test('a broken store is set aside aloud, by whichever command meets it, and doctor remembers', async () => {
  const where = place();
  await runHere(['memory', 'add', 'Tests need Docker.'], where);
  const file = join(where.env.SVC_DATA_HOME, 'memory.db');
  writeFileSync(file, Buffer.alloc(statSync(file).size, 'x'));
  const { stderr } = await runHere(['memory', 'list'], where);
  expect(stderr).toContain("warning: The memory's file was damaged. svc kept it as");
  const doctor = await runHere(['doctor', '--offline'], where);
  expect(doctor.stdout).toContain('was damaged and set aside: svc does not use its memories');
});

// Where every write fails as on a full disk.
test.skipIf(!existsSync('/dev/full'))('a log that cannot be written ends no proxy', async () => {
  const { home, env } = place();
  // Warns at its start: the data folder is none.
  writeFileSync(env.SVC_DATA_HOME, '');
  const full = openSync('/dev/full', 'w');
  const child = spawn(process.execPath, [BIN, 'start', '--json'], {
    env: { PATH: process.env['PATH'] ?? '', HOME: home, ...env },
    stdio: ['ignore', 'pipe', full],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let said = '';
  child.stdout?.on('data', (chunk: Buffer) => (said += chunk.toString()));
  await vi.waitFor(() => expect(said).toContain('"url"'), { timeout: 20_000 });
  const { url } = JSON.parse(said) as { url: string };
  expect((await fetch(`${url}/health`)).status).toBe(200);
  const ended = once(child, 'close');
  child.kill('SIGTERM');
  expect(await ended).toEqual([0, null]);
});

test.skipIf(!existsSync('/dev/full'))(
  'an export that cannot be written says that it is cut off',
  async () => {
    const { home, env } = place();
    await runHere(['memory', 'add', 'Tests need Docker.'], { home, env });
    const child = spawn(process.execPath, [BIN, 'memory', 'export'], {
      env: { PATH: process.env['PATH'] ?? '', HOME: home, ...env },
      stdio: ['ignore', openSync('/dev/full', 'w'), 'pipe'],
    });
    let said = '';
    child.stderr?.on('data', (chunk: Buffer) => (said += chunk.toString()));
    expect(await once(child, 'close')).toEqual([1, null]);
    expect(said).toContain('The output could not be written (ENOSPC), so it is not complete.');
  },
);

test('what was asked of the memory in vain is not told as done', async () => {
  const where = place();
  const added = await runHere(['memory', 'add', 'Tests need Docker.'], where);
  const ref = added.stdout.trim();
  const beyond = await runHere(['memory', 'get', ref, '--lines', '5-9'], where);
  expect([beyond.code, beyond.stderr]).toEqual([
    1,
    expect.stringContaining('It has 1 line and no more.'),
  ]);
  const forgotten = await runHere(['memory', 'forget', 'm_0000000000000000', '--yes'], where);
  expect(forgotten.stderr).not.toContain('svc does not capture it again');
  const moved = await runHere(['memory', 'move', ref, '--to', 'Bad Space'], where);
  expect(moved.stderr).toContain('--to: expected');
  writeFileSync(join(where.home, 'garbage'), 'no memory\n');
  const garbage = join(where.home, 'garbage');
  for (const more of [[], ['--dry-run']]) {
    const { stderr } = await runHere(['memory', 'import', garbage, ...more], where);
    expect(stderr).toContain('Lines without a valid memory: 1 of 1.');
    expect(stderr).not.toContain('The other lines were imported');
  }
});
