import { setTimeout as sleep } from 'node:timers/promises';
import { type Background, logFile, startBackground } from '../../adapters/processes/background.ts';
import { dataFolder } from '../../adapters/files/own-folders.ts';
import { probeProxy } from '../../adapters/processes/local-calls.ts';
import { listRunFiles } from '../../adapters/processes/run-files.ts';
import { flagNameOf, type ProxyFlags, PROXY_FLAG_NAMES } from '../../core/settings/config-proxy.ts';
import { type Access, parseAccess, parseConfig } from '../../core/settings/config-schema.ts';
import { type Problem, problemText } from '../../core/settings/config-values.ts';
import { CliError } from '../cli-error.ts';
import { type CommandContext, scriptPath } from '../context.ts';
import { count, urlOf } from '../listing.ts';
import { configError, settingsOf, warnOf } from '../setup/load-config.ts';
import { isOtherBuild, otherBuildText, OwnProxies, type OwnProxy } from './own-proxies.ts';
import { prepareConfig, type StartOptions } from './start.ts';

export interface EnsuredProxy {
  readonly proxy: OwnProxy;
  readonly proxies: OwnProxies;
  /** False when it ran before. */
  readonly isNew: boolean;
}

// A start takes a third of a second; on a machine that is busy with a build, several.
const START_MS = 20_000;
const POLL_MS = 20;
/** In a folder that cannot be written no file says where it serves: then its address is asked. */
const RUN_FILE_MS = 1000;

/** `svc start --detach`: comes back when the proxy in the background serves. */
export async function startDetached(options: StartOptions, context: CommandContext): Promise<void> {
  const { environment, terminal } = context;
  // Wrong settings are reported here and now, not in a log.
  const file = await prepareConfig(context);
  warnOf(settingsOf(file, environment, options.flags).warnings, terminal);
  const { proxy, isNew } = await ensureProxy(options.flags, context);
  const { host, port, pid } = proxy;
  const url = urlOf(proxy);
  if (options.json === true) terminal.out(JSON.stringify({ url, host, port, pid }));
  if (options.quiet === true) return;
  const what = isNew ? `svc listens on ${url}` : `svc runs already, on ${url}`;
  terminal.note(`${what} (process ${pid}). Stop it with: svc stop`);
}

/**
 * The proxy of this configuration; started in the background where none runs. One of another build may take
 * `patienceMs` to finish its answers.
 */
export async function ensureProxy(
  flags: ProxyFlags,
  context: CommandContext,
  patienceMs = 0,
): Promise<EnsuredProxy> {
  const { environment } = context;
  const file = await prepareConfig(context);
  const { access, problems } = parseAccess(file.value, { ...environment, ...asVariables(flags) });
  if (access === undefined) throw configError(file.path, problems);
  const folder = dataFolder(environment);
  const proxies = new OwnProxies(folder, access);
  const [running] = (await proxies.find()).own.filter(wanted(flags, access));
  if (running !== undefined) {
    const problemsHere = (): readonly Problem[] =>
      parseConfig(file.value, environment, { ...running.flags, ...flags }).problems;
    const replacing = { context, patienceMs, problemsHere };
    const hasEnded = await endOtherBuild(running, proxies, replacing);
    if (!hasEnded) return { proxy: running, proxies, isNew: false };
  }
  // In the place of an older one it does as that one was told.
  const command = [
    scriptPath(),
    'start',
    '--quiet',
    ...asArguments({ ...running?.flags, ...flags }),
  ];
  const background = startBackground({ command, dataFolder: folder, environment });
  const next = running?.flags === undefined ? access : { ...access, port: running.port };
  const proxy = await untilServing(background, folder, next);
  background.release();
  if (proxy !== undefined) return { proxy, proxies, isNew: proxy.pid === background.pid };
  throw startError(background, logFile(folder));
}

interface Replacing {
  readonly context: CommandContext;
  readonly patienceMs: number;
  /** Says why a proxy cannot start from here: a shell may lack the variable of a key. */
  readonly problemsHere: () => readonly Problem[];
}

/**
 * After an upgrade the proxy in the background still runs the old code. svc ends it, so that the new code takes its
 * place, but never in the middle of an answer. True when it was of another build and has ended.
 */
async function endOtherBuild(
  proxy: OwnProxy,
  proxies: OwnProxies,
  { context, patienceMs, problemsHere }: Replacing,
): Promise<boolean> {
  const { terminal } = context;
  if (!isOtherBuild(proxy)) return false;
  terminal.warn(otherBuildText(proxy));
  if (proxy.isDetached !== true) {
    terminal.note(
      'svc did not start it in the background, so it keeps running. Restart it yourself.',
    );
    return false;
  }
  const [problem] = problemsHere();
  if (problem !== undefined) {
    terminal.note(`It keeps running, because this one could not start. ${problemText(problem)}`);
    return false;
  }
  const open = await proxies.openAfter(patienceMs, proxy);
  if (open > 0) {
    terminal.note(
      `It keeps running, because it is answering ${count(open, 'request')}. Restart it later: svc stop`,
    );
    return false;
  }
  if (!(await proxies.stop(proxy))) return false;
  terminal.note('It has stopped, and this build replaces it.');
  return true;
}

/** A command with a port gets the proxy on that port, and no other. */
function wanted(flags: ProxyFlags, { port }: Access): (proxy: OwnProxy) => boolean {
  return (proxy) => flags.port === undefined || proxy.port === port;
}

/** Undefined when it ended before it served, and no other one serves in its place. */
async function untilServing(
  background: Background,
  folder: string,
  access: Access,
): Promise<OwnProxy | undefined> {
  const from = performance.now();
  while (background.isRunning() && performance.now() < from + START_MS) {
    const isLate = performance.now() > from + RUN_FILE_MS;
    const run = (await listRunFiles(folder)).find(({ pid }) => pid === background.pid);
    const address = run ?? (isLate && access.port !== 0 ? access : undefined);
    if (address !== undefined) {
      const { pid } = await probeProxy(address, access.localToken);
      if (pid === background.pid) return run ?? { pid, host: access.host, port: access.port };
    }
    await sleep(POLL_MS);
  }
  // Two commands may start one at once: the one that found the port taken uses the other's.
  const { own } = await new OwnProxies(folder, access).find();
  return own.find(({ port }) => port === access.port);
}

/** How Terminal.error begins a line; the hint is the line after the last one. */
const ERROR = 'svc: ';
/** svc doctor lists the wrong settings that do not fit on a screen. */
const ERRORS_MAX = 8;

// The output of `svc start` is made of constants and addresses, never of secrets.
function startError(background: Background, log: string): CliError {
  const said = background.said().trim().split('\n');
  const lines = said.filter((line) => line.startsWith(ERROR)).slice(-ERRORS_MAX);
  const what = background.isRunning()
    ? `svc start does not answer after ${START_MS / 1000} seconds.`
    : 'The proxy could not be started.';
  // Its last line is the hint; without any line the person must look.
  const hint =
    lines.length === 0
      ? 'Start it in this terminal to see its messages: svc start.'
      : (said.at(-1) ?? '').trim();
  const errors = lines.map((line) => line.slice(ERROR.length));
  return new CliError([what, ...errors], `${hint} (its log: ${log})`);
}

function asVariables(flags: ProxyFlags): Record<string, string> {
  const { host, port } = flags;
  return { ...(host === undefined ? {} : { SVC_HOST: host }), ...(port ? { SVC_PORT: port } : {}) };
}

function asArguments(flags: ProxyFlags): readonly string[] {
  return PROXY_FLAG_NAMES.flatMap((name) => {
    const value = flags[name];
    return value === undefined ? [] : [`${flagNameOf(name)}=${value}`];
  });
}
