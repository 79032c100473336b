import { LONG_MARK } from '../request/clients.ts';

/**
 * Published limits and list prices of models. The table has the models that agents use; a catalog covers others. For
 * a model in neither, svc knows no limit and no price.
 * Sources: platform.claude.com/docs (models and pricing) and developers.openai.com/api/docs/models, read on 2026-11-24;
 * the model data of @earendil-works/pi-ai 1.6.0 (MIT), with which all newer rows were compared on 2026-11-30; older
 * rows from models.dev (MIT, copyright 2025 models.dev).
 */
export interface ModelFacts {
  /** Tokens of the request and the answer together. */
  readonly windowTokens: number;
  /** Tokens that the request may have, without the answer. */
  readonly inputTokensMax: number;
  readonly outputTokensMax: number;
  readonly price?: ListPrice;
}

/** US dollars per million tokens. */
export interface ListPrice {
  readonly input: number;
  readonly output: number;
  /** Price of tokens read from the prompt cache; undefined if not published. */
  readonly cacheRead?: number;
  /** Price of tokens written to the cache; undefined if it equals the price of input. */
  readonly cacheWrite?: number;
  /** Undefined if a long request has the same price. */
  readonly long?: LongPrice;
}

/** The higher price of a long request. It applies to all tokens of the request and of its answer. */
export interface LongPrice {
  /** The input tokens, with those in the cache, above which a request is long. */
  readonly above: number;
  /** Factor of all prices of the input. */
  readonly input: number;
  /** Factor of the price of the answer. */
  readonly output: number;
}

/** The day on which the prices in this table were last compared with their sources. */
export const PRICES_READ_ON = '2026-11-30';

type Row = readonly [name: string, window: number, output: number, price?: Price, input?: number];
type Price = readonly [input: number, output: number, cacheRead?: number, cacheWrite?: number];

/**
 * Windows and input limits of GPT models, in tokens. For GPT-5 and later OpenAI also publishes a limit for the input.
 */
const GPT_LONG = 1_050_000;
const GPT_LONG_INPUT = 922_000;
const GPT_SHORT_INPUT = 272_000;

/** The models. Names are in lower case, with `-` for `.`. */
const ROWS: readonly Row[] = [
  ['claude-3-haiku', 200_000, 4096, [0.25, 1.25]],
  ['claude-3-5-haiku', 200_000, 8192, [0.8, 4, 0.08, 1]],
  ['claude-3-5-sonnet', 200_000, 8192, [3, 15, 0.3, 3.75]],
  ['claude-3-7-sonnet', 200_000, 64_000, [3, 15, 0.3, 3.75]],
  ['claude-haiku-4-5', 200_000, 64_000, [1, 5, 0.1, 1.25]],
  ['claude-haiku-5-5', 1_000_000, 128_000, [0.1, 0.5, 0.01, 0.125]],
  ['claude-sonnet-4', 200_000, 64_000, [3, 15, 0.3, 3.75]],
  ['claude-sonnet-4-0', 200_000, 64_000, [3, 15, 0.3, 3.75]],
  ['claude-sonnet-4-5', 200_000, 64_000, [3, 15, 0.3, 3.75]],
  ['claude-sonnet-4-6', 1_000_000, 128_000, [3, 15, 0.3, 3.75]],
  ['claude-sonnet-5', 1_000_000, 128_000, [2, 10, 0.2, 2.5]],
  ['claude-sonnet-5-5', 1_000_000, 128_000, [2, 10, 0.1, 2.5]],
  ['claude-opus-4', 200_000, 32_000, [15, 75, 1.5, 18.75]],
  ['claude-opus-4-0', 200_000, 32_000, [15, 75, 1.5, 18.75]],
  ['claude-opus-4-1', 200_000, 32_000, [15, 75, 1.5, 18.75]],
  ['claude-opus-4-5', 200_000, 64_000, [5, 25, 0.5, 6.25]],
  ['claude-opus-4-6', 1_000_000, 128_000, [5, 25, 0.5, 6.25]],
  ['claude-opus-4-7', 1_000_000, 128_000, [5, 25, 0.5, 6.25]],
  ['claude-opus-4-8', 1_000_000, 128_000, [5, 25, 0.5, 6.25]],
  ['claude-opus-5', 1_000_000, 128_000, [5, 25, 0.5, 6.25]],
  ['claude-opus-5-5', 1_000_000, 128_000, [4, 20, 0.2, 5]],
  ['claude-fable-5', 1_000_000, 128_000, [10, 50, 1, 12.5]],
  ['claude-fable-5-1', 1_000_000, 128_000, [10, 50, 0.25, 12.5]],
  ['claude-fable-5-2', 1_000_000, 128_000, [8, 40, 0.2, 10]],
  ['claude-mythos-5', 1_000_000, 128_000, [10, 50, 1, 12.5]],
  ['claude-mythos-5-1', 1_000_000, 128_000, [10, 50, 0.25, 12.5]],
  ['gpt-3-5-turbo', 16_385, 4096, [0.5, 1.5]],
  ['gpt-4', 8192, 8192, [30, 60]],
  ['gpt-4-0125-preview', 128_000, 4096, [10, 30]],
  ['gpt-4-1106-preview', 128_000, 4096, [10, 30]],
  ['gpt-4-turbo', 128_000, 4096, [10, 30]],
  ['gpt-4o', 128_000, 16_384, [2.5, 10, 1.25]],
  ['gpt-4o-mini', 128_000, 16_384, [0.15, 0.6, 0.075]],
  ['gpt-4-1', 1_047_576, 32_768, [2, 8, 0.5]],
  ['gpt-4-1-mini', 1_047_576, 32_768, [0.4, 1.6, 0.1]],
  ['gpt-4-1-nano', 1_047_576, 32_768, [0.1, 0.4, 0.025]],
  ['gpt-5', 400_000, 128_000, [1.25, 10, 0.125], GPT_SHORT_INPUT],
  ['gpt-5-chat', 128_000, 16_384, [1.25, 10, 0.125]],
  ['gpt-5-codex', 400_000, 128_000, [1.25, 10, 0.125], GPT_SHORT_INPUT],
  ['gpt-5-mini', 400_000, 128_000, [0.25, 2, 0.025], GPT_SHORT_INPUT],
  ['gpt-5-nano', 400_000, 128_000, [0.05, 0.4, 0.005], GPT_SHORT_INPUT],
  ['gpt-5-pro', 400_000, 128_000, [15, 120], GPT_SHORT_INPUT],
  ['gpt-5-1', 400_000, 128_000, [1.25, 10, 0.125], GPT_SHORT_INPUT],
  ['gpt-5-1-chat', 128_000, 16_384, [1.25, 10, 0.125]],
  ['gpt-5-1-codex', 400_000, 128_000, [1.25, 10, 0.125], GPT_SHORT_INPUT],
  ['gpt-5-1-codex-max', 400_000, 128_000, [1.25, 10, 0.125], GPT_SHORT_INPUT],
  ['gpt-5-1-codex-mini', 400_000, 128_000, [0.25, 2, 0.025], GPT_SHORT_INPUT],
  ['gpt-5-2', 400_000, 128_000, [1.75, 14, 0.175], GPT_SHORT_INPUT],
  ['gpt-5-2-chat', 128_000, 16_384, [1.75, 14, 0.175]],
  ['gpt-5-2-codex', 400_000, 128_000, [1.75, 14, 0.175], GPT_SHORT_INPUT],
  ['gpt-5-2-pro', 400_000, 128_000, [21, 168], GPT_SHORT_INPUT],
  ['gpt-5-3-chat', 128_000, 16_384, [1.75, 14, 0.175]],
  ['gpt-5-3-codex', 400_000, 128_000, [1.75, 14, 0.175], GPT_SHORT_INPUT],
  ['gpt-5-3-codex-spark', 128_000, 32_000, [1.75, 14, 0.175], 100_000],
  ['gpt-5-4', GPT_LONG, 128_000, [2.5, 15, 0.25], GPT_LONG_INPUT],
  ['gpt-5-4-mini', 400_000, 128_000, [0.75, 4.5, 0.075], GPT_SHORT_INPUT],
  ['gpt-5-4-nano', 400_000, 128_000, [0.2, 1.25, 0.02], GPT_SHORT_INPUT],
  ['gpt-5-4-pro', GPT_LONG, 128_000, [30, 180], GPT_LONG_INPUT],
  ['gpt-5-5', GPT_LONG, 128_000, [5, 30, 0.5], GPT_LONG_INPUT],
  ['gpt-5-5-pro', GPT_LONG, 128_000, [30, 180], GPT_LONG_INPUT],
  ['gpt-5-6', GPT_LONG, 128_000, [4, 20, 0.4, 5], GPT_LONG_INPUT],
  ['gpt-5-6-sol', GPT_LONG, 128_000, [4, 20, 0.4, 5], GPT_LONG_INPUT],
  ['gpt-5-6-terra', GPT_LONG, 128_000, [2, 12, 0.2, 2.5], GPT_LONG_INPUT],
  ['gpt-5-6-luna', GPT_LONG, 128_000, [0.2, 1.2, 0.02, 0.25], GPT_LONG_INPUT],
  ['gpt-6-astra', GPT_LONG, 128_000, [10, 50, 1, 12.5], GPT_LONG_INPUT],
  ['gpt-6-sol', GPT_LONG, 128_000, [2, 10, 0.2, 2.5], GPT_LONG_INPUT],
  ['gpt-6-luna', GPT_LONG, 128_000, [0.1, 0.5, 0.01, 0.125], GPT_LONG_INPUT],
  ['gpt-6-1-sol', GPT_LONG, 128_000, [2, 10, 0.1, 2.5], GPT_LONG_INPUT],
  ['gpt-6-1-terra', GPT_LONG, 128_000, [1, 5, 0.05, 1.25], GPT_LONG_INPUT],
  ['gpt-6-2-astra', GPT_LONG, 128_000, [8, 40, 0.4, 10], GPT_LONG_INPUT],
  ['gpt-6-2-sol', GPT_LONG, 128_000, [2, 10, 0.1, 2.5], GPT_LONG_INPUT],
  ['o1', 200_000, 100_000, [15, 60, 7.5]],
  ['o1-pro', 200_000, 100_000, [150, 600]],
  ['o3', 200_000, 100_000, [2, 8, 0.5]],
  ['o3-mini', 200_000, 100_000, [1.1, 4.4, 0.55]],
  ['o3-pro', 200_000, 100_000, [20, 80]],
  ['o4-mini', 200_000, 100_000, [1.1, 4.4, 0.275]],
  ['gemini-2-0-flash', 1_048_576, 8192, [0.1, 0.4]],
  ['gemini-2-5-flash', 1_048_576, 65_536, [0.3, 2.5, 0.03]],
  ['gemini-2-5-flash-lite', 1_048_576, 65_536, [0.1, 0.4, 0.01]],
  ['gemini-2-5-pro', 1_048_576, 65_536, [1.25, 10, 0.125]],
  ['gemini-3-flash', 1_048_576, 65_536, [0.5, 3, 0.05]],
  ['gemini-3-1-flash-lite', 1_048_576, 65_536, [0.25, 1.5, 0.025]],
  ['gemini-3-1-pro', 1_048_576, 65_536, [2, 12, 0.2]],
  ['gemini-3-5-flash', 1_048_576, 65_536, [1.5, 9, 0.15]],
  ['gemini-3-5-flash-lite', 1_048_576, 65_536, [0.3, 2.5, 0.03]],
  ['gemini-3-6-flash', 1_048_576, 65_536, [0.75, 3.75, 0.075]],
  ['gemini-3-7-flash', 1_048_576, 65_536, [0.75, 3.75, 0.075]],
  ['gemini-3-8-flash', 1_048_576, 65_536, [0.75, 3.75, 0.075]],
  ['gemini-4-argon', 1_048_576, 32_768, [2, 10, 0.1]],
  ['gemini-4-carbon', 1_048_576, 32_768, [2, 10, 0.1]],
  ['gemini-4-hydrogen', 1_048_576, 65_536, [1.5, 7.5, 0.075]],
  ['gemini-4-neon', 1_048_576, 65_536, [3, 15, 0.15]],
  ['grok-4-3', 1_000_000, 30_000, [1.25, 2.5, 0.2]],
  ['grok-4-5', 500_000, 500_000, [2, 6, 0.3]],
  ['grok-4-6', 500_000, 500_000, [2, 6, 0.5]],
  ['grok-4-7', 500_000, 500_000, [2, 6, 0.5]],
  ['deepseek-flash', 1_000_000, 384_000, [0.3, 1.2, 0.006]],
  ['deepseek-v4-pro', 1_000_000, 384_000, [1.32, 3.96, 0.044]],
  ['mistral-large', 262_144, 262_144, [0.5, 1.5, 0.05]],
  ['mistral-large-4', 1_048_576, 262_144, [0.7, 2.1, 0.07]],
  ['mistral-large-latest', 1_048_576, 262_144, [0.7, 2.1, 0.07]],
  ['mistral-medium', 262_144, 262_144, [1.5, 7.5, 0.15]],
  ['mistral-small', 262_144, 256_000, [0.15, 0.6, 0.015]],
  ['codestral', 256_000, 4096, [0.3, 0.9, 0.03]],
  ['devstral', 262_144, 262_144, [0.4, 2, 0.04]],
  ['kimi-k2-5', 262_144, 262_144, [0.6, 3]],
  ['kimi-k2-6', 262_144, 262_144, [0.95, 4, 0.16]],
  ['kimi-k2-7-code', 262_144, 262_144, [0.95, 4, 0.19]],
  ['kimi-k3', 1_048_576, 1_048_576, [3, 15, 0.3]],
  ['kimi-k3-1-pro', 1_048_576, 1_048_576, [2, 10, 0.2]],
  ['glm-4-6', 204_800, 131_072, [0.6, 2.2, 0.11]],
  ['glm-4-7', 204_800, 131_072, [0.6, 2.2, 0.11]],
  ['glm-5-2', 1_000_000, 131_072, [1.4, 4.4, 0.26]],
  ['glm-5-3', 1_000_000, 131_072, [1.4, 4.4, 0.26]],
  ['glm-5-3-flash', 1_000_000, 131_072, [0.15, 0.5, 0.03]],
  ['minimax-m2-7', 204_800, 131_072, [0.3, 1.2, 0.06, 0.375]],
  ['minimax-m3', 1_000_000, 524_288, [0.3, 1.2, 0.06]],
  ['minimax-m3-1-flash', 1_000_000, 524_288, [0.15, 0.6, 0.015]],
  ['qwen3-max', 262_144, 65_536, [1.2, 6]],
  ['command-a', 128_000, 8000, [2.5, 10]],
];

/**
 * The rows whose long requests have another price, by the model data of pi-ai 1.6.0. A model of a matching name whose
 * window is shorter than `above` accepts no request of that length.
 */
const LONG_PRICES: readonly (readonly [names: RegExp, price: LongPrice])[] = [
  [/^claude-haiku-5-5$/, { above: 100_000, input: 5, output: 5 }],
  [/^gpt-(?:5-[4-6]|6)/, { above: 272_000, input: 2, output: 1.5 }],
  [/^gemini-(?:2-5|3-1)-pro$/, { above: 200_000, input: 2, output: 1.5 }],
  [/^grok-4-[3-7]$/, { above: 200_000, input: 2, output: 2 }],
  [/^minimax-m3$/, { above: 512_000, input: 2, output: 2 }],
];

const BY_NAME: ReadonlyMap<string, ModelFacts> = new Map(
  ROWS.map(([name, windowTokens, outputTokensMax, price, inputTokensMax = windowTokens]) => [
    name,
    {
      windowTokens,
      inputTokensMax,
      outputTokensMax,
      ...(price && { price: listPrice(name, price) }),
    },
  ]),
);

function listPrice(name: string, [input, output, cacheRead, cacheWrite]: Price): ListPrice {
  const long = LONG_PRICES.find(([names]) => names.test(name))?.[1];
  return {
    input,
    output,
    ...(cacheRead === undefined ? {} : { cacheRead }),
    ...(cacheWrite === undefined ? {} : { cacheWrite }),
    ...(long === undefined ? {} : { long }),
  };
}

/** Matches the endings that still name the same model: a date, `latest`, `preview`, a version. */
const EDITION = /[-@](?:\d{4}-\d{2}-\d{2}|\d{8}|\d{6}|\d{4}|latest|preview|exp|v\d+(?::\d+)?)$/;

// Longest model name; those of real providers are under 100 characters.
const NAME_CHARS_MAX = 128;

/**
 * Returns a model's facts; undefined if the table has no such model. `model`: the name in a request. Endings that
 * match EDITION are removed from the plain name until a row has the name. A name that is only similar does not count.
 */
export function factsOfModel(model: unknown): ModelFacts | undefined {
  if (typeof model !== 'string' || model.length > NAME_CHARS_MAX) return undefined;
  let name = plainName(model);
  for (;;) {
    const facts = BY_NAME.get(name);
    if (facts !== undefined) return facts;
    const shorter = name.replace(EDITION, '');
    if (shorter === name) return undefined;
    name = shorter;
  }
}

/**
 * Writes a model's name as ROWS has it: in lower case, with `-` for `.`, without everything up to the last slash,
 * without the beginning of Amazon Bedrock's names of Anthropic's models (`us.anthropic.`), and without Claude Code's
 * mark for a long window.
 */
function plainName(model: string): string {
  return model
    .slice(model.lastIndexOf('/') + 1)
    .toLowerCase()
    .replace(LONG_MARK, '')
    .replace(/^(?:[a-z-]+\.)?anthropic\./, '')
    .replaceAll('.', '-');
}
