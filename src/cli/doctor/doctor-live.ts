import { dataFolder, configFolder } from '../../adapters/files/own-folders.ts';
import { groupBy } from '../../core/bytes/batches.ts';
import { readConfigFile } from '../../adapters/files/config-file.ts';
import { upstreamEntries } from '../../core/settings/config-draft.ts';
import { type Access, parseUpstream } from '../../core/settings/config-schema.ts';
import type { Environment } from '../../core/settings/config-values.ts';
import type { UpstreamSettings } from '../../core/settings/settings.ts';
import { BUILD, VERSION } from '../../core/version.ts';
import { count, urlOf } from '../listing.ts';
import type { Check } from './checks.ts';
import {
  checkKey,
  exchange,
  failureOf,
  type KeyCheck,
  meaningOf,
  type OpenUpstream,
} from './key-check.ts';
import { isOtherBuild, OwnProxies, type OwnProxy } from '../proxy/own-proxies.ts';
import { apiOf, DIALECTS } from '../../core/dialects/apis.ts';
import { type EndpointProbe, probeEndpoint } from '../../adapters/network/endpoint-probe.ts';
import { type LocalAnswer, probeToken } from '../../adapters/processes/local-calls.ts';
import {
  cheapestModel,
  cachedTokens,
  testCall,
  testCallCost,
  TEST_CALL_TOKENS,
} from '../../core/settings/test-call.ts';
import { PROBE_SPACE } from '../../core/request/space.ts';

/**
 * Checks each running proxy of this configuration: whether it accepts the local token, and is of this build. Reports
 * processes that have a run file and do not answer as such a proxy.
 */
export async function checkRunning(
  environment: Environment,
  access: Access,
): Promise<{ readonly checks: readonly Check[]; readonly isRunning: boolean }> {
  const subject = 'Proxy';
  const proxies = new OwnProxies(dataFolder(environment), access);
  const { own, unproven } = await proxies.find();
  const checks = await Promise.all(
    own.map(async (proxy): Promise<Check> => {
      const place = urlOf(proxy);
      // 405 means that the token is valid: the proxy checks the token first, and then refuses the method.
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
 * Checks each provider whose settings have no error, with calls that cost nothing: the connection, the key, and whether
 * the provider serves its dialect. Also compares a provider's clock with this machine's. Returns the checks, and the
 * names of unreachable providers.
 */
export async function checkProviders(environment: Environment, open: OpenUpstream) {
  const upstreams = await readableUpstreams(environment);
  const [{ checks: network, reached }, all] = await Promise.all([
    checkNetwork(upstreams, Date.now()),
    Promise.all(upstreams.map((upstream) => ask(upstream, open))),
  ]);
  const asked = reportedOnce(all, reached);
  const checks = [...network, ...asked.flatMap((one) => one.checks), ...checkClock(asked)];
  const dead = asked.filter(({ isUnreachable }) => isUnreachable);
  return { checks, unreachable: new Set(dead.map(({ name }) => name)) };
}

/** Keeps one report of each unreachable host, and none where checkNetwork() reports the host already. */
function reportedOnce(
  asked: readonly Asked[],
  reached: (baseUrl: string) => boolean,
): readonly Asked[] {
  const reported = new Set<string>();
  return asked.map((one) => {
    const { origin } = new URL(one.baseUrl);
    if (!one.isUnreachable) return one;
    if (!reached(one.baseUrl) || reported.has(origin)) return { ...one, checks: [] };
    reported.add(origin);
    return one;
  });
}

/** Returns the upstreams that have no error. Each is parsed by itself, so an error in one does not hide the others. */
async function readableUpstreams(environment: Environment): Promise<readonly UpstreamSettings[]> {
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
  /** True if the provider could not be reached, or has a private address that the user has not allowed. */
  readonly isUnreachable: boolean;
  readonly clockAheadMs?: number;
}

async function ask(upstream: UpstreamSettings, open: OpenUpstream): Promise<Asked> {
  const { name, baseUrl } = upstream;
  const key = await checkKey(upstream, open);
  const clock = key.clockAheadMs === undefined ? {} : { clockAheadMs: key.clockAheadMs };
  const isUnreachable = key.state === 'unreachable' || key.state === 'not_allowed';
  const checks = [checkOf(upstream, key)];
  if (!isUnreachable && key.state !== 'refused') checks.push(await checkDialect(upstream, open));
  return { name, baseUrl, checks, isUnreachable, ...clock };
}

/**
 * Sends an empty object to the path of model calls. A provider refuses the object before a model runs, so the call
 * costs nothing. The status usually shows whether the provider serves the path; otherwise the check is a warning.
 */
async function checkDialect(settings: UpstreamSettings, open: OpenUpstream): Promise<Check> {
  const { name, apiStyle } = settings;
  const subject = 'Dialect';
  const later = { level: 'warning', subject, fix: 'Try again in a while: svc doctor' } as const;
  const target = apiOf(apiStyle).modelPath;
  try {
    const { status, body } = await exchange({ settings, method: 'POST', target, body: '{}' }, open);
    // Some providers answer 404 because the request names no model.
    const isAboutModel = status === 404 && /"error"/.test(body) && /\bmodel\b/i.test(body);
    if (status < 300 || status === 400 || status === 422 || isAboutModel) {
      return { level: 'ok', subject, found: `${name}: it serves ${apiStyle}` };
    }
    if (status !== 404 && status !== 405) {
      return {
        ...later,
        found: `${name}: svc cannot tell whether it serves ${apiStyle} (${status})`,
      };
    }
    const other = DIALECTS.find((style) => style !== apiStyle) ?? apiStyle;
    return {
      level: 'problem',
      subject,
      found: `${name}: it does not serve ${apiStyle} at this address (${status})`,
      fix: `Set the right URL (svc setup --yes --upstream ${name} --base-url https://…), or its API style: svc setup --yes --remove ${name}, then svc setup --yes --upstream ${name} --api-style ${other} --base-url https://…`,
    };
  } catch (error) {
    return { ...later, found: `${name}: ${failureOf(error).found}` };
  }
}

/** Largest difference between clocks without a warning, in milliseconds. The delay of an answer adds some seconds. */
const CLOCK_MS_MAX = 120_000;

/** Compares this machine's clock with the provider's clock that differs least, because another may be wrong. */
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

const DAY_MS = 24 * 60 * 60 * 1000;
/** A certificate that expires within fewer days causes a warning. Automatic renewals usually happen earlier. */
const VALID_DAYS_MIN = 14;

type Place = Pick<UpstreamSettings, 'name' | 'baseUrl' | 'allowPrivate' | 'proxy' | 'auth'>;

interface ProbedPlace {
  readonly place: Place;
  readonly probe: EndpointProbe;
}

/**
 * Checks the connection to each host and port once: whether its name resolves, whether svc may use the address, and
 * TLS. `reached` of the result says whether the host of a base URL could be reached.
 */
async function checkNetwork(
  upstreams: readonly UpstreamSettings[],
  now: number,
): Promise<{ readonly checks: readonly Check[]; reached: (baseUrl: string) => boolean }> {
  const places = new Map(upstreams.map((one) => [new URL(one.baseUrl).origin, one]));
  const probed = await Promise.all(
    [...places.values()].map(async (place): Promise<ProbedPlace> => {
      return { place, probe: await probeEndpoint(new URL(place.baseUrl), place) };
    }),
  );
  const isDead = new Set(
    probed
      .filter(({ probe }) => probe.failure !== undefined)
      .map(({ place }) => new URL(place.baseUrl).origin),
  );
  const checks = probed.filter((one) => !isStoppedByProxy(one)).map((one) => checkPlace(one, now));
  return {
    checks: [...checks, ...checkProxies(probed.filter(isStoppedByProxy))],
    reached: (baseUrl) => !isDead.has(new URL(baseUrl).origin),
  };
}

function isStoppedByProxy({ probe }: ProbedPlace): boolean {
  return probe.failure?.step === 'proxy';
}

function checkProxies(stopped: readonly ProbedPlace[]): readonly Check[] {
  const groups = groupBy(stopped, ({ place, probe }) => {
    return `${place.proxy?.origin ?? ''} ${probe.failure?.code ?? ''}`;
  });
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

function checkPlace({ place, probe }: ProbedPlace, now: number): Check {
  const url = new URL(place.baseUrl);
  const { failure } = probe;
  if (failure !== undefined) return failed(place, probe, failure);
  const { tls, classes = [] } = probe;
  const way =
    place.proxy === undefined
      ? `${count(probe.addressCount ?? 0, 'address', 'addresses')} (${classes.join(', ')})`
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
  { name, baseUrl, proxy, auth }: Place,
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
  const interception =
    isTrust && proxy !== undefined
      ? `; the network proxy ${proxy.origin} seems to intercept TLS`
      : '';
  const found = `${host}: ${meaningOf(code)}${interception}`;
  const probe = step === 'name' ? `getent hosts ${hostname}` : `curl -sI ${baseUrl}`;
  // With a client's login, offer no other address: svc forwards a login only to its provider, or to a listener on this
  // machine that the user allows.
  const right =
    auth === 'client'
      ? ''
      : `; set the right address with: svc setup --yes --upstream ${name} --base-url https://…`;
  const fix = isTrust
    ? 'in the environment of svc start: export NODE_EXTRA_CA_CERTS=/path/to/ca.pem, if you trust its issuer'
    : `Check with: ${probe}${right}`;
  return { level, subject, found, fix };
}

/** What checkModelCalls() needs. */
interface ModelCallsOptions {
  readonly environment: Environment;
  readonly access: Access;
  readonly open: OpenUpstream;
  /** The model; undefined: the cheapest of each provider's list. */
  readonly model: string | undefined;
  /** Asks the user whether to send the requests. `line` states their price. */
  readonly agree: (line: string) => Promise<Consent>;
  /** The names of providers that checkProviders() could not reach, and has reported. */
  readonly unreachable: ReadonlySet<string>;
}

/** 'nobody': there is no terminal to ask the user on. */
export type Consent = 'yes' | 'no' | 'nobody';

const SUBJECT = 'Live';

/**
 * Runs the check of `svc doctor --live`, the only one that costs money: if the user agrees, sends a small request to a
 * model of each reachable provider, twice, through the running proxy. Providers with a client's login are left out.
 * Shows svc's evidence headers, and how much the provider read from its cache.
 */
export async function checkModelCalls(options: ModelCallsOptions): Promise<readonly Check[]> {
  const { environment, access, open, agree, unreachable } = options;
  const proxies = new OwnProxies(dataFolder(environment), access);
  const [proxy] = (await proxies.find()).own;
  if (proxy === undefined) {
    const found = 'no proxy runs, so svc cannot send a request';
    return [{ level: 'problem', subject: SUBJECT, found, fix: 'svc start --detach' }];
  }
  const checks: Check[] = [];
  const all = await readableUpstreams(environment);
  const upstreams = all.filter(({ auth, name }) => auth !== 'client' && !unreachable.has(name));
  for (const upstream of upstreams) {
    const asked = options.model === undefined ? await checkKey(upstream, open) : undefined;
    const model = options.model ?? cheapestModel(asked?.models ?? []);
    if (model === undefined) {
      checks.push(noModel(upstream, asked));
      continue;
    }
    const price = priceLine(upstream, model);
    const consent = await agree(price);
    if (consent === 'yes') checks.push(await callTwice(proxy, proxies, upstream, model));
    if (consent === 'nobody') checks.push(notSent(price));
  }
  return checks;
}

function noModel({ name }: UpstreamSettings, asked: KeyCheck | undefined): Check {
  const isUnreachable = asked !== undefined && asked.state !== 'accepted';
  const found = isUnreachable
    ? `${name} did not list its models: ${asked.found}`
    : `${name} lists no model to try`;
  return { level: 'warning', subject: SUBJECT, found, fix: 'svc doctor --live --model NAME' };
}

/** Returns a warning that the requests were not sent. Scripts and models run doctor too, so a person must agree. */
function notSent(price: string): Check {
  const found = `${price}, were not sent, because without a terminal nobody can agree to the price`;
  return { level: 'warning', subject: SUBJECT, found, fix: 'svc doctor --live --yes' };
}

function priceLine({ name }: UpstreamSettings, model: string): string {
  const cost = testCallCost(model);
  const price =
    cost === undefined ? 'at a price that svc does not know' : `for about $${cost.toFixed(4)}`;
  return `Two requests of ${TEST_CALL_TOKENS} tokens to ${model} at ${name}, ${price}`;
}

async function callTwice(
  proxy: OwnProxy,
  proxies: OwnProxies,
  upstream: UpstreamSettings,
  model: string,
): Promise<Check> {
  const { name, apiStyle } = upstream;
  const { modelPath, callHeaders } = apiOf(apiStyle);
  const isOpenAi = new URL(upstream.baseUrl).hostname === 'api.openai.com';
  const call = { path: modelPath, body: testCall({ apiStyle, model }, isOpenAi) };
  // With the memory mode `read` svc captures nothing of the test.
  const mode = { 'x-svc-memory-mode': 'read', 'x-svc-memory-space': PROBE_SPACE };
  const send = () => proxies.call(proxy, call, { ...callHeaders, ...mode });
  const first = await send();
  const second = first?.status === 200 ? await send() : undefined;
  const place = `${name} (${model})`;
  const bad = first?.status !== 200 ? first : second;
  if (first?.status !== 200 || second?.status !== 200) {
    const found = `${place}: ${bad === undefined ? 'no answer in a minute' : `answered ${bad.status}`}`;
    const id = evidence(bad, 'x-svc-request-id');
    const fix = id === '' ? 'svc status' : `svc requests ${id}`;
    return { level: 'problem', subject: SUBJECT, found, fix };
  }
  return {
    level: 'ok',
    subject: SUBJECT,
    found: `${place}: ${evidenceText(second)}; ${cacheText(second)}`,
  };
}

function evidenceText(answer: LocalAnswer): string {
  const tokens = `${evidence(answer, 'x-svc-original-input-tokens')} → ${evidence(answer, 'x-svc-forwarded-input-tokens')} tokens`;
  const memory = `memory ${evidence(answer, 'x-svc-memory-state')}`;
  const mode = `${evidence(answer, 'x-svc-compression-mode')} ${evidence(answer, 'x-svc-continuity-state')}`;
  return `answered twice, ${memory}, ${mode}, ${tokens}`;
}

function cacheText({ body }: LocalAnswer): string {
  const cached = cachedTokens(body);
  if (cached === undefined) return 'the provider reports no cache';
  if (cached === 0) return 'nothing came from the provider’s cache yet';
  return `the second request read ${cached} tokens from the provider’s cache`;
}

/** Returns the value of an evidence header, such as x-svc-memory-state; '' if there is none. */
function evidence(answer: LocalAnswer | undefined, name: string): string {
  const value = answer?.headers[name];
  return typeof value === 'string' ? value : '';
}
