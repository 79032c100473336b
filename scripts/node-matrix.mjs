// Runs the demo and a choice of tests on every line of Node that svc supports. The binaries are
// registry packages without scripts; they stay in .nodes/, out of the repository and of npm ci.
//
//   node scripts/node-matrix.mjs                      all versions, the usual tests
//   node scripts/node-matrix.mjs --node 24.21.0       one version; may be given again
//   node scripts/node-matrix.mjs --sample             fewer tests, about a minute
//   node scripts/node-matrix.mjs test/cli/x.test.ts   these tests
//
// Exit code: 0, 1 where something failed, 2 where a version cannot be installed.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { parseArgs } from 'node:util';

/** The oldest that package.json allows, the first builtin SQLite that is safe, and the newest. */
const VERSIONS = ['20.18.1', '22.23.3', '24.21.0', '26.10.0'];

/** What differs between versions: SQLite, zstd, the loader, sockets, processes, warnings. */
const TESTS = [
  'test/adapters/body-decoder.test.ts',
  'test/adapters/config-file.test.ts',
  'test/adapters/store-client.test.ts',
  'test/adapters/store.test.ts',
  'test/adapters/undici-upstream.test.ts',
  'test/cli/demo.test.ts',
  'test/cli/doctor.test.ts',
  'test/cli/main.test.ts',
  'test/cli/memory.test.ts',
  'test/cli/connect.test.ts',
  'test/cli/print-config.test.ts',
  'test/cli/run.test.ts',
  'test/cli/start.test.ts',
  'test/local/gate.test.ts',
  'test/local/lifecycle.test.ts',
  'test/package/installed.test.ts',
  'test/ports/memory.test.ts',
];

/** What runs in every line of Node and differs most. */
const SAMPLE = [
  'test/adapters/body-decoder.test.ts',
  'test/adapters/config-file.test.ts',
  'test/adapters/store-client.test.ts',
  'test/adapters/store.test.ts',
  'test/adapters/undici-upstream.test.ts',
  'test/cli/start.test.ts',
  'test/local/gate.test.ts',
  'test/local/lifecycle.test.ts',
  'test/ports/memory.test.ts',
  'test/proxy/shortening.test.ts',
];

/** Milliseconds for one install, and for the tests of one version. */
const INSTALL_MS = 180_000;
const TESTS_MS = 1_200_000;

const root = join(import.meta.dirname, '..');
const folder = process.env.SVC_TEST_NODES ?? join(root, '.nodes');
const { values, positionals } = parseArgs({
  options: {
    node: { type: 'string', multiple: true, default: VERSIONS },
    sample: { type: 'boolean', default: false },
  },
  allowPositionals: true,
});
const usual = values.sample ? SAMPLE : TESTS;
const tests = positionals.length === 0 ? usual : positionals;

const tsup = join(root, 'node_modules/tsup/dist/cli-default.js');
const products = process.env.SVC_TEST_NO_BUILD === '1' ? [] : [root, join(root, 'service')];
for (const cwd of products) run(process.execPath, [tsup, '--silent'], { cwd });
const rows = values.node.map((version) => ({ version, ...judge(version) }));
for (const { version, demo, counts } of rows) {
  process.stdout.write(`node ${version.padEnd(8)}  demo ${demo}  tests: ${counts}\n`);
}
if (rows.some(({ isFine }) => isFine === false)) process.exitCode = 1;
else if (rows.some(({ isFine }) => isFine === undefined)) process.exitCode = 2;

function judge(version) {
  const node = installed(version);
  if (node === undefined) return { demo: '-', counts: 'SKIPPED, this Node cannot be installed' };
  const env = {
    ...process.env,
    // Programs that tests start by name are to run on this one, too.
    PATH: `${dirname(node)}${delimiter}${process.env.PATH ?? ''}`,
    SVC_TEST_NO_BUILD: '1',
  };
  const demo = run(node, [join(root, 'bin/svc.js'), 'demo'], { env, timeout: INSTALL_MS });
  // A warning of Node's own on stderr is one that people would report as ours.
  const isDemoFine = demo.status === 0 && demo.stderr === '';
  if (!isDemoFine) process.stderr.write(`${demo.stdout}${demo.stderr}`);
  const vitest = join(root, 'node_modules/vitest/vitest.mjs');
  const command = [vitest, 'run', ...tests];
  const suite = run(node, command, { env, timeout: TESTS_MS });
  const counts = /^\d+ passed, \d+ failed.*$/m.exec(suite.stdout)?.[0] ?? 'did not end';
  if (suite.status !== 0) process.stderr.write(`${suite.stdout}${suite.stderr}`);
  return { demo: isDemoFine ? 'ok' : 'FAILED', counts, isFine: isDemoFine && suite.status === 0 };
}

/** The binary of this version; undefined when the registry does not give it. */
function installed(version) {
  const name = `node-${process.platform === 'win32' ? 'win' : process.platform}-${process.arch}`;
  const place = join(folder, version);
  const bin = process.platform === 'win32' ? 'node.exe' : join('bin', 'node');
  const node = join(place, 'node_modules', name, bin);
  if (existsSync(node)) return node;
  // Beside its place first: an install that was cut off must not look like a whole one.
  const partial = `${place}.partial-${process.pid}`;
  mkdirSync(partial, { recursive: true });
  const flags = ['--no-save', '--ignore-scripts', '--no-audit', '--no-fund', '--prefix', partial];
  const install = ['install', ...flags, `${name}@${version}`];
  const { status } = run('npm', install, { timeout: INSTALL_MS });
  if (status === 0) {
    rmSync(place, { recursive: true, force: true });
    renameSync(partial, place);
  }
  rmSync(partial, { recursive: true, force: true });
  return existsSync(node) ? node : undefined;
}

function run(file, args, more = {}) {
  process.stderr.write(`# ${[file, ...args].join(' ').replaceAll(`${root}/`, '')}\n`);
  const options = { cwd: root, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024, ...more };
  return spawnSync(file, args, { ...options, shell: process.platform === 'win32' });
}
