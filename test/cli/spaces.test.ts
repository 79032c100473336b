import { execFileSync } from 'node:child_process';
import {
  mkdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { GitProjects } from '../../src/adapters/projects/git-projects.ts';
import { folderSpace } from '../../src/core/request/space.ts';
import { runHere } from '../support/cli.ts';
import { validConfig } from '../support/config.ts';
import { homeWith } from '../support/home.ts';
import { tempFolder } from '../support/temp-folder.ts';

interface Row {
  readonly space: string;
  readonly memories: number;
}

test('spaces are listed, renamed, merged and joined, and the project of a folder follows', async () => {
  const home = realpathSync(tempFolder());
  const data = join(home, 'data');
  const shop = join(home, 'shop');
  const other = join(home, 'other');
  mkdirSync(other);
  mkdirSync(shop);
  const env = { SVC_DATA_HOME: data };
  const who = ['-c', 'user.name=a', '-c', 'user.email=a@b.c'];
  execFileSync('git', ['init', '-q'], { cwd: shop });
  execFileSync('git', [...who, 'commit', '-q', '--allow-empty', '-m', 'x'], { cwd: shop });
  const svc = (...words: string[]) => runHere(['memory', ...words], { home, env });
  const spaces = async (): Promise<readonly Row[]> =>
    JSON.parse((await svc('spaces', '--json')).stdout) as Row[];
  const spaceOf = async (folder: string) => (await new GitProjects(data).find(folder)).space;
  const space = await spaceOf(shop);
  expect(
    (await svc('add', 'The gateway of the walrus shop listens on port 6431.', '--space', space))
      .stderr,
  ).toContain('Stored');
  await svc('add', 'We deploy the walrus shop on Tuesdays.', '--space', 'team/b');
  expect(await spaces()).toMatchObject([
    { space, memories: 1, folders: [shop] },
    { space: 'team/b', memories: 1 },
  ]);
  expect((await svc('spaces', 'rename', space, 'team/b')).code).toBe(1);
  expect((await svc('spaces', 'rename', space, 'team/a')).code).toBe(0);
  expect(await spaceOf(shop)).toBe('team/a');
  expect((await svc('spaces', 'merge', 'team/b', 'team/a')).code).toBe(0);
  expect(await spaces()).toMatchObject([{ space: 'team/a', memories: 2 }]);
  // What was moved can move back: the way there has left no trace of forgetting.
  expect((await svc('spaces', 'rename', 'team/a', 'team/c')).code).toBe(0);
  expect((await svc('spaces', 'rename', 'team/c', 'team/a')).stderr).toContain(
    'Moved to team/a: 2.',
  );
  expect(await spaceOf(shop)).toBe('team/a');
  expect((await svc('spaces', 'join', 'team/a', other)).code).toBe(0);
  expect(await spaceOf(other)).toBe('team/a');
  // A folder without git and without a record of its own follows too, also through two renames.
  const plain = join(home, 'plain');
  mkdirSync(plain);
  await svc('add', 'The otters of the plain folder use port 7001.', '--space', folderSpace(plain));
  await svc('spaces', 'rename', folderSpace(plain), 'team/d');
  await svc('spaces', 'rename', 'team/d', 'team/e');
  expect(await spaceOf(plain)).toBe('team/e');
  const { olderSpaces } = await new GitProjects(data).find(plain);
  expect(olderSpaces).toEqual(expect.arrayContaining([folderSpace(plain), 'team/d']));
  // So does a space that a request names itself, and the one of requests that name none.
  await svc('add', 'The herons nest in March.', '--space', 'default');
  await svc('spaces', 'rename', 'default', 'team/h');
  const stated = await Promise.all(
    ['team/d', 'default', 'team/z'].map((name) => new GitProjects(data).find({ space: name })),
  );
  expect(stated).toMatchObject([
    { space: 'team/e', olderSpaces: expect.arrayContaining(['team/d']) },
    { space: 'team/h', olderSpaces: ['default'] },
    { space: 'team/z', olderSpaces: [] },
  ]);
  // A rename that was interrupted goes on where it was: the project has its new name already.
  await svc('add', 'The otters of the plain folder swim.', '--space', 'team/d');
  const again = await svc('spaces', 'rename', 'team/d', 'team/e');
  expect(again.stderr).toContain('Moved to team/e: 1.');
  const unknown = await svc('spaces', 'rename', 'team/nowhere', 'team/f');
  expect(unknown).toMatchObject({ code: 1 });
  expect(unknown.stderr).toContain('There is no space team/nowhere.');
  const same = await svc('spaces', 'rename', 'team/e', 'team/e');
  expect(same).toMatchObject({ code: 2 });
  expect(same.stderr).toContain('Both names are the space team/e.');
  const odd = join(home, 'odd\u001b[31m\u0007\nline');
  mkdirSync(odd);
  await svc('spaces', 'join', 'team/e', odd);
  const shown = (await svc('spaces')).stdout;
  expect(shown).toContain('odd\ufffd[31m\ufffd\ufffdline');
  expect(shown).not.toContain('\u001b');
  const gone = await svc('spaces', 'join', 'team/a', join(home, 'gone'));
  expect(gone).toMatchObject({ code: 1, stdout: '' });
  expect(gone.stderr).toContain('svc finds no such folder.');
  const fresh = await svc('spaces', 'join', 'team/typo', odd);
  expect(fresh.stderr).toContain('No memory is in team/typo yet');
  expect((await svc('spaces', 'join', 'team/e', odd)).stderr).not.toContain('No memory');
  const wrong = await svc('spaces', 'join', 'no name!', other);
  expect(wrong.stderr).toContain('The name of a space: expected 1 to 128');
});

test('memory off switches memory off for the whole repository, status names it, and memory on takes it back', async () => {
  const home = homeWith(validConfig());
  const data = join(home, 'data');
  const shop = join(home, 'shop');
  const below = join(shop, 'src');
  mkdirSync(below, { recursive: true });
  execFileSync('git', ['init', '-q'], { cwd: shop });
  const env = { SVC_DATA_HOME: data };
  const svc = (cwd: string, ...words: string[]) => runHere(words, { home, env, cwd });
  const isOff = async (folder: string) => (await new GitProjects(data).find(folder)).isMemoryOff;
  expect(await isOff(shop)).toBeUndefined();
  const off = await svc(below, 'memory', 'off');
  expect([off.code, off.stdout, off.stderr]).toEqual([
    0,
    '',
    expect.stringContaining('Memory is off for shop'),
  ]);
  expect([await isOff(shop), await isOff(below), await isOff(home)]).toEqual([
    true,
    true,
    undefined,
  ]);
  expect((await svc(home, 'status')).stderr).toContain('Memory is off for shop');
  expect((await svc(home, 'memory', 'on', shop)).stderr).toContain('Memory is on for shop');
  expect(await isOff(below)).toBeUndefined();
  expect((await svc(home, 'status')).stderr).not.toContain('Memory is off');
  expect((await svc(home, 'memory', 'off', join(home, 'nowhere'))).code).toBe(1);
});

// A person edits the file, or a disk loses it. What it said of memory off must not be guessed.
test.each([
  ['is no JSON', (file: string) => writeFileSync(file, '{"projects":[],"off":["project/shop"],}')],
  ['is empty', (file: string) => writeFileSync(file, '')],
  ['is too large', (file: string) => writeFileSync(file, `{"off":[],"x":"${'x'.repeat(9e6)}"}`)],
  ['is a link', (file: string) => symlinkSync('/dev/null', file)],
])(
  'a registry of projects that %s is left as it is, and memory is off until it can be read',
  async (_, damage) => {
    const home = homeWith(validConfig());
    const data = join(home, 'data');
    const shop = join(home, 'shop');
    mkdirSync(shop);
    execFileSync('git', ['init', '-q'], { cwd: shop });
    const env = { SVC_DATA_HOME: data };
    const svc = (...words: string[]) => runHere(words, { home, env, cwd: shop });
    expect((await svc('memory', 'off')).code).toBe(0);
    const file = join(data, 'projects.json');
    unlinkSync(file);
    damage(file);
    const found = readFileSync(file, 'utf8');
    const wrong = `${file}, which names your projects, cannot be read`;
    expect((await new GitProjects(data).find(shop)).isMemoryOff).toBe(true);
    for (const words of [
      ['memory', 'on'],
      ['memory', 'off'],
      ['memory', 'spaces'],
    ]) {
      const { code, stderr } = await svc(...words);
      expect([code, stderr]).toEqual([1, expect.stringContaining(wrong)]);
    }
    expect((await svc('status')).stderr).toContain(wrong);
    expect((await svc('doctor')).stdout).toContain(wrong);
    expect(readFileSync(file, 'utf8')).toBe(found);
    unlinkSync(file);
    expect((await new GitProjects(data).find(shop)).isMemoryOff).toBeUndefined();
    expect((await svc('status')).stderr).not.toContain(wrong);
  },
);
