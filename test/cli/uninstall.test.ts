import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { hookKey } from '../../src/adapters/files/hook-key.ts';
import { runCli, runHere, tempFolder } from '../support/cli.ts';
import { freePort } from '../support/free-port.ts';
import { treeOf } from '../support/used-home.ts';

// Each test starts many processes on a machine that may be busy.
vi.setConfig({ testTimeout: 90_000 });

const CLAUDE = '{\n  // mine\n  "model": "opus", "env": {"A":"1"}\n}\n';
const CODEX = 'model = "gpt-5"\r\n\r\n[tui]\r\nnotifications = true\r\n';

/** Commands that start a process, or whose process is the subject. */
const PROCESSES = new Set(['start', 'uninstall']);

interface Home {
  readonly home: string;
  readonly run: (...args: string[]) => ReturnType<typeof runCli>;
}

/** A home as a person has it before svc: the files of two clients, and folders of their own. */
function personsHome(env: Record<string, string> = {}): Home {
  const home = tempFolder();
  onTestFinished(() => rmSync(home, { recursive: true, force: true, maxRetries: 20 }));
  for (const name of ['.claude', '.codex', 'empty']) mkdirSync(join(home, name));
  writeFileSync(join(home, '.claude/settings.json'), CLAUDE.replace('// mine', ''));
  writeFileSync(join(home, '.codex/config.toml'), CODEX);
  const run: Home['run'] = (...args) =>
    (PROCESSES.has(args[0] ?? '') ? runCli : runHere)(args, {
      home,
      env: { STORY_KEY: 'sk-story', ...env },
    });
  return { home, run };
}

/** All that a person does with svc: configure, run, remember, wire both clients. */
async function useSvc({ run }: Home): Promise<void> {
  const port = String(await freePort());
  const setup = ['setup', '--yes', '--upstream', 'anthropic', '--key-env', 'STORY_KEY'];
  for (const args of [
    [...setup, '--port', port],
    ['setup', '--yes', '--upstream', 'openai', '--key-env', 'STORY_KEY'],
    ['start', '--detach'],
    ['memory', 'add', '--space', 'global', 'The harbor opens at seven.'],
    ['connect', 'claude', '--yes'],
    ['connect', 'codex', '--yes'],
  ]) {
    const ran = await run(...args);
    expect([args, ran.code, ran.stderr]).toEqual([args, 0, expect.any(String)]);
  }
}

test('uninstall leaves the home as it was before svc, byte for byte', async () => {
  const person = personsHome();
  const before = treeOf(person.home);
  await useSvc(person);
  const dry = await person.run('uninstall', '--dry-run');
  expect(dry.code).toBe(0);
  expect(dry.stdout).toMatch(/^stop {5}http:\/\/127\.0\.0\.1:\d+/m);
  expect(dry.stdout).toContain(`restore  ${join(person.home, '.claude/settings.json')}`);
  expect(dry.stdout).toContain(`remove   ${join(person.home, '.config/svc/config.json')}`);
  expect(dry.stderr).toContain('npm uninstall -g svc-local-proxy');
  expect((await person.run('status')).code).toBe(0);

  const unasked = await person.run('uninstall');
  expect([unasked.code, unasked.stderr]).toEqual([2, expect.stringContaining('add --yes')]);
  expect((await person.run('status')).code).toBe(0);
  const done = await person.run('uninstall', '--yes');
  expect([done.code, done.stderr]).toEqual([0, expect.stringContaining('svc is uninstalled')]);
  expect(treeOf(person.home)).toEqual(before);
  const again = await person.run('uninstall', '--yes');
  expect(again).toMatchObject({ code: 0, stdout: '' });
  expect(treeOf(person.home)).toEqual(before);
});

test('each of several uninstalls at once succeeds, whichever of them removes a file', async () => {
  const person = personsHome();
  const before = treeOf(person.home);
  await useSvc(person);
  const all = await Promise.all(Array.from({ length: 4 }, () => person.run('uninstall', '--yes')));
  expect(all.map(({ code, stderr }) => [code, stderr])).toEqual(
    all.map(() => [0, expect.not.stringMatching(/^svc: /m)]),
  );
  expect(treeOf(person.home)).toEqual(before);
});

test('uninstall alone leaves nothing of a store either, though it looks into the store first', async () => {
  const person = personsHome();
  const before = treeOf(person.home);
  const added = await person.run(
    'memory',
    'add',
    '--space',
    'global',
    'The harbor opens at seven.',
  );
  expect(added.code).toBe(0);
  expect(hookKey(join(person.home, '.local/share/svc'))).toEqual(expect.any(String));
  const removed = await person.run('uninstall', '--yes');
  expect(removed.code).toBe(0);
  expect(treeOf(person.home)).toEqual(before);
});

test('--keep-memory keeps the memories, which a new installation finds', async () => {
  const person = personsHome();
  await useSvc(person);
  expect(await person.run('uninstall', '--keep-memory', '--yes')).toMatchObject({ code: 0 });
  const data = join(person.home, '.local/share/svc');
  expect(
    readdirSync(data).filter((name) => !/^(?:(?:memory|state)\.db|.*\.key$)/.test(name)),
  ).toEqual([]);
  expect(readFileSync(join(person.home, '.codex/config.toml'), 'utf8')).toBe(CODEX);
  await person.run('setup', '--yes', '--upstream', 'anthropic', '--key-env', 'STORY_KEY');
  expect((await person.run('memory', 'list')).stdout).toContain('The harbor opens at seven.');
});

test('a folder that the person chose keeps the files that svc did not make', async () => {
  const base = tempFolder();
  onTestFinished(() => rmSync(base, { recursive: true, force: true, maxRetries: 20 }));
  const data = join(base, 'data');
  mkdirSync(data, { mode: 0o700 });
  const person = personsHome({ SVC_DATA_HOME: data });
  await useSvc(person);
  // Not before: svc puts nothing into a folder that contains other files (R40).
  writeFileSync(join(data, 'letter.txt'), 'mine');
  const done = await person.run('uninstall', '--yes');
  expect(done.code).toBe(0);
  expect(done.stdout).toContain(`stays    ${join(data, 'letter.txt')}`);
  expect(readdirSync(data)).toEqual(['letter.txt']);
});

test('a client file that was changed by hand stays, and so does the copy from before', async () => {
  const person = personsHome();
  await useSvc(person);
  const file = join(person.home, '.codex/config.toml');
  const changed = readFileSync(file, 'utf8').replace(/^base_url.*$/m, 'base_url = "http://mine"');
  writeFileSync(file, changed);
  const done = await person.run('uninstall', '--yes');
  expect(done.code).toBe(1);
  expect(done.stderr).toContain(`Not restored: ${file}`);
  expect(readFileSync(file, 'utf8')).toBe(changed);
  const copies = join(person.home, '.local/share/svc/client-files');
  const texts = readdirSync(copies).map((name) => readFileSync(join(copies, name), 'utf8'));
  expect(texts).toContain(CODEX);
  expect(lstatSync(join(person.home, '.claude/settings.json')).isFile()).toBe(true);
});

test('client files behind links get their bytes back, whatever they are called there', async () => {
  const person = personsHome();
  const dotfiles = join(person.home, 'dotfiles');
  mkdirSync(dotfiles);
  for (const [link, name] of [
    ['.codex/config.toml', 'codex-settings'],
    ['.claude/settings.json', 'claude-settings'],
  ] as const) {
    const path = join(person.home, link);
    writeFileSync(join(dotfiles, name), readFileSync(path));
    rmSync(path);
    symlinkSync(join(dotfiles, name), path);
  }
  const before = treeOf(person.home);
  await useSvc(person);
  expect(treeOf(person.home)).not.toEqual(before);
  expect(await person.run('uninstall', '--yes')).toMatchObject({ code: 0 });
  expect(treeOf(person.home)).toEqual(before);
});

test('client files that moved behind links get their bytes back, and one that is gone keeps its copy', async () => {
  const person = personsHome();
  await useSvc(person);
  const dotfiles = join(person.home, 'dotfiles');
  mkdirSync(dotfiles);
  const codex = join(person.home, '.codex/config.toml');
  renameSync(codex, join(dotfiles, 'codex'));
  symlinkSync(join(dotfiles, 'codex'), codex);
  const claude = join(person.home, '.claude/settings.json');
  rmSync(claude);
  const done = await person.run('uninstall', '--yes');
  expect(done.code).toBe(1);
  expect(done.stderr).toContain(`Not restored: ${claude}`);
  expect(readFileSync(join(dotfiles, 'codex'), 'utf8')).toBe(CODEX);
  const copies = join(person.home, '.local/share/svc/client-files');
  const texts = readdirSync(copies).map((name) => readFileSync(join(copies, name), 'utf8'));
  expect(texts).toContain(CLAUDE.replace('// mine', ''));
});

test('a folder behind a link is not touched', async () => {
  const person = personsHome();
  const elsewhere = join(person.home, 'elsewhere');
  mkdirSync(elsewhere);
  writeFileSync(join(elsewhere, 'memory.db'), 'precious');
  mkdirSync(join(person.home, '.local/share'), { recursive: true });
  symlinkSync(elsewhere, join(person.home, '.local/share/svc'));
  const done = await person.run('uninstall', '--yes');
  expect(done.code).toBe(1);
  expect(done.stderr).toContain('is a link');
  expect(readFileSync(join(elsewhere, 'memory.db'), 'utf8')).toBe('precious');
});

test("a memory service's own folder stays, and is named", async () => {
  const person = personsHome();
  const service = join(person.home, '.local/share/svc/service');
  mkdirSync(service, { recursive: true });
  writeFileSync(join(service, 'service.db'), 'of a team');
  const done = await person.run('uninstall', '--yes');
  expect(done.code).toBe(0);
  expect(done.stdout).toContain(`stays    ${service}`);
  expect(readFileSync(join(service, 'service.db'), 'utf8')).toBe('of a team');
});
