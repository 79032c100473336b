import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { LOCAL_TOKEN, validConfig } from '../support/config.ts';
import { homeWith } from '../support/home.ts';
import { startServerProcess } from '../support/proxy-process.ts';
import { tempFolder } from '../support/temp-folder.ts';

interface Cached {
  readonly exports: { answer(): number; other(): unknown; readonly name: string };
  readonly isCached: boolean;
  save(): void;
  saveMore(): void;
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

test('code that was compiled later is saved once it is clearly more than the cache has', () => {
  const late = Array.from(
    { length: 40 },
    (_, at) => `  () => { let sum = ${at}; return sum + 1; },\n`,
  );
  const file = moduleFile(`const late = [\n${late.join('')}];
exports.answer = () => late.reduce((sum, one) => sum + one(), 0);\n`);
  const first = requireCached(file);
  first.save();
  const early = statSync(`${file}.cache`);
  first.saveMore();
  expect(statSync(`${file}.cache`).ino).toBe(early.ino);
  first.exports.answer();
  first.save();
  expect(statSync(`${file}.cache`).ino).toBe(early.ino);
  first.saveMore();
  const more = statSync(`${file}.cache`);
  expect(more.size).toBeGreaterThan(early.size);
  const second = requireCached(file);
  expect(second.isCached).toBe(true);
  second.exports.answer();
  second.saveMore();
  expect(statSync(`${file}.cache`).ino).toBe(more.ino);
});

/** The built program in a folder of its own: other tests start the one of the repository meanwhile. */
function ownProgram() {
  const root = join(import.meta.dirname, '../..');
  const folder = tempFolder();
  for (const part of ['bin', 'dist/quick']) {
    cpSync(join(root, part), join(folder, part), {
      recursive: true,
      filter: (path) => !path.includes('.cache'),
    });
  }
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  return {
    program: join(folder, 'bin/svc.js'),
    cache: join(folder, 'dist/quick/start.cjs.cache'),
    storeCache: join(folder, 'dist/quick/store-thread.cjs.cache'),
  };
}

async function answeringProvider(): Promise<string> {
  const provider = createServer((request, answer) => {
    request.resume();
    answer.setHeader('content-type', 'application/json');
    answer.end('{"id":"msg_1","type":"message","content":[{"type":"text","text":"Four."}]}');
  });
  onTestFinished(() => void provider.close());
  await once(provider.listen(0, '127.0.0.1'), 'listening');
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- It listens on a port.
  return `http://127.0.0.1:${(provider.address() as AddressInfo).port}`;
}

async function ask(url: string): Promise<void> {
  const answer = await fetch(`${url}/v1/messages`, {
    method: 'POST',
    headers: { authorization: `Bearer ${LOCAL_TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Two and two?' }] }),
  });
  expect(answer.status).toBe(200);
  await answer.text();
}

test('a start takes its code from the cache of an earlier one, with that of its requests', async () => {
  const { program, cache, storeCache } = ownProgram();
  const [anthropic] = validConfig()['upstreams'] as object[];
  const upstream = { ...anthropic, baseUrl: await answeringProvider(), allowPrivate: true };
  const home = homeWith({ ...validConfig(), upstreams: [upstream] });
  const env = { HOME: home, SVC_DATA_HOME: join(home, 'data') };
  const start = () => startServerProcess(['start', '--port', '0', '--json'], env, program);

  const first = await start();
  await expect.poll(() => existsSync(cache), { timeout: 20_000 }).toBe(true);
  const early = statSync(cache);
  await ask(first.url);
  // By then it has set flags of V8 under which no code may be saved.
  await sleep(4_000);
  await first.kill('SIGTERM');
  const whole = statSync(cache);
  expect(whole.size).toBeGreaterThan(early.size);
  const store = statSync(storeCache);

  await start();
  // It is saved after a second, by a process that may have much else to do.
  await sleep(3_000);
  expect([statSync(cache).ino, statSync(storeCache).ino]).toEqual([whole.ino, store.ino]);
}, 60_000);

test.each([
  ['of a process that just began', 0, true],
  ['that begins when V8 has other flags', 2_500, false],
])('a thread %s saves its code after %i ms: %s', async (_, afterMs, isSaved) => {
  const { storeCache } = ownProgram();
  writeFileSync(storeCache.replace('.cache', ''), 'setTimeout(() => {}, 1_500);');
  const worker = JSON.stringify(storeCache.replace('store-thread.cjs.cache', 'store-worker.cjs'));
  const script = `setTimeout(() => new (require('node:worker_threads').Worker)(${worker}), ${afterMs})`;
  await once(spawn(process.execPath, ['-e', script]), 'exit');
  expect(existsSync(storeCache)).toBe(isSaved);
});
