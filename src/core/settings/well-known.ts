import type { Dialect } from '../conversation/view.ts';
import type { UpstreamAuth } from './settings.ts';

/**
 * Providers that setup knows by name, without a catalog; these entries override a catalog.
 * Discovery only: nothing here is used once the file is written, and any provider can be described
 * by hand.
 */
export interface WellKnown {
  readonly apiStyles: readonly Dialect[];
  /** As the provider's own documentation gives it to clients. */
  readonly baseUrl: string;
  /** The variable that the provider's own tools read; '' where there is no key. */
  readonly keyEnv: string;
  readonly auth: UpstreamAuth;
  readonly allowPrivate: boolean;
}

const CHAT: readonly Dialect[] = ['openai_chat_completions'];

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
  // From here on: what catalogs of models leave out, because they name a package instead. Each is
  // the address that the provider documents for OpenAI's own SDK.
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
