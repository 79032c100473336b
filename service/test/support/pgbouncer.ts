import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import { freePort } from '../../../test/support/free-port.ts';

/** pgbouncer in transaction mode in front of a PostgreSQL of a test. */

const NOBODY = 65_534;
const START_MS = 30_000;

/** Why the tests of this file cannot run here. In CI, where it can be installed, that is a failure. */
export function missingPgbouncer(): string | undefined {
  if (findProgram() !== undefined) return undefined;
  const reason = 'no pgbouncer: apt-get install pgbouncer';
  if (process.env['CI'] === 'true') throw new Error(`There is ${reason}`);
  process.stderr.write(`SKIPPED ALOUD: ${reason}\n`);
  return reason;
}

function findProgram(): string | undefined {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin'];
  return folders.map((folder) => join(folder, 'pgbouncer')).find((path) => existsSync(path));
}

export interface Pgbouncer {
  readonly port: number;
  /** New transactions go to another server; its clients stay connected. */
  repoint(serverPort: number): void;
  stop(): Promise<void>;
}

/** `own`: the port of one that was stopped, to come back in its place. */
export async function startPgbouncer(serverPort: number, own?: number): Promise<Pgbouncer> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'svc-pgbouncer-')));
  const port = own ?? (await freePort());
  const file = join(folder, 'pgbouncer.ini');
  writeFileSync(join(folder, 'users.txt'), '"svc" ""\n');
  writeFileSync(file, settingsOf({ folder, port, serverPort }));
  const user = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
  if (user.uid !== undefined) chownSync(folder, NOBODY, NOBODY);
  const start = () => spawn(findProgram() ?? '', ['-q', file], { ...user, stdio: 'ignore' });
  let child = start();
  await isReady(port, () => {
    // A client that looks for it may have the port for a moment: then it ends, and is started again.
    if (child.exitCode !== null) child = start();
  });
  return {
    port,
    repoint: (other) => {
      writeFileSync(file, settingsOf({ folder, port, serverPort: other }));
      child.kill('SIGHUP');
    },
    stop: async () => {
      if (child.exitCode === null && child.signalCode === null) {
        const gone = once(child, 'exit');
        child.kill('SIGKILL');
        await gone;
      }
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

interface Place {
  readonly folder: string;
  readonly port: number;
  readonly serverPort: number;
}

/** One server connection for each database: whatever a session kept would be the next one's. */
function settingsOf({ folder, port, serverPort }: Place): string {
  return `[databases]
* = host=127.0.0.1 port=${serverPort}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = trust
auth_file = ${join(folder, 'users.txt')}
pool_mode = transaction
default_pool_size = 2
server_idle_timeout = 2
max_client_conn = 200
`;
}

async function isReady(port: number, onFailure: () => void): Promise<void> {
  const until = performance.now() + START_MS;
  for (;;) {
    const client = new Client({ connectionString: `postgres://svc@127.0.0.1:${port}/postgres` });
    try {
      // oxlint-disable-next-line no-await-in-loop -- Asked until it answers.
      await client.connect();
      return;
    } catch (error) {
      if (performance.now() > until) throw error;
      onFailure();
      // oxlint-disable-next-line no-await-in-loop
      await sleep(50);
    } finally {
      // oxlint-disable-next-line no-await-in-loop
      await client.end().catch(() => undefined);
    }
  }
}
