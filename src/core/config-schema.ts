import type { MemorySettings, Settings } from './settings.ts';
import { type ProxyFlags, readProxySettings } from './config-proxy.ts';
import { parseBaseUrl, readUpstreams } from './config-upstreams.ts';
import {
  type Environment,
  Findings,
  isCredential,
  isRecord,
  type Problem,
  readCredential,
} from './config-values.ts';

/**
 * From the parsed configuration file, the environment and the flags to the settings of one running
 * proxy. Everything that is wrong is reported at once; no secret's value is ever in a report.
 */

export interface ParsedConfig {
  /** Absent when there is any problem. */
  readonly settings?: Settings;
  readonly problems: readonly Problem[];
  readonly warnings: readonly Problem[];
}

/** What a client of the proxy must know. */
export interface Access {
  readonly host: string;
  readonly port: number;
  readonly localToken: string;
}

export const CONFIG_VERSION = 1;

const KEYS = ['version', 'proxy', 'memory', 'upstreams', 'localToken'];

/** `value` is the parsed file; `flags` are the settings of the command line, as typed. */
export function parseConfig(
  value: unknown,
  environment: Environment,
  flags: ProxyFlags = {},
): ParsedConfig {
  const findings = new Findings();
  const file = readRoot(value, findings);
  const proxy = readProxySettings(file['proxy'], { environment, flags }, findings);
  const memory = readMemory(file['memory'], environment, findings);
  const upstreams = readUpstreams(file['upstreams'], environment, findings);
  const localToken = readLocalToken(file['localToken'], environment, findings);
  if (upstreams.some((upstream) => isSame(upstream.providerKey, localToken))) {
    const found = 'the key of a provider';
    findings.problems.push({ path: 'localToken', found, allowed: 'a token of its own' });
  }
  const { problems, warnings } = findings;
  if (problems.length > 0 || memory === undefined || localToken === undefined) {
    return { problems, warnings };
  }
  return { settings: { proxy, memory, upstreams, localToken }, problems, warnings };
}

/** Only what a client needs: a provider's key that is missing must not hide the local token. */
export function parseAccess(
  value: unknown,
  environment: Environment,
): { readonly access?: Access; readonly problems: readonly Problem[] } {
  const findings = new Findings();
  const file = readRoot(value, findings);
  const { host, port } = readProxySettings(file['proxy'], { environment, flags: {} }, findings);
  const localToken = readLocalToken(file['localToken'], environment, findings);
  const wanted = ['config', 'version', 'proxy', 'proxy.host', 'proxy.port', 'localToken'];
  const problems = findings.problems.filter(({ path }) => wanted.includes(path));
  if (problems.length > 0 || localToken === undefined) return { problems };
  return { access: { host, port, localToken }, problems };
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
  const kind = isRecord(value) ? value['kind'] : undefined;
  if (!isRecord(value) || (kind !== 'embedded' && kind !== 'hosted')) {
    const path = isRecord(value) ? 'memory.kind' : 'memory';
    findings.problem(path, isRecord(value) ? kind : value, 'embedded or hosted in memory.kind');
    return undefined;
  }
  if (kind === 'embedded') {
    findings.warnUnknown('memory', value, ['kind']);
    return { kind };
  }
  findings.warnUnknown('memory', value, ['kind', 'baseUrl', 'serviceKey']);
  // A service on this very machine is how one is tried out.
  const named = value['baseUrl'];
  const isOwn = typeof named === 'string' && OWN_MACHINE.test(named);
  const baseUrl = parseBaseUrl(named, isOwn);
  if ('allowed' in baseUrl) findings.problem('memory.baseUrl', value['baseUrl'], baseUrl.allowed);
  const at = { path: 'memory.serviceKey', environment };
  const serviceKey = readCredential(value['serviceKey'], at, findings);
  if ('allowed' in baseUrl || serviceKey === undefined) return undefined;
  return { kind, baseUrl: baseUrl.url, serviceKey };
}

const OWN_MACHINE = /^http:\/\/(?:127\.0\.0\.1|\[::1\]|localhost)(?:[:/]|$)/;

/** The form of RFC 6750, which every client can send and every shell can quote. */
const LOCAL_TOKEN = /^[A-Za-z0-9._~+/-]{24,256}={0,2}$/;

function readLocalToken(
  value: unknown,
  environment: Environment,
  findings: Findings,
): string | undefined {
  const allowed = 'a token that svc setup made (at least 24 letters, digits, - and _)';
  if (value === undefined) {
    findings.problem('localToken', value, allowed);
    return undefined;
  }
  const token = readCredential(value, { path: 'localToken', environment }, findings);
  if (token === undefined || LOCAL_TOKEN.test(token)) return token;
  findings.problems.push({ path: 'localToken', found: 'another text', allowed });
  return undefined;
}

function isSame(providerKey: string, localToken: string | undefined): boolean {
  return isCredential(providerKey) && providerKey === localToken;
}
