import { configPath } from '../adapters/config-file.ts';
import { configFolder } from '../adapters/config-folder.ts';
import type { Environment } from '../core/config-values.ts';
import type { ExitCode } from './cli-error.ts';
import type { CommandContext } from './context.ts';
import { type Check, checkConfig, checkNode, checkPort, checkStore } from './doctor-checks.ts';
import { checkClients } from './doctor-clients.ts';
import { fixModes } from './doctor-fix.ts';
import { checkProviders, checkRunning } from './doctor-live.ts';
import type { OpenUpstream } from './key-check.ts';
import type { inspectStore } from './store-for-cli.ts';
import type { Colors } from './terminal.ts';
import { printable } from './terminal.ts';

/** `svc doctor`: what is right, what is not, and the command that mends it. No secret, ever. */

export interface DoctorOptions {
  readonly json?: boolean;
  /** Asks no provider. */
  readonly offline?: boolean;
  readonly fix?: boolean;
}

export interface DoctorParts {
  readonly openUpstream: OpenUpstream;
  readonly inspectStore: typeof inspectStore;
  /** As process.versions.node has it. */
  readonly nodeVersion: string;
}

export async function doctor(
  options: DoctorOptions,
  { environment, terminal }: CommandContext,
  parts: DoctorParts,
): Promise<ExitCode> {
  if (options.fix === true) await fixModes({ environment, terminal });
  const checks = await runChecks(options, environment, parts);
  const problems = checks.filter(({ level }) => level === 'problem').length;
  if (options.json === true) {
    terminal.json({ ok: problems === 0, config: configPath(configFolder(environment)), checks });
  } else {
    for (const check of checks) terminal.out(checkText(check, terminal.colors));
    const warnings = checks.filter(({ level }) => level === 'warning').length;
    terminal.note(`${count(problems, 'problem')}, ${count(warnings, 'warning')}.`);
  }
  return problems === 0 ? 0 : 1;
}

async function runChecks(
  { offline }: DoctorOptions,
  environment: Environment,
  parts: DoctorParts,
): Promise<readonly Check[]> {
  const { checks: config, access } = await checkConfig(environment);
  return [
    checkNode(parts.nodeVersion),
    ...config,
    await checkStore(environment, parts.inspectStore),
    ...(access === undefined ? [] : [await checkPort(access)]),
    ...(access === undefined ? [] : await checkRunning(environment, access)),
    ...(offline === true ? [] : await checkProviders(environment, parts.openUpstream)),
    ...checkClients(environment, access),
  ];
}

function checkText({ level, subject, found, fix }: Check, colors: Colors): string {
  const color = { ok: colors.green, warning: colors.yellow, problem: colors.red }[level];
  const line = printable(`${subject}: ${found}`);
  const mend = fix === undefined ? '' : `\n         ${printable(fix)}`;
  return `${color(level.padEnd(7))}  ${line}${mend}`;
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}
