import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { onTestFinished } from 'vitest';
import { BIN } from './cli.ts';

/** `svc start` or `svc-service start` as a process of its own, ready to take requests. */
export interface ServerProcess {
  readonly child: ChildProcess;
  readonly url: string;
  /** What it said to the person so far. */
  stderr(): string;
  /** Resolves when it is gone. */
  kill(signal: NodeJS.Signals): Promise<void>;
}

const START_MS = 30_000;

export function startProxyProcess(
  home: string,
  env: Readonly<Record<string, string>> = {},
): Promise<ServerProcess> {
  return startServerProcess(['start', '--port', '0', '--json'], { HOME: home, ...env });
}

export async function startServerProcess(
  words: readonly string[],
  env: Readonly<Record<string, string>>,
  program = BIN,
): Promise<ServerProcess> {
  const child = spawn(process.execPath, [program, ...words], {
    env: { PATH: process.env['PATH'] ?? '', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let stderr = '';
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const gone = once(child, 'close');
  const line = await firstLine(child, () => stderr);
  const { url } = JSON.parse(line) as { url: string };
  return {
    child,
    url,
    stderr: () => stderr,
    kill: async (signal) => {
      child.kill(signal);
      await gone;
    },
  };
}

function firstLine({ stdout }: ChildProcess, stderr: () => string): Promise<string> {
  return new Promise((resolve, reject) => {
    const fail = (): void => reject(new Error(`svc did not start: ${stderr()}`));
    const timer = setTimeout(fail, START_MS);
    let text = '';
    stdout?.on('data', (chunk: Buffer) => {
      text += chunk.toString();
      if (!text.includes('\n')) return;
      clearTimeout(timer);
      resolve(text);
    });
    stdout?.on('end', fail);
  });
}
