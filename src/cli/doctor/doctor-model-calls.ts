import { dataFolder } from '../../adapters/files/data-folder.ts';
import type { LocalAnswer } from '../../adapters/processes/local-calls.ts';
import {
  cheapestModel,
  cachedTokens,
  testCall,
  testCallCost,
  TEST_CALL_TOKENS,
} from '../../core/settings/test-call.ts';
import type { Access } from '../../core/settings/config-schema.ts';
import type { Environment } from '../../core/settings/config-values.ts';
import { apiOf } from '../../core/dialects/apis.ts';
import type { UpstreamSettings } from '../../core/settings/settings.ts';
import type { Check } from './doctor-checks.ts';
import { readableUpstreams } from './doctor-live.ts';
import { checkKey, type KeyCheck, type OpenUpstream } from './key-check.ts';
import { PROBE_SPACE } from '../../core/request/space.ts';
import { OwnProxies, type OwnProxy } from '../proxy/own-proxies.ts';

/**
 * `svc doctor --live`: sends a small request to a model, twice, through the running proxy. It shows
 * svc's report of it, and how much the provider read from its cache. It is the one check that costs
 * money.
 */
export interface ModelCallsOptions {
  readonly environment: Environment;
  readonly access: Access;
  readonly open: OpenUpstream;
  /** Undefined: the cheapest of each provider's list. */
  readonly model: string | undefined;
  /** Gets the price in a line; nothing is sent without a yes. */
  readonly agree: (line: string) => Promise<Consent>;
  /** Names of providers that did not answer an earlier check, which has reported them. */
  readonly unreachable: ReadonlySet<string>;
}

/** 'nobody': there is no terminal to ask a person on. */
export type Consent = 'yes' | 'no' | 'nobody';

const SUBJECT = 'Live';

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
    if (consent === 'yes') checks.push(await callTwice({ proxy, proxies, upstream, model }));
    if (consent === 'nobody') checks.push(notSent(price));
  }
  return checks;
}

function noModel({ name }: UpstreamSettings, asked: KeyCheck | undefined): Check {
  const isAway = asked !== undefined && asked.state !== 'accepted';
  const found = isAway
    ? `${name} did not list its models: ${asked.found}`
    : `${name} lists no model to try`;
  return { level: 'warning', subject: SUBJECT, found, fix: 'svc doctor --live --model NAME' };
}

/** Without a terminal a flag that spends money is not enough: scripts and models run doctor too. */
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

interface Calls {
  readonly proxy: OwnProxy;
  readonly proxies: OwnProxies;
  readonly upstream: UpstreamSettings;
  readonly model: string;
}

async function callTwice({ proxy, proxies, upstream, model }: Calls): Promise<Check> {
  const { name, apiStyle } = upstream;
  const { modelPath, callHeaders } = apiOf(apiStyle);
  const isOpenAi = new URL(upstream.baseUrl).hostname === 'api.openai.com';
  const call = { path: modelPath, body: testCall({ apiStyle, model }, isOpenAi) };
  // Nothing of a test is worth remembering.
  const mode = { 'x-svc-memory-mode': 'read', 'x-svc-memory-space': PROBE_SPACE };
  const send = () => proxies.call(proxy, call, { ...callHeaders, ...mode });
  const first = await send();
  const second = first?.status === 200 ? await send() : undefined;
  const place = `${name} (${model})`;
  const failed = first?.status !== 200 ? first : second;
  if (first?.status !== 200 || second?.status !== 200) {
    const found = `${place}: ${failed === undefined ? 'no answer in a minute' : `answered ${failed.status}`}`;
    const id = evidence(failed, 'x-svc-request-id');
    const fix = id === '' ? 'svc status' : `svc requests ${id}`;
    return { level: 'problem', subject: SUBJECT, found, fix };
  }
  return {
    level: 'ok',
    subject: SUBJECT,
    found: `${place}: ${toldBy(second)}; ${cacheText(second)}`,
  };
}

function toldBy(answer: LocalAnswer): string {
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

// svc's own headers: short words and numbers.
function evidence(answer: LocalAnswer | undefined, name: string): string {
  const value = answer?.headers[name];
  return typeof value === 'string' ? value : '';
}
