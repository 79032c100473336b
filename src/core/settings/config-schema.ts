import { parseServiceKey } from '../memory-api/service-key.ts';
import type { MemorySettings, ProxySettings, Settings, UpstreamSettings } from './settings.ts';
import type { MemoryMode } from '../http/modes.ts';
import { type ProxyFlags, readProxySettings } from './config-proxy.ts';
import { parseServiceUrl, readUpstreams } from './config-upstreams.ts';
import { readNetworkProxy } from './network-proxy.ts';
import { isOwnMachineUrl } from './own-machine.ts';
import {
  type Environment,
  Findings,
  namedVariable,
  type Problem,
  readCredential,
} from './config-values.ts';
import { asList, asRecord, asText, isRecord } from '../bytes/json-fields.ts';

/**
 * Combines the parsed configuration file, the environment and the flags into the settings of a proxy. All errors are
 * reported at once, and no report contains a secret.
 */

export interface ParsedConfig {
  /** The settings; undefined if there is any problem. */
  readonly settings?: Settings;
  readonly problems: readonly Problem[];
  readonly warnings: readonly Problem[];
}

// A memory service is on the network, so a recall needs more time. It gets little, because it delays the first byte.
const HOSTED_FALLBACKS = { recallMs: 600 } as const;

/** The settings that a client of the proxy needs. */
export interface Access {
  readonly host: string;
  readonly port: number;
  readonly localToken: string;
}

export const CONFIG_VERSION = 1;

const KEYS = ['version', 'proxy', 'memory', 'upstreams', 'localToken', 'ui'];

/** Validates a configuration. `value`: the parsed file. `flags`: the settings of the command line, as typed. */
export function parseConfig(
  value: unknown,
  environment: Environment,
  flags: ProxyFlags = {},
): ParsedConfig {
  const findings = new Findings();
  const file = readRoot(value, findings);
  const ofMemory = new Findings();
  const memory = readMemory(file['memory'], environment, ofMemory);
  const fallbacks = memory?.kind === 'hosted' ? HOSTED_FALLBACKS : {};
  const proxy = readProxySettings(file['proxy'], { environment, flags, fallbacks }, findings);
  // Report in the order of the file, although the proxy's defaults depend on the memory.
  findings.problems.push(...ofMemory.problems);
  findings.warnings.push(...ofMemory.warnings);
  const upstreams = readUpstreams(file['upstreams'], environment, findings);
  const localToken = readLocalToken(file['localToken'], environment, findings);
  const ui = findings.flag('ui', file['ui'], true);
  if (upstreams.some(({ providerKey }) => providerKey === localToken)) {
    refuseOwnToken(file['upstreams'], { environment, localToken }, findings);
  }
  refuseOwnAddress(file['upstreams'], proxy, findings);
  const { problems, warnings } = findings;
  if (problems.length > 0 || memory === undefined || localToken === undefined) {
    return { problems, warnings };
  }
  return { settings: { proxy, memory, upstreams, localToken, ui }, problems, warnings };
}

/** Returns the upstreams without a problem, whatever problems the rest of the configuration has. */
export function soundUpstreams(
  value: unknown,
  environment: Environment,
): readonly UpstreamSettings[] {
  const findings = new Findings();
  return readUpstreams(readRoot(value, findings)['upstreams'], environment, findings);
}

/** Validates only what a client needs: a missing provider key must not hide the local token. */
export function parseAccess(
  value: unknown,
  environment: Environment,
): { readonly access?: Access; readonly problems: readonly Problem[] } {
  const findings = new Findings();
  const file = readRoot(value, findings);
  const { host, port } = readProxySettings(file['proxy'], { environment }, findings);
  const localToken = readLocalToken(file['localToken'], environment, findings);
  const wanted = ['config', 'version', 'proxy', 'proxy.host', 'proxy.port', 'localToken'];
  const problems = findings.problems.filter(({ path }) => wanted.includes(path));
  if (problems.length > 0 || localToken === undefined) return { problems };
  return { access: { host, port, localToken }, problems };
}

/** Validates only where memories are and what may be done with them, which needs no provider. */
export function parseMemory(
  value: unknown,
  environment: Environment,
): {
  readonly memory?: MemorySettings;
  readonly mode: MemoryMode;
  readonly problems: readonly Problem[];
} {
  const findings = new Findings();
  const file = readRoot(value, findings);
  const memory = readMemory(file['memory'], environment, findings);
  const { memoryMode: mode } = readProxySettings(file['proxy'], { environment }, new Findings());
  const wanted = /^(?:config|version|memory(?:\..*)?)$/;
  const problems = findings.problems.filter(({ path }) => wanted.test(path));
  return problems.length > 0 || memory === undefined
    ? { mode, problems }
    : { memory, mode, problems };
}

/** Validates only what recall and capture need. `memory`: undefined if the file's member `memory` is invalid. */
export function parseRecall(
  value: unknown,
  environment: Environment,
): {
  readonly proxy: ProxySettings;
  readonly memory?: MemorySettings;
  /** The problems of the file as a whole and of its member `proxy`. */
  readonly problems: readonly Problem[];
} {
  const findings = new Findings();
  const file = readRoot(value, findings);
  const memory = readMemory(file['memory'], environment, new Findings());
  const fallbacks = memory?.kind === 'hosted' ? HOSTED_FALLBACKS : {};
  const proxy = readProxySettings(file['proxy'], { environment, fallbacks }, findings);
  return { proxy, ...(memory && { memory }), problems: findings.problems };
}

/** Validates only one upstream; other errors in the file do not matter. */
export function parseUpstream(
  value: unknown,
  environment: Environment,
): { readonly upstream?: UpstreamSettings; readonly problems: readonly Problem[] } {
  const findings = new Findings();
  const [upstream] = readUpstreams([value], environment, findings);
  const { problems } = findings;
  return problems.length > 0 || upstream === undefined ? { problems } : { upstream, problems };
}

function readRoot(value: unknown, findings: Findings): Readonly<Record<string, unknown>> {
  if (!isRecord(value)) {
    findings.problem('config', value, 'an object');
    return {};
  }
  findings.warnUnknown('config', value, KEYS);
  const version = value['version'];
  if (version !== undefined && version !== CONFIG_VERSION) {
    findings.problem('version', version, `${CONFIG_VERSION}, the version that this svc reads`);
  }
  return value;
}

function readMemory(
  value: unknown,
  environment: Environment,
  findings: Findings,
): MemorySettings | undefined {
  if (value === undefined) return { kind: 'embedded' };
  const { kind } = asRecord(value);
  if (!isRecord(value) || (kind !== 'embedded' && kind !== 'hosted')) {
    const path = isRecord(value) ? 'memory.kind' : 'memory';
    findings.problem(path, isRecord(value) ? kind : value, 'embedded or hosted in memory.kind');
    return undefined;
  }
  if (kind === 'embedded') {
    findings.warnUnknown('memory', value, ['kind']);
    return { kind };
  }
  return readHostedMemory(value, environment, findings);
}

function readHostedMemory(
  value: Readonly<Record<string, unknown>>,
  environment: Environment,
  findings: Findings,
): MemorySettings | undefined {
  findings.warnUnknown('memory', value, ['kind', 'baseUrl', 'serviceKey', 'allowPrivate', 'proxy']);
  const isAllowed = findings.flag('memory.allowPrivate', value['allowPrivate'], false);
  const baseUrl = parseServiceUrl(value['baseUrl'], isAllowed);
  if ('allowed' in baseUrl) findings.problem('memory.baseUrl', value['baseUrl'], baseUrl.allowed);
  const serviceKey = readServiceKey(value['serviceKey'], environment, findings);
  if ('allowed' in baseUrl || serviceKey === undefined) return undefined;
  const allowPrivate = isAllowed || isOwnMachineUrl(baseUrl.url);
  const place = { path: 'memory', item: value, environment, findings };
  const proxy = readNetworkProxy(place, baseUrl.url);
  const own = { kind: 'hosted' as const, baseUrl: baseUrl.url, serviceKey, allowPrivate };
  return proxy === undefined ? own : { ...own, proxy };
}

function readServiceKey(value: unknown, environment: Environment, findings: Findings) {
  const path = 'memory.serviceKey';
  const key = readCredential(value, { path, environment }, findings);
  // Other services may have keys of another form; a svc_live_ key with a wrong checksum is a typing mistake.
  if (key === undefined || !key.startsWith('svc_live_') || parseServiceKey(key) !== undefined) {
    return key;
  }
  const allowed = 'a whole key: its checksum does not fit, so a part is missing or mistyped';
  findings.problems.push({ path, found: 'another text', allowed });
  return undefined;
}

/** Matches a bearer token in the form of RFC 6750, which every client can send and every shell can quote. */
const LOCAL_TOKEN = /^[A-Za-z0-9._~+/-]{24,256}={0,2}$/;

/** Says whether the file has no local token, so that a new one replaces nothing. */
export function isNoToken(value: unknown): boolean {
  return value === undefined || value === null || value === '';
}

function readLocalToken(
  value: unknown,
  environment: Environment,
  findings: Findings,
): string | undefined {
  const allowed = 'a token that svc setup made (at least 24 letters, digits, - and _)';
  if (isNoToken(value)) {
    findings.problem('localToken', undefined, allowed);
    return undefined;
  }
  const token = readCredential(value, { path: 'localToken', environment }, findings);
  if (token === undefined || LOCAL_TOKEN.test(token)) return token;
  findings.problems.push({ path: 'localToken', found: 'another text', allowed });
  return undefined;
}

/** Refuses a provider whose address is the proxy's own: no request would ever leave the machine. */
function refuseOwnAddress(
  value: unknown,
  { host, port }: Pick<ProxySettings, 'host' | 'port'>,
  findings: Findings,
): void {
  for (const [index, item] of asList(value).entries()) {
    const text = asText(asRecord(item)['baseUrl']);
    const url = URL.canParse(text) ? new URL(text) : undefined;
    const isHere = [host, `[${host}]`, 'localhost'].includes(url?.hostname ?? '');
    if (url === undefined || !isHere || url.port !== String(port)) continue;
    const path = `upstreams[${index}].baseUrl`;
    const found = 'the address on which svc itself listens';
    findings.problems.push({ path, found, allowed: 'the address of a provider' });
  }
}

/**
 * Refuses the local token as a provider's key, because it would be sent to the provider. This happens in a shell
 * that has evaluated `svc print-config claude`: there the provider's variable holds the token, for clients.
 */
function refuseOwnToken(
  value: unknown,
  { environment, localToken }: { environment: Environment; localToken: string | undefined },
  findings: Findings,
): void {
  for (const [index, item] of asList(value).entries()) {
    const key = asRecord(item)['providerKey'];
    const variable = namedVariable(key);
    if ((variable === undefined ? key : environment[variable]) !== localToken) continue;
    const path = `upstreams[${index}].providerKey`;
    const allowed = 'the key of the provider';
    const found = "svc's own token";
    if (variable === undefined) findings.problems.push({ path, found, allowed });
    else {
      const told = `${found}, which svc print-config puts there for clients`;
      findings.variableProblem(path, variable, { found: told, allowed });
    }
  }
}
