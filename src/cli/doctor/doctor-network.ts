import { probeEndpoint, type EndpointProbe } from '../../adapters/network/endpoint-probe.ts';
import type { UpstreamSettings } from '../../core/settings/settings.ts';
import type { Check } from './doctor-checks.ts';
import { meaningOf } from './key-check.ts';

/** Doctor's look at the way to each host: name, kind of address, TLS. Each host once. */

const DAY_MS = 24 * 60 * 60 * 1000;
/** Certificates that renew themselves do so 30 days ahead; one that has not is about to end. */
const VALID_DAYS_MIN = 14;

type Place = Pick<UpstreamSettings, 'name' | 'baseUrl' | 'allowPrivate' | 'proxy'>;

interface Looked {
  readonly place: Place;
  readonly probe: EndpointProbe;
}

export async function checkNetwork(
  upstreams: readonly UpstreamSettings[],
  now: number,
): Promise<{ readonly checks: readonly Check[]; reached: (baseUrl: string) => boolean }> {
  const places = new Map(upstreams.map((one) => [new URL(one.baseUrl).origin, one]));
  const looked = await Promise.all(
    [...places.values()].map(async (place): Promise<Looked> => {
      return { place, probe: await probeEndpoint(new URL(place.baseUrl), place) };
    }),
  );
  const isDead = new Set(
    looked
      .filter(({ probe }) => probe.failure !== undefined)
      .map(({ place }) => new URL(place.baseUrl).origin),
  );
  const checks = looked.filter((one) => !isStopped(one)).map((one) => checkPlace(one, now));
  return {
    checks: [...checks, ...checkProxies(looked.filter(isStopped))],
    reached: (baseUrl) => !isDead.has(new URL(baseUrl).origin),
  };
}

function isStopped({ probe }: Looked): boolean {
  return probe.failure?.step === 'proxy';
}

/** Several hosts that fail at one network proxy get one check. */
function checkProxies(stopped: readonly Looked[]): readonly Check[] {
  const groups = new Map<string, readonly Looked[]>();
  for (const one of stopped) {
    const key = `${one.place.proxy?.origin ?? ''} ${one.probe.failure?.code ?? ''}`;
    groups.set(key, [...(groups.get(key) ?? []), one]);
  }
  return [...groups].map(([key, group]): Check => {
    const [origin = '', code = ''] = key.split(' ');
    const hosts = group.map(({ place }) => new URL(place.baseUrl).host);
    const found = `${hosts.join(', ')} through ${origin}: ${meaningOf(code)}`;
    return { level: 'problem', subject: 'Network', found, fix: proxyFix(code, origin, hosts) };
  });
}

function proxyFix(code: string, origin: string, hosts: readonly string[]): string {
  const around = `a host that needs no proxy: NO_PROXY=${hosts.join(',')}`;
  if (code.startsWith('PROXY_CREDENTIALS')) {
    const whole = origin.replace('://', '://USER:PASSWORD@');
    return `In the environment of svc start: export HTTPS_PROXY=${whole}, with %40 for @ and %3A for : in name and password`;
  }
  if (code === 'PROXY_FORBIDDEN' || code === 'PROXY_HOST_UNREACHABLE') {
    return `Ask the operator of the proxy to allow ${hosts.join(', ')}, or check the spelling of the host; ${around}`;
  }
  return `Set HTTPS_PROXY in the environment of svc start, or "proxy" of the upstream, to the right address; ${around}`;
}

function checkPlace({ place, probe }: Looked, now: number): Check {
  const url = new URL(place.baseUrl);
  const { failure } = probe;
  if (failure !== undefined) return failed(place, probe, failure);
  const { tls, classes = [] } = probe;
  const count = `${probe.addressCount} ${probe.addressCount === 1 ? 'address' : 'addresses'}`;
  const way =
    place.proxy === undefined
      ? `${count} (${classes.join(', ')})`
      : `through the network proxy ${place.proxy.origin}`;
  const where = `${url.host}: ${way}`;
  if (tls === undefined) return { level: 'ok', subject: 'Network', found: `${where}, no TLS` };
  const until = Number.isNaN(tls.validUntil) ? '?' : new Date(tls.validUntil).toISOString();
  const found = `${where}, ${tls.protocol}, certificate until ${until.slice(0, 10)}`;
  const days = (tls.validUntil - now) / DAY_MS;
  if (!(days < VALID_DAYS_MIN)) return { level: 'ok', subject: 'Network', found };
  const fix = `Its certificate expires in ${Math.ceil(days)} days: the operator of ${url.hostname} must renew it.`;
  return { level: 'warning', subject: 'Network', found, fix };
}

function failed(
  { name, baseUrl, proxy }: Place,
  { classes = [] }: EndpointProbe,
  { step, code }: NonNullable<EndpointProbe['failure']>,
): Check {
  const { host, hostname } = new URL(baseUrl);
  const subject = 'Network';
  const level = 'problem';
  if (step === 'address') {
    const kind = classes.length === 0 ? 'not public' : classes.join(', ');
    const found = `${host}: its address is ${kind}, which svc uses only if you allow it`;
    const isNever = classes.includes('never allowed');
    const fix = isNever
      ? `Set its public address: svc setup --yes --upstream ${name} --base-url https://…`
      : `svc setup --yes --upstream ${name} --allow-private`;
    return { level, subject, found, fix };
  }
  const isTrust = /CERT|SIGNED|VERIFY|ISSUER/.test(code);
  const opener =
    isTrust && proxy !== undefined
      ? `; the network proxy ${proxy.origin} seems to intercept TLS`
      : '';
  const found = `${host}: ${meaningOf(code)}${opener}`;
  const look = step === 'name' ? `getent hosts ${hostname}` : `curl -sI ${baseUrl}`;
  const right = `svc setup --yes --upstream ${name} --base-url https://…`;
  const fix = isTrust
    ? 'in the environment of svc start: export NODE_EXTRA_CA_CERTS=/path/to/ca.pem, if you trust its issuer'
    : `Check with: ${look}; set the right address with: ${right}`;
  return { level, subject, found, fix };
}
