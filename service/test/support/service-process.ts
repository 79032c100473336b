import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { onTestFinished } from 'vitest';
import { runServiceHere, SERVICE_BIN, tempFolder } from '../../../test/support/cli.ts';

/** `svc-service` as processes of their own, as a person runs it. */

export interface ServiceProcess {
  readonly url: string;
  readonly port: number;
  readonly child: ChildProcess;
  /** What it printed so far. */
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** Resolves when it has ended. */
  readonly end: (signal: 'SIGTERM' | 'SIGKILL' | 'SIGINT') => Promise<number | null>;
}

/** A home with a service in it. */
export async function initService(home: string, ...flags: string[]): Promise<void> {
  const { code, stderr } = await runServiceHere(['init', '--port', '0', ...flags], { home });
  if (code !== 0) throw new Error(stderr);
}

/** The path of a new home with a service in it. */
export async function tempHomeWithService(...flags: string[]): Promise<string> {
  const home = tempFolder();
  await initService(home, ...flags);
  return home;
}

export async function makeServiceKey(home: string, ...flags: string[]): Promise<string> {
  const made = await runServiceHere(['keys', 'create', '--name', 'test', ...flags], { home });
  if (made.code !== 0) throw new Error(made.stderr);
  return made.stdout.trim();
}

export function runService(home: string, ...flags: string[]): Promise<ServiceProcess> {
  return runServiceWith(home, {}, ...flags);
}

export async function runServiceWith(
  home: string,
  environment: Readonly<Record<string, string>>,
  ...flags: string[]
): Promise<ServiceProcess> {
  const child = spawn(process.execPath, [SERVICE_BIN, 'start', '--json', ...flags], {
    cwd: home,
    env: { PATH: process.env['PATH'] ?? '', HOME: home, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [stdout, stderr] = ['', ''];
  const gone = once(child, 'close');
  const end = async (signal: NodeJS.Signals): Promise<number | null> => {
    child.kill(signal);
    await gone;
    return child.exitCode;
  };
  onTestFinished(async () => {
    await end('SIGKILL');
  });
  child.stderr.on('data', (bytes: Buffer) => {
    stderr += bytes.toString('utf8');
  });
  const address = await new Promise<{ url: string; port: number }>((resolve, reject) => {
    child.stdout.on('data', (bytes: Buffer) => {
      stdout += bytes.toString('utf8');
      const line = /^\{"url".*\}$/m.exec(stdout)?.[0];
      if (line !== undefined) resolve(JSON.parse(line) as { url: string; port: number });
    });
    child.once('close', () => reject(new Error(`It ended: ${stderr}`)));
  });
  return { ...address, child, stdout: () => stdout, stderr: () => stderr, end };
}
