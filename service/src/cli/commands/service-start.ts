import {
  readPepper,
  removePrivate,
  RUN_FILE,
  writePrivate,
} from '../../adapters/service-store/service-files.ts';
import { loadTls } from '../../adapters/network/tls-files.ts';
import {
  NO_PUBLIC_URL,
  PUBLIC_URL_FIX,
  publicUrlOf,
  SERVICE_PORT,
  type ServiceSettings,
} from '../../core/settings.ts';
import { VERSION } from '../../../../src/core/version.ts';
import type { ServiceStoreHealth } from '../../ports/service-store.ts';
import type { CallRow } from '../../server/parts.ts';
import type { TlsMaterial } from '../../server/server.ts';
import { urlOf, lineForm, clockText } from '../../../../src/cli/listing.ts';
import { CliError, type ExitCode, reportError } from '../../../../src/cli/cli-error.ts';
import { type RunningService, startService } from '../compose-service.ts';
import type { Call } from '../../../../src/cli/context.ts';
import { listenError, waitForStop } from '../../../../src/cli/proxy/listener.ts';
import { type CommonOptions, folderOf, storeError } from './service-context.ts';
import { serviceSettings } from '../compose-store.ts';
import { heldText } from './service-status.ts';
import { type RawServiceFlags, serviceFlags, withMigrations } from './service-init.ts';
import type { Terminal } from '../../../../src/cli/terminal.ts';

/** Runs `svc-service start`: reads the settings and serves until it is stopped. */

export interface ServiceStartOptions extends CommonOptions, RawServiceFlags {
  readonly quiet?: boolean;
  /** 'text', 'json' or 'off'; 'text' is the default. */
  readonly log?: string;
}

export async function startServiceCommand({
  options,
  context,
}: Call<ServiceStartOptions>): Promise<ExitCode> {
  const { terminal, environment } = context;
  const folder = folderOf(options, context);
  const given = await serviceSettings(folder, serviceFlags(options));
  const settings = withMigrations(given, options);
  const onCall = callPrinter(options, terminal);
  const pepper = await readPepper(folder);
  const tls = await tlsOf(settings, terminal);
  const starting = { settings, folder, pepper, tls, terminal, environment, onCall };
  const service = await startService(starting).catch((error: unknown) => {
    const { host, port } = settings;
    const words = { command: 'svc-service start', look: 'svc-service doctor' };
    const address = { host, port, usualPort: SERVICE_PORT, ...words };
    throw listenError(error, address) ?? storeError(error);
  });
  process.on('SIGHUP', () => void reload(service, settings, terminal));
  // Listen for signals before printing the address: a program that reads it may stop the service at once.
  const stopped = waitForStop(service, process, terminal);
  const { host, port } = service;
  const url = urlOf({ host, port }, tls === undefined ? 'http' : 'https');
  try {
    const run = { pid: process.pid, host, port, version: VERSION, startedAt: Date.now() };
    const cert = settings.tls === undefined ? {} : { cert: settings.tls.cert };
    await writePrivate(folder, RUN_FILE, `${JSON.stringify({ ...run, ...cert })}\n`);
    const { metricsPort } = service;
    const more = metricsPort === undefined ? {} : { metricsPort };
    if (options.json === true) terminal.out(JSON.stringify({ url, host, port, ...more }));
    if (options.quiet !== true) {
      for (const line of startLines(url, service.held, settings)) terminal.note(line);
    }
    return await stopped;
  } finally {
    await service.stop();
    await removePrivate(folder, RUN_FILE);
  }
}

function startLines(
  url: string,
  held: ServiceStoreHealth,
  settings: ServiceSettings,
): readonly string[] {
  const limit = settings.requestsPerMinute ?? null;
  return [
    `The service listens on ${url}: ${heldText(held)}.`,
    ...(limit === null ? [] : [`Each key may make ${limit} calls a minute.`]),
    ...(publicUrlOf(settings) === undefined ? [`${NO_PUBLIC_URL} ${PUBLIC_URL_FIX}`] : []),
    ...(held.keys === 0 ? ['There is no key yet. Next: svc-service keys create --name NAME'] : []),
  ];
}

async function tlsOf(
  { tls }: ServiceSettings,
  terminal: Terminal,
): Promise<TlsMaterial | undefined> {
  if (tls === undefined) return undefined;
  const loaded = await loadTls(tls);
  if (loaded.isKeyLoose) {
    throw new CliError(
      `${tls.key} can be read by others.`,
      `Make it private: chmod 600 ${tls.key}`,
    );
  }
  if (loaded.expiresAt < Date.now()) terminal.warn('The TLS certificate has expired.');
  return loaded;
}

/** Loads the certificate again. If it is unusable, the old one stays in use. */
async function reload(
  service: RunningService,
  settings: ServiceSettings,
  terminal: Terminal,
): Promise<void> {
  try {
    const tls = await tlsOf(settings, terminal);
    if (tls === undefined) return;
    service.renew(tls);
    terminal.note('The new TLS certificate is in use.');
  } catch (error) {
    terminal.warn('The new TLS certificate cannot be used; the old one stays in use.');
    reportError(error, terminal);
  }
}

/** Returns the function that prints a line for each call, as `--log` asks. Throws CliError for an unknown form. */
function callPrinter(options: ServiceStartOptions, terminal: Terminal): (row: CallRow) => void {
  const form = lineForm({ ...options, isLogged: true, command: 'svc-service start' }, terminal);
  if (form === 'json') return (row) => terminal.out(JSON.stringify(row));
  return form === 'text' ? (row) => terminal.note(callLine(row)) : () => undefined;
}

function callLine(row: CallRow): string {
  const what = row.operation ?? row.method;
  const outcome = row.code === undefined ? String(row.status) : `${row.status} ${row.code}`;
  return [clockText(row.at), row.keyId ?? '-', what, outcome, `${row.ms} ms`].join('  ');
}
