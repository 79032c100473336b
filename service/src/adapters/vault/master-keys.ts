import { MASTER_KEY_BYTES } from '../../core/envelope.ts';
import type { Environment } from '../../../../src/core/settings/config-values.ts';
import type { MasterKeys } from '../../ports/master-keys.ts';
import { readSecret, type SecretSource, unreadable } from './secret-source.ts';

/**
 * Reads master keys from where the settings say: a private file, a variable of the environment, or a
 * program that prints one. A key is read once a process. No error says anything of its bytes.
 */

export interface MasterKeySource {
  readonly id: string;
  /** `file:/path`, `env:NAME`, or `command:program argument …`. */
  readonly from: string;
}

export interface MasterKeysOptions {
  /** Read again when an unknown key is asked for: it may have been added meanwhile. */
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
