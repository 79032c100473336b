import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdirSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { loadDriver } from '../../../src/adapters/store/driver.ts';
import { openEmbeddedStore } from '../../../src/adapters/store/embedded-store.ts';
import { DIALECTS } from '../../../src/core/dialects/apis.ts';
import { BIN } from '../cli.ts';
import { LOCAL_TOKEN, validConfig } from '../config.ts';
import { homeWith } from '../home.ts';
import { FACTS } from '../records.ts';
import { startRecordingProvider } from '../story.ts';
import type { FuzzedPlace, FuzzedProxy } from './place.ts';

/** Two processes of the built program with one home, its store, and a plain provider. */
export async function openLocalPlace(): Promise<FuzzedPlace> {
  const provider = await startRecordingProvider();
  const first = new RunningProxy(provider.url);
  const proxies = [first, new RunningProxy(provider.url, first)] as const;
  const { folder } = first;
  const disk = new SmallDisk(folder);
  const store = openEmbeddedStore({ folder, report: () => undefined });
  return {
    provider,
    givesUpMs: Infinity,
    proxies,
    memory: store.memory,
    lock: () => first.lock(),
    unlock: () => first.unlock(),
    fill: () => disk.fill(),
    free: () => disk.free(),
    setClock: (ms) => first.setClock(ms),
    import: (space) => first.import(space),
    askProvider: (path, body, headers) => post(provider.url + path, body, headers),
    close: async () => {
      for (const proxy of proxies) await proxy.close();
      await store.close();
      disk.remove();
    },
  };
}

const DISK_MB = 64;

/** A small disk at a folder. It needs root and Linux; elsewhere it is never full. */
class SmallDisk {
  readonly #folder: string;
  readonly #filler: string;
  readonly #isMounted: boolean;

  constructor(folder: string) {
    this.#folder = folder;
    this.#filler = join(folder, 'filler');
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const options = `size=${DISK_MB}m,mode=700`;
    this.#isMounted = canRun('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', folder]);
    if (!this.#isMounted)
      process.stdout.write('SKIPPED: no disk can be mounted, so none is full\n');
  }

  fill(): void {
    if (!this.#isMounted) return;
    const file = openSync(this.#filler, 'a');
    try {
      for (;;) writeSync(file, ZEROS);
    } catch {
      // The disk is full.
    } finally {
      closeSync(file);
    }
  }

  free(): void {
    rmSync(this.#filler, { force: true });
  }

  remove(): void {
    if (this.#isMounted) canRun('umount', ['--lazy', this.#folder]);
  }
}

const ZEROS = Buffer.alloc(64 * 1024);

function canRun(program: string, args: readonly string[]): boolean {
  return spawnSync(program, args, { stdio: 'ignore' }).status === 0;
}

/** Posts a request, and reads the whole answer, or the answer until these words. */
export async function post(
  url: string,
  body: Buffer,
  headers: Readonly<Record<string, string>>,
  until?: string,
): Promise<Response> {
  const signal = AbortSignal.timeout(60_000);
  const answer = await fetch(url, { method: 'POST', headers, body, signal });
  let read = '';
  for await (const chunk of answer.body ?? []) {
    if (until === undefined) continue;
    read += Buffer.from(chunk).toString();
    // Leaving the loop cancels the request.
    if (read.includes(until)) break;
  }
  return answer;
}

const MOVED_CLOCK = new URL('../moved-clock.mjs', import.meta.url);

/** The built program as a process of its own, which can be killed, and what else happens to its store. */
export class RunningProxy implements FuzzedProxy {
  readonly home: string;
  readonly folder: string;
  /** What the newest process reported to the person. */
  stderr = '';
  #child: ChildProcess | undefined;
  #url = '';
  #release: (() => void) | undefined;
  #import: ChildProcess | undefined;
  #imports = 0;

  /** `beside`: another process with the same home. */
  constructor(providerUrl: string, beside?: RunningProxy) {
    if (beside !== undefined) {
      this.home = beside.home;
      this.folder = beside.folder;
      return;
    }
    this.home = homeWith({
      ...validConfig(),
      // A busy machine is late: only what waits for another process may come to this deadline.
      proxy: { port: 0, inputBudget: 1_500, recalledTokensMax: 8_192, recallMs: 10_000 },
      upstreams: DIALECTS.map((apiStyle) => ({
        name: apiStyle,
        apiStyle,
        baseUrl: providerUrl,
        providerKey: 'test-key',
        auth: 'bearer',
        allowPrivate: true,
      })),
    });
    this.folder = join(this.home, 'data');
    this.setClock(0);
  }

  /** Rejects when the process was killed meanwhile. */
  async start(): Promise<void> {
    const child = this.#spawn(['start', '--port', '0', '--json'], 'pipe');
    this.#child = child;
    this.stderr = '';
    child.stderr?.on('data', (chunk: Buffer) => (this.stderr += chunk.toString()));
    let line = '';
    for await (const chunk of child.stdout ?? []) {
      line += String(chunk);
      if (line.includes('\n')) break;
    }
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The form of --json.
    this.#url = (JSON.parse(line) as { url: string }).url;
  }

  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, 'exit');
    child.kill(signal);
    await gone;
  }

  async close(): Promise<void> {
    this.unlock();
    this.#import?.kill('SIGKILL');
    await this.stop('SIGKILL');
  }

  /** Rejects when the proxy was killed meanwhile. */
  async send(
    path: string,
    body: Buffer,
    headers: Readonly<Record<string, string>>,
    until?: string,
  ): Promise<Response> {
    const all = {
      'content-type': 'application/json',
      authorization: `Bearer ${LOCAL_TOKEN}`,
      ...headers,
    };
    return post(`${this.#url}${path}`, body, all, until);
  }

  /** Another process writes, until it is released. */
  async lock(): Promise<void> {
    if (this.#release !== undefined) return;
    const connection = loadDriver().open(join(this.folder, 'memory.db'));
    connection.exec('PRAGMA busy_timeout = 5000');
    connection.exec('BEGIN IMMEDIATE');
    this.#release = () => {
      connection.exec('ROLLBACK');
      connection.close();
    };
  }

  /** Sets the clock of all processes with this home. */
  setClock(ms: number): void {
    writeFileSync(this.#clock, String(ms));
  }

  unlock(): void {
    this.#release?.();
    this.#release = undefined;
  }

  /** At most one at a time. */
  import(space: string): void {
    if (this.#import !== undefined && this.#import.exitCode === null) return;
    this.#imports += 1;
    const lines = Array.from({ length: 600 }, (_, at) =>
      JSON.stringify({ text: `${FACTS[at % FACTS.length]} Import ${this.#imports}.${at}`, space }),
    );
    mkdirSync(this.folder, { recursive: true, mode: 0o700 });
    const file = join(this.home, 'import.jsonl');
    writeFileSync(file, lines.join('\n'));
    this.#import = this.#spawn(['memory', 'import', file, '--json'], 'ignore');
  }

  get #clock(): string {
    return join(this.home, 'clock');
  }

  #spawn(words: readonly string[], output: 'pipe' | 'ignore'): ChildProcess {
    return spawn(process.execPath, [BIN, ...words], {
      env: {
        PATH: process.env['PATH'] ?? '',
        HOME: this.home,
        SVC_DATA_HOME: this.folder,
        NODE_OPTIONS: `--import=${MOVED_CLOCK.href}`,
        SVC_TEST_CLOCK: this.#clock,
      },
      stdio: ['ignore', output, output],
    });
  }
}
