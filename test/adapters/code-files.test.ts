import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { CodeFiles } from '../../src/adapters/projects/code-files.ts';
import { type ConcernedFile, FILES_MAX } from '../../src/ports/provenance.ts';
import { BASE62, pickerOf } from '../support/planted-secrets.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** Longer than a slow disk takes. */
const PATIENCE_MS = 10_000;

function stage() {
  const base = realpathSync(tempFolder());
  const root = join(base, 'shop');
  mkdirSync(join(root, 'src'), { recursive: true });
  const code = new CodeFiles();
  return {
    base,
    root,
    code,
    write: (path: string, text: string) => writeFileSync(join(root, path), text),
    look: async (...names: readonly string[]): Promise<readonly ConcernedFile[]> =>
      (await code.look({ folder: root, root }, names))?.files ?? [],
    /** By a process of its own, which has seen nothing. */
    compare: (files: readonly ConcernedFile[]) => new CodeFiles().compare(root, files, PATIENCE_MS),
  };
}

function pathsOf(files: readonly ConcernedFile[]): readonly string[] {
  return files.map(({ path }) => path);
}

test('a file is the same until its content changes, and again once the content is back', async () => {
  const { look, compare, write } = stage();
  write('src/port.ts', 'export const port = 5432;\n');
  write('src/other.ts', 'export {};\n');
  const files = await look('src/port.ts', 'src/other.ts');
  expect(await compare(files)).toEqual(['same', 'same']);
  write('src/port.ts', 'export const port = 6543;\n');
  expect(await compare(files)).toEqual(['changed', 'same']);
  write('src/port.ts', 'export const port = 5432;\n');
  expect(await compare(files)).toEqual(['same', 'same']);
});

test('a file that was only touched or checked out again is the same', async () => {
  const { look, compare, root, write } = stage();
  write('src/port.ts', '1');
  const files = await look('src/port.ts');
  utimesSync(join(root, 'src/port.ts'), 1, 1);
  expect(await compare(files)).toEqual(['same']);
});

test('a change in the same tick of the clock, of the same size, is seen', async () => {
  const { look, code, root, write } = stage();
  write('src/port.ts', '5432');
  const tick = Math.floor(Date.now() / 1000);
  utimesSync(join(root, 'src/port.ts'), tick, tick);
  vi.setSystemTime(tick * 1000 + 1);
  onTestFinished(() => void vi.useRealTimers());
  const files = await look('src/port.ts');
  write('src/port.ts', '6543');
  utimesSync(join(root, 'src/port.ts'), tick, tick);
  expect(await code.compare(root, files, PATIENCE_MS)).toEqual(['changed']);
});

test('names may be absolute, relative to the folder of the client, or upwards inside the root', async () => {
  const { code, root, write } = stage();
  write('src/a.ts', 'a');
  write('b.ts', 'b');
  const folder = join(root, 'src');
  const names = ['a.ts', './a.ts', join(root, 'src', 'a.ts'), '../b.ts', '../src/a.ts'];
  const found = await code.look({ folder, root }, names);
  expect(pathsOf(found?.files ?? [])).toEqual(['src/a.ts', 'b.ts']);
});

test('a folder that the client states through a link is its real one', async () => {
  const { base, code, root, write } = stage();
  write('src/a.ts', 'a');
  symlinkSync(root, join(base, 'link'));
  const folder = join(base, 'link');
  const found = await code.look({ folder, root }, [join(folder, 'src/a.ts'), 'src/a.ts']);
  expect(pathsOf(found?.files ?? [])).toEqual(['src/a.ts']);
});

test('R43: nothing outside the root is read, and nothing through a link', async () => {
  const { base, root, look, compare, write } = stage();
  mkdirSync(join(base, 'outside'));
  writeFileSync(join(base, 'outside', 'secret.txt'), 'x');
  write('real.txt', 'x');
  symlinkSync(join(base, 'outside', 'secret.txt'), join(root, 'link.txt'));
  symlinkSync(join(base, 'outside'), join(root, 'linked'));
  symlinkSync(join(root, 'real.txt'), join(root, 'inner.txt'));
  const names = [
    'link.txt',
    'linked/secret.txt',
    'inner.txt',
    '../outside/secret.txt',
    join(base, 'outside', 'secret.txt'),
    '/etc/passwd',
    'src/../../outside/secret.txt',
    '.git/config',
    '~/.ssh/id_rsa',
    '',
    '.',
    '..',
  ];
  expect(pathsOf(await look(...names))).toEqual([]);
  // A row that says so gets no answer either; a file that became a link is not the file any more.
  const [real] = await look('real.txt');
  const state = { ...real, size: 1, modifiedMs: 1, inode: 1, hash: real?.hash ?? '' };
  const rows = ['../outside/secret.txt', '/etc/passwd', '.git/config', ''];
  expect(await compare(rows.map((path) => ({ ...state, path })))).toEqual(
    rows.map(() => 'unknown'),
  );
  expect(
    await compare(['link.txt', 'linked/secret.txt'].map((path) => ({ ...state, path }))),
  ).toEqual(['gone', 'gone']);
});

test('a file that vanished, became a folder, a pipe or a socket is gone, and does not block', async () => {
  const { root, look, compare, write } = stage();
  const names = ['gone.ts', 'folder.ts', 'pipe.ts', 'socket.ts', 'parent/a.ts', 'kept.ts'];
  mkdirSync(join(root, 'parent'));
  for (const name of names) write(name, 'x');
  const files = await look(...names);
  expect(pathsOf(files)).toEqual(names);
  for (const name of ['gone.ts', 'folder.ts', 'pipe.ts', 'socket.ts']) rmSync(join(root, name));
  mkdirSync(join(root, 'folder.ts'));
  execFileSync('/bin/sh', ['-c', 'mkfifo "$0"', join(root, 'pipe.ts')]);
  const server = createServer().listen(join(root, 'socket.ts'));
  onTestFinished(() => void server.close());
  rmSync(join(root, 'parent'), { recursive: true });
  write('parent', 'now a file');
  expect(await compare(files)).toEqual([...Array.from({ length: 5 }, () => 'gone'), 'same']);
  expect(pathsOf(await look(...names))).toEqual(['kept.ts']);
});

test('a file of 2 GB is read in part, and a change of its size, its beginning or its end is seen', async () => {
  const { root, look, compare, write } = stage();
  write('big.bin', 'begin');
  truncateSync(join(root, 'big.bin'), 2 ** 31);
  const began = performance.now();
  const files = await look('big.bin');
  expect(await compare(files)).toEqual(['same']);
  // Reading all of it takes more than a second.
  expect(performance.now() - began).toBeLessThan(1_000);
  truncateSync(join(root, 'big.bin'), 2 ** 31 + 1);
  expect(await compare(files)).toEqual(['changed']);
});

test('R26: names with control characters, invisible ones or a secret are left out', async () => {
  const { look, write } = stage();
  const names = [
    'a\nb.ts',
    'a\u001b[31m.ts',
    'a\u202eb.ts',
    `ghp_${pickerOf(7)(BASE62, 36)}.txt`,
    'é ü.ts',
  ];
  for (const name of names) write(name, 'x');
  expect(pathsOf(await look(...names, 'nul\0.ts', '\ud800.ts', 'x'.repeat(5000)))).toEqual([
    'é ü.ts',
  ]);
});

test('of 10,000 names few are looked for, and fewer are kept', async () => {
  const { look, write } = stage();
  for (let at = 0; at < 40; at += 1) write(`src/${at}.ts`, 'x');
  const names = Array.from({ length: 10_000 }, (_, at) => `src/${at}.ts`);
  expect(await look(...names)).toHaveLength(FILES_MAX);
  const absent = names.map((name) => `absent/${name}`);
  expect(await look(...absent, 'src/0.ts')).toEqual([]);
});

test('the commit is the one that is checked out; without one, and without git, there is none', async () => {
  const { code, root, write } = stage();
  write('a.ts', 'a');
  const commit = async () => (await code.look({ folder: root, root }, ['a.ts']))?.commit;
  const git = (...words: readonly string[]): string =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b.c', ...words], {
      cwd: root,
      encoding: 'utf8',
    }).trim();
  expect(await commit()).toBe('');
  git('init', '-q', '-b', 'main');
  expect(await commit()).toBe('');
  git('add', '.');
  git('commit', '-q', '-m', 'first');
  const first = git('rev-parse', 'HEAD');
  expect(await commit()).toBe(first);
  git('checkout', '-q', '--detach');
  expect(await commit()).toBe(first);
  git('checkout', '-q', 'main');
  git('pack-refs', '--all');
  expect(await commit()).toBe(first);
});

test('where the folder is gone nothing is known', async () => {
  const { base, root, code, look, compare, write } = stage();
  write('a.ts', 'a');
  const files = await look('a.ts');
  renameSync(root, join(base, 'elsewhere'));
  expect(await compare(files)).toEqual(['unknown']);
  expect(await code.look({ folder: root, root }, ['a.ts'])).toBeUndefined();
});

test.skipIf(process.getuid?.() === 0)('a file that may not be read is unknown', async () => {
  const { root, look, compare, write } = stage();
  write('a.ts', 'a');
  const files = await look('a.ts');
  write('a.ts', 'b');
  chmodSync(join(root, 'a.ts'), 0o000);
  expect(await compare(files)).toEqual(['unknown']);
});

test('what is late is unknown, and is not waited for', async () => {
  const { root, look, write } = stage();
  write('a.ts', 'a');
  const files = await look('a.ts');
  write('a.ts', 'b');
  const many = Array.from({ length: 2_000 }, () => files).flat();
  const patient = new CodeFiles({ restMs: 0 });
  expect(new Set(await patient.compare(root, many, 0))).toContain('unknown');
  await expect.poll(() => patient.compare(root, files, PATIENCE_MS)).toEqual(['changed']);
  // A disk that was late once is left alone for a while.
  const resting = new CodeFiles({ restMs: 60_000 });
  await resting.compare(root, many, 0);
  expect(await resting.compare(root, files, PATIENCE_MS)).toEqual(['unknown']);
});
