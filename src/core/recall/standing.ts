import { termsOf } from './terms.ts';

/**
 * Standing instructions: "always use pnpm", "never touch the generated folder". They share no words
 * with the task that they are about, so no search by words finds them. Only what leaves no doubt
 * counts: the person's own sentence, in the imperative, with "always" or "never" and a verb of work.
 * "We always go to the beach" and "never give up" are none.
 */

/** How the index knows the words that every standing instruction holds. */
export const STANDING_TERMS = ['alwai', 'never'] as const;

export const STANDING_MAX = 3;
/** Longer sentences report events and are no instructions. */
const SENTENCE_CHARS_MAX = 240;
/** Two with so many words in common are about the same thing: the later one holds. */
const SAME_SHARE = 0.5;

const VERBS =
  'add|answer|ask|assume|begin|call|change|check|comment|commit|create|delete|deploy|disable|document|edit|end|explain|' +
  'force-push|format|generate|guess|import|include|indent|install|log|merge|mock|modify|name|overwrite|prefer|prefix|push|' +
  'put|rebase|refactor|remove|rename|reply|respond|return|rewrite|run|show|skip|squash|start|test|touch|translate|use|write';

// At the start, or behind the place or the time that it holds for; "you" and "please" are polite.
const STANDING = new RegExp(
  '^(?:(?:in|for|within|when|whenever|if|from now on|please|also|and|note|remember|important)\\b[^.!?;]{0,80}?[, :]\\s*)?' +
    `(?:please )?(?:you (?:should|must) )?(?:always|never) (?:ever )?(?:${VERBS})\\b`,
  'i',
);

/** The sentences of a text that are one, in their order. */
export function standingIn(text: string): string[] {
  return sentencesOf(text).filter(
    (sentence) =>
      sentence.length <= SENTENCE_CHARS_MAX &&
      !/[?？]/.test(sentence) &&
      STANDING.test(sentence.replace(/^[-*\d.)\s]+/, '')),
  );
}

function sentencesOf(text: string): string[] {
  return text
    .split(/(?<=[.!?])\s+|\n+/)
    .map((sentence) => sentence.trim())
    .filter((sentence) => sentence !== '');
}

export interface Standing {
  readonly text: string;
  /** Milliseconds since 1970. */
  readonly at: number;
}

/** Those that hold, the newest first: of several about the same thing only the last. */
export function standingNow<Kind extends Standing>(said: readonly Kind[]): Kind[] {
  const kept: { one: Kind; terms: ReadonlySet<string> }[] = [];
  for (const one of said.toSorted((a, b) => b.at - a.at)) {
    const terms = aboutOf(one.text);
    if (kept.some((later) => isSame(later.terms, terms))) continue;
    kept.push({ one, terms });
    if (kept.length === STANDING_MAX) break;
  }
  return kept.map(({ one }) => one);
}

function aboutOf(text: string): ReadonlySet<string> {
  const words: readonly string[] = STANDING_TERMS;
  return new Set(termsOf(text).filter((term) => !words.includes(term)));
}

function isSame(later: ReadonlySet<string>, earlier: ReadonlySet<string>): boolean {
  let shared = 0;
  for (const term of earlier) if (later.has(term)) shared += 1;
  return shared > 0 && shared >= SAME_SHARE * Math.min(earlier.size, later.size);
}
