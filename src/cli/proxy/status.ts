import { dataFolder } from '../../adapters/files/own-folders.ts';
import { FileError } from '../../adapters/files/file-error.ts';
import { parseProxySetting } from '../../core/settings/config-proxy.ts';
import type { Access } from '../../core/settings/config-schema.ts';
import { countCut } from '../../adapters/state/recent-requests.ts';
import type { RequestRow } from '../../ports/request-log.ts';
import { checkPort } from '../doctor/checks.ts';
import { count, urlOf, timeText } from '../listing.ts';
import { CliError, type ExitCode, reportError } from '../cli-error.ts';
import type { CommandContext, Call } from '../context.ts';
import { projectsWithoutMemory } from '../memory/spaces.ts';
import { requireConfigFile, settingsOf } from '../setup/load-config.ts';
import {
  fullDisk,
  replacedText,
  nameBound,
  recentTrouble,
  refusedKeyText,
} from './recent-trouble.ts';
import { lateCaptures } from './late-captures.ts';
import {
  findByFiles,
  isOtherBuild,
  otherBuildText,
  OwnProxies,
  type OwnProxy,
  type Proxies,
  stopProxy,
  unprovenText,
} from './own-proxies.ts';

interface StopOptions {
  readonly port?: string;
}

/** Runs `svc status`. Returns exit code 0 if a proxy runs, 1 if none does. */
export async function status({
  options,
  context,
}: Call<{ readonly json?: boolean }>): Promise<ExitCode> {
  const { terminal } = context;
  const proxies = await OwnProxies.of(context.environment);
  const { own, unproven } = await proxies.find();
  if (options.json === true) {
    // JSON leaves out undefined members. Only svc itself needs the digest of the token.
    terminal.json(own.map((proxy) => ({ url: urlOf(proxy), ...proxy, tokenDigest: undefined })));
  } else {
    for (const proxy of own) terminal.row(proxyText(proxy), '  ');
    if (own.length === 0) await reportStopped(context, proxies.access);
  }
  for (const run of unproven) terminal.warn(`${unprovenText(run)}.`);
  for (const proxy of own.filter(isOtherBuild)) {
    const fix =
      proxy.isDetached === true ? 'svc run restarts it.' : 'Restart it where it was started.';
    terminal.warn(`${otherBuildText(proxy)} ${fix}`);
  }
  for (const name of own.flatMap(({ refusedKeys = [] }) => refusedKeys)) {
    terminal.warn(refusedKeyText(name));
  }
  const folder = dataFolder(context.environment);
  for (const proxy of own.filter(({ startedAt }) => startedAt === undefined)) {
    terminal.warn(
      `The proxy on ${urlOf(proxy)} has no file in ${folder}. It uses another data folder, or svc could not write there, ` +
        'or the folder was replaced or unmounted since.',
    );
  }
  const now = Date.now();
  const off = await projectsWithoutMemory(context).catch((error: unknown) => {
    if (!(error instanceof FileError)) throw error;
    terminal.warn(`${error.message} ${error.hint}`);
    return [];
  });
  if (off.length > 0) {
    terminal.note(
      `Memory is off for ${off.join(', ')}. Turn it on in the folder of the project: svc memory on`,
    );
  }
  const replaced = replacedText(folder, now);
  if (replaced !== undefined) terminal.warn(replaced);
  for (const line of recentTrouble(folder, now)) terminal.warn(line);
  nameBound(folder, now, terminal);
  for (const { found, fix } of lateCaptures(folder, { now, isRunning: own.length > 0 })) {
    terminal.warn(`${found}. ${fix}`);
  }
  return own.length > 0 ? 0 : 1;
}

/** Prints that no proxy runs, and how to start one, or what in the configuration prevents a start. */
async function reportStopped(context: CommandContext, access: Access): Promise<void> {
  const { environment, terminal } = context;
  try {
    settingsOf(await requireConfigFile(environment), environment, {});
  } catch (error) {
    terminal.note('svc is not running, and cannot be started:');
    reportError(error, terminal);
    return;
  }
  terminal.note(await stoppedText(context, access));
}

/** Returns a line that says that no proxy runs, and how it starts: by a command, or by clients that start it. */
async function stoppedText({ environment }: CommandContext, access: Access): Promise<string> {
  // If another program has the port, a start would fail.
  const { level, found, fix } = await checkPort(access);
  if (level === 'problem') return `svc does not run for this configuration: ${found}. ${fix}`;
  const { startingClients } = await import('../clients/connect.ts');
  const names = await startingClients(environment);
  if (names.length === 0) return 'svc is not running. Start it with: svc start';
  const verb = names.length === 1 ? 'starts' : 'start';
  return `svc is not running now. ${names.join(' and ')} ${verb} it when a session begins. To start it now: svc start --detach`;
}

/** Runs `svc stop`: stops the proxies, and lists the conversations that cannot continue without one. */
export async function stop({ options, context }: Call<StopOptions>): Promise<ExitCode> {
  const code = await stopProxies(options, context);
  nameBound(dataFolder(context.environment), Date.now(), context.terminal);
  return code;
}

/** Stops the proxies of this configuration, and waits. Only a process that has proven to be svc gets a signal. */
export async function stopProxies(
  options: StopOptions,
  context: CommandContext,
): Promise<ExitCode> {
  const { terminal, environment } = context;
  if (options.port !== undefined && parseProxySetting('port', options.port) === undefined) {
    throw new CliError('--port: expected a whole number from 0 to 65535.', 'See: svc status', 2);
  }
  const folder = dataFolder(environment);
  const { own, unproven, openRequests } = await findToStop(context);
  const chosen = own.filter(({ port }) => options.port === undefined || options.port === `${port}`);
  if (chosen.length > 0) {
    for (const line of fullDisk(folder)) {
      terminal.warn(`${line} Captures that the disk has refused are lost when svc stops.`);
    }
  }
  for (const run of unproven) terminal.warn(`${unprovenText(run)}, so svc does not stop it.`);
  if (chosen.length === 0) {
    const where = options.port === undefined ? '' : ` on port ${options.port}`;
    terminal.note(`svc is not running${where}.`);
    return unproven.length === 0 ? 0 : 1;
  }
  const opened = (await Promise.all(chosen.map(openRequests))).flat();
  const ends = await Promise.all(chosen.map((proxy) => stopProxy(folder, proxy)));
  for (const [index, proxy] of chosen.entries()) {
    if (ends[index] === true) terminal.note(`Stopped: ${urlOf(proxy)}`);
  }
  const cut = countCut(
    folder,
    opened.map(({ id }) => id),
  );
  if (cut > 0) {
    const what = count(cut, 'answer was', 'answers were');
    terminal.warn(`${what} cut: svc waits for an answer only as long as proxy.drainMs says.`);
  }
  const [open] = chosen.filter((_, index) => ends[index] !== true);
  if (open === undefined) return 0;
  throw new CliError(
    `Process ${open.pid} has not stopped yet. It may still be finishing answers.`,
    'Check again with: svc status',
  );
}

interface ToStop extends Proxies {
  readonly openRequests: (proxy: OwnProxy) => Promise<readonly RequestRow[]>;
}

/** Finds the proxies; by their run files if the configuration, which has the token to ask them, cannot be read. */
async function findToStop({ environment, terminal }: CommandContext): Promise<ToStop> {
  try {
    const proxies = await OwnProxies.of(environment);
    return { ...(await proxies.find()), openRequests: (proxy) => proxies.openRequests(proxy) };
  } catch (error) {
    const found = await findByFiles(dataFolder(environment));
    if (found.own.length === 0) throw error;
    reportError(error, terminal);
    return { ...found, openRequests: async () => [] };
  }
}

function proxyText(proxy: OwnProxy): string {
  const { pid, version, build, startedAt } = proxy;
  const facts = [
    `process ${pid}`,
    ...(version === undefined ? [] : [`version ${version}`]),
    ...(build === undefined ? [] : [`build ${build}`]),
    ...(startedAt === undefined ? [] : [`since ${timeText(startedAt)}`]),
  ];
  return `svc runs on ${urlOf(proxy)} (${facts.join(', ')})`;
}
