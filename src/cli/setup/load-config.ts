import { type ConfigFile, configPath, readConfigFile } from '../../adapters/files/config-file.ts';
import { findUnwritable } from '../../adapters/files/data-files.ts';
import { folderHint } from '../../adapters/files/file-error.ts';
import { configFolder } from '../../adapters/files/own-folders.ts';
import type { ProxyFlags } from '../../core/settings/config-proxy.ts';
import { type Access, parseAccess, parseConfig } from '../../core/settings/config-schema.ts';
import {
  type Environment,
  type Problem,
  problemText,
  namedVariable,
  variableText,
} from '../../core/settings/config-values.ts';
import { CliError } from '../cli-error.ts';
import type { Terminal } from '../terminal.ts';
import { type Draft, upstreamEntries } from '../../core/settings/config-draft.ts';
import type { Dialect } from '../../core/conversation/view.ts';
import { apiOf } from '../../core/dialects/apis.ts';

/** Reads the configuration for a command, and reports all its problems in one CliError. */

/** Returns the configuration file. If there is none, throws a CliError that says how to make one. */
export async function requireConfigFile(environment: Environment): Promise<ConfigFile> {
  const folder = configFolder(environment);
  const file = await readConfigFile(folder);
  if (file !== undefined) return file;
  const unwritable = await findUnwritable(folder);
  throw new CliError(
    `There is no configuration yet: ${configPath(folder)} does not exist.`,
    unwritable === undefined
      ? `Create one with: ${SETUP}`
      : `You may not write to ${unwritable}. ${folderHint('')}`,
  );
}

/** The command that makes a configuration without questions. */
export const SETUP = 'svc setup --yes --upstream anthropic --key-env ANTHROPIC_API_KEY';

export async function loadAccess(environment: Environment): Promise<Access> {
  const file = await requireConfigFile(environment);
  const { access, problems } = parseAccess(file.value, environment);
  if (access === undefined) throw configError(file.path, problems);
  return access;
}

/** Returns the settings. A flag overrides an environment variable, and a variable overrides the file. */
export function settingsOf(file: ConfigFile, environment: Environment, flags: ProxyFlags) {
  const { settings, problems, warnings } = parseConfig(file.value, environment, flags);
  if (settings === undefined) throw configError(file.path, problems);
  return { settings, warnings };
}

/** Returns an error with a line for each problem. Its exit code is 2, wrong usage, if all problems are in flags. */
export function configError(path: string, problems: readonly Problem[]): CliError {
  const isUsage = problems.every(isOfFlag);
  return new CliError(problems.map(problemText), hintFor(path, problems), isUsage ? 2 : 1);
}

/**
 * Returns what the user must do: read the help if only flags are wrong, make a local token if only that is wrong,
 * change variables if the file itself is right, and otherwise correct the file.
 */
function hintFor(path: string, problems: readonly Problem[]): string {
  if (problems.every(isOfFlag)) return 'See: svc start --help';
  if (problems.every((one) => one.path === 'localToken' && !isOfEnvironment(one))) {
    const isNone = problems.every(({ found }) => found === 'nothing');
    return `${isNone ? '' : `Take localToken out of ${path}. `}Make a new token with: svc doctor --fix`;
  }
  if (!problems.every(isOfEnvironment)) return `Correct ${path}, then check it with: svc doctor`;
  const overrides = unique(problems.flatMap(({ origin }) => origin ?? []));
  const variables = unique(problems.flatMap(({ variable }) => variable ?? []));
  const steps: string[] = [];
  if (overrides.length > 0) steps.push(`Correct it, or: unset ${overrides.join(' ')}`);
  if (variables.length > 0) {
    const names = variables.join(' and ');
    steps.push(
      `Set ${names} in svc's environment, or store the key in the file: ${keyCommand(problems)}`,
    );
  }
  return steps.join('; ');
}

function isOfFlag({ origin }: Problem): boolean {
  return origin?.startsWith('--') === true;
}

function isOfEnvironment(problem: Problem): boolean {
  return problem.variable !== undefined || (problem.origin !== undefined && !isOfFlag(problem));
}

function keyCommand(problems: readonly Problem[]): string {
  const keys = problems.filter(({ variable }) => variable !== undefined);
  return keys.every(({ path }) => path === 'memory.serviceKey')
    ? 'svc setup --yes --memory hosted --service-key-stdin'
    : 'svc setup --yes --upstream NAME --key-stdin';
}

function unique<T>(values: readonly T[]): readonly T[] {
  return [...new Set(values)];
}

export function warnOf(warnings: readonly Problem[], terminal: Terminal): void {
  for (const warning of warnings) terminal.warn(problemText(warning));
}

/** Returns the upstreams of the file without validation, because the variables of their keys may not be set here. */
export async function storedUpstreams(environment: Environment): Promise<readonly Draft[]> {
  return upstreamEntries((await requireConfigFile(environment)).value);
}

/** Returns the variables with the providers' keys that the configuration names, as a shell writes them. */
export async function keyVariables(environment: Environment): Promise<readonly string[]> {
  const keys = (await storedUpstreams(environment)).map((one) => namedVariable(one['providerKey']));
  return unique(keys.filter((name) => name !== undefined).map(variableText));
}

export async function storedUpstream(
  environment: Environment,
  apiStyle: Dialect,
): Promise<Draft | undefined> {
  const upstreams = await storedUpstreams(environment);
  return upstreams.find((one) => one['apiStyle'] === apiStyle);
}

/**
 * Returns the error for a client whose API no provider serves. `login`: the client's name for `--login`, if it has one.
 */
export function unservedError(title: string, apiStyle: Dialect, login?: string): CliError {
  const subscription =
    login === undefined ? '' : `, or with its subscription: svc setup --yes --login ${login}`;
  return new CliError(
    `${title} uses ${apiStyle}, and svc has no provider for that API.`,
    `Add one: svc setup --yes --upstream ${apiOf(apiStyle).provider}${subscription}`,
  );
}

/** Returns a warning that no provider of this API style is configured. */
export function missingUpstreamText(apiStyle: Dialect): string {
  const { provider } = apiOf(apiStyle);
  return `No provider for ${apiStyle} is configured. Add one: svc setup --yes --upstream ${provider}`;
}
