import {
  mkdirSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  listRunFiles,
  removeRunFile,
  writeRunFile,
} from '../../src/adapters/processes/run-files.ts';
import { logFile, startBackground } from '../../src/adapters/processes/background.ts';
import { replaceFile } from '../../src/adapters/files/replace-file.ts';
import { tempFolder } from '../support/temp-folder.ts';

const run = { pid: process.pid, host: '127.0.0.1', port: 8765, version: '0.1.2', startedAt: 1 };

test('R28: what says where a proxy runs is for its user alone', async () => {
  const folder = join(tempFolder(), 'data');
  await writeRunFile(folder, run);
  const [name = ''] = readdirSync(folder);
  expect(readdirSync(folder)).toHaveLength(1);
  expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600);
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  expect(await listRunFiles(folder)).toEqual([run]);
  await removeRunFile(folder, run.pid);
  expect(readdirSync(folder)).toEqual([]);
});

test('the file of a process that is gone is removed, and no other file is touched', async () => {
  const folder = tempFolder();
  // Linux gives no process an id above 2^22, other systems are far below.
  writeFileSync(join(folder, 'proxy-4194999.json'), JSON.stringify({ ...run, pid: 4_194_999 }));
  writeFileSync(join(folder, 'memory.db'), 'x');
  expect(await listRunFiles(folder)).toEqual([]);
  expect(readdirSync(folder)).toEqual(['memory.db']);
});

test('a start removes the files and drafts that killed proxies left', async () => {
  const folder = tempFolder();
  const draft = (pid: number) => join(folder, `proxy-${pid}.json.0123456789abcdef`);
  for (const pid of [4_194_999, process.ppid]) writeFileSync(draft(pid), '{');
  writeFileSync(join(folder, 'proxy-4194998.json'), '{');
  await writeRunFile(folder, run);
  expect(readdirSync(folder).toSorted()).toEqual(
    [`proxy-${process.ppid}.json.0123456789abcdef`, `proxy-${process.pid}.json`].toSorted(),
  );
});

test('a write removes the old drafts of its own file', async () => {
  const folder = tempFolder();
  const made = (name: string, ageMs: number): void => {
    writeFileSync(join(folder, name), '{');
    const at = (Date.now() - ageMs) / 1000;
    utimesSync(join(folder, name), at, at);
  };
  made('a.json.0123456789abcdef', 120_000);
  made('a.json.fedcba9876543210', 1000);
  made('b.json.0123456789abcdef', 120_000);
  await replaceFile(join(folder, 'a.json'), '{}');
  expect(readdirSync(folder).toSorted()).toEqual([
    'a.json',
    'a.json.fedcba9876543210',
    'b.json.0123456789abcdef',
  ]);
});

test('a file that says anything else than it must is not believed', async () => {
  const wrong = [
    '',
    '[]',
    '{',
    JSON.stringify({ ...run, pid: 1 }),
    JSON.stringify({ ...run, host: '10.0.0.1' }),
    JSON.stringify({ ...run, port: 0 }),
    JSON.stringify({ ...run, version: 'x y' }),
    JSON.stringify({ ...run, startedAt: 'now' }),
    `${JSON.stringify(run)}${' '.repeat(9000)}`,
  ];
  for (const text of wrong) {
    const folder = tempFolder();
    writeFileSync(join(folder, `proxy-${process.pid}.json`), text);
    expect(await listRunFiles(folder)).toEqual([]);
  }
});

test('R28: a link in place of the folder is refused', async () => {
  const folder = tempFolder();
  mkdirSync(join(folder, 'real'));
  symlinkSync(join(folder, 'real'), join(folder, 'link'));
  await expect(writeRunFile(join(folder, 'link'), run)).rejects.toThrow('symbolic link');
  expect(readdirSync(join(folder, 'real'))).toEqual([]);
});

test('a process whose log an uninstall has removed has said nothing', async () => {
  const dataFolder = tempFolder();
  const command = ['-e', 'console.log("words")'];
  const background = startBackground({ command, dataFolder, environment: process.env });
  await expect.poll(() => background.isRunning()).toBe(false);
  expect(background.said()).toBe('words\n');
  rmSync(logFile(dataFolder));
  expect(background.said()).toBe('');
});
