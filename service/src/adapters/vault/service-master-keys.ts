import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { MASTER_KEY_BYTES } from '../../core/envelope.ts';
import { parseServiceSettings } from '../../core/settings.ts';
import type { Environment } from '../../../../src/core/settings/config-values.ts';
import { configFolder } from '../../../../src/adapters/files/config-folder.ts';
import { ensurePrivateFolder } from '../../../../src/adapters/files/private-folder.ts';
import { parseJson } from '../../../../src/core/bytes/json-fields.ts';
import { readPrivate, SETTINGS_FILE, writePrivate } from '../service-store/service-files.ts';
import { createMasterKeys, type MasterKeySource } from './master-keys.ts';
import type { MasterKeys } from '../../ports/master-keys.ts';

/** The master keys that the settings of a service name, and new ones beside svc's configuration. */

export function serviceMasterKeys(folder: string, environment: Environment): MasterKeys {
  const sources = async (): Promise<readonly MasterKeySource[]> => {
    const text = (await readPrivate(folder, SETTINGS_FILE)) ?? '{}';
    return parseServiceSettings(parseJson(text)).settings?.vault?.keys ?? [];
  };
  return createMasterKeys({ sources, environment });
}

/** `mk_` and 8 characters; no two keys of a service share one by chance. */
export function newMasterKeyId(): string {
  const alphabet = '0123456789abcdefghjkmnpqrstvwxyz';
  return `mk_${[...randomBytes(8)].map((byte) => alphabet[byte % 32]).join('')}`;
}

/** A fresh key in a private file outside of the service's folder: a backup of one lacks the other. */
export async function makeMasterKeyFile(id: string, environment: Environment): Promise<string> {
  const folder = configFolder(environment);
  await ensurePrivateFolder(folder);
  const name = `service-${id}.key`;
  await writePrivate(folder, name, `${randomBytes(MASTER_KEY_BYTES).toString('base64url')}\n`);
  return `file:${join(folder, name)}`;
}
