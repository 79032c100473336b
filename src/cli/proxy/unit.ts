import { execFile } from 'node:child_process';
import { lstat, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { namedVariable, type Environment } from '../../core/settings/config-values.ts';
import { CliError, type ExitCode } from '../cli-error.ts';
import { type CommandContext, scriptPath } from '../context.ts';
import { withoutCredentials } from '../../core/settings/network-proxy.ts';
import { keyVariables, storedUpstreams } from '../setup/load-config.ts';
import { OwnProxies } from './own-proxies.ts';

/** Installs the proxy as a service of the user, with systemd or launchd, which starts it at every login. */

export interface UnitOptions {
  readonly print?: boolean;
}

export interface UnitParts {
  /** As process.platform. */
  readonly platform: string;
  readonly node: string;
  readonly script: string;
  /** Deadline for the installed proxy to answer, in milliseconds. */
  readonly startMs: number;
}

const OWN: UnitParts = {
  platform: process.platform,
  node: process.execPath,
  script: scriptPath(),
  startMs: 20_000,
};
const POLL_MS = 100;

/** Runs `svc start --at-login`: writes the service's file, and starts the service. `print`: only prints the file. */
export async function installUnit(
  { print }: UnitOptions,
  context: CommandContext,
  parts = OWN,
): Promise<ExitCode> {
  const { environment, terminal } = context;
  const ofUpstreams = (await storedUpstreams(environment)).map((one) =>
    namedVariable(one['proxy']),
  );
  const proxies = [...PROXIES, ...ofUpstreams.filter((name) => name !== undefined)];
  const manager = managerFor(environment, parts, proxies);
  if (print === true) {
    terminal.out(manager.text.trimEnd());
    return 0;
  }
  const running = await OwnProxies.of(environment);
  const fromShell = await keyVariables(environment);
  await mkdir(dirname(manager.file), { recursive: true });
  await writeFile(manager.file, manager.text);
  terminal.note(`Wrote ${manager.file}`);
  if (fromShell.length > 0) {
    terminal.warn(
      `The unit does not see the variables of your shell: ${fromShell.join(', ')}. Store the key in the file with: svc setup`,
    );
  }
  const bare = proxies.filter((name) => {
    const value = environment[name] ?? '';
    return value.includes('@') && withoutCredentials(value) !== '';
  });
  if (bare.length > 0) {
    terminal.warn(
      `${bare.join(', ')} contains a user name and password, which svc did not write into the unit. Add them to the file yourself, after: chmod 600 ${manager.file}`,
    );
  }
  await runAll(manager.install);
  // The service manager reports success even if the program ends at once, as svc does without its key.
  const until = performance.now() + parts.startMs;
  while ((await running.find()).own.length === 0) {
    if (performance.now() > until) {
      throw new CliError('The service is installed, but its proxy does not answer.', manager.hint);
    }
    await sleep(POLL_MS);
  }
  terminal.note('svc runs now and starts at every login. See: svc status');
  return 0;
}

/** Returns the path of the service's file; undefined if there is none, as on every system but Linux and macOS. */
export async function unitFileIn(
  environment: Environment,
  parts = OWN,
): Promise<string | undefined> {
  if (parts.platform !== 'linux' && parts.platform !== 'darwin') return undefined;
  const { file } = managerFor(environment, parts);
  return lstat(file).then(
    () => file,
    () => undefined,
  );
}

/**
 * Returns the paths of Node and svc in the service's file; undefined if there is no file. If one of them has moved, as
 * after an update of Node, the service fails at the next login.
 */
export async function unitPrograms(
  environment: Environment,
  parts = OWN,
): Promise<{ readonly file: string; readonly programs: readonly string[] } | undefined> {
  const file = await unitFileIn(environment, parts);
  if (file === undefined) return undefined;
  const text = await readFile(file, 'utf8').catch(() => '');
  const words = parts.platform === 'linux' ? systemdWords(text) : plistWords(text);
  return { file, programs: words.filter((word) => isAbsolute(word)) };
}

function systemdWords(text: string): readonly string[] {
  const line = /^ExecStart=(.*)$/m.exec(text)?.[1] ?? '';
  return [...line.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, word = '']) =>
    word.replaceAll(/\\(.)|%%|\$\$/g, (pair, character?: string) => character ?? pair.charAt(0)),
  );
}

function plistWords(text: string): readonly string[] {
  const list = /<key>ProgramArguments<\/key>\s*<array>([^]*?)<\/array>/.exec(text)?.[1] ?? '';
  return [...list.matchAll(/<string>([^<]*)<\/string>/g)].map(([, word = '']) =>
    word.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&'),
  );
}

export async function uninstallUnit(context: CommandContext, parts = OWN): Promise<ExitCode> {
  const manager = managerFor(context.environment, parts);
  // Continue after an error, because the service manager refuses to stop a service that does not run.
  await runAll(manager.uninstall).catch((error: unknown) => {
    if (!(error instanceof CliError)) throw error;
    for (const line of error.lines) context.terminal.warn(line);
  });
  await rm(manager.file, { force: true });
  context.terminal.note(`Removed ${manager.file}`);
  return 0;
}

function managerFor(environment: Environment, parts: UnitParts, proxies: readonly string[] = []) {
  const variables = [...keptVariables(environment), ...networkVariables(environment, proxies)];
  const facts: UnitFacts = { ...parts, environment: variables };
  const home = environment['HOME'] || homedir();
  if (parts.platform === 'linux') {
    const shared = environment['XDG_CONFIG_HOME'] ?? '';
    const folder = isAbsolute(shared) ? shared : join(home, '.config');
    const name = 'svc-local-proxy.service';
    return {
      file: join(folder, 'systemd', 'user', name),
      text: systemdUnit(facts),
      install: [
        ['systemctl', '--user', 'daemon-reload'],
        ['systemctl', '--user', 'enable', '--now', name],
      ],
      uninstall: [['systemctl', '--user', 'disable', '--now', name]],
      hint: `See why: journalctl --user -u ${name}`,
    };
  }
  if (parts.platform === 'darwin') {
    const file = join(home, 'Library', 'LaunchAgents', `${LAUNCHD_LABEL}.plist`);
    return {
      file,
      text: launchdPlist(facts),
      install: [['launchctl', 'load', '-w', file]],
      uninstall: [['launchctl', 'unload', '-w', file]],
      hint: 'See why: svc start',
    };
  }
  throw new CliError(
    'svc start --at-login works with systemd (Linux) and launchd (macOS).',
    'Elsewhere: svc start --detach',
  );
}

/** Returns the variables of svc's folders and certificates, which the service does not get from a shell. */
function keptVariables(environment: Environment): readonly (readonly [string, string])[] {
  const names = [
    'SVC_CONFIG_HOME',
    'SVC_DATA_HOME',
    'XDG_CONFIG_HOME',
    'XDG_DATA_HOME',
    'NODE_EXTRA_CA_CERTS',
  ];
  return names.flatMap((name) => {
    const value = environment[name] ?? '';
    // Leave out a value that is no absolute path, or has a control character: a line break would end its line in
    // the file.
    return isAbsolute(value) && !/\p{Cc}/u.test(value) ? [[name, value] as const] : [];
  });
}

const PROXIES = ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy'];

/** Returns the variables of network proxies, without credentials, and those that list the hosts without a proxy. */
function networkVariables(
  environment: Environment,
  proxies: readonly string[],
): readonly (readonly [string, string])[] {
  const ways = proxies.map((name) => [name, withoutCredentials(environment[name] ?? '')] as const);
  const spared = ['NO_PROXY', 'no_proxy'].map((name) => {
    const value = environment[name] ?? '';
    return [name, /^[\u0020-\u007e]{1,4096}$/.test(value) ? value : ''] as const;
  });
  return [...new Map([...ways, ...spared])].filter(([, value]) => value !== '');
}

/** Deadline of a command of the service manager, in milliseconds: one that asks for a password would never end. */
const COMMAND_MS = 30_000;

async function runAll(commands: readonly (readonly string[])[]): Promise<void> {
  for (const [program = '', ...args] of commands) {
    try {
      await promisify(execFile)(program, args, { timeout: COMMAND_MS });
    } catch (cause) {
      const isMissing = cause instanceof Error && 'code' in cause && cause.code === 'ENOENT';
      const what = isMissing ? 'is not there' : 'failed';
      throw new CliError(
        `${[program, ...args].join(' ')}: ${what}.`,
        'Without a service manager: svc start --detach',
      );
    }
  }
}

/** What the service's file contains: no secret, because keys come from the configuration file. */
interface UnitFacts {
  /** Absolute path of the Node program. */
  readonly node: string;
  /** Absolute path of svc's script. */
  readonly script: string;
  /** The variables of keptVariables() and networkVariables(). */
  readonly environment: readonly (readonly [name: string, value: string])[];
}

/** Returns the text of a systemd unit: https://www.freedesktop.org/software/systemd/man/systemd.service.html */
export function systemdUnit({ node, script, environment }: UnitFacts): string {
  return [
    '[Unit]',
    'Description=svc local proxy: memory for coding agents',
    'After=network-online.target',
    // Give up after five failed starts in a minute, because with a wrong configuration every start fails. In the
    // default window of 10 s there are never more than five starts, because each comes more than 2 s after the one
    // before.
    'StartLimitIntervalSec=60',
    'StartLimitBurst=5',
    '',
    '[Service]',
    ...environment.map(([name, value]) => `Environment=${systemdWord(`${name}=${value}`)}`),
    // systemd expands a $ in a command line, though not in Environment=, so double it here.
    `ExecStart=${[node, script].map(systemdWord).join(' ').replaceAll('$', '$$$$')} start --quiet`,
    'Restart=on-failure',
    'RestartSec=2',
    'NoNewPrivileges=true',
    '',
    '[Install]',
    'WantedBy=default.target',
    '',
  ].join('\n');
}

const LAUNCHD_LABEL = 'svc-local-proxy';

/** Returns the text of the file for launchd: see launchd.plist(5). */
export function launchdPlist({ node, script, environment }: UnitFacts): string {
  const variables = environment.flatMap(([name, value]) => [
    `    <key>${xmlText(name)}</key>`,
    `    <string>${xmlText(value)}</string>`,
  ]);
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">',
    '<plist version="1.0">',
    '<dict>',
    '  <key>Label</key>',
    `  <string>${LAUNCHD_LABEL}</string>`,
    '  <key>ProgramArguments</key>',
    '  <array>',
    ...[node, script, 'start', '--quiet'].map((word) => `    <string>${xmlText(word)}</string>`),
    '  </array>',
    '  <key>EnvironmentVariables</key>',
    '  <dict>',
    ...variables,
    '  </dict>',
    '  <key>RunAtLoad</key>',
    '  <true/>',
    '  <key>KeepAlive</key>',
    '  <dict>',
    '    <key>SuccessfulExit</key>',
    '    <false/>',
    '  </dict>',
    '</dict>',
    '</plist>',
    '',
  ].join('\n');
}

/** Quotes a word, so that systemd takes all its characters literally. ExecStart= must also double each $. */
function systemdWord(text: string): string {
  const literal = text.replaceAll(/[\\"]/g, (character) => `\\${character}`);
  return `"${literal.replaceAll('%', '%%')}"`;
}

function xmlText(text: string): string {
  const names: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' };
  return text.replaceAll(/[&<>]/g, (character) => names[character] ?? '');
}
