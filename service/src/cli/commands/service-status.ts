import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { codeOf } from '../../../../src/adapters/files/file-error.ts';
import { isAlive } from '../../../../src/adapters/processes/run-files.ts';
import { count, timeText, urlOf } from '../../../../src/cli/listing.ts';
import { CliError, type ExitCode } from '../../../../src/cli/cli-error.ts';
import type { Call, CommandContext } from '../../../../src/cli/context.ts';
import { oneLine } from '../../../../src/cli/terminal.ts';
import { asRecord, asText, parseJson } from '../../../../src/core/bytes/json-fields.ts';
import { readPrivate, RUN_FILE } from '../../adapters/service-store/service-files.ts';
import { probeService } from '../../adapters/network/console-client.ts';
import { DRAIN_MS } from '../../core/settings.ts';
import type { ServerFacts, ServiceStoreHealth } from '../../ports/service-store.ts';
import { inspectDatabase, lockServiceFolder, serverOf, serviceSettings } from '../compose-store.ts';
import {
  type CommonOptions,
  type ConsoleOptions,
  folderOf,
  withConsole,
  withServiceStore,
} from './service-context.ts';

/** Runs `svc-service status`, which shows whether the service is ready and what it stores, and `svc-service stop`. */

export interface RunningServiceFacts {
  readonly pid: number;
  readonly host: string;
  readonly port: number;
  readonly startedAt: number;
  readonly cert: string | undefined;
  /** True if /readyz answers 200: the service can serve. */
  readonly isReady: boolean;
}

/** Shows the service's state. Returns exit code 0 if it runs and is ready, else 1. */
export async function serviceStatus({ options, context }: Call<ConsoleOptions>): Promise<ExitCode> {
  const { terminal, environment } = context;
  if (options.url !== undefined) return statusElsewhere(options, context);
  const folder = folderOf(options, context);
  await serviceSettings(folder);
  const running = await findService(folder);
  const held = await withServiceStore({ folder, environment }, (store) => store.health());
  const server = await serverOf({ folder, environment });
  const facts = server === undefined ? undefined : await inspectDatabase(server);
  if (options.json === true) {
    const database = facts === undefined ? {} : { database: facts };
    terminal.json({ folder, running: running ?? null, store: held, ...database });
  } else {
    for (const line of linesOf(folder, running, held)) terminal.out(line);
    if (facts !== undefined) terminal.out(serverLine(facts));
  }
  if (running === undefined) terminal.note('The service is not running: svc-service start');
  return running?.isReady === true ? 0 : 1;
}

/** Shows the status of a service on another machine. Returns exit code 0 if all its parts work, else 1. */
async function statusElsewhere(
  options: ConsoleOptions,
  context: CommandContext,
): Promise<ExitCode> {
  const { terminal } = context;
  const status = await withConsole(options, context, (console) =>
    console.call({ method: 'GET', path: 'status' }),
  );
  const problems = Object.values(asRecord(status['problems'])).filter(
    (problem) => typeof problem === 'string',
  );
  if (options.json === true) terminal.json(status);
  else {
    const state = problems.length === 0 ? 'ready' : 'not ready';
    terminal.out(`${options.url ?? ''}  ${state}, svc ${asText(status['version'])}`);
    for (const problem of problems) terminal.out(oneLine(problem, 160));
    terminal.out(heldText(status));
  }
  return problems.length === 0 ? 0 : 1;
}

/** Returns the service that runs on this folder; undefined if none answers. A killed process leaves its run file. */
export async function findService(folder: string): Promise<RunningServiceFacts | undefined> {
  const hint = hintOf((await readPrivate(folder, RUN_FILE)) ?? '');
  if (hint === undefined || !isAlive(hint.pid)) return undefined;
  const cert =
    hint.cert === undefined ? undefined : await readFile(hint.cert, 'utf8').catch(() => undefined);
  const status = await probeService({ host: hint.host, port: hint.port, certificate: cert });
  return status === undefined ? undefined : { ...hint, isReady: status === 200 };
}

function hintOf(text: string): Omit<RunningServiceFacts, 'isReady'> | undefined {
  const { pid, host, port, startedAt, cert } = asRecord(parseJson(text));
  if (!Number.isInteger(pid) || typeof host !== 'string' || !Number.isInteger(port)) {
    return undefined;
  }
  return {
    pid: Number(pid),
    host,
    port: Number(port),
    startedAt: Number(startedAt),
    cert: typeof cert === 'string' ? cert : undefined,
  };
}

function linesOf(
  folder: string,
  running: RunningServiceFacts | undefined,
  held: ServiceStoreHealth,
): readonly string[] {
  const store = `${folder}: ${heldText(held)}, ${Math.ceil(held.bytes / 1024)} KiB`;
  if (running === undefined) return [store];
  const { cert, host, port, pid, startedAt, isReady } = running;
  const url = urlOf({ host, port }, cert === undefined ? 'http' : 'https');
  const state = isReady ? 'ready' : 'not ready';
  return [`${url}  ${state}, process ${pid}, since ${timeText(startedAt)}`, store];
}

function serverLine({ version, host, standbys }: ServerFacts): string {
  const streaming = standbys.filter(({ isStreaming }) => isStreaming).length;
  const behind = streaming === 0 ? 'the server reports no standby' : count(streaming, 'standby');
  return `PostgreSQL ${version} on ${host}, ${behind}`;
}

/** The counts of a store, each with the number from which it is shown. */
const SHOWN_FROM = { tenant: 2, provider: 1, space: 0, record: 0, key: 0 };

/** Writes the counts of a service's store in words. */
export function heldText(held: object): string {
  const counts = asRecord(held);
  const shown = Object.entries(SHOWN_FROM).filter(
    ([of, least]) => Number(counts[`${of}s`]) >= least,
  );
  return shown.map(([of]) => count(Number(counts[`${of}s`]), of)).join(', ');
}

/**
 * How long a stop waits after `drainMs` until the process has closed its store and journals, which takes a second on a
 * slow disk.
 */
const CLOSE_MS = 15_000;
const POLL_MS = 25;

/**
 * Runs `svc-service stop`: ends the service on this folder once its open calls have finished. A process gets a
 * signal only while the folder is locked and the address in the run file answers.
 */
export async function stopService({ options, context }: Call<CommonOptions>): Promise<ExitCode> {
  const { terminal } = context;
  const folder = folderOf(options, context);
  const { drainMs = DRAIN_MS } = await serviceSettings(folder);
  if (!isLocked(folder)) {
    terminal.note(`No service runs on ${folder}.`);
    return 0;
  }
  const running = await findService(folder);
  if (running === undefined) {
    throw new CliError(
      `A process uses ${folder}, but no service answers there yet.`,
      'It may be a service that starts, or a restore. Try again in a moment: svc-service status',
    );
  }
  sendStop(running.pid);
  const deadline = performance.now() + drainMs + CLOSE_MS;
  while (isAlive(running.pid) && performance.now() < deadline) await sleep(POLL_MS);
  if (isAlive(running.pid)) {
    throw new CliError(
      `Process ${running.pid} has not stopped yet. It may still be finishing calls.`,
      'Check again with: svc-service status',
    );
  }
  terminal.note(`Stopped: process ${running.pid}`);
  return 0;
}

function isLocked(folder: string): boolean {
  const lock = lockServiceFolder(folder);
  lock?.close();
  return lock === undefined;
}

function sendStop(pid: number): void {
  try {
    process.kill(pid, 'SIGTERM');
  } catch (error) {
    // The process has ended since it answered.
    if (codeOf(error) !== 'EPERM') return;
    throw new CliError(
      `Process ${pid} belongs to another user.`,
      'Stop it as that user, or with the service manager that started it.',
    );
  }
}
