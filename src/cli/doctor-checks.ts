import { type ConfigFile, configPath, readConfigFile } from '../adapters/config-file.ts';
import { configFolder } from '../adapters/config-folder.ts';
import { dataFolder } from '../adapters/data-folder.ts';
import { FileError } from '../adapters/file-error.ts';
import { probeProxy } from '../adapters/health-probe.ts';
import { folderMode, isPrivate } from '../adapters/private-folder.ts';
import { type Access, parseAccess, parseConfig } from '../core/config-schema.ts';
import {
  type Environment,
  isEnvironmentName,
  isRecord,
  problemText,
  variableText,
} from '../core/config-values.ts';
import { shellQuote } from '../core/shell-quote.ts';
import { otherPort } from './addresses.ts';
import { CliError } from './cli-error.ts';
import type { inspectStore } from './store-for-cli.ts';

/** One thing that doctor looked at. */
export interface Check {
  readonly level: 'ok' | 'warning' | 'problem';
  readonly subject: string;
  readonly found: string;
  /** What mends it, a command where there is one. */
  readonly fix?: string;
}

export function checkNode(version: string): Check {
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number);
  // undici 7 and the engines field of package.json ask for 20.18.1.
  const isOld = major < 20 || (major === 20 && (minor < 18 || (minor === 18 && patch < 1)));
  if (!isOld) return { level: 'ok', subject: 'Node', found: version };
  const fix = 'Install Node 22 or newer.';
  return { level: 'problem', subject: 'Node', found: `${version}, svc needs 20.18.1`, fix };
}

/** Folder, modes, contents and upstreams; the address where it can be told. */
export async function checkConfig(
  environment: Environment,
): Promise<{ readonly checks: readonly Check[]; readonly access?: Access }> {
  const path = configPath(configFolder(environment));
  let file: ConfigFile | undefined;
  try {
    file = await readConfigFile(configFolder(environment));
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
    const { message: found, hint: fix } = error;
    return { checks: [{ level: 'problem', subject: 'Configuration', found, fix }] };
  }
  if (file === undefined) {
    const fix = 'svc setup --yes --upstream anthropic --key-env ANTHROPIC_API_KEY';
    const found = `${path} does not exist`;
    return { checks: [{ level: 'problem', subject: 'Configuration', found, fix }] };
  }
  const checks = [...checkModes(file), ...checkContents(file, environment)];
  const { access } = parseAccess(file.value, environment);
  return access === undefined ? { checks } : { checks, access };
}

function checkModes({ path, looseModes }: ConfigFile): readonly Check[] {
  if (looseModes.length === 0) {
    return [{ level: 'ok', subject: 'Configuration', found: `${path}, private` }];
  }
  return looseModes.map((loose) => ({
    level: 'problem',
    subject: 'Configuration',
    found: `${loose.path} is open to others (mode 0${loose.mode.toString(8)})`,
    fix: 'svc setup --yes',
  }));
}

function checkContents({ path, value }: ConfigFile, environment: Environment): readonly Check[] {
  const { problems, warnings } = parseConfig(value, environment);
  return [
    ...problems.map((problem): Check => ({
      level: 'problem',
      subject: 'Setting',
      found: problemText(problem),
      fix: problem.isUnset === true ? 'Set the variable where svc start runs.' : `Edit ${path}`,
    })),
    ...warnings.map((warning): Check => ({
      level: 'warning',
      subject: 'Setting',
      found: problemText(warning),
    })),
    ...upstreamsIn(value).map(checkUpstream(environment)),
  ];
}

function upstreamsIn(value: unknown): readonly Record<string, unknown>[] {
  const upstreams = isRecord(value) ? value['upstreams'] : undefined;
  return Array.isArray(upstreams) ? upstreams.filter((one) => isRecord(one)) : [];
}

// What is listed was written by hand, perhaps in the wrong place: only what reads like a name, a
// style or a host is shown.
function checkUpstream(environment: Environment): (upstream: Record<string, unknown>) => Check {
  return (upstream) => {
    const name = wordOf(upstream['name']);
    const style = wordOf(upstream['apiStyle']);
    const base = typeof upstream['baseUrl'] === 'string' ? upstream['baseUrl'] : '';
    const host = URL.canParse(base) ? new URL(base).host : '?';
    const key = keyText(upstream['providerKey'], environment);
    return { level: 'ok', subject: 'Upstream', found: `${name}, ${style}, ${host}, key: ${key}` };
  };
}

function wordOf(value: unknown): string {
  return typeof value === 'string' && /^[a-z][a-z_-]{0,39}$/.test(value) ? value : '?';
}

/** Tells keys apart for the person who knows them, and is of no use to anybody else. */
function keyText(value: unknown, environment: Environment): string {
  const name = isRecord(value) ? value['env'] : undefined;
  if (isEnvironmentName(name)) {
    return `in ${variableText(name)}, ${environment[name] ? 'set' : 'not set'}`;
  }
  if (typeof value !== 'string' || value === '') return 'none';
  // Four of forty characters; of a short key not even those.
  return value.length >= 24 ? `…${value.slice(-4)}` : '…';
}

export async function checkPort(access: Access): Promise<Check> {
  const subject = 'Port';
  const { host, port } = access;
  const place = `${host}:${port}`;
  if (port === 0) return { level: 'ok', subject, found: 'another one at every start' };
  const { listener, pid } = await probeProxy({ host, port }, access.localToken);
  if (pid !== undefined) return { level: 'ok', subject, found: `svc runs on ${place}` };
  if (listener === 'nobody') {
    return { level: 'ok', subject, found: `${place} is free; svc is not running` };
  }
  if (listener === 'svc') {
    const found = `the svc on ${place} does not know this configuration's token: it runs with another configuration, or is older`;
    return { level: 'problem', subject, found, fix: `Stop that svc, or: ${takePort(port)}` };
  }
  if (listener === 'unreachable') {
    const fix = 'svc setup --yes --host 127.0.0.1';
    return { level: 'problem', subject, found: `${host} is no address of this machine`, fix };
  }
  const does = listener === 'silent' ? 'does not answer' : 'is not svc';
  const fix = `Stop that program, or: ${takePort(port)}`;
  return { level: 'problem', subject, found: `what listens on ${place} ${does}`, fix };
}

function takePort(port: number): string {
  return `svc setup --yes --port ${otherPort(port)}`;
}

export async function checkStore(
  environment: Environment,
  inspect: typeof inspectStore,
): Promise<Check> {
  const subject = 'Store';
  try {
    const folder = dataFolder(environment);
    const mode = await folderMode(folder);
    if (mode !== undefined && !isPrivate(mode)) {
      const found = `${folder} is open to others (mode 0${mode.toString(8)})`;
      return { level: 'problem', subject, found, fix: `chmod 700 ${shellQuote(folder, 'sh')}` };
    }
    const health = await inspect(folder);
    if (health === undefined)
      return { level: 'ok', subject, found: `${folder}, nothing stored yet` };
    const { sqliteVersion, driver, problem } = health;
    if (problem !== undefined) return { level: 'problem', subject, found: problem };
    return { level: 'ok', subject, found: `${folder}, SQLite ${sqliteVersion} (${driver})` };
  } catch (error) {
    if (error instanceof FileError) {
      return { level: 'problem', subject, found: error.message, fix: error.hint };
    }
    const found = error instanceof CliError ? error.message : 'it cannot be looked into';
    return { level: 'warning', subject, found };
  }
}
