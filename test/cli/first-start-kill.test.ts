import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import { BIN, runCli } from '../support/cli.ts';
import { validConfig } from '../support/config.ts';
import { homeWith } from '../support/home.ts';
import { startProxyProcess } from '../support/proxy-process.ts';

// Real processes, SIGKILL at any moment of their first start. More kills: SVC_TEST_KILLS=40.
const KILLS = Number(process.env['SVC_TEST_KILLS'] ?? '6');
vi.setConfig({ testTimeout: 30_000 + KILLS * 10_000 });

test('a start that is killed at any moment leaves a folder that every later start can use', async () => {
  const config = { ...validConfig(), proxy: { port: 0 } };
  const first = await startProxyProcess(homeWith(config));
  await first.kill('SIGKILL');
  const startMs = await timeOfStart(config);
  for (let kill = 0; kill < KILLS; kill += 1) {
    const home = homeWith(config);
    const data = join(home, '.local/share/svc');
    const env = { HOME: home, PATH: process.env['PATH'] ?? '' };
    const child = spawn(process.execPath, [BIN, 'start', '--port', '0'], { env, stdio: 'ignore' });
    const gone = once(child, 'close');
    const afterMs = Math.random() * startMs * 1.2;
    await sleep(afterMs);
    child.kill('SIGKILL');
    await gone;
    const left = `after ${Math.round(afterMs)} of ${Math.round(startMs)} ms`;
    const later = await startProxyProcess(home);
    const store = openEmbeddedStore({ folder: data, report: (line) => expect(line).toBe('') });
    await store.memory.list({ limit: 1 }, AbortSignal.timeout(30_000));
    await store.close();
    await later.kill('SIGTERM');
    expect([left, later.stderr()]).toEqual([left, expect.not.stringContaining('cannot be used')]);
    const { stdout } = await runCli(['doctor', '--offline'], { home });
    expect([left, stdout]).toEqual([left, expect.not.stringMatching(/problem +Store/)]);
    expect(readdirSync(data).filter((name) => name.startsWith('proxy-'))).toEqual([]);
  }
});

async function timeOfStart(config: unknown): Promise<number> {
  const began = performance.now();
  const proxy = await startProxyProcess(homeWith(config));
  const ms = performance.now() - began;
  await proxy.kill('SIGKILL');
  return ms;
}
