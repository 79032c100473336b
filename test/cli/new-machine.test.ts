import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { BIN, runCli, runProgram } from '../support/cli.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** Commands where svc has nothing to read: on a machine that is new to it, and in a folder that is gone. */

// Many processes on a machine that may be busy.
vi.setConfig({ testTimeout: 60_000 });

test.each([
  ['memory list', 'Nothing found.'],
  ['memory search walrus', 'Nothing found.'],
  ['memory get m_abcdefgh', 'No memory has this reference.'],
  ['memory rules', 'No rules.'],
  ['memory why walrus', 'Nothing is stored in '],
  ['memory spaces', 'No space holds a memory yet.'],
  ['memory export', 'Exported: 0.'],
  ['requests', 'svc has handled no request yet.'],
  ['requests req_abc', 'No request has this id.'],
  ['stats', 'svc handled no request in these days.'],
  ['status', 'There is no configuration yet'],
] as const)(
  'on a new machine svc %s says that nothing is there, and makes nothing',
  async (line, said) => {
    const [home, tmp] = [tempFolder(), tempFolder()];
    const { stderr } = await runCli(line.split(' '), { home, env: { TMPDIR: tmp } });
    expect(stderr).toContain(said);
    expect([readdirSync(home), readdirSync(tmp)]).toEqual([[], []]);
  },
);

test('a command that writes makes the store, and without a folder for temporary files one that reads does', async () => {
  const home = tempFolder();
  const env = { TMPDIR: join(home, 'gone') };
  await runCli(['memory', 'list'], { home, env });
  expect(readdirSync(join(home, '.local/share/svc'))).toContain('memory.db');
  const other = tempFolder();
  await runCli(['memory', 'add', 'The quay has seven berths.'], { home: other });
  expect((await runCli(['memory', 'list'], { home: other })).stdout).toContain('seven berths');
});

test.each(['memory list', 'doctor', 'memory why walrus', 'run claude'])(
  'in a folder that was removed svc %s says so, and what to do',
  async (line) => {
    const home = tempFolder();
    const gone = join(home, 'gone');
    mkdirSync(gone);
    const inGone = 'cd "$1" && rmdir "$1" && shift && exec "$@"';
    const argv = ['sh', '-c', inGone, 'sh', gone, process.execPath, BIN, ...line.split(' ')];
    const { code, stderr } = await runProgram(argv, { home });
    expect([code, stderr]).toEqual([
      1,
      'svc: The folder in which you run this was removed.\n  Go to another one, and run it again: cd ~\n',
    ]);
    expect(readdirSync(home)).toEqual([]);
  },
);

test.each([
  ['a file', (path: string) => writeFileSync(path, '')],
  ['a link to nothing', (path: string) => symlinkSync(join(path, '..', 'gone'), path)],
] as const)(
  'a command that reads does not say “nothing” where the data folder is %s',
  async (_, make) => {
    const home = tempFolder();
    const folder = join(home, 'data');
    make(folder);
    const result = await runCli(['memory', 'list'], { home, env: { SVC_DATA_HOME: folder } });
    expect([result.code, result.stderr]).toEqual([
      1,
      expect.stringContaining('The memory cannot answer'),
    ]);
  },
);
