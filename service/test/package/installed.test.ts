import { spawnSync } from 'node:child_process';
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { runProgram, tempFolder } from '../../../test/support/cli.ts';
import { startServerProcess } from '../../../test/support/proxy-process.ts';

/** The package of the service as a stranger gets it: packed, installed into an empty folder, and started. */

const product = join(import.meta.dirname, '..', '..');

/** What npm says where there is no registry to ask. */
const OFFLINE =
  /\b(?:ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ERR_SOCKET_TIMEOUT|ENETUNREACH)\b/;

function npm(args: readonly string[], cwd: string) {
  return spawnSync('npm', args, { cwd, encoding: 'utf8', timeout: 200_000 });
}

test('npm pack, an install without scripts, and a service that answers', async (context) => {
  const folder = tempFolder();
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 20 }));
  const pack = npm(['pack', '--ignore-scripts', '--pack-destination', folder], product);
  expect(pack.status, pack.stderr).toBe(0);
  const [tarball = ''] = readdirSync(folder).filter((name) => name.endsWith('.tgz'));
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--fetch-retries=1'];
  const installed = npm(['install', ...flags, '--prefix', folder, join(folder, tarball)], folder);
  if (installed.status !== 0) {
    const [code] = OFFLINE.exec(installed.stderr) ?? [];
    expect(code, installed.stderr).toBeDefined();
    const missing = `the packages that svc-service needs cannot be had here (${code})`;
    process.stderr.write(`SKIPPED ALOUD: ${missing}\n`);
    context.skip(missing);
  }
  const program = join(folder, 'node_modules', '.bin', 'svc-service');
  const run = (...args: string[]) => runProgram([program, ...args], { home: folder });
  expect(await run('--help')).toMatchObject({ code: 0, stderr: '' });
  expect(await run('init', '--port', '0')).toMatchObject({ code: 0 });
  const service = await startServerProcess(['start', '--json'], { HOME: folder }, program);
  const answer = await fetch(`${service.url}/readyz`);
  expect([answer.status, await answer.json()]).toMatchObject([200, { status: 'ok' }]);
  expect(await run('status')).toMatchObject({ code: 0 });
}, 300_000);
