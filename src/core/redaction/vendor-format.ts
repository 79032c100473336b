import { isMadeUp, looksRandom } from './secret-likeness.ts';
import type { Candidate, SecretRule } from './secret-rule.ts';

/**
 * Makes rules for keys that are recognised by their form: a vendor's prefix and a known alphabet. Sources: the vendors'
 * documentation, and public rule sets of secret scanners.
 */

export const DOTTED_REST = /[\w.=-]*/y;

/** Makes a rule for one vendor's format. `keywords`: every key has one of them. `more`: a check, or other members. */
export function format(
  kind: string,
  keywords: string | readonly string[],
  pattern: RegExp,
  more: Partial<SecretRule> | SecretRule['accepts'] = {},
): SecretRule {
  return {
    kind,
    keywords: typeof keywords === 'string' ? [keywords] : keywords,
    pattern,
    isRun: true,
    accepts: ({ secret }) => !isMadeUp(secret),
    source: 'The vendor’s documentation of its tokens',
    ...(typeof more === 'function' ? { accepts: more } : more),
  };
}

/** Returns a check for keys whose prefix ordinary words have too: the text after the prefix must look random. */
export const isRandomAfter =
  (prefixChars: number) =>
  ({ secret }: Candidate): boolean =>
    looksRandom(secret.slice(prefixChars)) && !isMadeUp(secret);
