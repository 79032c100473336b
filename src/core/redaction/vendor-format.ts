import { isMadeUp, looksRandom } from './secret-likeness.ts';
import { type Candidate, NO_REST, type SecretRule } from './secret-rule.ts';

/**
 * A key that gives itself away: a prefix that its vendor chose, and a known alphabet. The facts come
 * from the vendors' documentation and from public rule sets of secret scanners.
 */

export const DOTTED_REST = /[\w.=-]*/y;

type Form = Partial<SecretRule> & Pick<SecretRule, 'pattern'>;

/** A format of one vendor. The keyword is the part that never varies. */
export function format(
  kind: string,
  keywords: string | readonly string[],
  form: RegExp | Form,
): SecretRule {
  return {
    kind,
    keywords: typeof keywords === 'string' ? [keywords] : keywords,
    isRun: true,
    accepts: ({ secret }) => !isMadeUp(secret),
    source: 'The vendor’s documentation of its tokens',
    ...(form instanceof RegExp ? { pattern: form } : form),
  };
}

/** The whole format is in the pattern; a longer run is something else. */
export function exact(kind: string, keyword: string, pattern: RegExp): SecretRule {
  return format(kind, keyword, { pattern, rest: NO_REST });
}

/** For a prefix that words have as well: what follows it must look random. */
export const isRandomAfter =
  (prefixChars: number) =>
  ({ secret }: Candidate): boolean =>
    looksRandom(secret.slice(prefixChars)) && !isMadeUp(secret);
