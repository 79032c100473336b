import {
  type ConfigFile,
  configPath,
  readConfigFile,
  type LooseMode,
  repairModes,
} from '../../adapters/files/config-file.ts';
import { findLeftovers, removeLeftovers } from '../../adapters/files/config-writer.ts';
import { FileError, folderHint } from '../../adapters/files/file-error.ts';
import { type Draft, upstreamEntries } from '../../core/settings/config-draft.ts';
import { flagNameOf, PROXY_FLAG_NAMES, STATED_DEFAULTS } from '../../core/settings/config-proxy.ts';
import {
  type Access,
  isNoToken,
  parseAccess,
  parseConfig,
} from '../../core/settings/config-schema.ts';
import {
  type Environment,
  keyEnd,
  namedVariable,
  type Problem,
  problemText,
  variableText,
} from '../../core/settings/config-values.ts';
import { asList, asRecord, asText, isRecord } from '../../core/bytes/json-fields.ts';
import { type Check, FIX, looseCheck } from './checks.ts';
import {
  findUnwritable,
  looseDataFiles,
  tightenDataFiles,
} from '../../adapters/files/data-files.ts';
import { dataFolder, configFolder } from '../../adapters/files/own-folders.ts';
import { folderMode, isPrivate, tightenFolder } from '../../adapters/files/private-folder.ts';
import type { CommandContext } from '../context.ts';
import { CliError } from '../cli-error.ts';
import { SETUP } from '../setup/load-config.ts';
import { saveConfig } from '../setup/setup-save.ts';

/**
 * Checks the configuration: its file, modes, settings and upstreams. Also returns the proxy's address and token if they
 * can be read. `hasHooks`: a client gets memory through hooks, so a missing provider is no problem.
 */
export async function checkConfig(
  environment: Environment,
  hasHooks: boolean,
): Promise<{ readonly checks: readonly Check[]; readonly access?: Access }> {
  const folder = configFolder(environment);
  const path = configPath(folder);
  let file: ConfigFile | undefined;
  try {
    file = await readConfigFile(folder);
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
    const { message: found, hint: fix } = error;
    return { checks: [{ level: 'problem', subject: 'Configuration', found, fix }] };
  }
  if (file === undefined && hasHooks) {
    const found = `${path} does not exist: hooks need none, and keep the memory on this machine`;
    return { checks: [{ level: 'ok', subject: 'Configuration', found }] };
  }
  if (file === undefined) {
    const unwritable = await findUnwritable(folder);
    const found = `${path} does not exist${unwritable === undefined ? '' : `, and you may not write to ${unwritable}`}`;
    const fix = unwritable === undefined ? SETUP : folderHint('');
    return { checks: [{ level: 'problem', subject: 'Configuration', found, fix }] };
  }
  const checks = [
    ...checkModes(file),
    ...(await checkLeftovers(folder)),
    ...checkContents(file, environment, hasHooks),
  ];
  const { access } = parseAccess(file.value, environment);
  return access === undefined ? { checks } : { checks, access };
}

function checkModes({ path, looseModes: all }: ConfigFile): readonly Check[] {
  if (all.length === 0) {
    return [{ level: 'ok', subject: 'Configuration', found: `${path}, private` }];
  }
  return all.map((loose) => looseCheck('Configuration', loose));
}

/** Reports temporary copies of the configuration that an interrupted write left. They may contain keys. */
async function checkLeftovers(folder: string): Promise<readonly Check[]> {
  const paths = await findLeftovers(folder);
  return paths.map((path) => ({
    level: 'warning',
    subject: 'Configuration',
    found: `${path} was left by an interrupted write, and may contain keys`,
    fix: FIX,
  }));
}

function checkContents(
  { path, value }: ConfigFile,
  environment: Environment,
  hasHooks: boolean,
): readonly Check[] {
  const { problems, warnings: all } = parseConfig(value, environment);
  const warnings = all.filter((warning) => !hasHooks || warning.path !== 'upstreams');
  return [
    ...problems.map((problem): Check => ({
      level: 'problem',
      subject: 'Setting',
      found: problemText(problem),
      fix: mendOf(problem, { path, value }),
    })),
    ...warnings.map((warning): Check => ({
      level: 'warning',
      subject: 'Setting',
      found: problemText(warning),
      fix: warning.path === 'upstreams' ? 'svc setup' : `Edit ${path}`,
    })),
    ...upstreamEntries(value).map((one) => checkUpstream(one, environment)),
  ];
}

/** Returns the command that fixes a problem; without such a command, the file to edit. */
function mendOf(
  { path: at, origin, variable }: Problem,
  { path, value }: { readonly path: string; readonly value: unknown },
): string {
  if (variable !== undefined) {
    return `export ${variable}=…, in the shell that runs svc start`;
  }
  if (origin !== undefined) return `unset ${origin}`;
  if (at === 'localToken' && isRecord(value)) {
    return isNoToken(value['localToken'])
      ? FIX
      : `Take localToken out of ${path}, then run: ${FIX}`;
  }
  const setting = PROXY_FLAG_NAMES.find((name) => at === `proxy.${name}`);
  if (setting !== undefined) {
    return `svc setup --yes ${flagNameOf(setting)} ${STATED_DEFAULTS[setting]}`;
  }
  const upstream = upstreamAt(value, at);
  if (upstream === undefined) return `Edit ${path}`;
  if (at.endsWith('.providerKey')) return `svc setup --yes --upstream ${upstream} --key-stdin`;
  if (at.endsWith('.baseUrl')) return `svc setup --yes --upstream ${upstream} --base-url https://…`;
  if (at.endsWith('.apiStyle')) return `svc setup --yes --remove ${upstream}, and add it again`;
  return `Edit ${path}`;
}

/** Returns the name of the upstream in a path such as 'upstreams[0].baseUrl'; undefined if it has no valid name. */
function upstreamAt(value: unknown, path: string): string | undefined {
  const index = /^upstreams\[(\d+)\]/.exec(path)?.[1];
  const one = asList(asRecord(value)['upstreams'])[Number(index)];
  const name = wordOf(asRecord(one)['name']);
  return name === '?' ? undefined : name;
}

/**
 * Describes an upstream. A user may have written a key to the wrong place, so only texts that look like a name, a style
 * or a host are shown, and of the key itself only the end.
 */
function checkUpstream(upstream: Draft, environment: Environment): Check {
  const name = wordOf(upstream['name']);
  const style = wordOf(upstream['apiStyle']);
  const base = asText(upstream['baseUrl']);
  const host = URL.canParse(base) ? new URL(base).host : '?';
  const pays =
    upstream['auth'] === 'client'
      ? 'the login of its client'
      : `key: ${keyText(upstream['providerKey'], environment)}`;
  return { level: 'ok', subject: 'Upstream', found: `${name}, ${style}, ${host}, ${pays}` };
}

function wordOf(value: unknown): string {
  return typeof value === 'string' && WORD.test(value) ? value : '?';
}

/** Matches what may be a name or a style. A text with five digits or more may be a key. */
const WORD = /^(?!(?:.*\d){5})[a-z0-9][a-z0-9_-]{0,39}$/;

function keyText(value: unknown, environment: Environment): string {
  const name = namedVariable(value);
  if (name !== undefined) {
    return `in ${variableText(name)}, ${environment[name] ? 'set' : 'not set'}`;
  }
  return typeof value === 'string' && value !== '' ? keyEnd(value) : 'none';
}

/**
 * Runs the repairs of `svc doctor --fix`: makes files private, removes copies that an interrupted write left, and
 * creates a missing local token. Keys, ports, addresses and clients' files are the user's decision.
 */
export async function fixAll(context: CommandContext): Promise<void> {
  await fixModes(context);
  await mendOrLeave(async () => {
    const folder = configFolder(context.environment);
    for (const path of await removeLeftovers(folder)) context.terminal.note(`Removed: ${path}`);
  });
  await mendOrLeave(() => addToken(context));
}

/** Allows functions to change modes, because the user has asked for it. */
const ASKED = { asked: true };

/** Makes svc's folders and files private. Call it only if the user has asked for that. */
export async function fixModes({ environment, terminal }: CommandContext): Promise<void> {
  const mended: string[] = [];
  await mendOrLeave(async () => {
    mended.push(...(await repairModes(configFolder(environment), ASKED)));
    const data = dataFolder(environment);
    if ((await folderMode(data)) === undefined) return;
    if (await tightenFolder(data, ASKED)) mended.push(data);
    mended.push(...(await tightenDataFiles(data)));
  });
  for (const path of mended) terminal.note(`Made private: ${path}`);
}

/** Returns the folders and files of svc that others may read or write, up to the first that cannot be checked. */
export async function looseModes(
  environment: CommandContext['environment'],
): Promise<readonly LooseMode[]> {
  const loose: LooseMode[] = [];
  await mendOrLeave(async () => {
    const config = await readConfigFile(configFolder(environment));
    loose.push(...(config?.looseModes ?? (await looseFolder(configFolder(environment)))));
    const path = dataFolder(environment);
    loose.push(...(await looseFolder(path)), ...(await looseDataFiles(path)));
  });
  return loose;
}

async function looseFolder(path: string): Promise<readonly LooseMode[]> {
  const mode = await folderMode(path);
  return mode === undefined || isPrivate(mode) ? [] : [{ path, mode }];
}

/** Adds a local token if there is none. It never replaces one, because clients may have it in their settings. */
async function addToken(context: CommandContext): Promise<void> {
  const file = await readConfigFile(configFolder(context.environment));
  if (!isRecord(file?.value) || !isNoToken(file.value['localToken'])) return;
  await saveConfig({ upstreams: [], settings: {}, removed: [], replace: false }, context);
  context.terminal.note('Created a local token.');
}

/** Runs a repair, and ignores its errors, such as a link or another owner. The checks report them. */
async function mendOrLeave(mend: () => Promise<void>): Promise<void> {
  try {
    await mend();
  } catch (error) {
    if (!(error instanceof FileError) && !(error instanceof CliError)) throw error;
  }
}
