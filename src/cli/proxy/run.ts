import { short } from '../../core/meter/figures.ts';
import { constants } from 'node:os';
import { isatty } from 'node:tty';
import spawn from 'cross-spawn';
import { dataFolder } from '../../adapters/files/own-folders.ts';
import { isInstalled } from '../../adapters/foreign/client-files.ts';
import { type RunTotals, runTotals } from '../../adapters/state/recent-requests.ts';
import { upstreamEntries } from '../../core/settings/config-draft.ts';
import type { Environment } from '../../core/settings/config-values.ts';
import { urlOf, count } from '../listing.ts';
import { CliError } from '../cli-error.ts';
import { CODEX, versionOf, CLAUDE, type LaunchedClient } from '../clients/launch.ts';
import { launchedOther } from '../clients/other-config.ts';
import { OTHER_CLIENTS } from '../clients/other-clients.ts';
import { unservedError } from '../setup/load-config.ts';
import { ensureProxy } from './proxy-process.ts';
import { prepareConfig } from './start.ts';
import type { Call, CommandContext } from '../context.ts';
import type { OwnProxy } from './own-proxies.ts';
import { wasKilled } from '../../adapters/processes/run-files.ts';

/**
 * Runs `svc run CLIENT`: starts the client so that it uses the proxy, and changes no file of the client. The client has
 * the terminal, gets the signals, and its exit code is svc's.
 */

/** How long svc waits for the open answers of another build's proxy, to replace that proxy; in milliseconds. */
const PATIENCE_MS = 10_000;

/** Interval of checks that nobody killed the client's proxy, in milliseconds. Clients repeat a request for minutes. */
const LOOK_MS = 1000;

/** The clients of `svc run`, by the names that users type. */
const CLIENTS: Readonly<Record<string, LaunchedClient>> = {
  claude: CLAUDE,
  codex: CODEX,
  ...Object.fromEntries(OTHER_CLIENTS.flatMap(launchedOther)),
};

/** Starts the client, and returns its exit code when it ends; if a signal ended it, 128 plus the signal's number. */
export async function runClient({ args: [name = '', ...given], context }: Call): Promise<number> {
  // Drop a -- directly behind the client's name. All else belongs to the client, a later -- too.
  const args = given[0] === '--' ? given.slice(1) : given;
  const client = Object.hasOwn(CLIENTS, name) ? CLIENTS[name] : undefined;
  if (client === undefined) {
    throw new CliError(
      `svc run knows ${Object.keys(CLIENTS).join(', ')}.`,
      'For any other client use the address from svc status and the token from: svc config token',
      2,
    );
  }
  const { environment, terminal } = context;
  const { program, install } = client;
  // Check this first, so that no proxy is started for a client that is missing.
  if (!isInstalled(environment, program)) {
    throw new CliError(`${program} is not installed here.`, `Install it: ${install}`);
  }
  const upstreams = upstreamEntries((await prepareConfig(context)).value);
  const upstream = upstreams.find((one) => one['apiStyle'] === client.dialects[0]);
  if (upstream === undefined && client.dialects.length === 1) {
    const hasLogin = client === CLAUDE || client === CODEX;
    throw unservedError(name, client.dialects[0], hasLogin ? name : undefined);
  }
  const { proxy, proxies, isNew } = await ensureProxy({}, context, PATIENCE_MS);
  if (isNew) terminal.note(`svc listens on ${urlOf(proxy)}; stop it with: svc stop`);
  const { host, port } = proxy;
  const launch = await client.launch({
    host,
    port,
    localToken: proxies.access.localToken,
    environment,
    upstream,
    upstreams,
    args,
    version: () => versionOf(program, environment),
  });
  for (const note of launch.notes) terminal.note(note);
  const since = Date.now();
  const leave = keepProxy(proxy, context);
  const code = await runProgram(program, [...launch.args, ...args], launch.environment).finally(
    leave,
  );
  const totals = runTotals(dataFolder(environment), since, name);
  if (totals !== undefined && totals.requests > 0) terminal.note(runText(totals));
  return code;
}

/**
 * Starts a killed or crashed proxy again at the same address, because the client knows no other address; if another
 * proxy of this configuration already listens there, watches that proxy instead. A proxy that a person stopped stays
 * stopped, and a failed start ends the checks. It prints nothing itself, because the client owns the screen; only the
 * start prints a warning if the configuration was open to others, or if it finds a proxy of another build. Returns a
 * function that ends the checks.
 */
function keepProxy({ pid, port, flags }: OwnProxy, context: CommandContext): () => void {
  const folder = dataFolder(context.environment);
  let kept: number | undefined = pid;
  const timer = setInterval(() => {
    if (kept === undefined || !wasKilled(folder, kept)) return;
    kept = undefined;
    ensureProxy({ ...flags, port: `${port}` }, context).then(
      ({ proxy }) => (kept = proxy.pid),
      () => clearInterval(timer),
    );
  }, LOOK_MS).unref();
  return () => clearInterval(timer);
}

/** Describes what svc did since the client started. Requests of other windows of the client count too. */
function runText(totals: RunTotals): string {
  const { requests, recalled, late, failed, paid, direct, misses, missedTokens } = totals;
  const kept = Math.round(direct - paid);
  const price = kept < 0 ? `${short(-kept)} tokens more than direct` : `${short(kept)} tokens kept`;
  return [
    `svc in this run: ${count(requests, 'request')}`,
    `memories for ${count(recalled, 'prompt')}`,
    ...(late === 0 ? [] : [`memory too late for ${count(late, 'request')}`]),
    ...(failed === 0 ? [] : [`no memory for ${count(failed, 'request')} (why: svc doctor)`]),
    ...(direct === 0 || kept === 0 ? [] : [price]),
    ...(misses === 0
      ? []
      : [`${count(misses, 'cache miss', 'cache misses')} of ${short(missedTokens)} tokens`]),
  ]
    .join(', ')
    .concat('. See: svc ui');
}

/** Signals from a user or a service manager, which are passed to the client. */
const PASSED_ON: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGHUP', 'SIGINT', 'SIGQUIT'];
/** A terminal sends these to the client too. If svc passed them on, the second one could end the client at once. */
const FROM_TERMINAL: readonly NodeJS.Signals[] = ['SIGINT', 'SIGQUIT'];

function runProgram(
  program: string,
  args: readonly string[],
  environment: Environment,
): Promise<number> {
  // On Windows npm installs clients as .cmd files, which `spawn` of cross-spawn starts through a shell.
  const child = spawn(program, [...args], { env: { ...environment }, stdio: 'inherit' });
  const isOnTerminal = [0, 1, 2].some((descriptor) => isatty(descriptor));
  const passOn = (signal: NodeJS.Signals): void => {
    if (!isOnTerminal || !FROM_TERMINAL.includes(signal)) child.kill(signal);
  };
  for (const signal of PASSED_ON) process.on(signal, passOn);
  return new Promise<number>((resolve, reject) => {
    child.on('error', () => {
      const hint = `Try it by itself: ${program} --version`;
      reject(new CliError(`${program} could not be started.`, hint));
    });
    child.on('exit', (code, signal) => {
      resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal]));
    });
  }).finally(() => {
    for (const signal of PASSED_ON) process.off(signal, passOn);
  });
}
