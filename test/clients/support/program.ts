import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

/** Runs a program without a terminal, its whole output kept. */
export interface Program {
  readonly child: ChildProcess;
  readonly ended: Promise<ProgramEnd>;
}

export interface ProgramEnd {
  /** null when a signal ended it. */
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface ProgramStart {
  readonly file: string;
  readonly args: readonly string[];
  readonly folder: string;
  /** The whole environment: nothing of the tests' own leaks in. */
  readonly env: Readonly<Record<string, string>>;
}

// A client that hangs is killed, so that its test fails with what it printed.
const PROGRAM_MS = 180_000;

export function runProgram({ file, args, folder, env }: ProgramStart): Program {
  const child = spawn(file, [...args], {
    cwd: folder,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: PROGRAM_MS,
    killSignal: 'SIGKILL',
  });
  return { child, ended: readToEnd(child) };
}

async function readToEnd(child: ChildProcess): Promise<ProgramEnd> {
  const texts = { stdout: '', stderr: '' };
  child.stdout?.setEncoding('utf8').on('data', (text: string) => (texts.stdout += text));
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (texts.stderr += text));
  const [status, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
  return { status, signal, ...texts };
}
