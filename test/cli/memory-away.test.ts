import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { BIN, runHere } from '../support/cli.ts';
import { validConfig } from '../support/config.ts';
import { homeWith } from '../support/home.ts';

/** A home whose data folder cannot be made, whoever runs this. */
function homeWithoutData(): { home: string; env: Record<string, string> } {
  const home = homeWith(validConfig());
  writeFileSync(join(home, 'file'), '');
  return { home, env: { SVC_DATA_HOME: join(home, 'file', 'data') } };
}

test.each([['requests'], ['memory', 'list'], ['memory', 'search', 'walrus']])(
  'svc %s %s without a usable data folder says that the memory is away',
  async (...words) => {
    const { home, env } = homeWithoutData();
    const { stdout, stderr, code } = await runHere(words, { home, env });
    expect([stdout, code]).toEqual(['', 1]);
    expect(stderr).toContain('The memory cannot answer (unavailable).');
    expect(stderr).toContain('svc doctor');
    expect(stderr).not.toContain('unexpected');
  },
);

test.each(['a memory that cannot be opened', 'no usable data folder'])(
  'svc start with %s serves, and says so',
  async (what) => {
    const home = homeWith(validConfig());
    const data = join(home, 'data');
    if (what.startsWith('no')) writeFileSync(data, '');
    else mkdirSync(join(data, 'memory.db'), { recursive: true, mode: 0o700 });
    const child = spawn(process.execPath, [BIN, 'start', '--port', '0', '--json'], {
      env: { PATH: process.env['PATH'] ?? '', HOME: home, SVC_DATA_HOME: data },
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    let stdout = '';
    let stderr = '';
    child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
    const said = (): void => {
      expect(stdout).toContain('"url"');
      expect(stderr).toContain('The memory cannot be used');
    };
    await vi.waitFor(said, { timeout: 30_000 });
    const { url } = JSON.parse(stdout) as { url: string };
    expect((await fetch(`${url}/health`)).status).toBe(200);
    const ended = once(child, 'close');
    child.kill('SIGTERM');
    expect(await ended).toEqual([0, null]);
  },
);
