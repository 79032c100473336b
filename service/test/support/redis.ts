import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort, isListening } from '../../../test/support/free-port.ts';

/** A real Redis for the tests of one file; it stores nothing. */

const NAMES = ['redis-server', 'valkey-server'];
const START_MS = 30_000;

export interface RedisServer {
  readonly url: string;
  readonly pid: number;
  stop(): Promise<void>;
}

/** Why the tests of this file cannot run here. In CI, where it can be installed, that is a failure. */
export function missingRedis(): string | undefined {
  if (findProgram() !== undefined) return undefined;
  const reason = 'no Redis or Valkey on the path: apt-get install redis-server';
  if (process.env['CI'] === 'true') throw new Error(`There is ${reason}`);
  process.stderr.write(`SKIPPED ALOUD: ${reason}\n`);
  return reason;
}

function findProgram(): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  return folders
    .flatMap((folder) => NAMES.map((name) => join(folder, name)))
    .find((path) => existsSync(path));
}

/** `port`: of one that was stopped, to come back in its place. */
export async function startRedis(port?: number): Promise<RedisServer> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'svc-redis-')));
  const own = port ?? (await freePort());
  const settings = ['--port', String(own), '--bind', '127.0.0.1', '--save', '', '--dir', folder];
  const server = spawn(findProgram() ?? '', settings, { stdio: 'ignore' });
  const until = performance.now() + START_MS;
  // oxlint-disable-next-line no-await-in-loop -- Asked until it answers.
  while (!(await isListening(own))) {
    if (performance.now() > until) throw new Error('Redis did not start.');
    // oxlint-disable-next-line no-await-in-loop
    await sleep(20);
  }
  return {
    url: `redis://127.0.0.1:${own}`,
    pid: server.pid ?? 0,
    stop: async () => {
      if (server.exitCode === null && server.signalCode === null) {
        const gone = once(server, 'exit');
        server.kill('SIGKILL');
        await gone;
      }
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
