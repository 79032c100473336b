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
import {
  isOtherBuild,
  otherBuildText,
  OwnProxies,
  type OwnProxy,
  stopProxy,
} from './own-proxies.ts';
import { prepareConfig, type StartOptions } from './start.ts';

export interface EnsuredProxy {
  readonly proxy: OwnProxy;
  readonly proxies: OwnProxies;
  /** True if this call has started the proxy. */
  readonly isNew: boolean;
}

/** Deadline of a start, in milliseconds. It takes a third of a second; on a busy machine several seconds. */
const START_MS = 20_000;
const POLL_MS = 20;
/**
 * Length of each of two waits, in milliseconds. If no run file is there after the first, svc tries the configured
 * address. If the new proxy answers there, svc waits as long again for its run file: with a read-only data folder the
 * proxy writes none.
 */
const RUN_FILE_MS = 1000;

/** Runs `svc start --detach`: starts a proxy in the background, and returns when it accepts requests. */
export async function startDetached(options: StartOptions, context: CommandContext): Promise<void> {
  const { environment, terminal } = context;
  // Read the settings here too, so that the user sees an error in them, which otherwise only the log would have.
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
 * Returns the running proxy of this configuration, or starts one in the background. It replaces a background proxy of
 * another build, unless that proxy is still answering requests after `patienceMs` or does not stop, or a start from
 * this shell would fail.
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
  const { own } = await proxies.find();
  // If the command names a port, accept only the proxy on that port.
  const running = own.find(({ port }) => flags.port === undefined || port === access.port);
  if (running !== undefined) {
    const problemsHere = (): readonly Problem[] =>
      parseConfig(file.value, environment, { ...running.flags, ...flags }).problems;
    const replacing = { context, patienceMs, problemsHere };
    const hasEnded = await endOtherBuild(running, proxies, replacing);
    if (!hasEnded) return { proxy: running, proxies, isNew: false };
  }
  // A new proxy gets the flags of the proxy that it replaces, except those that this command has itself.
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
  /** Returns why a start from this shell would fail: for example, the shell may not have the variable of a key. */
  readonly problemsHere: () => readonly Problem[];
}

/**
 * Ends a background proxy of another build, if a start from this shell would succeed and the proxy has no open request
 * after `patienceMs`. Returns true if the proxy has ended.
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
  if (!(await stopProxy(dataFolder(context.environment), proxy))) return false;
  terminal.note('It has stopped, and this build replaces it.');
  return true;
}

/**
 * Waits until the new proxy serves, and returns it. If its process ends, or the deadline passes, returns another proxy
 * of this configuration at the same port; undefined if there is none.
 */
async function untilServing(
  background: Background,
  folder: string,
  access: Access,
): Promise<OwnProxy | undefined> {
  const from = performance.now();
  let servesSince: number | undefined;
  while (background.isRunning() && performance.now() < from + START_MS) {
    const isLate = performance.now() > from + RUN_FILE_MS;
    const run = (await listRunFiles(folder)).find(({ pid }) => pid === background.pid);
    const address = run ?? (isLate && access.port !== 0 ? access : undefined);
    const { pid } =
      address === undefined ? { pid: undefined } : await probeProxy(address, access.localToken);
    if (pid === background.pid) {
      if (run !== undefined) return run;
      // On a busy machine the proxy may serve some time before it has written its run file.
      servesSince ??= performance.now();
      if (performance.now() > servesSince + RUN_FILE_MS) {
        return { pid, host: access.host, port: access.port };
      }
    }
    await sleep(POLL_MS);
  }
  // If two commands start a proxy at once, the second finds the port in use. It takes the proxy of the first.
  const { own } = await new OwnProxies(folder, access).find();
  return own.find(({ port }) => port === access.port);
}

/** The beginning of an error's line, as Terminal.error() writes it. */
const ERROR = 'svc: ';
/** Bound on the errors that are shown; svc doctor lists all. */
const ERRORS_MAX = 8;

/** Returns an error that repeats the errors of `svc start`, which contain no secret. */
function startError(background: Background, log: string): CliError {
  const said = background.said().trim().split('\n');
  const lines = said.filter((line) => line.startsWith(ERROR)).slice(-ERRORS_MAX);
  const what = background.isRunning()
    ? `svc start does not answer after ${START_MS / 1000} seconds.`
    : 'The proxy could not be started.';
  // After its errors svc prints the hint as its last line. Without an error the user must look for the reason.
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
