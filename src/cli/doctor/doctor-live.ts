import { probeToken } from '../../adapters/processes/health-probe.ts';
import { dataFolder } from '../../adapters/files/data-folder.ts';
import { readConfigFile } from '../../adapters/files/config-file.ts';
import { configFolder } from '../../adapters/files/config-folder.ts';
import { upstreamEntries } from '../../core/settings/config-draft.ts';
import { type Access, parseUpstream } from '../../core/settings/config-schema.ts';
import type { Environment } from '../../core/settings/config-values.ts';
import { DIALECTS } from '../../core/conversation/view.ts';
import type { UpstreamSettings } from '../../core/settings/settings.ts';
import { BUILD, VERSION } from '../../core/version.ts';
import { urlOf } from '../addresses.ts';
import { checkDialect, type DialectCheck } from './dialect-check.ts';
import type { Check } from './doctor-checks.ts';
import { checkNetwork } from './doctor-network.ts';
import { checkKey, type KeyCheck, type OpenUpstream } from './key-check.ts';
import { isOtherBuild } from '../proxy/other-build.ts';
import { findProxies } from '../proxy/own-proxies.ts';

/** The checks that need a call: the running proxy, and each provider. */

/** Each proxy that has proven to be ours takes the token, and is of this version. */
export async function checkRunning(
  environment: Environment,
  access: Access,
): Promise<{ readonly checks: readonly Check[]; readonly isRunning: boolean }> {
  const subject = 'Proxy';
  const { own, unproven } = await findProxies(dataFolder(environment), access);
  const checks = await Promise.all(
    own.map(async (proxy): Promise<Check> => {
      const place = urlOf(proxy);
      // Refused for its method, which is judged after the token.
      const status = await probeToken(proxy, access.localToken);
      if (status !== 405) {
        const found = `${place} does not accept the local token (${status ?? 'no answer'})`;
        return { level: 'problem', subject, found, fix: 'svc stop && svc start' };
      }
      if (isOtherBuild(proxy)) {
        const { version, build = 'unknown' } = proxy;
        const found =
          version === VERSION
            ? `${place} is build ${build} of ${version}, this command is build ${BUILD}`
            : `${place} is version ${version}, this command is ${VERSION}`;
        return { level: 'warning', subject, found, fix: 'svc stop && svc start --detach' };
      }
      return { level: 'ok', subject, found: `${place} accepts the local token` };
    }),
  );
  const strays = unproven.map(({ pid, port }): Check => {
    const found = `process ${pid} (port ${port}) does not answer as a proxy of this configuration`;
    return { level: 'warning', subject, found, fix: `See what it is: ps -p ${pid}` };
  });
  return { checks: [...checks, ...strays], isRunning: own.length > 0 };
}

/**
 * Checks the way to each provider, and whether it takes its key and speaks its dialect, by calls
 * that cost nothing. Also compares its clock with this machine's.
 */
export async function checkProviders(
  environment: Environment,
  open: OpenUpstream,
): Promise<AskedProviders> {
  const upstreams = await readableUpstreams(environment);
  const [{ checks: network, reached }, all] = await Promise.all([
    checkNetwork(upstreams, Date.now()),
    Promise.all(upstreams.map((upstream) => ask(upstream, open))),
  ]);
  const asked = toldOnce(all, reached);
  const checks = [...network, ...asked.flatMap((one) => one.checks), ...checkClock(asked)];
  const dead = asked.filter(({ isAway }) => isAway);
  return { checks, unreachable: new Set(dead.map(({ name }) => name)) };
}

export interface AskedProviders {
  readonly checks: readonly Check[];
  /** Names of those that could not be reached; `checks` has the reason once for each host. */
  readonly unreachable: ReadonlySet<string>;
}

/** A host that cannot be reached is one problem, not one for each provider there and the way to it. */
function toldOnce(
  asked: readonly Asked[],
  reached: (baseUrl: string) => boolean,
): readonly Asked[] {
  const told = new Set<string>();
  return asked.map((one) => {
    const { origin } = new URL(one.baseUrl);
    if (!one.isAway) return one;
    if (!reached(one.baseUrl) || told.has(origin)) return { ...one, checks: [] };
    told.add(origin);
    return one;
  });
}

/** Each by itself: what is wrong with one says nothing about the others. */
export async function readableUpstreams(
  environment: Environment,
): Promise<readonly UpstreamSettings[]> {
  const file = await readConfigFile(configFolder(environment)).catch(() => undefined);
  return upstreamEntries(file?.value).flatMap((one) => {
    const { upstream } = parseUpstream(one, environment);
    return upstream === undefined ? [] : [upstream];
  });
}

interface Asked {
  readonly name: string;
  readonly baseUrl: string;
  readonly checks: readonly Check[];
  /** No request came through to it. */
  readonly isAway: boolean;
  readonly clockAheadMs?: number;
}

async function ask(upstream: UpstreamSettings, open: OpenUpstream): Promise<Asked> {
  const { name, baseUrl } = upstream;
  const key = await checkKey(upstream, open);
  const first = checkOf(upstream, key);
  const clock = key.clockAheadMs === undefined ? {} : { clockAheadMs: key.clockAheadMs };
  const isAway = key.state === 'unreachable' || key.state === 'not_allowed';
  if (isAway || key.state === 'refused') {
    return { name, baseUrl, checks: [first], isAway, ...clock };
  }
  const dialect = await checkDialect(upstream, open);
  const checks = [first, dialectOf(upstream, dialect)];
  return { name, baseUrl, checks, isAway, ...clock };
}

function dialectOf(
  { name, apiStyle }: UpstreamSettings,
  { state, found: text }: DialectCheck,
): Check {
  const subject = 'Dialect';
  const found = `${name}: ${text}`;
  if (state === 'speaks') return { level: 'ok', subject, found };
  if (state === 'unknown') {
    return { level: 'warning', subject, found, fix: 'Try again in a while: svc doctor' };
  }
  const other = DIALECTS.find((style) => style !== apiStyle) ?? apiStyle;
  const fix = `Set the right URL (svc setup --yes --upstream ${name} --base-url https://…), or its API style: svc setup --yes --remove ${name}, then svc setup --yes --upstream ${name} --api-style ${other} --base-url https://…`;
  return { level: 'problem', subject, found, fix };
}

/** Beyond it, dates of memories and the ends of certificates are wrong; networks need seconds. */
const CLOCK_MS_MAX = 120_000;

// The nearest of several: one provider's clock may be the wrong one.
function checkClock(asked: readonly Asked[]): readonly Check[] {
  const [nearest] = asked
    .filter((one) => one.clockAheadMs !== undefined)
    .toSorted((a, b) => Math.abs(a.clockAheadMs ?? 0) - Math.abs(b.clockAheadMs ?? 0));
  if (nearest?.clockAheadMs === undefined) return [];
  const { name, clockAheadMs } = nearest;
  const subject = 'Clock';
  const seconds = Math.round(Math.abs(clockAheadMs) / 1000);
  if (Math.abs(clockAheadMs) <= CLOCK_MS_MAX) {
    return [{ level: 'ok', subject, found: `agrees with ${name}, to ${seconds} s` }];
  }
  const way = clockAheadMs > 0 ? 'behind' : 'ahead of';
  const found = `this machine is ${seconds} s ${way} ${name}: memories get wrong dates`;
  const fix = 'Set the clock, for example: sudo timedatectl set-ntp true';
  return [{ level: 'warning', subject, found, fix }];
}

const LEVELS = {
  accepted: 'ok',
  unknown: 'warning',
  refused: 'problem',
  not_allowed: 'problem',
  unreachable: 'problem',
} as const satisfies Record<KeyCheck['state'], Check['level']>;

function checkOf({ name, apiStyle }: UpstreamSettings, { state, found: text }: KeyCheck): Check {
  const found = `${name} (${apiStyle}): ${text}`;
  const check = { level: LEVELS[state], subject: 'Provider', found };
  const fixes: Partial<Record<KeyCheck['state'], string>> = {
    unknown: `Check your account with ${name}, and the URL: svc setup --yes --upstream ${name} --base-url https://…`,
    refused: `Set the right key: svc setup, or svc setup --yes --upstream ${name} --key-stdin`,
    not_allowed: `svc setup --yes --upstream ${name} --allow-private`,
    unreachable: `Check the network, or set another address: svc setup --yes --upstream ${name} --base-url https://…`,
  };
  const fix = fixes[state];
  return fix === undefined ? check : { ...check, fix };
}
