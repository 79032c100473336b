import { spawn } from 'node:child_process';
import type { Environment } from '../../core/settings/config-values.ts';

/** Codex answers in 50 ms; a client that hangs there must not keep a person waiting. */
const VERSION_MS = 5_000;
const VERSION_CHARS_MAX = 200;

/** The output of `PROGRAM --version`; '' where it prints nothing in time. */
export async function versionOf(program: string, environment: Environment): Promise<string> {
  // npm installs clients as .cmd files on Windows, which only a shell starts there.
  const shell = process.platform === 'win32';
  const options = { env: { ...environment }, timeout: VERSION_MS, shell };
  const child = spawn(program, ['--version'], { ...options, stdio: ['ignore', 'pipe', 'ignore'] });
  let said = '';
  child.stdout.on('data', (chunk: Buffer) => {
    said = `${said}${chunk.toString('latin1')}`.slice(0, VERSION_CHARS_MAX);
  });
  return new Promise((resolve) => {
    child.on('error', () => resolve(''));
    child.on('close', () => resolve(said));
  });
}
