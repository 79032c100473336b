import { probeToken } from '../adapters/health-probe.ts';
import { dataFolder } from '../adapters/data-folder.ts';
import { readConfigFile } from '../adapters/config-file.ts';
import { configFolder } from '../adapters/config-folder.ts';
import { type Access, parseConfig } from '../core/config-schema.ts';
import type { Environment } from '../core/config-values.ts';
import type { UpstreamSettings } from '../core/settings.ts';
import { VERSION } from '../core/version.ts';
import { urlOf } from './addresses.ts';
import type { Check } from './doctor-checks.ts';
import { checkKey, type KeyCheck, type OpenUpstream } from './key-check.ts';
import { findProxies } from './own-proxies.ts';

/** What doctor can only know by asking: the running proxy, and each provider. */

/** Each proxy that has proven to be ours takes the token, and is of this version. */
export async function checkRunning(
  environment: Environment,
  access: Access,
): Promise<readonly Check[]> {
  const subject = 'Proxy';
  const { own, unproven } = await findProxies(dataFolder(environment), access);
  const checks = await Promise.all(
    own.map(async (proxy): Promise<Check> => {
      const place = urlOf(proxy);
      // Refused for its method, which is judged after the token.
      const status = await probeToken(proxy, access.localToken);
      if (status !== 405) {
        const found = `${place} does not take the local token (${status ?? 'no answer'})`;
        return { level: 'problem', subject, found, fix: 'svc stop && svc start' };
      }
      if (proxy.version !== undefined && proxy.version !== VERSION) {
        const found = `${place} is version ${proxy.version}, this command is ${VERSION}`;
        return { level: 'warning', subject, found, fix: 'svc stop && svc start --detach' };
      }
      return { level: 'ok', subject, found: `${place} takes the local token` };
    }),
  );
  const strays = unproven.map(({ pid, port }): Check => {
    const found = `process ${pid} (port ${port}) does not answer as a proxy of this configuration`;
    return { level: 'warning', subject, found, fix: `Look what it is: ps -p ${pid}` };
  });
  return [...checks, ...strays];
}

/** Name, address, TLS and key of each provider, by the free call that lists its models. */
export async function checkProviders(
  environment: Environment,
  open: OpenUpstream,
): Promise<readonly Check[]> {
  const file = await readConfigFile(configFolder(environment)).catch(() => undefined);
  const { settings } = parseConfig(file?.value, environment);
  const upstreams = settings?.upstreams ?? [];
  return Promise.all(
    upstreams.map(async (upstream) => checkOf(upstream, await checkKey(upstream, open))),
  );
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
    refused: `Give the right key: svc setup, or svc setup --yes --upstream ${name} --key-stdin`,
    not_allowed: `svc setup --yes --upstream ${name} --allow-private`,
    unreachable: 'Check the network, and the URL with: svc setup',
  };
  const fix = fixes[state];
  return fix === undefined ? check : { ...check, fix };
}
