import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, fstatSync, ftruncateSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { makePrivateFolder, openPrivateFile } from '../files/private-files.ts';

/**
 * Starts svc itself as a process of its own, which outlives the terminal and the command that
 * started it. Its terminal output goes to a log in the data folder.
 */
export interface Background {
  readonly pid: number;
  /** False once the process has ended. */
  isRunning(): boolean;
  /** Its output since it was started. */
  said(): string;
  /** Detaches it: this process may end before it does. */
  release(): void;
}

export interface BackgroundStart {
  /** The script and its arguments. */
  readonly command: readonly string[];
  readonly dataFolder: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** Tells the process that svc may stop it and start a new one instead. */
export const DETACHED = 'SVC_DETACHED';

/** Only problems are logged: this holds thousands of them. The next start begins a new log. */
const LOG_BYTES_MAX = 1024 * 1024;

/** Throws FileError when there can be no log. */
export function startBackground({ command, dataFolder, environment }: BackgroundStart): Background {
  makePrivateFolder(dataFolder);
  const path = logFile(dataFolder);
  const log = openPrivateFile(path);
  try {
    if (fstatSync(log).size > LOG_BYTES_MAX) ftruncateSync(log, 0);
    const from = fstatSync(log).size;
    const child = spawn(process.execPath, [...command], {
      // Not the folder of the caller: it would be kept busy, and a project must not steer svc (T5).
      cwd: dataFolder,
      env: { ...environment, [DETACHED]: '1' },
      stdio: ['ignore', log, log],
      detached: true,
      windowsHide: true,
    });
    return backgroundOf(child, () => readFileSync(path).subarray(from).toString('utf8'));
  } finally {
    closeSync(log);
  }
}

export function logFile(dataFolder: string): string {
  return join(dataFolder, 'proxy.log');
}

function backgroundOf(child: ChildProcess, said: () => string): Background {
  let hasFailed = false;
  child.on('error', () => {
    hasFailed = true;
  });
  return {
    pid: child.pid ?? 0,
    isRunning: () => !hasFailed && child.exitCode === null && child.signalCode === null,
    said,
    release: () => child.unref(),
  };
}
