import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { isAbsolute } from 'node:path';
import { MASTER_KEY_BYTES } from '../../core/service/envelope.ts';
import type { Environment } from '../../core/settings/config-values.ts';
import type { MasterKeys } from '../../ports/master-keys.ts';
import { FileError } from '../files/file-error.ts';
import { isOwn, isPrivate } from '../files/private-folder.ts';

/**
 * Reads master keys from where the settings say: a private file, a variable of the environment, or a
 * program that prints one. A key is read once a process. No error says anything of its bytes.
 */

export interface MasterKeySource {
  readonly id: string;
  /** `file:/path`, `env:NAME`, or `command:program argument …`. */
  readonly from: string;
}

const { O_RDONLY, O_NOFOLLOW } = constants;
/** A key in base64 or hexadecimal, with a line end. */
const KEY_BYTES_MAX = 4096;
/** A password manager may ask a network; a person who waits for a start gives up later. */
const COMMAND_MS = 10_000;

export interface MasterKeysOptions {
  /** Read anew when a key is asked for that is not known yet: it may have been added meanwhile. */
  readonly sources: () => Promise<readonly MasterKeySource[]>;
  readonly environment: Environment;
}

export function createMasterKeys({ sources, environment }: MasterKeysOptions): MasterKeys {
  const known = new Map<string, Uint8Array>();
  return {
    find: async (id) => {
      const cached = known.get(id);
      if (cached !== undefined) return cached;
      const source = (await sources()).find((one) => one.id === id);
      if (source === undefined) return undefined;
      const key = keyIn(await textFrom(source, environment), id);
      known.set(id, key);
      return key;
    },
  };
}

async function textFrom({ id, from }: MasterKeySource, environment: Environment): Promise<string> {
  const [kind = ''] = from.split(':', 1);
  const rest = from.slice(kind.length + 1);
  if (kind === 'file') return readKeyFile(id, rest);
  if (kind === 'env') return environment[rest] ?? '';
  if (kind === 'command') return outputOf(id, rest);
  throw unreadable(id, 'its source is neither file:, env: nor command:');
}

/** The file must be private: anybody who reads it reads every secret. */
async function readKeyFile(id: string, path: string): Promise<string> {
  if (!isAbsolute(path)) throw unreadable(id, 'its path is not absolute');
  const handle = await open(path, O_RDONLY | (O_NOFOLLOW ?? 0)).catch((cause: unknown) => {
    throw unreadable(id, `${path} cannot be opened`, cause);
  });
  try {
    const stat = await handle.stat();
    const isSafe = stat.isFile() && isOwn(stat.uid) && isPrivate(stat.mode);
    if (!isSafe || stat.size > KEY_BYTES_MAX) {
      throw unreadable(id, `${path} is not a private file of yours (mode 0600)`);
    }
    return await handle.readFile('utf8');
  } finally {
    await handle.close();
  }
}

/** Without a shell: the words of the setting are the program and its arguments. */
function outputOf(id: string, command: string): Promise<string> {
  const [program = '', ...words] = command.split(' ').filter((word) => word !== '');
  const limits = { timeout: COMMAND_MS, maxBuffer: KEY_BYTES_MAX, windowsHide: true };
  return new Promise((resolve, reject) => {
    execFile(program, words, limits, (error, stdout) => {
      // The error of Node quotes the output of the program: it is not passed on.
      if (error === null) resolve(stdout);
      else reject(unreadable(id, 'its command failed or took too long'));
    });
  });
}

function keyIn(text: string, id: string): Uint8Array {
  const trimmed = text.trim();
  const encoding = /^[0-9a-f]{64}$/i.test(trimmed) ? 'hex' : 'base64url';
  const key = Buffer.from(trimmed.replaceAll('+', '-').replaceAll('/', '_'), encoding);
  if (key.length === MASTER_KEY_BYTES) return key;
  throw unreadable(id, 'it is not 32 bytes in base64 or hexadecimal');
}

function unreadable(id: string, why: string, cause?: unknown): FileError {
  const hint = 'Put it back from where you keep it; without it the secrets of the vault stay shut.';
  return new FileError(`The master key ${id} cannot be read: ${why}.`, hint, { cause });
}
