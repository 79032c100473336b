// Runs each mutant of list.mjs in a copy of the project: what survives is a safety check without a test.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { MUTANTS } from './list.mjs';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
// Workers and the command line run as built files: `npm run build` first. Only tests of core need none.
const UNBUILT = /^(?:service\/)?test\/core\//;
const COPIED = [
  'src',
  'test',
  'service',
  'bin',
  'dist',
  'tsup.config.ts',
  'package.json',
  'tsconfig.json',
  'vitest.config.ts',
  'CHANGELOG.md',
  // The published contracts, which tests hold answers against.
  'docs',
];
// A test that hangs on a mutant has noticed it too.
const TEST_MS = 180_000;

const chosen = MUTANTS.filter(({ name }) => name.includes(process.argv[2] ?? ''));
const copy = mkdtempSync(join(tmpdir(), 'svc-mutants-'));
try {
  for (const name of COPIED) cpSync(join(ROOT, name), join(copy, name), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  const unsound = new Set(testsOf(chosen).filter(failsAlone).map(testKey));
  const caught = chosen.filter((mutant) => !unsound.has(testKey(mutant)) && isCaught(mutant));
  process.stdout.write(`${caught.length} of ${chosen.length} were caught\n`);
  process.exitCode = caught.length === chosen.length ? 0 : 1;
} finally {
  rmSync(copy, { recursive: true, force: true });
}

/** Several mutants name the same test: it runs once without any of them. */
function testsOf(mutants) {
  return [...new Map(mutants.map((mutant) => [testKey(mutant), mutant])).values()];
}

function testKey({ test, only = '' }) {
  return `${test} ${only}`;
}

/** The mutants of a test that fails without any of them are not judged, and not caught. */
function failsAlone({ test, only }) {
  const { status, stdout } = run(test, only);
  if (status === 0) return false;
  const failed = failureIn(stdout) ?? 'it did not end in time';
  process.stdout.write(`FAILS WITHOUT ANY MUTANT  ${test}  <-  ${failed}\n`);
  return true;
}

function isCaught({ name, file, from, to, test, only }) {
  const path = join(copy, file);
  const source = readFileSync(path, 'utf8');
  if (source.split(from).length !== 2) throw new Error(`${name}: not once in ${file}: ${from}`);
  writeFileSync(
    path,
    source.replace(from, () => to),
  );
  const { status, stdout, error } = run(test, only, !UNBUILT.test(test));
  writeFileSync(path, source);
  const hangs = error?.code === 'ETIMEDOUT' ? 'it did not end in time' : undefined;
  const failed = failureIn(stdout) ?? hangs;
  const wasCaught = status !== 0 && failed !== undefined;
  process.stdout.write(`${wasCaught ? 'caught  ' : 'SURVIVED'}  ${name}  <-  ${failed ?? ''}\n`);
  return wasCaught;
}

// A mutant fails a test twice. A busy machine fails it once, and that says nothing about a mutant.
function run(test, only, builds = false) {
  const args = ['vitest', 'run', test, '--bail', '1', '--retry', '1'];
  const result = spawnSync('npx', only === undefined ? args : [...args, '-t', only], {
    cwd: copy,
    // A group of its own: at the timeout only npx gets the signal, and the test would go on.
    detached: true,
    encoding: 'utf8',
    env: { ...process.env, SVC_TEST_NO_BUILD: builds ? '0' : '1' },
    timeout: TEST_MS,
  });
  if (result.error?.code === 'ETIMEDOUT') endGroup(result.pid);
  return result;
}

function endGroup(leader) {
  try {
    process.kill(-leader, 'SIGKILL');
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}

/** The name of the first test that failed. */
function failureIn(stdout) {
  return /^ *(?:FAIL|×) +(.*)$/m.exec(plain(stdout))?.[1];
}

/** Without colours. */
function plain(text) {
  // oxlint-disable-next-line no-control-regex
  return (text ?? '').replaceAll(/\u001b\[[0-9;]*m/g, '');
}
