/** Decides whether an argument, or a part of an address, is a password. */

import { hasMixedCharacters, isPlaceholder, looksRandom } from './secret-likeness.ts';
import type { Candidate } from './secret-rule.ts';

/** Matches words that documents use in place of a password. */
const EXAMPLE_PASSWORD =
  /^(?:pass(?:word|wd|phrase)?|pwd|pw|secret|token|user|root|admin|postgres|guest|test|yyy|p)$/i;

export function isUrlPassword({ secret }: Candidate): boolean {
  // A value that begins with a backslash is part of a regular expression for addresses.
  return !isPlaceholder(secret) && !EXAMPLE_PASSWORD.test(secret) && !secret.startsWith('\\');
}

/** Matches the beginning of a variable, a template or a command in place of the value. */
const IS_TEMPLATE = /^["']?[$%<{([]/;

/** Says whether a command's argument can be a password. */
export function isArgument(secret: string): boolean {
  return (
    !isPlaceholder(secret) &&
    !EXAMPLE_PASSWORD.test(secret) &&
    !IS_TEMPLATE.test(secret) &&
    !secret.startsWith('-')
  );
}

/** Says whether the part after the colon of `-u user:…` is a password. */
export function isLogin({ secret, context }: Candidate): boolean {
  const name = /["'=\s]([^\s"'=:]{1,64}):?["']?$/.exec(context)?.[1] ?? '';
  if (/^[$<]|\{\{|\$\(/.test(name) || !isArgument(secret) || secret.includes('://')) return false;
  // `-u www:data` is a user and a group, and so is `-u 1000:1000`.
  return hasMixedCharacters(secret) || looksRandom(secret);
}
