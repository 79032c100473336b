/**
 * A rule that finds secrets. `redaction.ts` runs the rules from top to bottom, precise formats first.
 * Every pattern takes a bounded number of steps at each position, however hostile the text, because each of its
 * repetitions has an upper bound. `rest` then reads the remaining characters of the secret once.
 */
export interface SecretRule {
  /** The kind of secret, which becomes part of the mask. */
  readonly kind: string;
  /** A global or sticky pattern. The optional named group `keep` is context that stays in the text. */
  readonly pattern: RegExp;
  /**
   * The rule runs only if the text contains one of these. With `isRun` they are searched for in the text as it is.
   * Otherwise they are in lower case, and are searched for in the lower-cased text. Rules of `name-rules.ts` have none:
   * they run at each name.
   */
  readonly keywords: readonly string[];
  /** True if the pattern is sticky and is tried only where a keyword of three or more characters begins. */
  readonly isAtKeyword?: boolean;
  /** True if keywords count only in runs of 14 or more characters that keys may have; see redaction.ts. */
  readonly isRun?: boolean;
  /** A sticky pattern for the rest of a secret: a run of one character class, or nothing. Default: `[\w-]*`. */
  readonly rest?: RegExp;
  /** Used instead of `rest` if the context ends with a quotation mark. */
  readonly quotedRest?: RegExp;
  /** For a block: returns the index after its end; undefined if it holds no secret. */
  readonly findEnd?: (headEnd: number, text: string) => number | undefined;
  /** For a pattern that several secrets may follow: returns their ranges, and the index at which the search goes on. */
  readonly findAll?: (headEnd: number, text: string) => FoundAll;
  /** Says whether a match is a secret; undefined: every match is one. */
  readonly accepts?: (candidate: Candidate) => boolean;
  /** Where the format is documented, or why the rule exists. */
  readonly source: string;
}

export interface Candidate {
  /** The text that the group `keep` matched. */
  readonly context: string;
  /** The secret's first 64 characters, which bounds the work. */
  readonly secret: string;
  /** The character after the secret; '' at the end of the text. */
  readonly next: string;
}

/** A range of characters, as for String.prototype.slice. */
export interface Stretch {
  readonly start: number;
  readonly end: number;
}

export interface FoundAll {
  readonly secrets: readonly Stretch[];
  readonly end: number;
}

export const NO_REST = /(?:)/y;
export const BASE64_REST = /[A-Za-z0-9+/=_-]*/y;
export const QUOTED_REST = /[^\s"'`\\<>[\]{}]*/y;
export const BARE_REST = /[^\s"'`\\<>[\](){},;&|]*/y;
export const URL_REST = /[\w/@.-]*/y;

/** Returns the end of a sticky pattern's match at `from`; undefined if it does not match. */
export function endOfMatch(sticky: RegExp, text: string, from: number): number | undefined {
  sticky.lastIndex = from;
  return sticky.test(text) ? sticky.lastIndex : undefined;
}
