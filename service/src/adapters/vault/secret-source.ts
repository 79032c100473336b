import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { isAbsolute } from 'node:path';
import type { Environment } from '../../../../src/core/settings/config-values.ts';
import { FileError } from '../../../../src/adapters/files/file-error.ts';
import { isOwn, isPrivate } from '../../../../src/adapters/files/private-folder.ts';

/**
 * Reads a secret from where the settings say: a private file, a variable of the environment, or a
 * program that prints it. No error says anything of its bytes.
 */

export interface SecretSource {
  /** `file:/path`, `env:NAME`, or `command:program argument …`. */
  readonly from: string;
  /** For errors: "The master key mk_…" */
  readonly name: string;
  readonly hint: string;
}

const { O_RDONLY, O_NOFOLLOW } = constants;
/** A key or an address, with a line end. */
const BYTES_MAX = 4096;
/** A password manager may ask a network; a person who waits for a start gives up later. */
const COMMAND_MS = 10_000;

export async function readSecret(source: SecretSource, environment: Environment): Promise<string> {
  const { from } = source;
  const [kind = ''] = from.split(':', 1);
  const rest = from.slice(kind.length + 1);
  if (kind === 'file') return readSecretFile(source, rest);
  if (kind === 'env') return environment[rest] ?? '';
  if (kind === 'command') return outputOf(source, rest);
  throw unreadable(source, 'its source does not begin with file:, env: or command:');
}

export function unreadable(
  { name, hint }: Pick<SecretSource, 'name' | 'hint'>,
  why: string,
  cause?: unknown,
): FileError {
  return new FileError(`${name} cannot be read: ${why}.`, hint, { cause });
}

/** The file must be private: anybody who reads it reads the secret. */
async function readSecretFile(source: SecretSource, path: string): Promise<string> {
  if (!isAbsolute(path)) throw unreadable(source, 'its path is not absolute');
  const handle = await open(path, O_RDONLY | (O_NOFOLLOW ?? 0)).catch((cause: unknown) => {
    throw unreadable(source, `${path} cannot be opened`, cause);
  });
  try {
    const stat = await handle.stat();
    const isSafe = stat.isFile() && isOwn(stat.uid) && isPrivate(stat.mode);
    if (!isSafe || stat.size > BYTES_MAX) {
      throw unreadable(source, `${path} is not a private file that you own (mode 0600)`);
    }
    return await handle.readFile('utf8');
  } finally {
    await handle.close();
  }
}

/** Without a shell: the words of the setting are the program and its arguments. */
function outputOf(source: SecretSource, command: string): Promise<string> {
  const [program = '', ...words] = command.split(' ').filter((word) => word !== '');
  const limits = { timeout: COMMAND_MS, maxBuffer: BYTES_MAX, windowsHide: true };
  return new Promise((resolve, reject) => {
    execFile(program, words, limits, (error, stdout) => {
      // The error of Node quotes the output of the program: it is not passed on.
      if (error === null) resolve(stdout);
      else reject(unreadable(source, 'its command failed or took too long'));
    });
  });
}
