import { spawnSync } from 'node:child_process';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { BIN, runProgram, tempFolder } from '../support/cli.ts';

/** A clone in which nothing was built yet gives a program that runs. */

const root = join(import.meta.dirname, '..', '..');

function cleanFolder(): string {
  const folder = tempFolder();
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 20 }));
  return folder;
}

test('npm install -g . builds a fresh clone, installs a program that runs, and changes no file', async (context) => {
  const folder = cleanFolder();
  const clone = join(folder, 'clone');
  const cloned = spawnSync('git', ['clone', '--quiet', root, clone], { encoding: 'utf8' });
  if (cloned.status !== 0) {
    const reason = 'this copy of the project is no git repository';
    process.stderr.write(`SKIPPED ALOUD: ${reason}\n`);
    context.skip(reason);
  }
  const args = ['install', '--global', '--prefix', join(folder, 'prefix'), '--no-audit', '.'];
  const installed = spawnSync('npm', args, { cwd: clone, encoding: 'utf8', timeout: 250_000 });
  expect(installed.status, installed.stderr).toBe(0);
  const svc = join(folder, 'prefix', 'bin', 'svc');
  const version = await runProgram([svc, '--version'], { home: folder });
  expect(version).toMatchObject({ code: 0, stderr: '' });
  const token = await runProgram([svc, 'config', '--help'], { home: folder });
  expect(token).toMatchObject({ code: 0 });
  const status = spawnSync('git', ['status', '--porcelain'], { cwd: clone, encoding: 'utf8' });
  expect(status.stdout).toBe('');
  expect(existsSync(join(clone, 'dist', 'main.js'))).toBe(true);
}, 300_000);

test.each(['16.20.2', '18.20.8', '20.17.0', '20.18.0'])(
  'Node %s gets one sentence that names the Node that is needed',
  async (version) => {
    const home = cleanFolder();
    const pretend = join(home, 'pretend.cjs');
    writeFileSync(
      pretend,
      `Object.defineProperty(process.versions, 'node', { value: '${version}' });`,
    );
    const ran = await runProgram([process.execPath, '--require', pretend, BIN, 'start'], { home });
    expect(ran).toMatchObject({ code: 1, stdout: '' });
    expect(ran.stderr).toMatch(/^svc needs Node 20\.18\.1 or newer, and this is Node \S+\. .*\n$/);
    expect(ran.stderr).toContain(version);
  },
);

test.each(['20.18.1', '21.0.0', '22.3.0', '26.10.0'])('Node %s is new enough', async (version) => {
  const home = cleanFolder();
  const pretend = join(home, 'pretend.cjs');
  writeFileSync(
    pretend,
    `Object.defineProperty(process.versions, 'node', { value: '${version}' });`,
  );
  const argv = [process.execPath, '--require', pretend, BIN, '--version'];
  expect(await runProgram(argv, { home })).toMatchObject({ code: 0, stderr: '' });
});
