import { referenceOf, shortReference, textDigest } from '../memory/reference.ts';
import { plainLine } from './conclusions.ts';
import { quoteOf } from './recall-block.ts';
import { titlesFrom } from './session-brief.ts';

/**
 * Recognises the quotes of texts that were forgotten in another memory. How they were cut into quotes
 * is not known here, so every part of a text counts as a quote of it.
 */
export function quotesOfTexts(texts: readonly string[]): (quote: string) => boolean {
  const whole = texts.flatMap((text) => [text, plainText(text)].map(quoteOf)).join('\0');
  const names = new Set(texts.flatMap(namesOf));
  // A quote that was clipped ends in an ellipsis of its own.
  return (quote) => names.has(quote) || whole.includes(quote.replace(/…$/, ''));
}

/** The references that head a text's lines in a block, and its titles in a brief. */
function namesOf(text: string): string[] {
  const references = (['user', 'assistant'] as const).map((role) =>
    shortReference(referenceOf(textDigest(role, text))),
  );
  return [...references, ...titlesFrom(text).map(quoteOf)];
}

function plainText(text: string): string {
  return text.split('\n').map(plainLine).join('\n');
}
