import { factsOfModel } from './model-facts.ts';

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
