import { chmodSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  findSetAside,
  looseDataFiles,
  tightenDataFiles,
} from '../../src/adapters/files/data-files.ts';
import { makePrivateFolder } from '../../src/adapters/files/private-files.ts';
import { ensurePrivateFolder, tightenFolder } from '../../src/adapters/files/private-folder.ts';
import { runCli } from '../support/cli.ts';
import { homeWith } from '../support/home.ts';
import { validConfig } from '../support/config.ts';
import { tempFolder } from '../support/temp-folder.ts';

const modeOf = (path: string) => statSync(path).mode & 0o7777;

function folderWith(mode: number, ...names: string[]): string {
  const folder = join(tempFolder(), 'folder');
  mkdirSync(folder);
  for (const name of names) writeFileSync(join(folder, name), '');
  chmodSync(folder, mode);
  return folder;
}

const MAKERS = [
  ['at once', async (folder: string) => makePrivateFolder(folder)],
  ['later', (folder: string) => ensurePrivateFolder(folder)],
] as const;

describe.each(MAKERS)('R40: a folder for svc, made %s', (_name, make) => {
  test('one that is not there is made 0700', async () => {
    const folder = join(tempFolder(), 'a', 'b');
    await make(folder);
    expect(modeOf(folder)).toBe(0o700);
  });

  test('one of its own that is too open is tightened', async () => {
    const folder = folderWith(0o755, 'memory.db', 'memory.db-wal', 'proxy-12.json', '.DS_Store');
    await make(folder);
    expect(modeOf(folder)).toBe(0o700);
  });

  test.each([
    ['shared by many', 0o1777, []],
    ['shared by many, with a database of svc', 0o1777, ['memory.db']],
    ['private and shared', 0o1700, []],
    ['open and empty', 0o755, []],
    ['open for the group', 0o750, []],
    ['open, with other things', 0o755, ['passwd', 'hosts']],
    ['open, with things of svc and others', 0o755, ['memory.db', 'index.html']],
    ['private, with other things', 0o700, ['thesis.odt']],
  ] as const)('one that is %s is refused and left as it is', async (_kind, mode, names) => {
    const folder = folderWith(mode, ...names);
    await expect((async () => make(folder))()).rejects.toMatchObject({ name: 'FileError' });
    expect(modeOf(folder)).toBe(mode);
  });

  test('one that is private is used, empty or with things of svc beside others', async () => {
    await make(folderWith(0o700));
    await make(folderWith(0o700, 'memory.db', 'notes.txt'));
    await make(folderWith(0o700, 'receipts_node_a-1.journal', 'notes.txt'));
  });

  test.each([
    'proxy-12.json.0123456789abcdef',
    'projects.json.0123456789abcdef',
    'ui-open.html.0123456789abcdef',
    'catalog.json.0123456789abcdef',
    'service.json.0123456789abcdef',
    'projects.json.lock.01234567',
    'restoring-01234567.db',
  ])('one in which a killed start left only %s is used', async (name) => {
    await make(folderWith(0o700, name));
  });
});

test('R40: an open folder is refused with the command that makes it private', async () => {
  const folder = folderWith(0o755);
  await expect(ensurePrivateFolder(folder)).rejects.toMatchObject({
    hint: `Make it private: chmod 700 '${folder}'`,
  });
  expect(await tightenFolder(folder, { asked: true })).toBe(true);
});

test('doctor refuses a data folder where the store does', async () => {
  const home = homeWith(validConfig());
  for (const data of [folderWith(0o700, 'thesis.odt'), folderWith(0o755, 'memory.db', 'a.html')]) {
    const { code, stdout } = await runCli(['doctor', '--offline'], {
      home,
      env: { SVC_DATA_HOME: data },
    });
    expect([code, stdout]).toEqual([1, expect.stringMatching(/problem +Store: .*(contains|open)/)]);
  }
});

test('R40: start keeps nothing in a folder that many use, and says what to do', async () => {
  const shared = folderWith(0o1777);
  const home = homeWith({ ...validConfig(), proxy: { port: 0 } });
  const { code, stderr } = await runCli(['start', '--detach'], {
    home,
    env: { SVC_DATA_HOME: shared },
  });
  expect(code).toBe(1);
  expect(stderr).toContain(`${shared} is shared with others.`);
  expect(modeOf(shared)).toBe(0o1777);
});

test('a damaged database that was set aside is found, without its log, whichever of the two it is', async () => {
  const time = '2026-11-29T101112.000Z';
  const aside = [`memory.db.corrupt-${time}`, `state.db.corrupt-${time}`];
  const folder = folderWith(0o700, 'memory.db', ...aside, ...aside.map((name) => `${name}-wal`));
  expect((await findSetAside(folder)).toSorted()).toEqual(aside.map((name) => join(folder, name)));
});

test('R28: each file of svc in the data folder that others may read is found and tightened', async () => {
  const files = [
    'memory.db',
    'hosted_held_0.journal',
    'hook.key',
    'proxy.log',
    'projects.json',
    'forgotten',
  ];
  const folder = folderWith(0o700, ...files, 'thesis.odt');
  for (const name of ['outputs', 'client-files']) mkdirSync(join(folder, name), { mode: 0o755 });
  const own = [...files, 'outputs', 'client-files'].map((name) => join(folder, name)).toSorted();
  const paths = (await looseDataFiles(folder)).map(({ path }) => path);
  expect(paths.toSorted()).toEqual(own);
  expect((await tightenDataFiles(folder)).toSorted()).toEqual(own);
  expect(modeOf(join(folder, 'outputs'))).toBe(0o700);
  expect(modeOf(join(folder, 'proxy.log'))).toBe(0o600);
  expect(modeOf(join(folder, 'thesis.odt'))).toBe(0o644);
});
