import { MASTER_KEY_BYTES } from '../../core/envelope.ts';
import { shortText } from '../../core/ids.ts';
import type { Environment } from '../../../../src/core/settings/config-values.ts';
import type { MasterKeys } from '../../ports/vault-store.ts';
import { execFile } from 'node:child_process';

import { open } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import { FileError } from '../../../../src/adapters/files/file-error.ts';
import {
  isOwn,
  isPrivate,
  ensurePrivateFolder,
  READ_FLAGS,
} from '../../../../src/adapters/files/private-folder.ts';
import { randomBytes } from 'node:crypto';
import { parseServiceSettings } from '../../core/settings.ts';
import { configFolder } from '../../../../src/adapters/files/own-folders.ts';
import { parseJson } from '../../../../src/core/bytes/json-fields.ts';
import { readPrivate, SETTINGS_FILE, writePrivate } from '../service-store/service-files.ts';

/**
 * Reads master keys from the sources in the settings: a private file, an environment variable, or a program that prints
 * one. A key that was read is cached until the process ends. No error contains any byte of a key.
 */

interface MasterKeySource {
  readonly id: string;
  /** `file:/path`, `env:NAME`, or `command:program argument …`. */
  readonly from: string;
}

interface MasterKeysOptions {
  /** Returns the sources. Called for each key that is not cached, because the settings may have a new one. */
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
      const key = keyIn(await readSecret(secretOf(source), environment), source);
      known.set(id, key);
      return key;
    },
  };
}

function keyIn(text: string, source: MasterKeySource): Uint8Array {
  const trimmed = text.trim();
  const encoding = /^[0-9a-f]{64}$/i.test(trimmed) ? 'hex' : 'base64url';
  const key = Buffer.from(trimmed.replaceAll('+', '-').replaceAll('/', '_'), encoding);
  if (key.length === MASTER_KEY_BYTES) return key;
  throw unreadable(secretOf(source), 'it is not 32 bytes in base64 or hexadecimal');
}

function secretOf({ id, from }: MasterKeySource): SecretSource {
  const hint = 'Restore your copy of it. Without it nobody can decrypt the secrets of the vault.';
  return { from, name: `The master key ${id}`, hint };
}

interface SecretSource {
  /** `file:/path`, `env:NAME`, or `command:program argument …`. */
  readonly from: string;
  /** The secret's name in errors: "The master key mk_…". */
  readonly name: string;
  /** What the operator can do if the secret cannot be read. */
  readonly hint: string;
}

/** Bound on the bytes of a secret, which is a key or an address. */
const BYTES_MAX = 4096;
/** Deadline of a command that prints a secret: a password manager may use the network. */
const COMMAND_MS = 10_000;

/** Reads a secret from its source. Throws FileError, which contains none of its bytes. */
export async function readSecret(source: SecretSource, environment: Environment): Promise<string> {
  const { from } = source;
  const [kind = ''] = from.split(':', 1);
  const rest = from.slice(kind.length + 1);
  if (kind === 'file') return readSecretFile(source, rest);
  if (kind === 'env') return environment[rest] ?? '';
  if (kind === 'command') return outputOf(source, rest);
  throw unreadable(source, 'its source does not begin with file:, env: or command:');
}

function unreadable(
  { name, hint }: Pick<SecretSource, 'name' | 'hint'>,
  why: string,
  cause?: unknown,
): FileError {
  return new FileError(`${name} cannot be read: ${why}.`, hint, { cause });
}

/** Reads a file, which must be private, because every reader of it gets the secret. */
async function readSecretFile(source: SecretSource, path: string): Promise<string> {
  if (!isAbsolute(path)) throw unreadable(source, 'its path is not absolute');
  const handle = await open(path, READ_FLAGS).catch((cause: unknown) => {
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

/** Runs a command without a shell: the setting's words are the program and its arguments. */
function outputOf(source: SecretSource, command: string): Promise<string> {
  const [program = '', ...words] = command.split(' ').filter((word) => word !== '');
  const limits = { timeout: COMMAND_MS, maxBuffer: BYTES_MAX, windowsHide: true };
  return new Promise((resolve, reject) => {
    execFile(program, words, limits, (error, stdout) => {
      // Node's error quotes the program's output, so it is not passed on.
      if (error === null) resolve(stdout);
      else reject(unreadable(source, 'its command failed or took too long'));
    });
  });
}

/** Returns the master keys whose sources are in the service's settings. */
export function serviceMasterKeys(folder: string, environment: Environment): MasterKeys {
  const sources = async (): Promise<readonly MasterKeySource[]> => {
    const text = (await readPrivate(folder, SETTINGS_FILE)) ?? '{}';
    return parseServiceSettings(parseJson(text)).settings?.vault?.keys ?? [];
  };
  return createMasterKeys({ sources, environment });
}

/** Makes an id: `mk_` and 8 random characters. */
export function newMasterKeyId(): string {
  return `mk_${shortText(randomBytes(8))}`;
}

/** Writes a new key to a private file outside the service's folder, so that a copy of the folder lacks the key. */
export async function makeMasterKeyFile(id: string, environment: Environment): Promise<string> {
  const folder = configFolder(environment);
  await ensurePrivateFolder(folder);
  const name = `service-${id}.key`;
  await writePrivate(folder, name, `${randomBytes(MASTER_KEY_BYTES).toString('base64url')}\n`);
  return `file:${join(folder, name)}`;
}
