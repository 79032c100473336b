import {
  type ConfigFile,
  readConfigFile,
  repairModes,
  watchConfig,
} from '../../adapters/files/config-file.ts';
import { cacheFolder, dataFolder, configFolder } from '../../adapters/files/own-folders.ts';
import { DETACHED } from '../../adapters/processes/background.ts';
import { HeapBound } from '../../adapters/processes/heap-bound.ts';
import {
  keepRunFile,
  removeRunFile,
  type RunFile,
  writeRunFile,
} from '../../adapters/processes/run-files.ts';
import type { ProxyFlags } from '../../core/settings/config-proxy.ts';
import { upstreamsFromEnvironment } from '../../core/settings/config-draft.ts';
import type { Settings } from '../../core/settings/settings.ts';
import { digestOf } from '../../core/http/local-token.ts';
import { BUILD, VERSION } from '../../core/version.ts';
import { urlOf } from '../listing.ts';
import { CliError, type ExitCode, reportError } from '../cli-error.ts';
import type { RunningProxy, startProxy } from '../compose.ts';
import { type CommandContext, scriptPath } from '../context.ts';
import { listenError, type SignalSource, waitForStop } from './listener.ts';
import { requireConfigFile, settingsOf, warnOf } from '../setup/load-config.ts';
import { rowPrinter } from '../requests/request-lines.ts';
import { RefusedKeys, refusedKeyText } from './recent-trouble.ts';

/** Runs `svc start`: reads the configuration, and serves until it is stopped. */

export interface StartOptions {
  readonly flags: ProxyFlags;
  readonly quiet?: boolean;
  readonly json?: boolean;
  /** How to print a line for each request: 'text', 'json' or 'off'. The default is 'text' on a terminal, else 'off'. */
  readonly log?: string;
}

export interface StartParts {
  readonly startProxy: typeof startProxy;
  readonly signals: SignalSource;
}

/** Interval of checks that the run file exists, in milliseconds. A check takes one system call. */
const KEEP_MS = 5000;

const ADDRESS_WORDS = { command: 'svc start', look: 'svc doctor', usualPort: 8765 } as const;

export async function start(
  options: StartOptions,
  { environment, terminal }: CommandContext,
  { startProxy: open, signals }: StartParts,
): Promise<ExitCode> {
  const heaps = new HeapBound();
  const context = { environment, terminal };
  const file = await prepareConfig(context);
  const { settings, warnings } = settingsOf(file, environment, options.flags);
  warnOf(warnings, terminal);
  const folder = dataFolder(environment);
  const print = rowPrinter(options, terminal);
  const refused = new RefusedKeys(settings);
  let noteRefused: (() => void) | undefined;
  const proxy = await open({
    settings,
    dataFolder: folder,
    catalog: { folder: cacheFolder(environment), environment },
    terminal,
    onRow: (row) => {
      heaps.note(row);
      print?.(row);
      if (refused.note(row)) noteRefused?.();
    },
  }).catch((error: unknown) => {
    const { host, port } = settings.proxy;
    throw listenError(error, { host, port, ...ADDRESS_WORDS }) ?? error;
  });
  const { host, port } = proxy;
  const run = {
    pid: process.pid,
    host,
    port,
    version: VERSION,
    startedAt: Date.now(),
    build: BUILD,
    script: scriptPath(),
    isDetached: environment[DETACHED] === '1',
    flags: options.flags,
  };
  let { localToken } = settings;
  const runNow = (): RunFile => ({
    ...run,
    refusedKeys: refused.names,
    tokenDigest: digestOf(localToken).toString('base64url'),
  });
  const writeRun = (): void => void writeRunFile(folder, runNow()).catch(() => undefined);
  noteRefused = () => {
    for (const name of refused.names) terminal.warn(refusedKeyText(name));
    // `svc status` reads the names from the run file. Errors are ignored, because the file is only a hint.
    writeRun();
  };
  const onApplied = (next: Settings): void => {
    ({ localToken } = next);
    refused.use(next);
    writeRun();
  };
  const watch = followConfig({ file, settings, options, proxy, onApplied }, context);
  // Write the run file again if its folder was replaced. Without the file no command finds a proxy on port 0.
  const keeping = setInterval(() => void keepRunFile(folder, runNow()), KEEP_MS);
  keeping.unref();
  // Listen for signals before the address is printed, because the program that reads it may stop svc at once.
  const stopped = waitForStop(proxy, signals, terminal);
  try {
    await writeRunFile(folder, runNow()).catch((error: unknown) => {
      // The proxy also serves without a run file, for example on a full disk or in a read-only folder.
      reportError(error, terminal);
      terminal.warn('svc status and svc stop will not find this proxy.');
    });
    const url = urlOf(proxy);
    if (options.json === true) terminal.out(JSON.stringify({ url, host, port }));
    if (options.quiet !== true) {
      terminal.note(
        `svc listens on ${url}. Next, in the shell of your client: eval "$(svc print-config claude)", or see svc print-config codex.`,
      );
    }
    return await stopped;
  } catch (error) {
    await proxy.stop();
    throw error;
  } finally {
    clearInterval(keeping);
    watch.close();
    heaps.close();
    await removeRunFile(folder, process.pid);
  }
}

/**
 * Returns the configuration file, and makes it private. If there is no file, makes one from keys in the environment.
 */
export async function prepareConfig({
  environment,
  terminal,
}: CommandContext): Promise<ConfigFile> {
  const folder = configFolder(environment);
  const file = await readConfigFile(folder);
  if (file !== undefined) {
    if (file.looseModes.length === 0) return file;
    for (const path of await repairModes(folder)) {
      terminal.warn(`Others could read ${path}. svc made it private.`);
    }
    return requireConfigFile(environment);
  }
  const upstreams = upstreamsFromEnvironment(environment);
  if (upstreams.length === 0) {
    throw new CliError(
      'There is no configuration yet, and neither ANTHROPIC_API_KEY nor OPENAI_API_KEY is set.',
      'Add a provider: svc setup --yes --upstream anthropic --key-env ANTHROPIC_API_KEY',
    );
  }
  const { writeDerivedConfig } = await import('../setup/setup-save.ts');
  await writeDerivedConfig(folder, upstreams, { environment, terminal });
  return requireConfigFile(environment);
}

interface Followed {
  readonly file: ConfigFile;
  readonly settings: Settings;
  readonly options: StartOptions;
  readonly proxy: RunningProxy;
  readonly onApplied: (next: Settings) => void;
}

/**
 * Applies each change of the configuration file if it is valid as a whole, except for a new address or a new place of
 * memories, which need a restart. If the file is not valid, prints the problems.
 */
function followConfig(
  { file, settings, options, proxy, onApplied }: Followed,
  { environment, terminal }: CommandContext,
): { close(): void } {
  const reload = async (): Promise<void> => {
    const changed = await requireConfigFile(environment);
    const next = settingsOf(changed, environment, options.flags).settings;
    proxy.apply(next);
    onApplied(next);
    terminal.note('svc uses the changed configuration now.');
    if (next.proxy.host !== settings.proxy.host || next.proxy.port !== settings.proxy.port) {
      terminal.warn('A new address applies after a restart of svc.');
    }
  };
  return watchConfig(file, () => {
    void reload().catch((error: unknown) => {
      terminal.warn('The changed configuration is not valid; svc keeps the old one.');
      reportError(error, terminal);
    });
  });
}
