/**
 * The form of a rule that finds secrets. The engine in `redaction.ts` reads the rules from top to
 * bottom: a precise format comes before a general one.
 *
 * Every pattern costs a bounded number of steps at each place of the text, however hostile: counted
 * repetitions only, none inside another. `rest` eats what a secret has beyond its head, once.
 */
export interface SecretRule {
  /** Part of the mask, so that the reader still knows the kind of secret. */
  readonly kind: string;
  /** Global. The named group `keep`, when it is there, is context that stays in the text. */
  readonly pattern: RegExp;
  /**
   * The rule is tried only where one of these occurs. For a format in an unbroken run: as the
   * format has it. For any other place: in lower case, looked for in the lower-cased text.
   */
  readonly keywords: readonly string[];
  /** The pattern is sticky and begins with a keyword: it is tried there and nowhere else. Three characters or more. */
  readonly isAtKeyword?: boolean;
  /** The whole head lies in an unbroken run of 14 characters or more. */
  readonly isRun?: boolean;
  /** Sticky, one class. Matches the rest of a secret once its head was found. Default: `[\w-]*`. */
  readonly rest?: RegExp;
  /** Read in place of `rest` when the context ends with a quote. */
  readonly quotedRest?: RegExp;
  /** For a block: the index after its end, undefined when it holds no secret. */
  readonly findEnd?: (headEnd: number, text: string) => number | undefined;
  /** For several secrets after one head: their places, and how far the text was read. */
  readonly findAll?: (headEnd: number, text: string) => FoundAll;
  /** Without it every match is a secret. */
  readonly accepts?: (candidate: Candidate) => boolean;
  /** Where the format is written down, or the reason for the rule. */
  readonly source: string;
}

export interface Candidate {
  /** The text of the group `keep`. */
  readonly context: string;
  /** The secret's first 64 characters: they say enough, and keep the work bounded. */
  readonly secret: string;
  /** The character after the secret, '' at the end of the text. */
  readonly next: string;
}

/** A stretch of characters, as String.prototype.slice takes it. */
export interface Stretch {
  readonly start: number;
  readonly end: number;
}

export interface FoundAll {
  readonly secrets: readonly Stretch[];
  /** The search continues from here. */
  readonly end: number;
}

export const NO_REST = /(?:)/y;
export const BASE64_REST = /[A-Za-z0-9+/=_-]*/y;
export const QUOTED_REST = /[^\s"'`\\<>[\]{}]*/y;
export const BARE_REST = /[^\s"'`\\<>[\](){},;&|]*/y;
export const URL_REST = /[\w/@.-]*/y;

/** Where the match of a sticky pattern at `from` ends; undefined where there is none. */
export function endOfMatch(sticky: RegExp, text: string, from: number): number | undefined {
  sticky.lastIndex = from;
  return sticky.test(text) ? sticky.lastIndex : undefined;
}
