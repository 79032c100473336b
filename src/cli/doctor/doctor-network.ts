import { probeEndpoint, type EndpointProbe } from '../../adapters/network/endpoint-probe.ts';
import type { UpstreamSettings } from '../../core/settings/settings.ts';
import type { Check } from './doctor-checks.ts';
import { meaningOf } from './key-check.ts';

/** Doctor's look at the way to each host: name, kind of address, TLS. Each host once. */

const DAY_MS = 24 * 60 * 60 * 1000;
/** Certificates that renew themselves do so 30 days ahead; one that has not is about to end. */
const VALID_DAYS_MIN = 14;

export interface Place {
  readonly name: string;
  readonly baseUrl: string;
  readonly allowPrivate: boolean;
}

export function checkNetwork(
  upstreams: readonly UpstreamSettings[],
  now: number,
): Promise<readonly Check[]> {
  const places = new Map(upstreams.map((one) => [new URL(one.baseUrl).origin, one]));
  return Promise.all([...places.values()].map((place) => checkPlace(place, now)));
}

async function checkPlace(place: Place, now: number): Promise<Check> {
  const url = new URL(place.baseUrl);
  const probe = await probeEndpoint(url, place.allowPrivate);
  const { failure } = probe;
  if (failure !== undefined) return failed(place, probe, failure);
  const { tls, classes = [] } = probe;
  const count = `${probe.addressCount} ${probe.addressCount === 1 ? 'address' : 'addresses'}`;
  const where = `${url.host}: ${count} (${classes.join(', ')})`;
  if (tls === undefined) return { level: 'ok', subject: 'Network', found: `${where}, no TLS` };
  const until = Number.isNaN(tls.validUntil) ? '?' : new Date(tls.validUntil).toISOString();
  const found = `${where}, ${tls.protocol}, certificate until ${until.slice(0, 10)}`;
  const days = (tls.validUntil - now) / DAY_MS;
  if (!(days < VALID_DAYS_MIN)) return { level: 'ok', subject: 'Network', found };
  const fix = `Its certificate ends in ${Math.ceil(days)} days: whoever runs ${url.hostname} must renew it.`;
  return { level: 'warning', subject: 'Network', found, fix };
}

function failed(
  { name, baseUrl }: Place,
  { classes = [] }: EndpointProbe,
  { step, code }: NonNullable<EndpointProbe['failure']>,
): Check {
  const { host, hostname } = new URL(baseUrl);
  const subject = 'Network';
  const level = 'problem';
  if (step === 'address') {
    const kind = classes.length === 0 ? 'not public' : classes.join(', ');
    const found = `${host}: its address is ${kind}, and svc goes there only where it is told to`;
    const isNever = classes.includes('never allowed');
    const fix = isNever
      ? `Give its public address: svc setup --yes --upstream ${name} --base-url https://…`
      : `svc setup --yes --upstream ${name} --allow-private`;
    return { level, subject, found, fix };
  }
  const found = `${host}: ${meaningOf(code)}`;
  const isTrust = /CERT|SIGNED|VERIFY|ISSUER/.test(code);
  const look = step === 'name' ? `getent hosts ${hostname}` : `curl -sI ${baseUrl}`;
  const right = `svc setup --yes --upstream ${name} --base-url https://…`;
  const fix = isTrust
    ? 'export NODE_EXTRA_CA_CERTS=/path/to/ca.pem, where svc start runs, if you trust who issued it'
    : `Look with: ${look}; give the right address with: ${right}`;
  return { level, subject, found, fix };
}
