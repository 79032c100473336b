import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'tsup';
import { expect, test } from 'vitest';
import { exchange, openSocket, parseAnswer } from '../support/raw-http.ts';

const HEALTH = 'GET /health HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nConnection: close\r\n\r\n';

test.skipIf(process.platform === 'win32')(
  'R34: a process that has no file descriptors left lives on, says so once, and serves again',
  { timeout: 60_000 },
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-descriptors-'));
    await build({
      config: false,
      silent: true,
      entry: { alone: join(import.meta.dirname, '../support/serve-alone.ts') },
      outDir: folder,
      format: 'esm',
      outExtension: () => ({ js: '.mjs' }),
      noExternal: [/.*/],
    });
    // 64 are enough to start Node, and soon used up.
    const child = spawn(
      'sh',
      ['-c', 'ulimit -n 64; exec "$0" "$1"', process.execPath, join(folder, 'alone.mjs')],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
    await expect.poll(() => output).toMatch(/^\d+\n/);
    const port = Number.parseInt(output, 10);

    const sockets: Socket[] = await Promise.all(
      Array.from({ length: 200 }, () => openSocket(port)),
    );
    // The kernel took them all; the process had to give most of them back.
    const refused = (): number => sockets.filter(({ destroyed }) => destroyed).length;
    await expect.poll(refused).toBeGreaterThan(100);
    expect(child.exitCode).toBeNull();
    for (const socket of sockets) socket.destroy();

    const ask = async (): Promise<number> =>
      parseAnswer(await exchange(port, HEALTH.replace('PORT', String(port)), 2_000)).status;
    await expect.poll(ask).toBe(200);
    expect(output.split('\n').length - 2).toBeLessThanOrEqual(1);

    child.kill();
    await once(child, 'exit');
    rmSync(folder, { recursive: true });
  },
);
