import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { runCli } from '../support/cli.ts';
import { validConfig } from '../support/config.ts';
import { freePort } from '../support/free-port.ts';
import { homeWith } from '../support/home.ts';
import { tempFolder } from '../support/temp-folder.ts';

interface Cached {
  readonly exports: { answer(): number; other(): unknown; readonly name: string };
  readonly isCached: boolean;
  save(): void;
}

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Plain JavaScript, as the program's entry is.
const { requireCached } = createRequire(import.meta.url)('../../bin/cached.js') as {
  readonly requireCached: (file: string) => Cached;
};

const SOURCE = `const { basename } = require('node:path');
exports.answer = () => 42;
exports.other = () => require('./other.cjs');
exports.name = basename(__filename);
`;

function moduleFile(source = SOURCE): string {
  const folder = tempFolder();
  writeFileSync(join(folder, 'other.cjs'), 'exports.other = 1;');
  const file = join(folder, 'a.cjs');
  writeFileSync(file, source);
  // As old as what a package manager unpacks.
  utimesSync(file, new Date(1985, 9, 26), new Date(1985, 9, 26));
  return file;
}

test('a file runs the same with and without its cache, and the cache is for its owner alone', () => {
  const file = moduleFile();
  for (const isCached of [false, true]) {
    const loaded = requireCached(file);
    expect(loaded.isCached).toBe(isCached);
    expect([loaded.exports.answer(), loaded.exports.name]).toEqual([42, 'a.cjs']);
    expect(loaded.exports.other()).toEqual({ other: 1 });
    loaded.save();
  }
  expect(statSync(`${file}.cache`).mode & 0o777).toBe(0o600);
});

test('a cache of another source, or a broken one, is not used and is replaced', () => {
  const file = moduleFile();
  requireCached(file).save();
  // Of the same length and older than the cache: an update that was copied over the old version.
  writeFileSync(file, SOURCE.replace('42', '43'));
  utimesSync(file, new Date(1985, 9, 26), new Date(1985, 9, 26));
  const changed = requireCached(file);
  expect([changed.isCached, changed.exports.answer()]).toEqual([false, 43]);
  changed.save();
  const again = requireCached(file);
  expect([again.isCached, again.exports.answer()]).toEqual([true, 43]);

  const broken = moduleFile();
  writeFileSync(`${broken}.cache`, 'not what V8 wrote');
  const loaded = requireCached(broken);
  expect([loaded.isCached, loaded.exports.answer()]).toEqual([false, 42]);
  loaded.save();
  expect(requireCached(broken).isCached).toBe(true);
  expect(readdirSync(join(broken, '..')).toSorted()).toEqual(['a.cjs', 'a.cjs.cache', 'other.cjs']);
});

test.each([
  ['cut short', (whole: Buffer) => whole.subarray(0, whole.length >> 1)],
  ['changed in one bit', (whole: Buffer) => whole.fill((whole.at(-1) ?? 0) ^ 1, whole.length - 1)],
])('a cache that is %s is not used', (_, damage) => {
  const file = moduleFile();
  requireCached(file).save();
  writeFileSync(`${file}.cache`, damage(readFileSync(`${file}.cache`)));
  const loaded = requireCached(file);
  expect([loaded.isCached, loaded.exports.answer()]).toEqual([false, 42]);
});

test('where the folder cannot be written there is no cache, and nothing fails', () => {
  const file = moduleFile();
  const folder = join(file, '..');
  const loaded = requireCached(file);
  chmodSync(folder, 0o500);
  // Root may write everywhere: a folder in the way stops it too.
  writeFileSyncQuietly(`${file}.cache.${process.pid}`);
  loaded.save();
  chmodSync(folder, 0o700);
  expect(requireCached(file).exports.answer()).toBe(42);
});

test('a draft in the way that cannot be removed ends nothing', () => {
  const file = moduleFile();
  const loaded = requireCached(file);
  mkdirSync(join(`${file}.cache.${process.pid}`, 'full'), { recursive: true });
  expect(() => loaded.save()).not.toThrow();
  expect(requireCached(file).isCached).toBe(false);
});

function writeFileSyncQuietly(path: string): void {
  try {
    writeFileSync(path, '');
  } catch {
    // Not root: the mode of the folder is enough.
  }
}

test('a second start of the proxy takes its code from the cache of the first', async () => {
  const cache = join(import.meta.dirname, '../../dist/quick/start.cjs.cache');
  const start = async (): Promise<void> => {
    const home = homeWith({ ...validConfig(), proxy: { port: await freePort() } });
    const at = { home, env: { SVC_DATA_HOME: join(home, 'data') } };
    onTestFinished(async () => void (await runCli(['stop'], at)));
    expect((await runCli(['start', '--detach'], at)).code).toBe(0);
    // It is saved after a second, by a process that may have much else to do.
    await sleep(3_000);
  };
  await start();
  const saved = statSync(cache).ino;
  await start();
  expect(statSync(cache).ino).toBe(saved);
}, 60_000);
