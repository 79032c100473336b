import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { DIALECTS } from '../../../src/core/dialects/apis.ts';
import { freePort } from '../../support/free-port.ts';
import { type Program, runProgram } from './program.ts';

/** The product as a user has it: `svc start` of the built files, in a home folder of its own. */
export interface RunningSvc {
  /** Run other commands as `node <program> …` with `env`. */
  readonly program: string;
  readonly url: string;
  readonly port: number;
  /** What clients present as their key. */
  readonly token: string;
  readonly dataFolder: string;
  readonly env: Readonly<Record<string, string>>;
  /** SIGTERM, and the end of the process. */
  stop(): Promise<void>;
  /** SIGKILL: nothing can be finished. */
  kill(): Promise<void>;
}

export interface SvcOptions {
  readonly upstreamUrl: string;
  /** Started again in the same home, it has the same port, token and data. */
  readonly home: string;
  /** Added to the `proxy` part of the config file when the home is new. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** The `memory` part of the config file when the home is new; the embedded store otherwise. */
  readonly memory?: Readonly<Record<string, unknown>>;
  /** Added to the environment of svc. */
  readonly env?: Readonly<Record<string, string>>;
}

interface ConfigFile {
  readonly proxy: { readonly port: number };
  readonly localToken: string;
}

export const PROVIDER_KEY = 'provider-key-of-the-tests';
const START_MS = 60_000;
/** SVC_TEST_PROGRAM names another one, say of an installed package. */
const SVC_PROGRAM =
  process.env['SVC_TEST_PROGRAM'] ?? join(import.meta.dirname, '..', '..', '..', 'bin', 'svc.js');

export async function startSvc(options: SvcOptions): Promise<RunningSvc> {
  const { upstreamUrl, home, settings, memory = { kind: 'embedded' } } = options;
  const configFolder = join(home, 'config');
  const dataFolder = join(home, 'data');
  const file = join(configFolder, 'config.json');
  if (!existsSync(file)) {
    mkdirSync(configFolder, { recursive: true, mode: 0o700 });
    // A machine that runs many tests at once may need longer than a person should wait.
    const patient = { port: await freePort(), recallMs: 10_000 };
    const config = newConfig(upstreamUrl, { ...patient, ...settings }, memory);
    writeFileSync(file, JSON.stringify(config, undefined, 2), { mode: 0o600 });
  }
  const { proxy, localToken } = JSON.parse(readFileSync(file, 'utf8')) as ConfigFile;
  const env = { ...svcEnvironment(home, { configFolder, dataFolder }), ...options.env };
  const program = runProgram({
    file: process.execPath,
    args: [SVC_PROGRAM, 'start'],
    folder: home,
    env,
  });
  const url = `http://127.0.0.1:${proxy.port}`;
  await untilAlive(url, program);
  const end = async (signal: NodeJS.Signals) => {
    program.child.kill(signal);
    await program.ended;
  };
  return {
    program: SVC_PROGRAM,
    url,
    port: proxy.port,
    token: localToken,
    dataFolder,
    env,
    stop: () => end('SIGTERM'),
    kill: () => end('SIGKILL'),
  };
}

function newConfig(upstreamUrl: string, proxy: object, memory: object): object {
  return {
    version: 1,
    proxy,
    memory,
    upstreams: DIALECTS.map((apiStyle) => ({
      name: apiStyle,
      apiStyle,
      baseUrl: upstreamUrl,
      providerKey: PROVIDER_KEY,
      auth: apiStyle === 'anthropic_messages' ? 'x-api-key' : 'bearer',
      allowPrivate: true,
    })),
    localToken: `svc_local_${randomBytes(32).toString('base64url')}`,
  };
}

function svcEnvironment(
  home: string,
  folders: { configFolder: string; dataFolder: string },
): Readonly<Record<string, string>> {
  return {
    PATH: process.env['PATH'] ?? '',
    HOME: home,
    SVC_CONFIG_HOME: folders.configFolder,
    SVC_DATA_HOME: folders.dataFolder,
    NO_COLOR: '1',
  };
}

async function untilAlive(url: string, program: Program): Promise<void> {
  const over = new AbortController();
  void program.ended.then(() => over.abort());
  const isOver = AbortSignal.any([over.signal, AbortSignal.timeout(START_MS)]);
  while (!isOver.aborted) {
    const isAlive = await fetch(`${url}/livez`, { signal: isOver }).then(
      ({ ok }) => ok,
      () => false,
    );
    if (isAlive) return;
    await sleep(20);
  }
  program.child.kill('SIGKILL');
  const { stderr } = await program.ended;
  throw new Error(`svc start did not come up:\n${stderr}`);
}
