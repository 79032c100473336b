import { statfs } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { FileError } from '../../../../src/adapters/files/file-error.ts';
import { CliError, type ExitCode } from '../../../../src/cli/cli-error.ts';
import type { Call, CommandContext } from '../../../../src/cli/context.ts';
import { reportChecks, type Check } from '../../../../src/cli/doctor/checks.ts';
import { count } from '../../../../src/cli/listing.ts';
import { asList, asRecord, asText } from '../../../../src/core/bytes/json-fields.ts';
import { MemoryError } from '../../../../src/core/errors.ts';
import { shellQuote } from '../../../../src/core/foreign/shell-quote.ts';
import { isoTime } from '../../../../src/core/memory/times.ts';
import { VERSION } from '../../../../src/core/version.ts';
import { loadTls } from '../../adapters/network/tls-files.ts';
import {
  modesOf,
  PEPPER_FILE,
  RUN_FILE,
  SETTINGS_FILE,
} from '../../adapters/service-store/service-files.ts';
import {
  NO_PUBLIC_URL,
  PUBLIC_URL_FIX,
  publicUrlOf,
  type ServiceSettings,
} from '../../core/settings.ts';
import type { ServerFacts } from '../../ports/service-store.ts';
import { lookAtLimiter, waitingReceipts } from '../compose-parts.ts';
import {
  checkService,
  type DatabaseServer,
  inspectDatabase,
  serverOf,
  type ServicePlace,
  serviceSettings,
} from '../compose-store.ts';
import {
  type CommonOptions,
  DOCTOR_HINT,
  folderOf,
  withConsole,
  withServiceStore,
} from './service-context.ts';
import { findService } from './service-status.ts';

/** Runs `svc-service doctor`: checks a service, and prints a fix for each problem. */

const DAY_MS = 24 * 3600 * 1000;
/** Doctor warns about a certificate that expires within this many days: time to renew it by hand. */
const CERTIFICATE_DAYS_MIN = 14;
/** Doctor warns if fewer bytes are free: enough for a busy team's day and a backup. */
const FREE_BYTES_MIN = 1024 ** 3;
/** How far in the future the time of the newest key or record may be. The clocks of two machines differ a little. */
const CLOCK_SLACK_MS = 60_000;

export async function serviceDoctor({ options, context }: Call<CommonOptions>): Promise<ExitCode> {
  const folder = folderOf(options, context);
  const checks = await runChecks(folder, context);
  const facts = { folder, version: VERSION };
  return reportChecks({ checks, facts, isJson: options.json === true }, context.terminal);
}

async function runChecks(folder: string, context: CommandContext): Promise<readonly Check[]> {
  let settings: ServiceSettings;
  try {
    settings = await serviceSettings(folder);
  } catch (error) {
    return [failed('Settings', error)];
  }
  const place = { folder, environment: context.environment, settings };
  const server = await checkServer(place);
  // An unavailable server is one problem, which checks of the store and vault on that server would only repeat.
  const isAway = server.some(({ level, subject }) => subject === 'Server' && level === 'problem');
  return [
    { level: 'ok', subject: 'Settings', found: join(folder, SETTINGS_FILE) },
    ...(await checkModes(folder, settings)),
    ...(isAway ? [] : await checkStore(folder, context)),
    ...server,
    await checkLimiter(place),
    ...(isAway ? [] : [await checkVault(folder, context)]),
    checkReceipts(folder, await findService(folder)),
    ...(settings.tls === undefined ? [] : [await checkCertificate(settings.tls)]),
    await checkPort(folder, settings),
    checkPublicUrl(settings),
    ...(await checkDisk(folder)),
  ];
}

async function checkModes(folder: string, { tls }: ServiceSettings): Promise<readonly Check[]> {
  const databases = ['service.db', 'service.db-wal', 'lock.db', 'state.db', 'state.db-wal'];
  const names = [SETTINGS_FILE, PEPPER_FILE, RUN_FILE, ...databases];
  const paths = [folder, ...names.map((name) => join(folder, name)), ...(tls ? [tls.key] : [])];
  const loose = (await modesOf(paths)).filter(({ isLoose }) => isLoose);
  if (loose.length === 0) return [{ level: 'ok', subject: 'Modes', found: `${folder} is private` }];
  return loose.map(({ path, mode }) => ({
    level: 'problem',
    subject: 'Modes',
    found: `${path} is open to others, a link or owned by another user (mode 0${mode.toString(8)})`,
    fix: `chmod ${path === folder ? '700' : '600'} ${shellQuote(path, 'sh')}`,
  }));
}

async function checkStore(
  folder: string,
  { environment }: CommandContext,
): Promise<readonly Check[]> {
  const subject = 'Store';
  const isFile = (await serverOf({ folder, environment })) === undefined;
  const wrong = isFile ? await checkService(folder) : '';
  if (wrong !== '') {
    const fix = 'svc-service restore FILE --yes, with your newest backup';
    return [{ level: 'problem', subject, found: `service.db: ${wrong}`, fix }];
  }
  try {
    const held = await withServiceStore({ folder, environment }, (store) => store.health());
    const { engine, records, spaces, keys, newestAt } = held;
    const found = `${isFile ? 'whole; ' : ''}${engine}, ${count(records, 'record')} in ${count(spaces, 'space')}`;
    return [{ level: 'ok', subject, found }, checkKeys(keys), checkClock(newestAt)];
  } catch (error) {
    return [failed(subject, error)];
  }
}

async function checkVault(folder: string, context: CommandContext): Promise<Check> {
  const subject = 'Vault';
  try {
    const { problem, keys } = await withConsole({ folder }, context, (console) =>
      console.call({ method: 'GET', path: 'vault' }),
    );
    if (typeof problem === 'string') {
      const fix = 'Restore the key to the place that "vault" in service.json names.';
      return { level: 'problem', subject, found: problem, fix };
    }
    const active = asList(keys)
      .map(asRecord)
      .find(({ state }) => state === 'active');
    if (active !== undefined) {
      const secrets = count(Number(active['secrets']), 'secret');
      const found = `${asText(active['key_id'])} fits and encrypts ${secrets}`;
      return { level: 'ok', subject, found };
    }
    const fix = 'svc-service vault add, then svc-service signing rotate';
    return { level: 'warning', subject, found: 'no master key, so receipts are not signed', fix };
  } catch (error) {
    return failed(subject, error);
  }
}

/**
 * Doctor reports a problem if all journals of receipts together have more bytes. This is half of the bound of one
 * journal.
 */
const JOURNAL_BYTES_MAX = 256 * 1024 ** 2;

function checkReceipts(folder: string, running: object | undefined): Check {
  const subject = 'Receipts';
  const { nodes, bytes } = waitingReceipts(folder);
  if (bytes > JOURNAL_BYTES_MAX) {
    const found = `${Math.ceil(bytes / 1024 ** 2)} MiB wait in the journal, because the store accepts none`;
    const fix = 'Check the messages of svc-service start about the store and the signing key.';
    return { level: 'problem', subject, found, fix };
  }
  if (running !== undefined) return { level: 'ok', subject, found: 'all are stored' };
  if (nodes === 0) return { level: 'ok', subject, found: 'none are waiting' };
  const found = `receipts of ${nodes === 1 ? 'a dead process' : `${nodes} dead processes`} are waiting`;
  const fix = 'svc-service receipts recover, or svc-service start';
  return { level: 'warning', subject, found, fix };
}

function checkKeys(keys: number): Check {
  const subject = 'Keys';
  if (keys > 0) return { level: 'ok', subject, found: `${keys} not revoked` };
  const found = 'there is no key, so nobody can use the service';
  return { level: 'warning', subject, found, fix: 'svc-service keys create --name NAME' };
}

function checkClock(newestAt: number): Check {
  const subject = 'Clock';
  if (newestAt <= Date.now() + CLOCK_SLACK_MS) {
    return { level: 'ok', subject, found: new Date().toISOString() };
  }
  const found = `the newest record is from ${isoTime(newestAt)}, which is in the future`;
  return { level: 'problem', subject, found, fix: 'Set the clock of this machine.' };
}

async function checkCertificate(tls: { cert: string; key: string }): Promise<Check> {
  const subject = 'Certificate';
  try {
    const { expiresAt, names } = await loadTls(tls);
    const days = Math.floor((expiresAt - Date.now()) / DAY_MS);
    const found = `${names}, ${days < 0 ? 'expired' : `good for ${count(days, 'day')}`}`;
    const fix = `Renew ${tls.cert}; a running service reads it again on SIGHUP.`;
    if (days < 0) return { level: 'problem', subject, found, fix };
    if (days < CERTIFICATE_DAYS_MIN) return { level: 'warning', subject, found, fix };
    return { level: 'ok', subject, found };
  } catch (error) {
    return failed(subject, error);
  }
}

function checkPublicUrl(settings: ServiceSettings): Check {
  const subject = 'Public address';
  const found = publicUrlOf(settings);
  if (found !== undefined) return { level: 'ok', subject, found };
  return { level: 'warning', subject, found: NO_PUBLIC_URL, fix: PUBLIC_URL_FIX };
}

async function checkPort(folder: string, { host, port }: ServiceSettings): Promise<Check> {
  const subject = 'Port';
  const running = await findService(folder);
  if (running !== undefined) {
    const place = `${running.host}:${running.port}`;
    if (running.isReady) return { level: 'ok', subject, found: `it runs on ${place} and is ready` };
    const fix = 'Check the messages of svc-service start, and start it again.';
    return { level: 'problem', subject, found: `it runs on ${place} and is not ready`, fix };
  }
  if (await isFree(host, port)) {
    return { level: 'ok', subject, found: `${host}:${port} is free; the service is not running` };
  }
  const fix = `Stop the program that uses it, or change port in ${join(folder, SETTINGS_FILE)}`;
  return { level: 'problem', subject, found: `${host}:${port} is not available`, fix };
}

function isFree(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(true)));
  });
}

async function checkDisk(folder: string): Promise<readonly Check[]> {
  const { bavail, bsize } = await statfs(folder);
  const free = bavail * bsize;
  const found = `${(free / 1024 ** 3).toFixed(1)} GiB free`;
  if (free >= FREE_BYTES_MIN) return [{ level: 'ok', subject: 'Disk', found }];
  const fix = 'Free some space: on a full disk the service stores nothing.';
  return [{ level: 'warning', subject: 'Disk', found, fix }];
}

const STORE_FIX = 'Correct this in the database; the messages of svc-service start say more.';

function failed(subject: string, error: unknown): Check {
  if (error instanceof CliError) {
    // A hint to run doctor is of no use, because doctor is running, so another fix replaces this hint.
    const fix = error.hint === DOCTOR_HINT ? STORE_FIX : error.hint;
    return { level: 'problem', subject, found: error.lines.join(' '), fix };
  }
  if (error instanceof FileError) {
    return { level: 'problem', subject, found: error.message, fix: error.hint };
  }
  throw error;
}

/**
 * Checks a service's database server: whether it accepts writes, and what a failover would do. Returns an empty list
 * for a service in a file.
 */
export async function checkServer(place: ServicePlace): Promise<readonly Check[]> {
  const server = await serverOf(place);
  if (server === undefined) return [];
  try {
    const facts = await inspectDatabase(server);
    const found = `PostgreSQL ${facts.version}, ${facts.host} writes`;
    const host: Check = { level: 'ok', subject: 'Server', found };
    return [host, ...standbyChecks(facts), switchCheck(facts, server)];
  } catch (error) {
    if (!(error instanceof MemoryError)) throw error;
    const fix = 'Start the server, or promote a standby and lead the address to it.';
    return [{ level: 'problem', subject: 'Server', found: error.message, fix }];
  }
}

function standbyChecks({ standbys, isSynchronous }: ServerFacts): readonly Check[] {
  const subject = 'Standbys';
  if (isSynchronous && !standbys.some((one) => one.isSynchronous)) {
    const found = 'commits wait for a standby that is not there';
    const fix = 'Attach a standby, or empty synchronous_standby_names on the primary.';
    return [{ level: 'problem', subject, found, fix }];
  }
  const streaming = standbys.filter(({ isStreaming }) => isStreaming);
  if (streaming.length === 0) return [];
  const names = streaming.map(
    (one) => `${one.name === '' ? 'one' : one.name}, ${one.isSynchronous ? '' : 'a'}synchronous`,
  );
  return [{ level: 'ok', subject, found: names.join('; ') }];
}

/** Says what a failover now would mean for clients. */
function switchCheck(
  { standbys, isSynchronous }: ServerFacts,
  { trustsFailover }: DatabaseServer,
): Check {
  const subject = 'Switch';
  if (!standbys.some(({ isStreaming }) => isStreaming)) {
    const found =
      'the server reports no standby: if it is lost, you need a restore, which begins a new epoch';
    return { level: 'ok', subject, found };
  }
  if (trustsFailover && isSynchronous) {
    const found = 'a promoted standby keeps the epoch, so nothing changes for clients';
    return { level: 'ok', subject, found };
  }
  const why = isSynchronous
    ? 'trustFailover is not set in service.json'
    : 'commits wait for no standby';
  const found = `a promoted standby begins a new epoch, and clients capture again: ${why}`;
  return { level: 'ok', subject, found };
}

export async function checkLimiter(place: ServicePlace): Promise<Check> {
  const subject = 'Limiter';
  const { where, isThere } = await lookAtLimiter(place);
  if (isThere) return { level: 'ok', subject, found: `limits are counted in ${where}` };
  const found = `${where} does not answer, so the service refuses every call with a limit`;
  return { level: 'problem', subject, found, fix: 'Start it, or correct its address.' };
}
