import { asList, asRecord, parseJson } from '../../../../src/core/bytes/json-fields.ts';
import { DIALECTS } from '../../../../src/core/conversation/view.ts';
import { apiOf } from '../../../../src/core/dialects/apis.ts';
import { sampleOf } from '../../../../src/core/dialects/samples.ts';
import { ProxyError, serviceError } from '../../../../src/core/errors.ts';
import { forwardHeaders } from '../../../../src/core/http/header-rules.ts';
import { MODEL_ID, presetOf, type TenantProvider } from '../../core/providers.ts';
import { readValue } from '../call.ts';
import { nothing, providerCompare } from '../../core/console-contract.ts';
import { fingerprintOf } from '../../core/envelope.ts';
import { Buckets } from '../buckets.ts';
import { ServiceFault } from '../fault.ts';
import { openSettings } from '../models/provider-settings.ts';
import type { WholeAnswer } from '../../ports/provider-links.ts';
import {
  type ConsoleCall,
  type ConsoleParts,
  type ConsoleReply,
  mustBeDone,
  noteOf,
  storeOf,
} from './console-call.ts';
import { findProvider } from './providers.ts';

/**
 * Looks at providers for a person who sets one up: presets of the catalog, the models that a custom
 * provider lists, one tiny request, and whether a secret is the saved one. svc passes on identifiers, a
 * status and a time, and nothing else that a provider says.
 */

/** A list of 5,000 models. */
const LIST_BYTES_MAX = 1 << 20;
const MODELS_MAX = 5_000;
const PROBE_MS = 10_000;
/** A person presses a button; a search through a network's ports would need far more. */
const PROBES = { perMinute: 6, burst: 6 };
const TEST_TOKENS = 16;

const probesOf = new WeakMap<ConsoleParts['store'], Buckets>();

export async function listPresets({ parts }: ConsoleCall): Promise<ConsoleReply> {
  const catalog = await parts.listCatalog();
  const data = catalog.flatMap(({ id, name }) => {
    const styles = DIALECTS.filter((style) => presetOf(catalog, id, style) !== undefined);
    return styles.length === 0 ? [] : [{ preset_id: id, name, api_styles: styles }];
  });
  return { status: 200, body: { object: 'list', data } };
}

/** Only for a custom provider: the catalog lists the models of a preset. */
export async function fetchModels(call: ConsoleCall): Promise<ConsoleReply> {
  readValue(call.body, nothing);
  const provider = await findProvider(call);
  if (provider.kind !== 'custom') {
    const message = 'The service fetches models only from custom providers.';
    throw new ServiceFault('INVALID_REQUEST', message, { param: 'provider_id' });
  }
  takeProbe(call);
  const found = await askForModels(call, provider);
  const target = { type: 'provider', id: provider.providerId };
  const details = {
    name: provider.name,
    outcome: found.outcome,
    models: found.models.length,
  };
  const note = noteOf(call, 'provider.models_fetched', { target, details });
  mustBeDone(await storeOf(call).apply({ what: 'event' }, note), 'provider');
  return { status: 200, body: found };
}

/** One request of a few tokens to the default model. */
export async function testProvider(call: ConsoleCall): Promise<ConsoleReply> {
  readValue(call.body, nothing);
  const provider = await findProvider(call);
  takeProbe(call);
  const { apiStyle, defaultModel: model } = provider;
  const isOpenAi = new URL(provider.baseUrl).hostname === 'api.openai.com';
  const body = sampleOf(apiStyle).cacheableRequest({
    model,
    prefix: 'A test of this connection.',
    question: 'Answer with one word: does it work?',
    answerTokensMax: TEST_TOKENS,
    isOpenAi,
  });
  const began = call.parts.clock.monotonic();
  const target = apiOf(apiStyle).modelPath;
  const asked: Asked = { method: 'POST', target, body: JSON.stringify(body) };
  const answer = await ask(call, provider, asked);
  const ms = Math.round(call.parts.clock.monotonic() - began);
  const status = 'code' in answer ? null : answer.status;
  const { code = null, message = null } = 'code' in answer ? answer : {};
  const ok = status !== null && status < 300;
  return { status: 200, body: { ok, status, error_code: code, error_message: message, ms } };
}

/** Whether a secret that the caller has is the one in the vault, without opening the vault. */
export async function compareCredential(call: ConsoleCall): Promise<ConsoleReply> {
  const { credential } = readValue(call.body, providerCompare);
  const provider = await findProvider(call);
  takeProbe(call);
  const fingerprint = fingerprintOf(call.parts.pepper, call.tenantId, credential);
  const matches = provider.credential?.fingerprint === fingerprint;
  return { status: 200, body: { fingerprint, matches } };
}

interface FetchedModels {
  readonly outcome: 'listed' | 'unreachable' | 'unauthorized' | 'not_supported' | 'invalid';
  readonly models: readonly string[];
  readonly truncated: boolean;
  /** Entries whose name cannot be one of a model. */
  readonly dropped: number;
}

async function askForModels(call: ConsoleCall, provider: TenantProvider): Promise<FetchedModels> {
  const nothingFound = { models: [], truncated: false, dropped: 0 };
  const answer = await ask(call, provider, { method: 'GET', target: '/v1/models', body: '' });
  if ('code' in answer) return { outcome: 'unreachable', ...nothingFound };
  const { status, body } = answer;
  if (status === 401 || status === 403) return { outcome: 'unauthorized', ...nothingFound };
  if (status === 404 || status === 405 || status === 501) {
    return { outcome: 'not_supported', ...nothingFound };
  }
  const parsed = asRecord(parseJson(body?.toString('utf8') ?? ''));
  const entries = [...asList(parsed['data']), ...asList(parsed['models'])];
  if (status !== 200 || entries.length === 0) return { outcome: 'invalid', ...nothingFound };
  const names = entries.map((entry) => asRecord(entry)['id'] ?? asRecord(entry)['name']);
  const models = new Set(names.filter((name) => typeof name === 'string' && MODEL_ID.test(name)));
  return {
    outcome: 'listed',
    models: [...models].slice(0, MODELS_MAX).map(String),
    truncated: models.size > MODELS_MAX,
    dropped: names.filter((name) => typeof name !== 'string' || !MODEL_ID.test(name)).length,
  };
}

interface Asked {
  readonly method: 'GET' | 'POST';
  readonly target: string;
  /** '' for none. */
  readonly body: string;
}

/** `message`: a constant of svc's own, with a code of the network or of TLS such as CERT_HAS_EXPIRED. */
interface Unreached {
  readonly code: string;
  readonly message: string;
}

/** The credential is opened for this one call. */
async function ask(
  { parts, tenantId }: ConsoleCall,
  provider: TenantProvider,
  { method, target, body }: Asked,
): Promise<WholeAnswer | Unreached> {
  try {
    const settings = await openSettings(parts, tenantId, provider);
    const { callHeaders } = apiOf(provider.apiStyle);
    const own = body === '' ? {} : { 'content-type': 'application/json' };
    const headers = forwardHeaders(Object.entries({ ...callHeaders, ...own }).flat(), settings);
    const request = { method, target, headers, body: body === '' ? [] : [Buffer.from(body)] };
    const limits = { bytesMax: LIST_BYTES_MAX, signal: AbortSignal.timeout(PROBE_MS) };
    return await parts.links.ask(provider, { settings, request, ...limits });
  } catch (error) {
    if (error instanceof ProxyError) {
      return { code: serviceError(error.code).code, message: error.message };
    }
    if (error instanceof DOMException) {
      return { code: 'PROVIDER_TIMEOUT', message: 'The provider did not answer in 10 seconds.' };
    }
    throw error;
  }
}

/** Throws ServiceFault RATE_LIMIT_EXCEEDED. */
function takeProbe({ parts, tenantId }: ConsoleCall): void {
  const buckets = probesOf.get(parts.store) ?? new Buckets(PROBES);
  probesOf.set(parts.store, buckets);
  const afterMs = buckets.take(tenantId, parts.clock.monotonic());
  if (afterMs === 0) return;
  const message = 'Providers were asked too often: the limit is provider_probes_per_minute.';
  throw new ServiceFault('RATE_LIMIT_EXCEEDED', message, {
    afterMs,
    param: 'provider_probes_per_minute',
  });
}
