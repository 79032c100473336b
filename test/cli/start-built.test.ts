import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { BIN, tempFolder } from '../support/cli.ts';

// Many processes on a machine that may be busy.
vi.setConfig({ testTimeout: 60_000 });

const CACHE = join(BIN, '..', '..', 'dist', 'quick', 'start.cjs.cache');

/** Starts the program as it is shipped, in a home without a configuration, and stops it again. */
async function startOnce(isEnough: () => boolean): Promise<{ url: string; stderr: string }> {
  const home = tempFolder();
  const child = spawn(process.execPath, [BIN, 'start', '--json'], {
    env: {
      PATH: process.env['PATH'] ?? '',
      HOME: home,
      SVC_PORT: '0',
      ANTHROPIC_API_KEY: 'sk-ant-CANARY',
    },
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const closed = once(child, 'close');
  try {
    await vi.waitFor(() => expect(stdout).toContain('\n'), { timeout: 20_000 });
    const { url } = JSON.parse(stdout) as { url: string };
    expect((await fetch(`${url}/livez`)).status).toBe(200);
    await vi.waitFor(() => expect(isEnough()).toBe(true), { timeout: 20_000 });
    return { url, stderr };
  } finally {
    child.kill('SIGTERM');
    expect(await closed).toEqual([0, null]);
  }
}

test('the shipped program writes its first configuration and serves, with and without its code cache', async () => {
  const told = /^svc wrote .*\nsvc listens on http:\/\/127\.0\.0\.1:\d+\. .*\n$/;
  expect((await startOnce(() => existsSync(CACHE))).stderr).toMatch(told);
  expect((await startOnce(() => true)).stderr).toMatch(told);
});
