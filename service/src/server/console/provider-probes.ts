import { asList, asRecord, parseJson } from '../../../../src/core/bytes/json-fields.ts';
import { apiOf, DIALECTS } from '../../../../src/core/dialects/apis.ts';
import { sampleOf } from '../../../../src/core/dialects/samples.ts';
import { ProxyError } from '../../../../src/core/errors.ts';
import { forwardHeaders } from '../../../../src/core/http/header-rules.ts';
import { closed, type Infer } from '../../../../src/core/memory-api/shape.ts';
import { fingerprintOf } from '../../core/envelope.ts';
import { MODEL_ID, presetOf, type TenantProvider } from '../../core/providers.ts';
import type { WholeAnswer } from '../../ports/provider-links.ts';
import { Buckets } from '../buckets.ts';
import { invalid, refusalOf, ServiceFault } from '../fault.ts';
import { openSettings } from '../models/provider-settings.ts';
import {
  apply,
  command,
  type ConsoleCall,
  type ConsoleOperation,
  type ConsoleParts,
  type ConsoleReply,
  nothing,
  reads,
  storeOf,
  writes,
} from './operation.ts';
import { credentialShape, findProvider, PROVIDER } from './providers.ts';

/**
 * Operations for the set-up of providers: list the catalog's presets, fetch the models of a custom provider, send one
 * tiny request, and compare a secret with the saved one. Of a provider's answer svc passes on only names of models, how
 * many entries had no usable name, the status and the time that it took.
 */

export const providerCompare = closed({ credential: credentialShape });

const OUTCOMES: Readonly<Record<string, string>> = {
  unreachable: 'The provider could not be reached.',
  unauthorized: 'The provider refused the credential.',
  not_supported: 'The provider has no list of models.',
  invalid: 'The answer of the provider is not a list of models.',
};

export const probeOperations: readonly ConsoleOperation[] = [
  reads({ name: 'listPresets', route: 'GET presets', role: 'viewer' }, listPresets, [
    command('providers presets', 'List presets, which are providers of the public catalog', {
      argument: {
        flags: '[text]',
        about: 'only presets with this text in their id or name',
        searches: ['preset_id', 'name'],
      },
      examples: ['providers presets', 'providers presets mistral'],
      list: {
        empty: 'No preset has this text in its name. Add another provider with --base-url.',
        columns: ['preset_id', 'name:40', 'api_styles'],
      },
    }),
  ]),
  writes(
    { name: 'fetchModels', route: 'POST providers/*/models', role: 'admin' },
    nothing,
    fetchModels,
    [
      command(
        'providers models',
        'Print the models that a custom provider lists; exit 1 if it has no list',
        {
          argument: PROVIDER,
          examples: [
            'providers models gateway',
            'providers update gateway --model $(svc-service providers models gateway)',
          ],
          more: 'The catalog lists the models of a preset. If a provider has no list, name its models yourself.',
          byService: true,
          // Without a list, the user has to name the models.
          shows: ({ outcome, models, truncated, dropped }, { line, count }, { argument: name }) => {
            if (outcome !== 'listed') {
              const why = OUTCOMES[line(outcome)] ?? 'The provider sent no list.';
              const hint = `Name the models yourself: svc-service providers update ${name} --model NAME`;
              return { problem: [why, hint] };
            }
            return {
              lines: asList(models).map((model) => line(model)),
              note: [
                ...(truncated === true ? ['There are more: svc reads at most 5,000.'] : []),
                ...(Number(dropped) > 0
                  ? [`${count(dropped, 'entry')} without a usable name left out.`]
                  : []),
              ],
            };
          },
        },
      ),
    ],
  ),
  writes(
    { name: 'testProvider', route: 'POST providers/*/test', role: 'admin' },
    nothing,
    testProvider,
    [
      command(
        'providers test',
        'Send one tiny request to the default model; exit 1 when it fails',
        {
          argument: PROVIDER,
          examples: ['providers test gateway'],
          byService: true,
          shows: ({ ok, status, error_code: code, error_message: message, ms }, { line }) => ({
            lines: [`${line(status ?? code)} in ${line(ms)} ms`],
            note: message === null ? [] : line(message),
            isFailure: ok !== true,
          }),
        },
      ),
    ],
  ),
  writes(
    { name: 'compareCredential', route: 'POST providers/*/fingerprint', role: 'admin' },
    providerCompare,
    compareCredential,
    [
      command(
        'providers fingerprint',
        'Compare a credential from stdin with the saved one; exit 1 if they differ',
        {
          argument: PROVIDER,
          examples: ['providers fingerprint claude < key.txt'],
          secret: 'credential',
          shows: ({ fingerprint, matches }, { line }) => ({
            lines: [line(fingerprint)],
            note: matches === true ? [] : 'Another credential is saved with this provider.',
            isFailure: matches !== true,
          }),
        },
      ),
    ],
  ),
];

/**
 * Bound on a provider's answer to a probe, in bytes: a list of 5,000 models with 200 bytes each fits. A longer list
 * counts as invalid.
 */
const LIST_BYTES_MAX = 1 << 20;
const MODELS_MAX = 5_000;
const PROBE_MS = 10_000;
/** The rate of probes of a tenant: enough for a user who presses a button, and far too low for a port scan. */
const PROBES = { perMinute: 6, burst: 6 };
const TEST_TOKENS = 16;

const probesOf = new WeakMap<ConsoleParts['store'], Buckets>();

async function listPresets({ parts }: ConsoleCall): Promise<ConsoleReply> {
  const catalog = await parts.listCatalog();
  const data = catalog.flatMap(({ id, name }) => {
    const styles = DIALECTS.filter((style) => presetOf(catalog, id, style) !== undefined);
    return styles.length === 0 ? [] : [{ preset_id: id, name, api_styles: styles }];
  });
  return { status: 200, body: { object: 'list', data } };
}

/** Fetches the models of a custom provider. For a preset, the catalog lists the models. */
async function fetchModels(call: ConsoleCall): Promise<ConsoleReply> {
  const provider = await findProvider(call);
  if (provider.kind !== 'custom') {
    throw invalid('The service fetches models only from custom providers.', 'provider_id');
  }
  takeProbe(call);
  const found = await askForModels(call, provider);
  const { name, providerId } = provider;
  await apply(
    call,
    storeOf(call),
    { what: 'event' },
    {
      kind: 'provider.models_fetched',
      id: providerId,
      details: { name, outcome: found.outcome, models: found.models.length },
    },
  );
  return { status: 200, body: found };
}

/** Sends one request of a few tokens to the default model. */
async function testProvider(call: ConsoleCall): Promise<ConsoleReply> {
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

/** Compares a secret from the caller with the saved one by their fingerprints, without opening the vault. */
async function compareCredential(
  call: ConsoleCall,
  asked: Infer<typeof providerCompare>,
): Promise<ConsoleReply> {
  const provider = await findProvider(call);
  takeProbe(call);
  const fingerprint = fingerprintOf(call.parts.pepper, call.tenantId, asked.credential);
  const matches = provider.credential?.fingerprint === fingerprint;
  return { status: 200, body: { fingerprint, matches } };
}

interface FetchedModels {
  readonly outcome: 'listed' | 'unreachable' | 'unauthorized' | 'not_supported' | 'invalid';
  readonly models: readonly string[];
  readonly truncated: boolean;
  /** The number of entries that cannot be the name of a model. */
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
  /** The body; '' if there is none. */
  readonly body: string;
}

/**
 * Why a provider could not be reached. `message` is a constant of svc, which may contain a code of Node, such as
 * CERT_HAS_EXPIRED.
 */
interface Unreached {
  readonly code: string;
  readonly message: string;
}

/** Decrypts a provider's credential and sends one request. If the provider cannot be reached, returns why. */
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
    if (error instanceof ProxyError || error instanceof ServiceFault) {
      return { code: refusalOf(error).code, message: error.message };
    }
    if (error instanceof DOMException) {
      return { code: 'PROVIDER_TIMEOUT', message: 'The provider did not answer in 10 seconds.' };
    }
    throw error;
  }
}

/** Counts one probe of the tenant. Throws ServiceFault RATE_LIMIT_EXCEEDED. */
function takeProbe({ parts, tenantId }: ConsoleCall): void {
  const buckets = probesOf.get(parts.store) ?? new Buckets(PROBES);
  probesOf.set(parts.store, buckets);
  const afterMs = buckets.take(tenantId, parts.clock.monotonic());
  if (afterMs === 0) return;
  const param = 'provider_probes_per_minute';
  const message = `Providers were asked too often: the limit is ${param}.`;
  throw new ServiceFault('RATE_LIMIT_EXCEEDED', message, { afterMs, param });
}
