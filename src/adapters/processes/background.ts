import { spawn } from 'node:child_process';
import { closeSync, existsSync, fstatSync, ftruncateSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { makePrivateFolder, openPrivateFile } from '../files/private-files.ts';

/**
 * Starts svc as a separate process that outlives the terminal and the command that started it. Its output goes to a
 * log in the data folder.
 */
export interface Background {
  readonly pid: number;
  isRunning(): boolean;
  /** Returns what the process has written to its log so far. */
  said(): string;
  /** Resolves when all input is written to the process, or when the process has ended. */
  readonly hasInput: Promise<void>;
  /** Lets this process end before the background process. */
  release(): void;
}

export interface BackgroundStart {
  /** The script and its arguments. */
  readonly command: readonly string[];
  readonly dataFolder: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The text for stdin; undefined: the process gets no input. */
  readonly input?: string;
}

/** The environment variable that marks a process which svc may stop and restart. */
export const DETACHED = 'SVC_DETACHED';

/** Bound on the log: thousands of messages about problems. A start empties a longer log. */
const LOG_BYTES_MAX = 1024 * 1024;

/** Starts the process. Throws FileError if its log cannot be opened. */
export function startBackground(start: BackgroundStart): Background {
  const { command, dataFolder, environment, input } = start;
  makePrivateFolder(dataFolder);
  const path = logFile(dataFolder);
  const log = openPrivateFile(path);
  try {
    if (fstatSync(log).size > LOG_BYTES_MAX) ftruncateSync(log, 0);
    const from = fstatSync(log).size;
    const child = spawn(process.execPath, [...command], {
      // Do not use the caller's folder, which is a project: the process would keep the folder in use, and files of the
      // project must not influence svc.
      cwd: dataFolder,
      env: { ...environment, [DETACHED]: '1' },
      stdio: [input === undefined ? 'ignore' : 'pipe', log, log],
      detached: true,
      windowsHide: true,
    });
    const hasInput = new Promise<void>((resolve) => {
      // The process may end before it has read all its input.
      child.stdin?.on('error', () => resolve()).end(input, resolve);
      if (child.stdin === null) resolve();
    });
    // `svc uninstall` may remove the log at the same time.
    const said = (): string =>
      existsSync(path) ? readFileSync(path).subarray(from).toString('utf8') : '';
    let hasFailed = false;
    child.on('error', () => {
      hasFailed = true;
    });
    return {
      pid: child.pid ?? 0,
      isRunning: () => !hasFailed && child.exitCode === null && child.signalCode === null,
      said,
      hasInput,
      release: () => child.unref(),
    };
  } finally {
    closeSync(log);
  }
}

export function logFile(dataFolder: string): string {
  return join(dataFolder, 'proxy.log');
}
