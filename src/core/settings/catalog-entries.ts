import { isEnvironmentName } from './config-values.ts';
import { asList, asRecord, type Fields, isRecord } from '../bytes/json-fields.ts';
import { UPSTREAM_NAME } from './config-upstreams.ts';
import type { ModelFacts } from './model-facts.ts';

/**
 * Parses the catalog of providers, which comes from the package, the cache or the network. Invalid entries are dropped,
 * because their texts are shown on a screen and their addresses are offered to the user.
 */

export interface CatalogEntry {
  readonly name: string;
  /** Environment variables that the provider's own tools read. */
  readonly env: readonly string[];
  /** The published base URL. It may contain a `${PLACE}` for the name of an account. */
  readonly api?: string;
  /** The package of the AI SDK for this provider, which shows its dialect. */
  readonly npm?: string;
  readonly models: readonly string[];
  /** Published limits and prices of its models, by id. */
  readonly facts: Readonly<Record<string, ModelFacts>>;
}

export type CatalogEntries = Readonly<Record<string, CatalogEntry>>;

/** Matches a visible, short text of one line, without characters that reverse or hide text. */
const NAME = /^[\p{L}\p{N}\p{P}\p{S}][\p{L}\p{N}\p{P}\p{S} ]{0,59}$/u;
const ADDRESS = /^[\u0021-\u007e]{1,300}$/;
const PACKAGE = /^[@a-z0-9][\w./@-]{0,99}$/;
const MODEL = /^[\w@~][\w.:@/+~-]{0,127}$/;
const VARIABLE_CHARS_MAX = 64;
/** Bound on variables of a provider. The most seen are three: account, region, key. */
const VARIABLES_MAX = 8;
/** Bound on models of a provider. The largest aggregator lists 600. */
const MODELS_MAX = 2000;
/** Bound on providers. There are 210 in 2026. */
const PROVIDERS_MAX = 2000;
/** Fewest providers of a catalog. A file with fewer is an error page or has another format. */
const PROVIDERS_MIN = 20;

/**
 * Parses a catalog. `value`: parsed JSON, either entries by id or an object with them in `providers`; `models` is a
 * list of ids or an object by id. Undefined if it is no catalog: too few entries, or most of them invalid.
 */
export function parseEntries(value: unknown): CatalogEntries | undefined {
  if (!isRecord(value)) return undefined;
  const given = isRecord(value['providers']) ? value['providers'] : value;
  const all = Object.entries(given).slice(0, PROVIDERS_MAX);
  const entries = all.flatMap(([id, raw]): [string, CatalogEntry][] => {
    const entry = UPSTREAM_NAME.test(id) ? parseEntry(raw) : undefined;
    return entry === undefined ? [] : [[id, entry]];
  });
  if (entries.length < PROVIDERS_MIN || entries.length * 2 < all.length) return undefined;
  return Object.fromEntries(entries);
}

function parseEntry(raw: unknown): CatalogEntry | undefined {
  if (!isRecord(raw)) return undefined;
  const { name, api, npm } = raw;
  if (!isText(name, NAME)) return undefined;
  return {
    name,
    env: variablesIn(raw['env']),
    ...(isText(api, ADDRESS) ? { api } : {}),
    ...(isText(npm, PACKAGE) ? { npm } : {}),
    models: modelsIn(raw['models']),
    facts: factsIn(raw['facts'] ?? raw['models']),
  };
}

/** Reads limits and prices of models, by model id, in the form of models.dev. */
function factsIn(value: unknown): Readonly<Record<string, ModelFacts>> {
  if (!isRecord(value)) return {};
  const models = Object.entries(value).slice(0, MODELS_MAX);
  return Object.fromEntries(
    models.flatMap(([id, model]): [string, ModelFacts][] => {
      const facts = isText(id, MODEL) ? modelFacts(asRecord(model)) : undefined;
      return facts === undefined ? [] : [[id, facts]];
    }),
  );
}

function modelFacts(model: Fields): ModelFacts | undefined {
  const [limit, cost] = [asRecord(model['limit']), asRecord(model['cost'])];
  const [windowTokens, outputTokensMax] = [limit['context'], limit['output']];
  if (!isTokens(windowTokens) || !isTokens(outputTokensMax)) return undefined;
  const inputTokensMax = isTokens(limit['input']) ? limit['input'] : windowTokens;
  const limits = { windowTokens, inputTokensMax, outputTokensMax };
  const { input, output, cache_read: cacheRead, cache_write: cacheWrite } = cost;
  if (!isPrice(input) || !isPrice(output)) return limits;
  const price = {
    input,
    output,
    ...(isPrice(cacheRead) ? { cacheRead } : {}),
    ...(isPrice(cacheWrite) ? { cacheWrite } : {}),
  };
  return { ...limits, price };
}

/** Writes the facts in the form of models.dev, which modelFacts() reads. */
export function sourceOfFacts({
  windowTokens,
  inputTokensMax,
  outputTokensMax,
  price,
}: ModelFacts) {
  const { input, output, cacheRead, cacheWrite } = price ?? {};
  return {
    limit: { context: windowTokens, input: inputTokensMax, output: outputTokensMax },
    cost: { input, output, cache_read: cacheRead, cache_write: cacheWrite },
  };
}

function isTokens(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) > 0;
}

// Says whether a price is known. A price of 0 means unknown: free tiers, and gateways that do not know the price, are
// listed with 0.
function isPrice(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value > 0;
}

function variablesIn(value: unknown): readonly string[] {
  return asList(value)
    .filter((one) => isEnvironmentName(one))
    .filter((one) => one.length <= VARIABLE_CHARS_MAX)
    .slice(0, VARIABLES_MAX);
}

function modelsIn(value: unknown): readonly string[] {
  const ids = isRecord(value)
    ? Object.keys(value).filter((id) => asRecord(value[id])['status'] !== 'deprecated')
    : asList(value);
  return ids.filter((id) => isText(id, MODEL)).slice(0, MODELS_MAX);
}

function isText(value: unknown, form: RegExp): value is string {
  return typeof value === 'string' && form.test(value);
}
