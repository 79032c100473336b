import { Known } from '../bytes/known.ts';

/**
 * The limits and prices of models: by the beginning of their names, where the longest match wins.
 * Facts of models.dev (MIT, copyright 2025 models.dev), state of 2026-07-02. They never decide
 * alone about a request: they show how much room is left, and about what a test call costs.
 */
export interface ModelFacts {
  /** Tokens that a request may have: the published input limit, else the whole window. */
  readonly inputTokensMax: number;
  readonly outputTokensMax: number;
  /** US dollars for a million tokens in and out; undefined where it varies or is not published. */
  readonly price?: { readonly input: number; readonly output: number };
}

type Row = readonly [
  starts: string,
  inputTokensMax: number,
  outputTokensMax: number,
  price?: Price,
];
type Price = readonly [input: number, output: number];

/** Names without a maker before a slash, lower case, `.` as `-`. */
const ROWS: readonly Row[] = [
  ['claude-', 200_000, 32_000],
  ['claude-3-', 200_000, 8192],
  ['claude-3-haiku', 200_000, 4096, [0.25, 1.25]],
  ['claude-3-7-sonnet', 200_000, 64_000, [3, 15]],
  ['claude-haiku-4-5', 200_000, 64_000, [1, 5]],
  ['claude-sonnet-4', 200_000, 64_000, [3, 15]],
  ['claude-sonnet-4-6', 1_000_000, 64_000, [3, 15]],
  ['claude-sonnet-5', 1_000_000, 128_000, [2, 10]],
  ['claude-opus-4', 200_000, 32_000, [15, 75]],
  ['claude-opus-4-5', 200_000, 64_000, [5, 25]],
  ['claude-opus-4-6', 1_000_000, 128_000, [5, 25]],
  ['claude-opus-4-7', 1_000_000, 128_000, [5, 25]],
  ['claude-opus-4-8', 1_000_000, 128_000, [5, 25]],
  ['claude-fable-5', 1_000_000, 128_000, [10, 50]],
  ['gpt-3-5-turbo', 16_385, 4096, [0.5, 1.5]],
  ['gpt-4', 8192, 8192, [30, 60]],
  ['gpt-4-turbo', 128_000, 4096, [10, 30]],
  ['gpt-4o', 128_000, 16_384, [2.5, 10]],
  ['gpt-4o-mini', 128_000, 16_384, [0.15, 0.6]],
  ['gpt-4-1', 1_047_576, 32_768, [2, 8]],
  ['gpt-4-1-mini', 1_047_576, 32_768, [0.4, 1.6]],
  ['gpt-4-1-nano', 1_047_576, 32_768, [0.1, 0.4]],
  ['gpt-5', 272_000, 128_000, [1.25, 10]],
  ['gpt-5-mini', 272_000, 128_000, [0.25, 2]],
  ['gpt-5-nano', 272_000, 128_000, [0.05, 0.4]],
  ['gpt-5-pro', 272_000, 272_000, [15, 120]],
  ['gpt-5-1-chat', 128_000, 16_384, [1.25, 10]],
  ['gpt-5-2', 272_000, 128_000, [1.75, 14]],
  ['gpt-5-2-chat', 128_000, 16_384, [1.75, 14]],
  ['gpt-5-3', 272_000, 128_000, [1.75, 14]],
  ['gpt-5-3-chat', 128_000, 16_384, [1.75, 14]],
  ['gpt-5-3-codex-spark', 100_000, 32_000, [1.75, 14]],
  ['gpt-5-4', 922_000, 128_000, [2.5, 15]],
  ['gpt-5-4-mini', 272_000, 128_000, [0.75, 4.5]],
  ['gpt-5-4-nano', 272_000, 128_000, [0.2, 1.25]],
  ['gpt-5-5', 922_000, 128_000, [5, 30]],
  ['o1', 200_000, 100_000, [15, 60]],
  ['o3', 200_000, 100_000, [2, 8]],
  ['o3-mini', 200_000, 100_000, [1.1, 4.4]],
  ['o4-mini', 200_000, 100_000, [1.1, 4.4]],
  ['gemini-', 1_048_576, 8192],
  ['gemini-2-0-flash', 1_048_576, 8192, [0.1, 0.4]],
  ['gemini-2-5-flash', 1_048_576, 65_536, [0.3, 2.5]],
  ['gemini-2-5-flash-lite', 1_048_576, 65_536, [0.1, 0.4]],
  ['gemini-2-5-flash-image', 32_768, 32_768],
  ['gemini-2-5-pro', 1_048_576, 65_536, [1.25, 10]],
  ['gemini-3-', 1_048_576, 65_536],
  ['gemini-3-1-flash-lite', 1_048_576, 65_536, [0.25, 1.5]],
  ['gemini-3-1-pro', 1_048_576, 65_536, [2, 12]],
  ['gemini-3-5-flash', 1_048_576, 65_536, [1.5, 9]],
  ['grok-4-20', 1_000_000, 30_000, [1.25, 2.5]],
  ['grok-4-3', 1_000_000, 30_000, [1.25, 2.5]],
  ['grok-build', 256_000, 256_000, [1, 2]],
  ['deepseek-', 131_072, 8192],
  ['deepseek-v4-flash', 1_000_000, 384_000, [0.14, 0.28]],
  ['deepseek-v4-pro', 1_000_000, 384_000, [0.435, 0.87]],
  ['mistral-large', 262_144, 16_384, [0.5, 1.5]],
  ['mistral-medium', 131_072, 131_072, [0.4, 2]],
  ['mistral-small', 128_000, 16_384, [0.15, 0.6]],
  ['codestral', 256_000, 4096, [0.3, 0.9]],
  ['devstral', 128_000, 128_000],
  ['kimi-k2', 131_072, 16_384],
  ['kimi-k2-5', 262_144, 262_144, [0.6, 3]],
  ['kimi-k2-6', 262_144, 262_144, [0.95, 4]],
  ['kimi-k2-7', 262_144, 262_144, [0.95, 4]],
  ['glm-4-5', 131_072, 98_304, [0.6, 2.2]],
  ['glm-4-6', 204_800, 131_072, [0.6, 2.2]],
  ['glm-4-7', 200_000, 131_072, [0.6, 2.2]],
  ['glm-5', 200_000, 131_072],
  ['glm-5-2', 1_000_000, 131_072, [1.4, 4.4]],
  ['minimax-m2', 196_608, 128_000, [0.3, 1.2]],
  ['minimax-m3', 1_000_000, 128_000, [0.3, 1.2]],
  ['qwen3-', 131_072, 8192],
  ['qwen3-coder', 262_144, 65_536],
  ['qwen3-max', 262_144, 65_536, [1.2, 6]],
  ['qwen3-6-plus', 1_000_000, 65_536, [0.5, 3]],
  ['qwen3-7-max', 1_000_000, 65_536, [2.5, 7.5]],
  ['gpt-oss', 131_072, 40_960],
  ['llama-3', 131_072, 8192],
  ['command-a', 128_000, 8000, [2.5, 10]],
];

const LONGEST_FIRST = ROWS.toSorted(([one], [other]) => other.length - one.length);

/** Undefined for a model that is not known. `model` is as a request names it. */
export function factsOfModel(model: unknown): ModelFacts | undefined {
  if (typeof model !== 'string') return undefined;
  const name = model
    .slice(model.lastIndexOf('/') + 1)
    .toLowerCase()
    .replaceAll('.', '-');
  const row = LONGEST_FIRST.find(([starts]) => name.startsWith(starts));
  if (row === undefined) return undefined;
  const [, inputTokensMax, outputTokensMax, price] = row;
  if (price === undefined) return { inputTokensMax, outputTokensMax };
  return { inputTokensMax, outputTokensMax, price: { input: price[0], output: price[1] } };
}

/**
 * The window of a model that is not known: the smallest that agents are used with. Clients compact
 * by themselves below it.
 */
const WINDOW_TOKENS = 200_000;

/** Tokens that a request to this model may have. */
export function windowOf(model: unknown): number {
  if (typeof model !== 'string' || model.length > NAME_CHARS_MAX) return readWindow(model);
  const known = WINDOWS.get(model);
  if (known !== undefined) return known;
  const window = readWindow(model);
  WINDOWS.set(model, window);
  return window;
}

/** Every request asks for the window of its model, several times. */
const WINDOWS = new Known<number>(64);
// The longest model names of real providers are under 100 characters.
const NAME_CHARS_MAX = 128;

function readWindow(model: unknown): number {
  return factsOfModel(model)?.inputTokensMax ?? WINDOW_TOKENS;
}
