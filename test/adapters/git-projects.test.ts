import { execFileSync } from 'node:child_process';
import { pbkdf2 } from 'node:crypto';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { COMMAND_WAITS, GitProjects } from '../../src/adapters/projects/git-projects.ts';
import { changeRegistry } from '../../src/adapters/projects/registry.ts';
import { folderSpace } from '../../src/core/request/space.ts';
import { tempFolder } from '../support/temp-folder.ts';

const ORIGIN = 'https://github.com/walrus/shop.git';

function git(folder: string, ...words: readonly string[]): string {
  const env = {
    PATH: process.env['PATH'] ?? '',
    HOME: folder,
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_AUTHOR_NAME: 'a',
    GIT_AUTHOR_EMAIL: 'a@b.c',
    GIT_COMMITTER_NAME: 'a',
    GIT_COMMITTER_EMAIL: 'a@b.c',
  };
  const options = { cwd: folder, env, encoding: 'utf8', stdio: 'pipe' } as const;
  return execFileSync('git', ['-c', 'protocol.file.allow=always', ...words], options);
}

function commit(folder: string, words: string): void {
  writeFileSync(join(folder, 'file.txt'), words);
  git(folder, 'add', '.');
  git(folder, 'commit', '-q', '-m', words);
}

function newRepository(folder: string, origin = '', words = `first of ${folder}`): string {
  mkdirSync(folder, { recursive: true });
  git(folder, 'init', '-q', '-b', 'main');
  commit(folder, words);
  if (origin !== '') git(folder, 'remote', 'add', 'origin', origin);
  return folder;
}

/** A data folder and a place for repositories; each look is a process of its own. */
function stage() {
  const base = realpathSync(tempFolder());
  const data = join(base, 'data');
  // A machine that runs many tests at once may need longer than a first request should wait.
  const look = (folder: string) => new GitProjects(data, COMMAND_WAITS).find(folder);
  const spaceOf = async (folder: string): Promise<string> => (await look(folder)).space;
  return { base, data, look, spaceOf };
}

test.each([ORIGIN, ''])(
  'root, subfolder, worktree and renamed folder of a repository are one project (origin %j)',
  async (origin) => {
    const { base, spaceOf, look } = stage();
    const root = newRepository(join(base, 'shop'), origin);
    const sub = join(root, 'packages', 'api');
    mkdirSync(sub, { recursive: true });
    git(root, 'worktree', 'add', '-q', join(base, 'elsewhere'));
    const space = await spaceOf(root);
    expect(space).toMatch(/^project\/shop-[0-9a-f]{10}$/);
    expect(await spaceOf(sub)).toBe(space);
    expect(await spaceOf(join(base, 'elsewhere'))).toBe(space);
    // What was stored under a path is found under the project.
    expect((await look(root)).olderSpaces).toContain(folderSpace(sub));
    git(root, 'worktree', 'remove', join(base, 'elsewhere'));
    renameSync(root, join(base, 'store'));
    expect(await spaceOf(join(base, 'store', 'packages'))).toBe(space);
  },
);

test('what was stored under the path of a subfolder is found before a client works there again', async () => {
  const { base, look } = stage();
  const root = newRepository(join(base, 'shop'), ORIGIN);
  const below = ['packages', 'packages/api', 'packages/api/src'].map((path) => join(root, path));
  for (const path of ['packages/api/src/a/b', 'node_modules/left', '.cache/x', 'vendor/other/in']) {
    mkdirSync(join(root, path), { recursive: true });
  }
  newRepository(join(root, 'vendor/other'));
  symlinkSync(base, join(root, 'outside'));
  const { space, olderSpaces } = await look(root);
  expect(olderSpaces.toSorted()).toEqual(
    [root, ...below, join(root, 'vendor')].map((path) => folderSpace(path)).toSorted(),
  );
  expect(olderSpaces).not.toContain(space);
  expect((await look(join(root, 'vendor/other'))).space).not.toBe(space);
});

test('a repository with thousands of folders is looked through within bounds', async () => {
  const { base, look } = stage();
  const root = newRepository(join(base, 'shop'), ORIGIN);
  for (let at = 0; at < 400; at += 1) mkdirSync(join(root, `p${at}`, 'src'), { recursive: true });
  const { olderSpaces } = await look(root);
  expect(olderSpaces.length).toBeGreaterThan(30);
  expect(olderSpaces.length).toBeLessThanOrEqual(258);
});

test('a worktree that is seen first finds what was stored under the path of the repository', async () => {
  const { base, look } = stage();
  const root = newRepository(join(base, 'shop'), ORIGIN);
  git(root, 'worktree', 'add', '-q', join(base, 'tree'));
  expect((await look(join(base, 'tree'))).olderSpaces).toContain(folderSpace(root));
});

test('two clones are one project, packed or not, and two with the same name are two', async () => {
  const { base, spaceOf } = stage();
  const root = newRepository(join(base, 'one', 'shop'), ORIGIN);
  const space = await spaceOf(root);
  const clone = join(base, 'two', 'shop');
  mkdirSync(join(base, 'two'));
  git(base, 'clone', '-q', '--no-local', root, clone);
  git(clone, 'remote', 'set-url', 'origin', 'git@github.com:Walrus/Shop');
  commit(clone, 'second');
  git(clone, 'repack', '-q', '-a', '-d');
  git(clone, 'pack-refs', '--all');
  rmSync(join(clone, '.git', 'logs'), { recursive: true });
  expect(await spaceOf(clone)).toBe(space);
  const other = newRepository(join(base, 'three', 'shop'), 'https://gitlab.com/otter/shop.git');
  expect(await spaceOf(other)).not.toBe(space);
  const local = newRepository(join(base, 'four', 'shop'));
  expect(await spaceOf(local)).toBe(folderSpace(local));
});

test('a clone of a repository on this machine is the same project', async () => {
  const { base, spaceOf } = stage();
  const root = newRepository(join(base, 'shop'));
  const space = await spaceOf(root);
  git(base, 'clone', '-q', root, join(base, 'copy'));
  expect(await spaceOf(join(base, 'copy'))).toBe(space);
});

test('R43: a copied configuration claims nothing, before a commit or with another history', async () => {
  const { base, spaceOf } = stage();
  const victim = newRepository(join(base, 'victim'), ORIGIN);
  const space = await spaceOf(victim);
  const empty = join(base, 'empty');
  mkdirSync(empty);
  git(empty, 'init', '-q');
  cpSync(join(victim, '.git', 'config'), join(empty, '.git', 'config'));
  expect(await spaceOf(empty)).toBe(folderSpace(empty));
  const strange = newRepository(join(base, 'strange'), ORIGIN);
  expect(await spaceOf(strange)).toBe(folderSpace(strange));
  expect(await spaceOf(victim)).toBe(space);
  // Nor does a folder without a commit take a project that svc does not know yet.
  const first = join(base, 'first');
  mkdirSync(first);
  git(first, 'init', '-q');
  git(first, 'remote', 'add', 'origin', 'https://github.com/otter/new.git');
  expect(await spaceOf(first)).toBe(folderSpace(first));
});

test('R43: a .git file counts only where the worktree points back to this folder', async () => {
  const { base, spaceOf } = stage();
  const victim = newRepository(join(base, 'victim'), ORIGIN);
  git(victim, 'worktree', 'add', '-q', join(base, 'tree'));
  const space = await spaceOf(victim);
  const pointer = readFileSync(join(base, 'tree', '.git'), 'utf8');
  const copied = join(base, 'copied');
  mkdirSync(copied);
  writeFileSync(join(copied, '.git'), pointer);
  const direct = join(base, 'direct');
  mkdirSync(direct);
  writeFileSync(join(direct, '.git'), `gitdir: ${join(victim, '.git')}\n`);
  // A folder of its own that looks like git's and names the victim's repository.
  const forged = join(base, 'forged');
  const own = join(forged, 'x', 'worktrees', 'tree');
  mkdirSync(own, { recursive: true });
  writeFileSync(join(forged, '.git'), `gitdir: ${own}\n`);
  writeFileSync(join(own, 'gitdir'), `${join(forged, '.git')}\n`);
  writeFileSync(join(own, 'commondir'), join(victim, '.git'));
  const linked = join(base, 'linked');
  mkdirSync(linked);
  symlinkSync(join(victim, '.git'), join(linked, '.git'));
  for (const folder of [copied, direct, forged, linked]) {
    // oxlint-disable-next-line no-await-in-loop
    expect([folder, await spaceOf(folder)]).toEqual([folder, folderSpace(folder)]);
  }
  expect(await spaceOf(join(base, 'tree'))).toBe(space);
});

test('no repository, a folder that only looks bare, a broken .git and odd paths: the folder as today', async () => {
  const { base, spaceOf } = stage();
  const looksBare = join(base, 'looks-bare');
  mkdirSync(looksBare);
  writeFileSync(join(looksBare, 'HEAD'), 'ref: refs/heads/main\n');
  writeFileSync(
    join(looksBare, 'config'),
    `[core]\n\tbare = true\n[remote "origin"]\n\turl = ${ORIGIN}\n`,
  );
  const broken = join(base, 'broken');
  mkdirSync(join(broken, '.git'), { recursive: true });
  const garbage = join(base, 'garbage');
  mkdirSync(garbage);
  writeFileSync(join(garbage, '.git'), Buffer.alloc(1_000_000, 0xff));
  const plain = join(base, 'plain');
  mkdirSync(plain);
  const odd = [
    looksBare,
    broken,
    garbage,
    plain,
    join(base, 'not', 'there'),
    'C:\\Users\\walrus\\shop',
    '~/shop',
    `${base}/a\0b`,
  ];
  for (const folder of odd) {
    // oxlint-disable-next-line no-await-in-loop
    expect([folder, await spaceOf(folder)]).toEqual([folder, folderSpace(folder)]);
  }
});

test.each([ORIGIN, ''])(
  'a bare repository and its worktrees are one project (origin %j)',
  async (origin) => {
    const { base, spaceOf } = stage();
    const library = newRepository(join(base, 'library'));
    const bare = join(base, 'shop', '.bare');
    mkdirSync(join(base, 'shop'));
    for (const folder of [join(base, 'bare.git'), bare]) {
      git(base, 'clone', '-q', '--bare', library, folder);
      git(folder, 'remote', 'remove', 'origin');
      if (origin !== '') git(folder, 'remote', 'add', 'origin', origin);
    }
    for (const name of ['one', 'two']) {
      git(join(base, 'bare.git'), 'worktree', 'add', '-q', '-b', name, join(base, name));
      mkdirSync(join(base, name, 'src'));
    }
    const space = await spaceOf(join(base, 'one'));
    expect(space).not.toBe(folderSpace(join(base, 'one')));
    expect(await spaceOf(join(base, 'two', 'src'))).toBe(space);
    expect(await spaceOf(join(base, 'bare.git'))).toBe(space);
    expect(await spaceOf(join(base, 'bare.git', 'hooks'))).toBe(space);
    // Something left an empty `.git` above it, which is no repository.
    mkdirSync(join(base, '.git'));
    expect(await spaceOf(join(base, 'bare.git', 'info'))).toBe(space);
    // People keep a bare repository in a hidden folder, and a `.git` file beside it names it.
    writeFileSync(join(base, 'shop', '.git'), 'gitdir: ./.bare\n');
    git(bare, 'worktree', 'add', '-q', '-b', 'side', join(base, 'shop', 'side'));
    const beside = await spaceOf(join(base, 'shop', 'side'));
    expect(await spaceOf(join(base, 'shop'))).toBe(beside);
  },
);

test('R43: a bare repository that came with a working tree is that working tree', async () => {
  const { base, spaceOf } = stage();
  const victim = newRepository(join(base, 'victim'), ORIGIN);
  const space = await spaceOf(victim);
  const cloned = newRepository(join(base, 'cloned'), 'https://github.com/mallory/x.git');
  git(base, 'clone', '-q', '--bare', victim, join(cloned, 'assets'));
  git(join(cloned, 'assets'), 'remote', 'set-url', 'origin', ORIGIN);
  expect(await spaceOf(join(cloned, 'assets'))).toBe(await spaceOf(cloned));
  expect(await spaceOf(join(cloned, 'assets'))).not.toBe(space);
});

test('the subfolders and worktrees of a submodule are one project, which a clone of it shares', async () => {
  const { base, spaceOf } = stage();
  const library = newRepository(join(base, 'library'));
  const root = newRepository(join(base, 'shop'), ORIGIN);
  git(root, 'submodule', '--quiet', 'add', library, 'lib');
  const lib = join(root, 'lib');
  git(lib, 'remote', 'set-url', 'origin', 'https://github.com/otter/lib.git');
  mkdirSync(join(lib, 'src', 'a'), { recursive: true });
  git(lib, 'worktree', 'add', '-q', join(base, 'tree'));
  const space = await spaceOf(lib);
  expect(space).not.toBe(await spaceOf(root));
  expect(await spaceOf(join(lib, 'src', 'a'))).toBe(space);
  expect(await spaceOf(join(base, 'tree'))).toBe(space);
  git(library, 'remote', 'add', 'origin', 'https://github.com/otter/lib.git');
  expect(await spaceOf(library)).toBe(space);
});

test('R43: a repository that names a stranger’s folder as its working tree is not that folder', async () => {
  const { base, spaceOf } = stage();
  const victim = join(base, 'victim');
  mkdirSync(victim);
  const forged = newRepository(join(base, 'forged'));
  git(forged, 'worktree', 'add', '-q', join(base, 'tree'));
  git(forged, 'config', 'core.worktree', victim);
  for (const folder of [join(base, 'tree'), forged]) {
    // oxlint-disable-next-line no-await-in-loop
    expect(await spaceOf(folder)).not.toBe(folderSpace(victim));
  }
});

test('two copies of a template without an origin are two projects, and a moved one stays one', async () => {
  const { base, spaceOf } = stage();
  const template = newRepository(join(base, 'template'));
  for (const name of ['one', 'two']) cpSync(template, join(base, name), { recursive: true });
  const one = await spaceOf(join(base, 'one'));
  const two = await spaceOf(join(base, 'two'));
  expect(two).not.toBe(one);
  commit(join(base, 'one'), 'own work');
  expect(await spaceOf(join(base, 'one'))).toBe(one);
  expect(await spaceOf(template)).not.toBe(one);
  renameSync(join(base, 'two'), join(base, 'moved'));
  expect(await spaceOf(join(base, 'moved'))).toBe(two);
  git(base, 'clone', '-q', template, join(base, 'three'));
  git(join(base, 'three'), 'remote', 'remove', 'origin');
  expect([one, two]).not.toContain(await spaceOf(join(base, 'three')));
});

test('copies of a template stay what they are where their parent is renamed, and where they change names', async () => {
  const { base, spaceOf } = stage();
  const template = newRepository(join(base, 'template'));
  for (const name of ['one', 'two', 'three']) {
    cpSync(template, join(base, 'work', name), { recursive: true });
  }
  const one = await spaceOf(join(base, 'work', 'one'));
  const two = await spaceOf(join(base, 'work', 'two'));
  renameSync(join(base, 'work'), join(base, 'projects'));
  expect(await spaceOf(join(base, 'projects', 'one'))).toBe(one);
  // svc sees it for the first time, and cannot know that it is none of the two.
  const three = await spaceOf(join(base, 'projects', 'three'));
  expect(three).not.toBe(one);
  expect(await spaceOf(join(base, 'projects', 'two'))).toBe(two);
  expect(await spaceOf(join(base, 'projects', 'three'))).not.toBe(two);
  renameSync(join(base, 'projects', 'one'), join(base, 'projects', 'kept'));
  renameSync(join(base, 'projects', 'two'), join(base, 'projects', 'one'));
  renameSync(join(base, 'projects', 'kept'), join(base, 'projects', 'two'));
  expect(await spaceOf(join(base, 'projects', 'one'))).toBe(two);
  expect(await spaceOf(join(base, 'projects', 'two'))).toBe(one);
});

test('a copy that was used while the project was away is a project of its own once it is back', async () => {
  const { base, look, spaceOf } = stage();
  const folder = newRepository(join(base, 'shop'));
  const space = await spaceOf(folder);
  const copy = join(base, 'copy');
  cpSync(folder, copy, { recursive: true });
  renameSync(folder, join(base, 'away'));
  expect(await spaceOf(copy)).toBe(space);
  commit(copy, 'own work');
  expect(await spaceOf(copy)).toBe(space);
  renameSync(join(base, 'away'), folder);
  for (let round = 0; round < 2; round += 1) {
    // oxlint-disable-next-line no-await-in-loop -- In this order.
    const [there, here] = [await look(copy), await look(folder)];
    expect(here.space).toBe(space);
    expect(there.space).not.toBe(space);
    expect(here.olderSpaces).not.toContain(there.space);
    expect(there.olderSpaces).not.toContain(space);
  }
  renameSync(copy, join(base, 'copy-moved'));
  expect(await spaceOf(join(base, 'copy-moved'))).toBe(
    (await look(join(base, 'copy-moved'))).space,
  );
  expect(await spaceOf(folder)).toBe(space);
});

test('a new repository in the folder that another one has left is a project of its own', async () => {
  const { base, look, spaceOf } = stage();
  const folder = join(base, 'shop');
  const first = await spaceOf(newRepository(folder));
  renameSync(folder, join(base, 'moved'));
  expect(await spaceOf(join(base, 'moved'))).toBe(first);
  mkdirSync(folder);
  git(folder, 'init', '-q', '-b', 'main');
  const empty = await look(folder);
  expect([empty.space, ...empty.olderSpaces]).not.toContain(first);
  commit(folder, 'another history');
  const second = await look(folder);
  expect(second.space).toBe(empty.space);
  expect(second.olderSpaces).not.toContain(first);
  expect(await look(folder)).toEqual(second);
  renameSync(folder, join(base, 'moved-too'));
  expect(await spaceOf(join(base, 'moved-too'))).toBe(second.space);
  mkdirSync(folder);
  git(folder, 'init', '-q', '-b', 'main');
  commit(folder, 'a third history');
  expect([first, second.space]).not.toContain(await spaceOf(folder));
  expect(await spaceOf(join(base, 'moved'))).toBe(first);
});

test.each([
  ['repository without a commit', (folder: string) => git(folder, 'init', '-q', '-b', 'main')],
  ['repository', (folder: string) => newRepository(folder, '', 'another history')],
  ['repository with an origin', (folder: string) => newRepository(folder, ORIGIN, 'another')],
  ['folder without a repository', () => undefined],
])(
  'a new %s in the folder that a repository has left unseen is a project of its own',
  async (_, fill) => {
    const { base, look, spaceOf } = stage();
    const folder = join(base, 'shop');
    const first = await spaceOf(newRepository(folder));
    renameSync(folder, join(base, 'moved'));
    mkdirSync(folder);
    fill(folder);
    const second = await look(folder);
    expect([second.space, ...second.olderSpaces]).not.toContain(first);
    expect(await look(folder)).toEqual(second);
    const moved = await look(join(base, 'moved'));
    expect([moved.space, ...moved.olderSpaces]).not.toContain(second.space);
    expect(moved.space).toBe(first);
    expect(await look(folder)).toEqual(second);
  },
);

test('a repository whose history begins anew in the same folder keeps its memory', async () => {
  const { base, spaceOf } = stage();
  const folder = newRepository(join(base, 'shop'));
  const space = await spaceOf(folder);
  rmSync(join(folder, '.git'), { recursive: true });
  expect(await spaceOf(folder)).toBe(space);
  git(folder, 'init', '-q', '-b', 'main');
  expect(await spaceOf(folder)).toBe(space);
  commit(folder, 'another history');
  expect(await spaceOf(folder)).toBe(space);
});

test('a repository that moves stays its project, though a clone of it stays behind', async () => {
  const { base, spaceOf } = stage();
  const root = newRepository(join(base, 'shop'));
  const space = await spaceOf(root);
  git(base, 'clone', '-q', root, join(base, 'clone'));
  expect(await spaceOf(join(base, 'clone'))).toBe(space);
  renameSync(root, join(base, 'moved'));
  expect(await spaceOf(join(base, 'moved'))).toBe(space);
  expect(await spaceOf(join(base, 'clone'))).toBe(space);
});

test('a project keeps its memory when its origin is added, changed or removed', async () => {
  const { base, spaceOf } = stage();
  const root = newRepository(join(base, 'shop'));
  const space = await spaceOf(root);
  git(root, 'remote', 'add', 'origin', ORIGIN);
  expect(await spaceOf(root)).toBe(space);
  git(root, 'remote', 'set-url', 'origin', 'https://gitlab.com/walrus/store.git');
  expect(await spaceOf(root)).toBe(space);
  const clone = join(base, 'clone');
  git(base, 'clone', '-q', root, clone);
  git(clone, 'remote', 'set-url', 'origin', ORIGIN);
  expect(await spaceOf(clone)).toBe(space);
  git(root, 'remote', 'remove', 'origin');
  commit(root, 'second');
  expect(await spaceOf(root)).toBe(space);
});

test('a folder that may not be read is its own project', async (context) => {
  if (process.getuid?.() === 0) context.skip('root may read everything');
  const { base, spaceOf } = stage();
  const root = newRepository(join(base, 'shop'), ORIGIN);
  chmodSync(join(root, '.git'), 0);
  expect(await spaceOf(root)).toBe(folderSpace(root));
  chmodSync(join(root, '.git'), 0o700);
});

test('what is known is known without waiting, and looked at again when git has changed it', async () => {
  const { base, data } = stage();
  const root = newRepository(join(base, 'shop'));
  const projects = new GitProjects(data);
  expect(projects.known(root)).toBeUndefined();
  const { space } = await projects.find(root);
  expect(projects.known(root)?.space).toBe(space);
  const file = readFileSync(join(data, 'projects.json'), 'utf8');
  expect(file).not.toContain('first of');
});

test.each([ORIGIN, ''])(
  'memory that is off is off also while the project of its folder is found late (origin %j)',
  async (origin) => {
    const { base, data, look } = stage();
    const folder = newRepository(join(base, 'shop'), origin);
    const { space } = await look(folder);
    await changeRegistry(data, (now) => ({ ...now, off: [space] }));
    const late = new GitProjects(data, { findMs: 0, belowMs: 10_000, recheckMs: 60_000 });
    expect((await late.find(folder)).isMemoryOff).toBe(true);
    expect(late.known(folder)?.isMemoryOff).toBe(true);
  },
);

test('memory is off while nothing says in time whether it is', async () => {
  const { base, data, look } = stage();
  const folder = newRepository(join(base, 'shop'));
  const { space } = await look(folder);
  // Files are read by the threads that also compute hashes, so they wait as if the disk did not answer.
  const hash = promisify(pbkdf2);
  const busy = Promise.all(
    Array.from({ length: 16 }, () => hash('words', 'salt', 400_000, 64, 'sha512')),
  );
  const late = new GitProjects(data, { findMs: 0, belowMs: 0, recheckMs: 60_000 });
  expect((await late.find(folder)).isMemoryOff).toBe(true);
  expect((await late.find({ space })).isMemoryOff).toBe(true);
  await busy;
});

test('folders below a working tree that come too late for a request are there for later ones', async () => {
  const { base, data } = stage();
  const root = newRepository(join(base, 'shop'));
  for (let at = 0; at < 200; at += 1) mkdirSync(join(root, `part-${at}`));
  const projects = new GitProjects(data, { findMs: 10_000, belowMs: 0, recheckMs: 60_000 });
  expect((await projects.find(root)).olderSpaces).toEqual([]);
  await expect.poll(() => projects.known(root)?.olderSpaces.length).toBe(200);
});

test('the branch and the root are those of the working tree that the folder is in', async () => {
  const { base, look } = stage();
  const root = newRepository(join(base, 'shop'));
  const sub = join(root, 'packages', 'api');
  mkdirSync(sub, { recursive: true });
  const tree = join(base, 'tree');
  git(root, 'worktree', 'add', '-q', '-b', 'fix/ärger+1', tree);
  expect(await look(sub)).toMatchObject({ root, branch: 'main' });
  expect(await look(tree)).toMatchObject({ root: tree, branch: 'fix/ärger+1' });
  git(root, 'checkout', '-q', '--detach');
  expect(await look(root)).toMatchObject({ root });
  expect((await look(root)).branch).toBeUndefined();
});

test('a repository without a commit has a branch, and a folder without a repository none', async () => {
  const { base, look } = stage();
  const empty = join(base, 'empty');
  mkdirSync(empty);
  git(empty, 'init', '-q', '-b', 'begin');
  expect(await look(empty)).toMatchObject({ root: empty, branch: 'begin' });
  const plain = join(base, 'plain');
  mkdirSync(plain);
  const project = await look(plain);
  expect([project.root, project.branch]).toEqual([plain, undefined]);
  expect((await look(join(base, 'gone'))).root).toBeUndefined();
});

test('a HEAD that names no branch of git gives none', async () => {
  const { base, look } = stage();
  const root = newRepository(join(base, 'shop'));
  const names = ['../../../outside', 'a b', 'a\u202eb', 'x'.repeat(300), '<svc-memory'];
  for (const name of names) {
    writeFileSync(join(root, '.git', 'HEAD'), `ref: refs/heads/${name}\n`);
    // oxlint-disable-next-line no-await-in-loop -- One HEAD at a time.
    expect([name, (await look(root)).branch]).toEqual([name, undefined]);
  }
});

test('a checkout is noticed at a later request', async () => {
  const { base, data } = stage();
  const root = newRepository(join(base, 'shop'));
  const tree = join(base, 'tree');
  git(root, 'worktree', 'add', '-q', '-b', 'side', tree);
  const projects = new GitProjects(data, { recheckMs: 0 });
  expect((await projects.find(tree)).branch).toBe('side');
  git(tree, 'checkout', '-q', '-b', 'other');
  await expect.poll(() => projects.known(tree)?.branch).toBe('other');
});
