import { spawn } from 'node:child_process';
import { mkdtempSync, realpathSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import type { CommandContext } from '../../src/cli/context.ts';
import { screen } from './screen.ts';

/** Runs the built program as a user would: a process of its own, a fresh home, a bare environment. */

export const BIN = join(import.meta.dirname, '..', '..', 'bin', 'svc.js');
export const SERVICE_BIN = join(import.meta.dirname, '../../service/bin/svc-service.js');

export interface CliResult {
  readonly stdout: string;
  readonly stderr: string;
  /** null when a signal ended it. */
  readonly code: number | null;
}

export interface CliOptions {
  readonly home: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
  readonly cwd?: string;
  /** Octal, as the shell has it. */
  readonly umask?: string;
  /** Runs as this user; only root can ask for it. */
  readonly uid?: number;
}

export function tempFolder(): string {
  return realpathSync(mkdtempSync(join(tmpdir(), 'svc-test-')));
}

export function runCli(args: readonly string[], options: CliOptions): Promise<CliResult> {
  return runProgram([process.execPath, BIN, ...args], options);
}

export function runServiceCli(args: readonly string[], options: CliOptions): Promise<CliResult> {
  return runProgram([process.execPath, SERVICE_BIN, ...args], options);
}

type HereOptions = Omit<CliOptions, 'uid'>;
let lastHere: Promise<unknown> = Promise.resolve();

/**
 * Runs a command from its source, in this process and one after the other: a start of Node costs more than most
 * commands. For what makes a stage, and for commands whose streams, signals and bundle are not the subject.
 */
export function runHere(args: readonly string[], options: HereOptions): Promise<CliResult> {
  return inTurn(options, async (context) => {
    // Loaded here: most files that start a program need nothing of its source.
    const { run } = await import('../../src/cli/main.ts');
    return run(args, context);
  });
}

export function runServiceHere(args: readonly string[], options: HereOptions): Promise<CliResult> {
  return inTurn(options, async (context) => {
    const { run } = await import('../../service/src/cli/main.ts');
    return run(args, context);
  });
}

/** Runs it when the commands before it have ended: the folder and the umask belong to the whole process. */
function inTurn(
  options: HereOptions,
  run: (context: CommandContext) => Promise<number>,
): Promise<CliResult> {
  const result = lastHere.then(() => asProgram(options, run));
  lastHere = result.catch(() => undefined);
  return result;
}

async function asProgram(
  { home, env = {}, input = '', cwd = home, umask = '022' }: HereOptions,
  run: (context: CommandContext) => Promise<number>,
): Promise<CliResult> {
  const data = env['XDG_DATA_HOME'] ?? join(home, '.local', 'share');
  const own = { PATH: process.env['PATH'] ?? '', HOME: home, SVC_DATA_HOME: join(data, 'svc') };
  const environment = { ...own, ...env };
  const { terminal, stdout, stderr } = screen(undefined, environment);
  const [script, folder] = [process.argv[1] ?? '', process.cwd()];
  process.argv[1] = BIN;
  process.chdir(cwd);
  const mask = process.umask(Number.parseInt(umask, 8));
  try {
    const stdin = Readable.from(input === '' ? [] : [Buffer.from(input)]);
    const code = await run({ environment, terminal, stdin });
    return { stdout: stdout(), stderr: stderr(), code };
  } finally {
    process.argv[1] = script;
    process.chdir(folder);
    process.umask(mask);
  }
}

/** Any program in the same bare environment. */
export function runProgram(argv: readonly string[], options: CliOptions): Promise<CliResult> {
  const { home, env = {}, input = '', cwd = home, umask = '022', uid } = options;
  return new Promise((resolve, reject) => {
    const child = spawn('sh', ['-c', `umask ${umask}; exec "$@"`, 'sh', ...argv], {
      cwd,
      env: { PATH: process.env['PATH'] ?? '', HOME: home, ...env },
      ...(uid === undefined ? {} : { uid, gid: uid }),
      // On a busy machine a command takes several seconds; a hanging one fails its test all the same.
      timeout: 50_000,
    });
    const stdout: Buffer[] = [];
    const stderr: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => stderr.push(chunk));
    child.on('error', reject);
    // A program that does not read its input closes the pipe.
    child.stdin.on('error', () => undefined);
    child.on('close', (code) => {
      resolve({
        stdout: Buffer.concat(stdout).toString('utf8'),
        stderr: Buffer.concat(stderr).toString('utf8'),
        code,
      });
    });
    child.stdin.end(input);
  });
}
