import { asRecord, parseJson } from '../bytes/json-fields.ts';
import type { Dialect } from '../conversation/view.ts';
import { sampleOf } from '../dialects/samples.ts';
import { factsOfModel } from './model-facts.ts';

/**
 * A small request in each dialect, the same every time. Its beginning is just long enough for a
 * provider's prompt cache: sent twice, the second one should read it from there.
 */

/** The longest minimum of a provider's prompt cache is 4,096 tokens (Claude Haiku 4.5). */
const LINES = 440;
/** Tokens of the request below: 4,350 as svc estimates, some more as providers count. */
export const TEST_CALL_TOKENS = 5000;
/** The least that every API takes. */
const ANSWER_TOKENS = 16;

const QUESTION = 'Answer with one word: is the list above numbered?';

/** `isOpenAi`: the provider wants max_completion_tokens where others know max_tokens only. */
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

/** US dollars of two test calls, cache written at 1.25 of the price; undefined where no price is known. */
export function testCallCost(model: string): number | undefined {
  const price = factsOfModel(model)?.price;
  if (price === undefined) return undefined;
  return (2 * (1.25 * TEST_CALL_TOKENS * price.input + ANSWER_TOKENS * price.output)) / 1_000_000;
}

/** Tokens that the provider says it read from its cache; undefined if it reports none. */
export function cachedTokens(body: string): number | undefined {
  const usage = asRecord(asRecord(parseJson(body))['usage']);
  const places = [
    usage['cache_read_input_tokens'],
    asRecord(usage['input_tokens_details'])['cached_tokens'],
    asRecord(usage['prompt_tokens_details'])['cached_tokens'],
    // DeepSeek's own name for it.
    usage['prompt_cache_hit_tokens'],
  ];
  return places.find((one) => typeof one === 'number');
}

/** Models that do not answer a text with a text, or think long before they do. */
const UNFIT =
  /embed|image|audio|tts|whisper|moderation|realtime|transcrib|guard|rerank|dall-e|sora|veo|imagen|video|search|research|ocr|speech|-pro\b/i;

/** A name comes from the network, and is shown and sent: nothing but what names are made of. */
const NAME = /^\w[\w./:@-]{0,127}$/;

/** Makers' words for their small models. */
const SMALL = /nano|mini|lite|haiku|flash|small|air\b|\b[1-8]b\b/i;

/**
 * The one of these models that a test call costs least with: by published price, else by a name that
 * says small, else the first. Undefined when none of them answers texts.
 */
export function cheapestModel(models: readonly string[]): string | undefined {
  const fit = models.filter((model) => NAME.test(model) && !UNFIT.test(model));
  const priced = fit
    .map((model) => ({ model, price: factsOfModel(model)?.price?.input ?? Infinity }))
    .filter(({ price }) => price !== Infinity)
    .toSorted((one, other) => one.price - other.price);
  return priced[0]?.model ?? fit.find((model) => SMALL.test(model)) ?? fit[0];
}
