import type { CatalogEntries, CatalogEntry } from './catalog-entries.ts';
import { defaultAuth, parseBaseUrl } from './config-upstreams.ts';
import { isOwnMachineUrl } from './own-machine.ts';
import type { Dialect } from '../conversation/view.ts';
import type { UpstreamAuth } from '../http/header-rules.ts';

/**
 * The providers that setup offers, with names, addresses, key variables and dialects. They only fill in what the
 * user has not said, and are not used once the configuration is written. Facts that svc knows itself (WELL_KNOWN)
 * override a catalog's.
 */
export interface Provider extends Omit<WellKnown, 'baseUrl'> {
  readonly id: string;
  readonly name: string;
  /** The base URL; undefined if no usable address is published: then the provider is listed but cannot be chosen. */
  readonly baseUrl: string | undefined;
  /** Variables that may hold the key. `keyEnv` is the usual one and comes first. */
  readonly keyEnvs: readonly string[];
  readonly models: readonly string[];
}

/** Returns the providers of a catalog: well-known ones first, the others by id. */
export function providersOf(entries: CatalogEntries): readonly Provider[] {
  const others = Object.keys(entries).filter((id) => !Object.hasOwn(WELL_KNOWN, id));
  return [...WELL_KNOWN_NAMES, ...others.toSorted()].map((id) =>
    providerOf(id, Object.hasOwn(entries, id) ? entries[id] : undefined),
  );
}

function providerOf(id: string, entry: CatalogEntry | undefined): Provider {
  const known = wellKnown(id);
  const { name = id, models = [], env = [], npm = '', api } = entry ?? {};
  // Only these variables can be keys; others name an account or a region.
  const variables = env.filter((one) => /KEY|TOKEN|SECRET|PAT$/.test(one));
  if (known !== undefined) {
    const keyEnvs = known.keyEnv === '' ? [] : [...new Set([known.keyEnv, ...variables])];
    return { ...known, id, name, models, keyEnvs };
  }
  const apiStyles = STYLES.get(npm) ?? [];
  const [first] = apiStyles;
  const baseUrl = usableBase(api);
  return {
    id,
    name,
    models,
    baseUrl,
    apiStyles,
    keyEnv: variables[0] ?? '',
    keyEnvs: variables,
    auth: first === undefined ? 'bearer' : defaultAuth(first),
    allowPrivate: baseUrl !== undefined && isOwnMachineUrl(baseUrl),
  };
}

/**
 * Says whether svc can configure the provider: its address is known, and so is its key's variable, if it needs a key.
 */
export function isRoutable({ baseUrl, keyEnv, auth }: Provider): boolean {
  return baseUrl !== undefined && (keyEnv !== '' || auth === 'none');
}

const CHAT: readonly Dialect[] = ['openai_chat_completions'];

/**
 * The dialects that a provider's package implies. An entry without a package counts as OpenAI-compatible; an unlisted
 * package may use any dialect.
 */
const STYLES: ReadonlyMap<string, readonly Dialect[]> = new Map([
  ['', CHAT],
  ['@ai-sdk/openai-compatible', CHAT],
  ['@openrouter/ai-sdk-provider', CHAT],
  ['@ai-sdk/groq', CHAT],
  ['@ai-sdk/mistral', CHAT],
  ['@ai-sdk/xai', CHAT],
  ['@ai-sdk/cerebras', CHAT],
  ['@ai-sdk/deepinfra', CHAT],
  ['@ai-sdk/togetherai', CHAT],
  ['@ai-sdk/openai', ['openai_responses', 'openai_chat_completions']],
  ['@ai-sdk/anthropic', ['anthropic_messages']],
]);

/** Returns the address if it can be used. Only a program on this machine, such as LM Studio, may have a private one. */
function usableBase(api: string | undefined): string | undefined {
  if (api === undefined || api.includes('${')) return undefined;
  return 'url' in parseBaseUrl(api, isOwnMachineUrl(api)) ? api : undefined;
}

/** A found provider, and the model by which it was found, if the words are not all in its id, name or address. */
export interface Found {
  readonly provider: Provider;
  readonly model?: string;
}

/**
 * Searches providers. Every word must be in a provider's id, name or address, or in one model's name, the same for all.
 * Providers that svc can configure come first. Within both groups, matches by id come before those by name or address,
 * and matches by model come last.
 */
export function searchProviders(providers: readonly Provider[], term: string): readonly Found[] {
  const words = term.toLowerCase().split(/\s+/).filter(Boolean);
  const found = providers.flatMap((provider) => {
    const hit = rank(provider, words);
    return hit === undefined ? [] : [{ provider, ...hit }];
  });
  // The sort is stable, so that equal ranks keep the catalog's order.
  const sorted = found.toSorted((one, other) => one.place - other.place);
  return sorted.map(({ provider, model }) => ({
    provider,
    ...(model === undefined ? {} : { model }),
  }));
}

/** Added to the rank of providers that cannot be chosen, so that they come after all others. */
const UNUSABLE = 10;

/** Ranks a match: the lower `place` is, the further in front. Returns undefined if a word is missing. */
function rank(
  provider: Provider,
  words: readonly string[],
): { readonly place: number; readonly model?: string } | undefined {
  const { id, name, baseUrl = '', models } = provider;
  const penalty = isRoutable(provider) ? 0 : UNUSABLE;
  const all = (text: string): boolean => words.every((word) => text.includes(word));
  if (words.length === 0) return { place: penalty };
  if (id === words.join(' ')) return { place: penalty };
  if (id.startsWith(words[0] ?? '') && all(id)) return { place: penalty + 1 };
  const own = `${id} ${name} ${baseUrl}`.toLowerCase();
  if (all(own)) return { place: penalty + 2 };
  const model = models.find((one) => all(`${own} ${one.toLowerCase()}`));
  return model === undefined ? undefined : { place: penalty + 3, model };
}

/** What setup knows of a provider without a catalog. The user may enter any other provider by hand. */
export interface WellKnown {
  readonly apiStyles: readonly Dialect[];
  /** The base URL from the provider's own documentation for clients. */
  readonly baseUrl: string;
  /** The variable that the provider's own tools read; '' if it needs no key. */
  readonly keyEnv: string;
  readonly auth: UpstreamAuth;
  readonly allowPrivate: boolean;
}

export const WELL_KNOWN: Readonly<Record<string, WellKnown>> = {
  anthropic: {
    apiStyles: ['anthropic_messages'],
    baseUrl: 'https://api.anthropic.com',
    keyEnv: 'ANTHROPIC_API_KEY',
    auth: 'x-api-key',
    allowPrivate: false,
  },
  openai: openAiLike('https://api.openai.com/v1', 'OPENAI_API_KEY', [
    'openai_responses',
    'openai_chat_completions',
  ]),
  openrouter: openAiLike('https://openrouter.ai/api/v1', 'OPENROUTER_API_KEY'),
  deepseek: openAiLike('https://api.deepseek.com/v1', 'DEEPSEEK_API_KEY'),
  groq: openAiLike('https://api.groq.com/openai/v1', 'GROQ_API_KEY'),
  mistral: openAiLike('https://api.mistral.ai/v1', 'MISTRAL_API_KEY'),
  xai: openAiLike('https://api.x.ai/v1', 'XAI_API_KEY'),
  // Providers for which model catalogs name a package instead of an address. Each address is the one that the
  // provider documents for OpenAI's SDK.
  google: openAiLike('https://generativelanguage.googleapis.com/v1beta/openai', 'GEMINI_API_KEY'),
  cerebras: openAiLike('https://api.cerebras.ai/v1', 'CEREBRAS_API_KEY'),
  togetherai: openAiLike('https://api.together.ai/v1', 'TOGETHER_API_KEY'),
  cohere: openAiLike('https://api.cohere.ai/compatibility/v1', 'COHERE_API_KEY'),
  deepinfra: openAiLike('https://api.deepinfra.com/v1/openai', 'DEEPINFRA_API_KEY'),
  vercel: openAiLike('https://ai-gateway.vercel.sh/v1', 'AI_GATEWAY_API_KEY'),
  ollama: onThisMachine('http://127.0.0.1:11434/v1'),
  lmstudio: onThisMachine('http://127.0.0.1:1234/v1'),
};

export const WELL_KNOWN_NAMES: readonly string[] = Object.keys(WELL_KNOWN);

export function wellKnown(name: string): WellKnown | undefined {
  return Object.hasOwn(WELL_KNOWN, name) ? WELL_KNOWN[name] : undefined;
}

function openAiLike(
  baseUrl: string,
  keyEnv: string,
  apiStyles: readonly Dialect[] = CHAT,
): WellKnown {
  return { apiStyles, baseUrl, keyEnv, auth: 'bearer', allowPrivate: false };
}

function onThisMachine(baseUrl: string): WellKnown {
  return { apiStyles: CHAT, baseUrl, keyEnv: '', auth: 'none', allowPrivate: true };
}
