import {
  appendFileSync,
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { readConfigFile, repairModes, watchConfig } from '../../src/adapters/files/config-file.ts';
import { updateConfigFile } from '../../src/adapters/files/config-writer.ts';
import { FileError } from '../../src/adapters/files/file-error.ts';
import { isRecord } from '../../src/core/bytes/json-fields.ts';
import { tempFolder } from '../support/cli.ts';
import { PROVIDER_KEY } from '../support/config.ts';

function mode(path: string): number {
  return lstatSync(path).mode & 0o777;
}

function write(folder: string, text: string): string {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, 'config.json');
  writeFileSync(path, text, { mode: 0o600 });
  return path;
}

/** Everything below the folder; what goes while it is looked at is not there. */
function pathsIn(folder: string): string[] {
  try {
    return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
      const path = join(folder, entry.name);
      return entry.isDirectory() ? [path, ...pathsIn(path)] : [path];
    });
  } catch {
    return [];
  }
}

async function failure(work: Promise<unknown>): Promise<FileError> {
  const error: unknown = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error instanceof FileError) return error;
  throw new Error('It did not fail as expected.', { cause: error });
}

// spec: 2.4-folder-mode, 2.4-file-mode
test('R28: folder and file are private from the first byte, whatever the umask', async () => {
  for (const umask of [0o000, 0o022, 0o077]) {
    const folder = join(tempFolder(), 'a', 'svc');
    const before = process.umask(umask);
    try {
      await updateConfigFile(folder, () => ({ key: PROVIDER_KEY }));
    } finally {
      process.umask(before);
    }
    expect(mode(folder)).toBe(0o700);
    expect(mode(join(folder, 'config.json'))).toBe(0o600);
    expect(readdirSync(folder)).toEqual(['config.json']);
  }
});

test('R28: at no moment of a write does anything stand there that others could read', async () => {
  const folder = join(tempFolder(), 'svc');
  const seen = new Set<string>();
  const before = process.umask(0);
  const writing = new AbortController();
  const look = async (): Promise<void> => {
    while (!writing.signal.aborted) {
      for (const path of pathsIn(folder)) {
        const stat = lstatSync(path, { throwIfNoEntry: false });
        if (stat !== undefined) seen.add((stat.mode & 0o777).toString(8));
      }
      if (existsSync(folder)) seen.add(mode(folder).toString(8));
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  const looking = look();
  try {
    for (let round = 0; round < 5; round += 1) {
      await updateConfigFile(folder, () => ({ key: PROVIDER_KEY, round }));
    }
  } finally {
    writing.abort();
    process.umask(before);
  }
  await looking;
  expect([...seen].toSorted()).toEqual(['600', '700']);
});

test('R28: a symlinked configuration file is neither read nor written through', async () => {
  const home = tempFolder();
  const folder = join(home, 'svc');
  const target = join(home, 'elsewhere.json');
  mkdirSync(folder, { mode: 0o700 });
  writeFileSync(target, '{"a":1}');
  symlinkSync(target, join(folder, 'config.json'));
  expect((await failure(readConfigFile(folder))).message).toContain('symbolic link');
  expect((await failure(repairModes(folder))).message).toContain('symbolic link');
  expect((await failure(updateConfigFile(folder, () => ({ a: 2 })))).message).toContain('symbolic');
  expect(readFileSync(target, 'utf8')).toBe('{"a":1}');
  expect(lstatSync(join(folder, 'config.json')).isSymbolicLink()).toBe(true);
});

test('R28: a folder that is a link out is neither read nor written through', async () => {
  const home = tempFolder();
  const elsewhere = join(home, 'elsewhere');
  mkdirSync(elsewhere, { mode: 0o755 });
  for (const suffix of ['', '/']) {
    const link = join(home, `link${suffix.length}`);
    symlinkSync(elsewhere, link);
    const { message } = await failure(updateConfigFile(link, () => ({ a: 1 })));
    expect(message).toContain('symbolic link');
    expect((await failure(readConfigFile(link))).message).toContain('symbolic link');
  }
  expect(readdirSync(elsewhere)).toEqual([]);
  expect(mode(elsewhere)).toBe(0o755);
});

test('R28: open modes are told when reading, repaired on request, and repaired before writing', async () => {
  const folder = join(tempFolder(), 'svc');
  const path = write(folder, '{}');
  chmodSync(folder, 0o755);
  chmodSync(path, 0o644);
  expect((await readConfigFile(folder))?.looseModes).toEqual([
    { path: folder, mode: 0o755 },
    { path, mode: 0o644 },
  ]);
  expect(await repairModes(folder)).toEqual([folder, path]);
  expect([mode(folder), mode(path)]).toEqual([0o700, 0o600]);
  expect(await repairModes(folder)).toEqual([]);
  chmodSync(folder, 0o777);
  await updateConfigFile(folder, () => ({}));
  expect(mode(folder)).toBe(0o700);
});

test('a folder that is shared is not taken from the others', async () => {
  const shared = tempFolder();
  chmodSync(shared, 0o1777);
  const { message } = await failure(updateConfigFile(shared, () => ({})));
  expect(message).toContain('is shared with others');
  expect(lstatSync(shared).mode & 0o7777).toBe(0o1777);
});

test('what was there stays whole when a change is refused', async () => {
  const folder = join(tempFolder(), 'svc');
  const path = write(folder, '{"a":1}');
  const refuse = updateConfigFile(folder, () => {
    throw new Error('no');
  });
  await expect(refuse).rejects.toThrow('no');
  expect(readFileSync(path, 'utf8')).toBe('{"a":1}');
  expect(readdirSync(folder)).toEqual(['config.json']);
});

test('R32: writers at the same time lose no change', async () => {
  const folder = join(tempFolder(), 'svc');
  const add = (name: string) =>
    updateConfigFile(folder, (old) => ({ ...(isRecord(old?.value) ? old.value : {}), [name]: 1 }));
  await Promise.all(['a', 'b', 'c', 'd', 'e', 'f'].map(add));
  const file = await readConfigFile(folder);
  expect(file?.value).toEqual({ a: 1, b: 1, c: 1, d: 1, e: 1, f: 1 });
});

test('a lock and a half-written file of a killed writer stop nobody', async () => {
  const folder = join(tempFolder(), 'svc');
  write(folder, '{}');
  // No process has this id: it is above the highest that Linux and macOS give.
  writeFileSync(join(folder, 'config.lock'), '99999999 aa\n');
  mkdirSync(join(folder, '.writing-abc'));
  writeFileSync(join(folder, '.writing-abc', 'config.json'), PROVIDER_KEY);
  await updateConfigFile(folder, () => ({ a: 1 }));
  expect(readdirSync(folder)).toEqual(['config.json']);
  const lock = join(folder, 'config.lock');
  writeFileSync(lock, `${process.pid} aa\n`);
  const old = new Date(Date.now() - 120_000);
  utimesSync(lock, old, old);
  await updateConfigFile(folder, () => ({ a: 2 }));
  expect(readdirSync(folder)).toEqual(['config.json']);
});

test('writing leaves no signal handler behind, which would end a proxy that drains', async () => {
  const before = process.eventNames().filter((name) => String(name).startsWith('SIG'));
  await updateConfigFile(join(tempFolder(), 'svc'), () => ({}));
  const after = process.eventNames().filter((name) => String(name).startsWith('SIG'));
  expect(after).toEqual(before);
  const own = (): void => undefined;
  process.on('SIGUSR2', own);
  await updateConfigFile(join(tempFolder(), 'svc'), () => ({}));
  expect(process.rawListeners('SIGUSR2')).toContain(own);
  process.off('SIGUSR2', own);
});

test('R28: SNAP in the environment, with which conf writes in place, changes nothing', async () => {
  vi.stubEnv('SNAP', '/snap');
  const folder = join(tempFolder(), 'svc');
  const path = write(folder, '{"a":1}');
  const { ino } = statSync(path);
  await updateConfigFile(folder, () => ({ a: 2 }));
  vi.unstubAllEnvs();
  expect(statSync(path).ino).not.toBe(ino);
  expect(mode(path)).toBe(0o600);
});

test('R29: what is wrong with a file is told without a piece of it', async () => {
  const folder = join(tempFolder(), 'svc');
  for (const text of [
    `{"a": "${PROVIDER_KEY}"`,
    PROVIDER_KEY,
    `{"a": ${PROVIDER_KEY}}`,
    '',
    '{"a":\n 1,}',
  ]) {
    write(folder, text);
    const error = await failure(readConfigFile(folder));
    expect(`${error.message} ${error.hint} ${String(error.cause)}`).not.toContain('CANARY');
    expect(error.message).toContain('not valid JSON');
  }
});

test('a byte order mark is taken away, and a file of many megabytes is refused unread', async () => {
  const folder = join(tempFolder(), 'svc');
  write(folder, '\ufeff{"a":1}');
  expect((await readConfigFile(folder))?.value).toEqual({ a: 1 });
  write(folder, ' '.repeat(1024 * 1024 + 1));
  expect((await failure(readConfigFile(folder))).message).toContain('larger than 1 MiB');
});

test('what is no file and what is no folder is said so', async () => {
  const home = tempFolder();
  mkdirSync(join(home, 'svc', 'config.json'), { recursive: true });
  expect((await failure(readConfigFile(join(home, 'svc')))).message).toContain('is not a file');
  writeFileSync(join(home, 'plain'), '');
  expect((await failure(readConfigFile(join(home, 'plain')))).message).toContain('not a folder');
  expect(await readConfigFile(join(home, 'nothing'))).toBeUndefined();
});

test.runIf(process.getuid?.() === 0)('R28: a file of another user is refused', async () => {
  const { chownSync } = await import('node:fs');
  const folder = join(tempFolder(), 'svc');
  const path = write(folder, '{}');
  chownSync(path, 65_534, 65_534);
  expect((await failure(readConfigFile(folder))).message).toContain('another user');
  chownSync(folder, 65_534, 65_534);
  expect((await failure(updateConfigFile(folder, () => ({})))).message).toContain('another user');
});

test('R31: a changed, a replaced and a removed file are each seen once', async () => {
  const folder = join(tempFolder(), 'svc');
  const path = write(folder, '{}');
  const stamp = (await readConfigFile(folder))?.stamp ?? '';
  let seen = 0;
  const watch = watchConfig({ path, stamp }, () => {
    seen += 1;
  });
  const waitFor = (count: number) => expect.poll(() => seen).toBe(count);
  // In one step: a look between the two of writing it anew would see two changes.
  appendFileSync(path, ' ');
  await waitFor(1);
  await updateConfigFile(folder, () => ({ a: 2 }));
  await waitFor(2);
  const { rmSync } = await import('node:fs');
  rmSync(path);
  await waitFor(3);
  watch.close();
});

test('R31: a change between the read and the first look is not missed', async () => {
  const folder = join(tempFolder(), 'svc');
  const path = write(folder, '{}');
  const stamp = (await readConfigFile(folder))?.stamp ?? '';
  writeFileSync(path, '{"a":1}');
  await new Promise<void>((resolve) => {
    const watch = watchConfig({ path, stamp }, () => {
      watch.close();
      resolve();
    });
  });
});
