import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { BIN, tempFolder } from '../support/cli.ts';

/** What the program as it is shipped says, started in a home without a configuration and stopped. */
async function startOnce(): Promise<string> {
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
    await expect.poll(() => stdout).toContain('\n');
    const { url } = JSON.parse(stdout) as { url: string };
    expect((await fetch(`${url}/livez`)).status).toBe(200);
  } finally {
    child.kill('SIGTERM');
    expect(await closed).toEqual([0, null]);
  }
  return stderr;
}

test('the shipped program writes its first configuration and serves', async () => {
  const told = /^svc wrote .*\nsvc listens on http:\/\/127\.0\.0\.1:\d+\. .*\n$/;
  expect(await startOnce()).toMatch(told);
});
