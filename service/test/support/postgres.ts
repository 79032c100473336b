import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  chownSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  statfsSync,
} from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Client } from 'pg';
import { freePort } from '../../../test/support/free-port.ts';

/**
 * A real PostgreSQL for the tests of one file, in a folder of its own. It refuses to run as root, and
 * then runs as another user. Nothing of it is synced: these tests kill no machine.
 */

const run = promisify(execFile);
/** Debian keeps each version's programs in a folder of their own. */
const DEBIAN = '/usr/lib/postgresql';
const NOBODY = 65_534;
const START_MS = 60_000;
/** Sixty databases of 10 MB each. */
const ROOM_BYTES = 2 * 1024 ** 3;

export interface PostgresServer {
  readonly port: number;
  /** Of its files. */
  readonly folder: string;
  readonly pid: number;
  /** The address of a new and empty database. */
  newDatabase(template?: string): Promise<string>;
  run(database: string, sql: string): Promise<void>;
  /** The first column of the first row, as text. */
  ask(database: string, sql: string): Promise<string>;
  /** Kills all of it at once and starts it again, on the same port and data. */
  crash(): Promise<void>;
  /** Kills all of it at once. */
  kill(): Promise<void>;
  /** Sends a signal to the server and to all that it has started. */
  signal(signal: NodeJS.Signals): void;
  stop(): Promise<void>;
}

/** Why the tests of this file cannot run here. In CI, where it can be installed, that is a failure. */
export function missingPostgres(): string | undefined {
  if (findPrograms() !== undefined) return undefined;
  const reason = 'no PostgreSQL 15 or newer: apt-get install postgresql';
  if (process.env['CI'] === 'true') throw new Error(`There is ${reason}`);
  process.stderr.write(`SKIPPED ALOUD: ${reason}\n`);
  return reason;
}

/** The folder of `initdb` and `postgres`. */
function findPrograms(): string | undefined {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).toSorted().toReversed() : [];
  const folders = [
    ...versions.map((version) => join(DEBIAN, version, 'bin')),
    ...(process.env['PATH'] ?? '').split(delimiter),
  ];
  return folders.find((folder) =>
    ['initdb', 'postgres'].every((name) => existsSync(join(folder, name))),
  );
}

export interface StartOptions {
  readonly settings?: readonly string[];
  /** A copy of this server, which follows it. */
  readonly follows?: PostgresServer;
  /** Where its files are, instead of a folder of its own. */
  readonly within?: string;
  /** The folder of `initdb` and `postgres`, instead of the newest of this machine. */
  readonly programs?: string;
}

export async function startPostgres({
  settings = [],
  follows,
  within = roomyFolder(),
  programs = findPrograms() ?? '',
}: StartOptions = {}): Promise<PostgresServer> {
  const user = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
  const folder = realpathSync(mkdtempSync(join(within, 'svc-postgres-')));
  if (user.uid !== undefined) chownSync(folder, NOBODY, NOBODY);
  const data = join(folder, 'data');
  const environment = { PATH: process.env['PATH'] ?? '', LC_ALL: 'C.UTF-8', HOME: folder };
  const options = { ...user, cwd: folder, env: environment };
  if (follows === undefined) {
    // The system identifier is copied too: two servers of one run have the same one.
    await run('cp', ['-a', await newFiles(programs), data], options);
  } else {
    const from = ['-h', '127.0.0.1', '-p', String(follows.port), '-U', 'svc'];
    const words = ['-D', data, ...from, '-R', '-X', 'stream', '-c', 'fast', '--no-sync'];
    await run(join(programs, 'pg_basebackup'), words, options);
  }
  const port = await freePort();
  const start = async (): Promise<ChildProcess> => {
    const words = argumentsOf({ data, folder, port, settings });
    const child = spawn(join(programs, 'postgres'), words, { ...options, stdio: 'ignore' });
    await isReady(child, port);
    return child;
  };
  let server = await start();
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (server.exitCode !== null || server.signalCode !== null) return;
    const gone = once(server, 'exit');
    if (signal === 'SIGKILL') signalAll(server, signal);
    else server.kill(signal);
    await gone;
  };
  return {
    port,
    folder,
    get pid() {
      return server.pid ?? 0;
    },
    crash: async () => {
      await end('SIGKILL');
      // Processes of the old one may hold its shared memory for a moment: a new one then ends at once.
      const again = () => sleep(500).then(start);
      server = await start().catch(again).catch(again).catch(again);
    },
    kill: () => end('SIGKILL'),
    signal: (signal) => signalAll(server, signal),
    run: async (database, sql) => void (await ask({ port, database }, sql)),
    ask: (database, sql) => ask({ port, database }, sql),
    newDatabase: async (template) => {
      const name = `t_${randomBytes(6).toString('hex')}`;
      const like = template === undefined ? '' : ` TEMPLATE ${template}`;
      await ask({ port, database: 'postgres' }, `CREATE DATABASE ${name}${like}`);
      return urlOf(port, name);
    },
    stop: async () => {
      // At once: what is in it is not wanted.
      signalAll(server, 'SIGCONT');
      await end('SIGQUIT');
      await rm(folder, { recursive: true, force: true });
    },
  };
}

const made = new Map<string, Promise<string>>();

/** Returns the files of a new server, made once for a run of tests: initdb takes two seconds of a processor. */
function newFiles(programs: string): Promise<string> {
  const known = made.get(programs) ?? makeFiles(programs);
  made.set(programs, known);
  return known;
}

/** The parent is the process of the run, whose end removes all folders with this name: test/support/build-once.ts. */
async function makeFiles(programs: string): Promise<string> {
  const name = join(realpathSync(roomyFolder()), `svc-postgres-new-${process.ppid}-`);
  const shared = name + programs.replaceAll('/', '-');
  if (existsSync(shared)) return join(shared, 'data');
  const user = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
  const folder = mkdtempSync(name);
  if (user.uid !== undefined) chownSync(folder, NOBODY, NOBODY);
  const words = ['-U', 'svc', '--auth=trust', '--encoding=UTF8', '--no-sync'];
  const env = { PATH: process.env['PATH'] ?? '', LC_ALL: 'C.UTF-8', HOME: folder };
  const options = { ...user, cwd: folder, env };
  await run(join(programs, 'initdb'), ['-D', join(folder, 'data'), ...words], options);
  try {
    renameSync(folder, shared);
    return join(shared, 'data');
  } catch {
    // Another process of the run was faster.
    return join(folder, 'data');
  }
}

/** Each process of a server is the leader of a group of its own, so a group does not reach them. */
function signalAll({ pid = 0 }: ChildProcess, signal: NodeJS.Signals): void {
  const list = `/proc/${pid}/task/${pid}/children`;
  const children = existsSync(list) ? readFileSync(list, 'utf8').trim().split(' ') : [];
  for (const one of [String(pid), ...children].map(Number).filter((id) => id > 0)) {
    try {
      process.kill(one, signal);
    } catch {
      // It has ended.
    }
  }
}

/** A database is 1,200 files: in memory they are made and removed in no time. */
function roomyFolder(): string {
  const memory = '/dev/shm';
  if (!existsSync(memory)) return tmpdir();
  const { bavail, bsize } = statfsSync(memory);
  return bavail * bsize > ROOM_BYTES ? memory : tmpdir();
}

interface Start {
  readonly data: string;
  readonly folder: string;
  readonly port: number;
  readonly settings: readonly string[];
}

function argumentsOf({ data, folder, port, settings }: Start): string[] {
  const all = [
    'listen_addresses=127.0.0.1',
    `port=${port}`,
    `unix_socket_directories=${folder}`,
    'fsync=off',
    'full_page_writes=off',
    'synchronous_commit=off',
    'max_connections=300',
    'shared_buffers=64MB',
    'autovacuum=off',
    ...settings,
  ];
  return ['-D', data, ...all.flatMap((setting) => ['-c', setting])];
}

async function isReady(server: ChildProcess, port: number): Promise<void> {
  const until = performance.now() + START_MS;
  for (;;) {
    try {
      // oxlint-disable-next-line no-await-in-loop -- Asked until it answers.
      await ask({ port, database: 'postgres' }, 'SELECT 1');
      return;
    } catch (error) {
      if (performance.now() > until || server.exitCode !== null) throw error;
      // oxlint-disable-next-line no-await-in-loop
      await sleep(50);
    }
  }
}

async function ask(
  { port, database }: { readonly port: number; readonly database: string },
  sql: string,
): Promise<string> {
  const client = new Client({ connectionString: urlOf(port, database) });
  try {
    await client.connect();
    const { rows } = await client.query<unknown[]>({ text: sql, rowMode: 'array' });
    return String(rows[0]?.[0]);
  } finally {
    await client.end().catch(() => undefined);
  }
}

export function urlOf(port: number, database: string): string {
  return `postgres://svc@127.0.0.1:${port}/${database}`;
}
