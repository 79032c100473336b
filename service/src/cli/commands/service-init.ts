import { resolve } from 'node:path';
import {
  prepareServiceFolder,
  readPrivate,
  SETTINGS_FILE,
} from '../../adapters/service-store/service-files.ts';
import { loadTls } from '../../adapters/network/tls-files.ts';
import {
  NO_PUBLIC_URL,
  parseServiceSettings,
  PUBLIC_URL_FIX,
  publicUrlOf,
  SERVICE_DEFAULTS,
} from '../../core/settings.ts';
import { CliError } from '../../../../src/cli/cli-error.ts';
import { openStoreOfService, serviceVaultFiles } from '../compose-service-store.ts';
import type { CommandContext } from '../../../../src/cli/context.ts';
import { withConsole } from './console-access.ts';
import { textOf } from './console-fields.ts';
import { folderOf, type FolderOption, storeError } from './service-context.ts';
import { type RawServiceFlags, serviceFlags, withMigrations } from './service-flags.ts';

/** `svc-service init`: folder, settings, pepper and database; nothing listens yet. */

export interface ServiceInitOptions extends FolderOption, RawServiceFlags {
  readonly json?: boolean;
}

export async function initService(
  options: ServiceInitOptions,
  context: CommandContext,
): Promise<void> {
  const { terminal } = context;
  const folder = folderOf(options, context);
  const file = `${folder}/${SETTINGS_FILE}`;
  if ((await readPrivate(folder, SETTINGS_FILE)) !== undefined) {
    const hint = `Start it: svc-service start. Its settings: ${file}`;
    throw new CliError(`There is a service in ${folder} already.`, hint);
  }
  const given = serviceFlags(absolute(options));
  const { settings: parsed, problems } = parseServiceSettings({ ...SERVICE_DEFAULTS, ...given });
  if (parsed === undefined) {
    const hint = 'Plain HTTP is only for loopback: see svc-service init --help';
    throw new CliError([`These settings do not fit together: ${problems.join('; ')}.`], hint, 2);
  }
  const settings = withMigrations(parsed, options);
  if (settings.tls !== undefined) await loadTls(settings.tls);
  await prepareServiceFolder(folder);
  const store = await openStoreOfService(
    { folder, environment: context.environment, settings },
    { creates: true },
  );
  try {
    await store.health();
  } catch (error) {
    throw storeError(error);
  } finally {
    await store.close();
  }
  const id = serviceVaultFiles.newMasterKeyId();
  const from = await serviceVaultFiles.makeMasterKeyFile(id, context.environment);
  const whole = { ...settings, vault: { keys: [{ id, from }] } };
  await serviceVaultFiles.writeSettings(folder, whole);
  const operatorToken = await withConsole({ folder }, context, async (console) => {
    await console.call({ method: 'POST', path: 'vault/keys', body: { key_id: id } });
    await console.call({ method: 'POST', path: 'signing/rotate', body: {} });
    const body = { name: 'operator', role: 'operator' };
    return textOf((await console.call({ method: 'POST', path: 'admins', body }))['token']);
  });
  if (options.json === true) terminal.json({ folder, settings: whole, operatorToken });
  else terminal.out(operatorToken);
  terminal.note(
    'The line above is the operator token, which manages the service over HTTP. svc shows it only once.',
  );
  terminal.note(`The master key of the vault is in ${from}. Keep a copy elsewhere.`);
  if (publicUrlOf(whole) === undefined) terminal.note(`${NO_PUBLIC_URL} ${PUBLIC_URL_FIX}`);
  terminal.note(
    `The service is in ${folder}. Next: svc-service keys create --name NAME, then svc-service start`,
  );
}

/** The service may be started from another folder. */
function absolute(flags: ServiceInitOptions): ServiceInitOptions {
  const { tlsCert, tlsKey } = flags;
  return {
    ...flags,
    ...(tlsCert === undefined ? {} : { tlsCert: resolve(tlsCert) }),
    ...(tlsKey === undefined ? {} : { tlsKey: resolve(tlsKey) }),
  };
}
