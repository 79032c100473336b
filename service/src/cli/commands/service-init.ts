import { resolve } from 'node:path';
import { CliError } from '../../../../src/cli/cli-error.ts';
import type { Call, CommandContext } from '../../../../src/cli/context.ts';
import { asText } from '../../../../src/core/bytes/json-fields.ts';
import { loadTls } from '../../adapters/network/tls-files.ts';
import {
  prepareServiceFolder,
  readPrivate,
  SETTINGS_FILE,
} from '../../adapters/service-store/service-files.ts';
import {
  isMasterKeySource,
  NO_PUBLIC_URL,
  parseServiceSettings,
  PUBLIC_URL_FIX,
  publicUrlOf,
  SERVICE_DEFAULTS,
  type ServiceSettings,
} from '../../core/settings.ts';
import { makeMasterKeyFile, newMasterKeyId } from '../../adapters/vault/master-keys.ts';
import { openStoreOfService, serviceSettings, writeSettings } from '../compose-store.ts';
import {
  type CommonOptions,
  type ConsoleOptions,
  folderOf,
  storeError,
  withConsole,
} from './service-context.ts';

/**
 * Runs `svc-service init` and `svc-service vault add`. `init` makes folder, settings, pepper, database, master key,
 * signing key and operator token. `vault add` makes another master key the active one.
 */

export async function initService({
  options,
  context,
}: Call<CommonOptions & RawServiceFlags>): Promise<void> {
  const { terminal } = context;
  const folder = folderOf(options, context);
  const file = `${folder}/${SETTINGS_FILE}`;
  if ((await readPrivate(folder, SETTINGS_FILE)) !== undefined) {
    const hint = `Start it: svc-service start. Its settings: ${file}`;
    throw new CliError(`There is a service in ${folder} already.`, hint);
  }
  const given = { ...SERVICE_DEFAULTS, ...serviceFlags(options) };
  const { settings: parsed, problems } = parseServiceSettings(given);
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
  const id = newMasterKeyId();
  const from = await makeMasterKeyFile(id, context.environment);
  const whole = { ...settings, vault: { keys: [{ id, from }] } };
  await writeSettings(folder, whole);
  const operatorToken = await withConsole({ folder }, context, async (console) => {
    await console.call({ method: 'POST', path: 'vault/keys', body: { key_id: id } });
    await console.call({ method: 'POST', path: 'signing/rotate', body: {} });
    const body = { name: 'operator', role: 'operator' };
    return asText((await console.call({ method: 'POST', path: 'admins', body }))['token']);
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

export interface VaultAddOptions extends ConsoleOptions {
  /** `file:/path`, `env:NAME` or `command:program argument`. */
  readonly from?: string;
}

/** Adds the source of a master key to this machine's settings, and makes it the key that encrypts new secrets. */
export async function addMasterKey(
  options: VaultAddOptions,
  context: CommandContext,
): Promise<string> {
  if (options.url !== undefined) {
    const hint =
      'Run it on the machine of the service, because its settings name the source of the key.';
    throw new CliError('You cannot add a master key from another machine.', hint, 2);
  }
  const { environment, terminal } = context;
  const folder = folderOf(options, context);
  const settings = await serviceSettings(folder);
  if (options.from !== undefined && !isMasterKeySource(options.from)) {
    const hint = 'Try --from env:SVC_MASTER_KEY, or --from "command:pass show svc"';
    throw new CliError('--from: expected file:/path, env:NAME or command:….', hint, 2);
  }
  const id = newMasterKeyId();
  const from = options.from ?? (await makeMasterKeyFile(id, environment));
  const keys = [...(settings.vault?.keys ?? []), { id, from }];
  await writeSettings(folder, { ...settings, vault: { keys } });
  try {
    await withConsole(options, context, (console) =>
      console.call({ method: 'POST', path: 'vault/keys', body: { key_id: id } }),
    );
  } catch (error) {
    await writeSettings(folder, settings);
    throw error;
  }
  if (options.json === true) terminal.json({ keyId: id, from });
  terminal.note(
    `The master key ${id} encrypts new secrets from now on. It is in ${from}. Keep a copy elsewhere.`,
  );
  return id;
}

/** Flags of `svc-service init`, which writes them to service.json, and of `start`, where they replace its settings. */
export interface RawServiceFlags {
  readonly host?: string;
  readonly port?: string;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly behindProxy?: boolean;
  readonly publicUrl?: string;
  readonly rate?: string;
  /** The source of the database's address, never the address itself, because every user can see arguments. */
  readonly databaseFrom?: string;
  readonly redisFrom?: string;
  readonly autoMigrate?: boolean;
  /** `host:port` */
  readonly metrics?: string;
}

/** Converts flags to settings. Makes paths absolute, because other commands run in other folders. Throws CliError. */
export function serviceFlags(flags: RawServiceFlags): Readonly<Record<string, unknown>> {
  const { host, port, tlsCert: cert, tlsKey: key, behindProxy, publicUrl, rate, metrics } = flags;
  const { databaseFrom, redisFrom } = flags;
  if ((cert === undefined) !== (key === undefined)) {
    const hint = 'Give both --tls-cert and --tls-key, as paths of PEM files.';
    throw new CliError('A certificate needs its key.', hint, 2);
  }
  const given = {
    host,
    behindProxy,
    port: port && numberOf(port, '--port'),
    tls: cert && key && { cert: resolve(cert), key: resolve(key) },
    publicUrl: publicUrl && originOf(publicUrl),
    database: databaseFrom && { from: databaseFrom },
    redis: redisFrom && { from: redisFrom },
    metrics: metrics && addressOf(metrics),
    requestsPerMinute: rate === 'off' ? null : rate && numberOf(rate, '--rate'),
  };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

/** Adds the flag `--auto-migrate` to the settings of the database. */
export function withMigrations<Settings extends Pick<ServiceSettings, 'database'>>(
  settings: Settings,
  { autoMigrate }: RawServiceFlags,
): Settings {
  if (autoMigrate !== true) return settings;
  return { ...settings, database: { ...settings.database, autoMigrate } };
}

/** Returns the address without a slash at its end, as in the settings. */
function originOf(text: string): string {
  const origin = text.replace(/\/$/, '');
  if (/^https?:\/\/[\w.:[\]-]+$/.test(origin)) return origin;
  const hint = 'Try --public-url https://svc.example.com';
  throw new CliError('--public-url: expected an address without a path.', hint, 2);
}

function addressOf(text: string): { host: string; port: number } {
  const [, host = '', port = ''] = /^\[?([0-9A-Za-z.:_-]+?)\]?:(\d{1,5})$/.exec(text) ?? [];
  if (host !== '') return { host, port: Number(port) };
  throw new CliError('--metrics: expected an address.', 'Try --metrics 127.0.0.1:9466', 2);
}

function numberOf(text: string, flag: string): number {
  if (/^\d{1,7}$/.test(text)) return Number(text);
  throw new CliError(`${flag}: expected a whole number.`, 'See: svc-service start --help', 2);
}
