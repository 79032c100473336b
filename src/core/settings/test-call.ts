import { asRecord, parseJson } from '../bytes/json-fields.ts';
import type { Dialect } from '../conversation/view.ts';
import { sampleOf } from '../dialects/samples.ts';
import { factsOfModel } from './model-facts.ts';

/**
 * A small request in each dialect, the same at every call to a model. Its beginning is just long enough for a
 * provider's prompt cache, so that a second call should read it from the cache.
 */

/** Number of lines in the request. The highest minimum of a prompt cache is 4,096 tokens (Claude Haiku 4.5). */
const LINES = 440;
/** Tokens of the request: svc estimates 4,300, and providers count some more. */
export const TEST_CALL_TOKENS = 5000;
/** Tokens of the answer: the least that every API accepts. */
const ANSWER_TOKENS = 16;

const QUESTION = 'Answer with one word: is the list above numbered?';

/** Builds the request. `isOpenAi`: the provider requires max_completion_tokens; others know only max_tokens. */
export function testCall(
  { apiStyle, model }: { readonly apiStyle: Dialect; readonly model: string },
  isOpenAi: boolean,
): string {
  const list = Array.from(
    { length: LINES },
    (_, at) => `Line ${at + 1} of a list that never changes.`,
  );
  const call = {
    model,
    prefix: list.join('\n'),
    question: QUESTION,
    answerTokensMax: ANSWER_TOKENS,
    isOpenAi,
  };
  return JSON.stringify(sampleOf(apiStyle).cacheableRequest(call));
}

/** Returns the dollars of two test calls, with cache writes at 1.25 times the price; undefined if unknown. */
export function testCallCost(model: string): number | undefined {
  const price = factsOfModel(model)?.price;
  if (price === undefined) return undefined;
  return (2 * (1.25 * TEST_CALL_TOKENS * price.input + ANSWER_TOKENS * price.output)) / 1_000_000;
}

/** Returns the tokens that the provider says it read from its cache, or 0; undefined if the answer does not say. */
export function cachedTokens(body: string): number | undefined {
  const usage = asRecord(asRecord(parseJson(body))['usage']);
  const places = [
    usage['cache_read_input_tokens'],
    asRecord(usage['input_tokens_details'])['cached_tokens'],
    asRecord(usage['prompt_tokens_details'])['cached_tokens'],
    // DeepSeek has another name for it.
    usage['prompt_cache_hit_tokens'],
  ];
  return places.find((one) => typeof one === 'number');
}

/** Matches models that do not answer with text, or think long before they do. */
const UNFIT =
  /embed|image|audio|tts|whisper|moderation|realtime|transcrib|guard|rerank|dall-e|sora|veo|imagen|video|search|research|ocr|speech|-pro\b/i;

/** Matches model names. They come from the network and are displayed and sent, so only usual characters are allowed. */
const NAME = /^\w[\w./:@-]{0,127}$/;

/** Matches words by which makers name their small models. */
const SMALL = /nano|mini|lite|haiku|flash|small|air\b|\b[1-8]b\b/i;

/**
 * Returns the cheapest model for a test call: by published price, else by a name that means small, else the first.
 * Undefined if none answers with text.
 */
export function cheapestModel(models: readonly string[]): string | undefined {
  const fit = models.filter((model) => NAME.test(model) && !UNFIT.test(model));
  const priced = fit
    .map((model) => ({ model, price: factsOfModel(model)?.price?.input ?? Infinity }))
    .filter(({ price }) => price !== Infinity)
    .toSorted((one, other) => one.price - other.price);
  return priced[0]?.model ?? fit.find((model) => SMALL.test(model)) ?? fit[0];
}
