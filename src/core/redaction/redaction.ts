/**
 * Removes secrets and private passages from a text before it is stored, indexed or sent to a memory. A text on its way
 * to the provider keeps its secrets.
 * The time of each rule is linear in the length of the text. Masking a masked text changes nothing, for two reasons:
 * - no rule but those of private keys takes a square bracket into a secret, so other secrets reach across no mask;
 * - as a rule, a secret is removed to the end of its run of letters and digits, so that no second one begins there.
 */

import { decodeEscapes, findOwnSecrets } from './own-secrets.ts';
import { KeywordIndex } from './keyword-index.ts';
import { NAME_RULES } from './name-rules.ts';
import { findName } from './secret-names.ts';
import { readNamedValue } from './named-values.ts';
import type { SecretRule, Stretch } from './secret-rule.ts';
import { SECRET_RULES } from './secret-rules.ts';

/**
 * Longest text that is searched, in characters; a longer one becomes a single mask. A message of a megabyte is mostly a
 * file and no memory. Searching such a text would block every open stream for tens of milliseconds. Searching it in
 * parts could cut a secret in two.
 */
export const MASKED_CHARS_MAX = 1 << 20;

const RUN_KEYWORDS = new KeywordIndex(SECRET_RULES.filter(({ isRun }) => isRun === true));
const TEXT_KEYWORDS = new KeywordIndex(SECRET_RULES.filter(({ isRun }) => isRun !== true));

export interface MaskedText {
  readonly text: string;
  /** How many secrets were found. Above 0 the text differs from the original, and must not replace it in a request. */
  readonly masked: number;
}

const OVERSIZED: MaskedText = { text: '[masked: oversized-text]', masked: 1 };

/**
 * Bounds in one text: on the names of secrets, and on the matches of the other rules without `findAll` (HEADS_MAX).
 * Checking a name takes some 10 us, checking a match 4 us. A text with more of them is a dump, which becomes a single
 * mask: searching it would block all requests for seconds.
 */
export const MASKED_NAMES_MAX = 5_000;
const HEADS_MAX = 20_000;

/** Says whether a text holds a secret; also true for a text over a bound, and if the search throws. */
export function holdsSecret(text: string): boolean {
  try {
    return maskSecrets(text).masked > 0;
  } catch {
    return true;
  }
}

/** Returns the text with `[masked: kind]` in place of every secret that it finds; OVERSIZED for a text over a bound. */
export function maskSecrets(text: string): MaskedText {
  if (text.length > MASKED_CHARS_MAX) return OVERSIZED;
  const { view, toText } = decodeEscapes(text);
  // Replace typographic quotation marks. Each is one character, so no position changes.
  const search = new Search(view.replaceAll(/[„“”«»]/g, '"'));
  search.cover('svc-key', findOwnSecrets(view));
  const inRuns = RUN_KEYWORDS.rulesFor(findLongRuns(view));
  const inText = TEXT_KEYWORDS.rulesFor(lowered(view));
  if (inRuns.size + inText.size > 0) {
    for (const rule of SECRET_RULES) {
      if (!inRuns.has(rule) && !inText.has(rule)) continue;
      search.cover(rule.kind, findAll(search, rule, inText.get(rule) ?? []));
      if (search.heads > HEADS_MAX) return OVERSIZED;
    }
  }
  const named = findNamed(search.rest);
  if (named === undefined) return OVERSIZED;
  search.cover('secret', named);
  return render(text, search.masks, toText);
}

/**
 * Removes the parts between `<private>` and `</private>`. Tags may be nested; one that is never closed covers the
 * rest of the text. A space replaces each part, so that the texts on both sides cannot join to a new tag.
 */
export function stripPrivate(text: string): string {
  let depth = 0;
  let kept = '';
  let keptFrom = 0;
  for (const tag of text.matchAll(/<(\/?)private>/gi)) {
    const isClosing = tag[1] === '/';
    if (isClosing && depth === 0) continue;
    if (!isClosing && depth === 0) kept += `${text.slice(keptFrom, tag.index)} `;
    depth += isClosing ? -1 : 1;
    keptFrom = tag.index + tag[0].length;
  }
  return depth === 0 ? kept + text.slice(keptFrom) : kept;
}

interface Mask extends Stretch {
  readonly kind: string;
}

/** The secrets found so far, and the text that is still to be searched. */
class Search {
  /**
   * The text to search, with the same length as the decoded original. Closing brackets replace the found secrets, and
   * rules take no bracket into a secret.
   */
  rest: string;
  /** The number of matches that were examined, except those of rules with `findAll`; see HEADS_MAX. */
  heads = 0;
  readonly masks: Mask[] = [];

  constructor(text: string) {
    this.rest = text;
  }

  cover(kind: string, found: readonly Stretch[]): void {
    if (found.length === 0) return;
    const parts: string[] = [];
    let from = 0;
    for (const { start, end } of found.toSorted((one, other) => one.start - other.start)) {
      if (start >= end || end <= from || this.rest.startsWith(COVER, start)) continue;
      // A secret that begins within another one is masked together with it.
      const before = start < from ? this.masks.pop() : undefined;
      parts.push(this.rest.slice(from, start), COVER.repeat(end - Math.max(start, from)));
      this.masks.push({ kind, start: before?.start ?? start, end });
      from = end;
    }
    this.rest = parts.join('') + this.rest.slice(from);
  }
}

/** The character that replaces each character of a found secret while further rules search the text. */
const COVER = ']';

function render(
  text: string,
  masks: readonly Mask[],
  toText: (index: number) => number,
): MaskedText {
  if (masks.length === 0) return { text, masked: 0 };
  let kept = '';
  let from = 0;
  let masked = 0;
  for (const { kind, start, end } of masks.toSorted((one, other) => one.start - other.start)) {
    // A private key may contain a secret that was found before it.
    if (toText(end) <= from) continue;
    kept += `${text.slice(from, toText(start))}[masked: ${kind}]`;
    from = toText(end);
    masked += 1;
  }
  return { text: kept + text.slice(from), masked };
}

/** Fewest characters of a run in which keys of vendors are searched for. */
const LONG_RUN_CHARS = 14;

/** For each ASCII code: 1 if the character can be part of a key. */
const IS_RUN_CODE = Uint8Array.from({ length: 128 }, (_, code) =>
  /[\w.:/+-]/.test(String.fromCharCode(code)) ? 1 : 0,
);

/**
 * Returns the runs of LONG_RUN_CHARS or more characters that keys may have, one per line. Prose and code have few, so
 * searching for vendors' keys only there takes a third of the time. A regular expression takes ten times as long as
 * this loop.
 */
function findLongRuns(text: string): string {
  const runs: string[] = [];
  let start = 0;
  for (let at = 0; at <= text.length; at += 1) {
    // At the end of the text, charCodeAt() gives NaN, which ends the run.
    if (IS_RUN_CODE[text.charCodeAt(at)] === 1) continue;
    if (at - start >= LONG_RUN_CHARS) runs.push(text.slice(start, at));
    start = at + 1;
  }
  return runs.join('\n');
}

const WORD_REST = /[\w-]*/y;

/** Characters of a secret that `accepts` examines; see Candidate. */
const JUDGED_CHARS = 64;

/** Lower-cases a text without changing its length. Only İ has a longer lower-case form, so it becomes i. */
function lowered(text: string): string {
  const lower = text.toLowerCase();
  return lower.length === text.length ? lower : text.replaceAll('İ', 'I').toLowerCase();
}

/** Finds the secrets of one rule; stops if the text has over HEADS_MAX matches. `places`: its keywords' positions. */
function findAll(search: Search, rule: SecretRule, places: readonly number[]): readonly Stretch[] {
  const { pattern } = rule;
  const text = search.rest;
  const read = new RuleReader(text, rule);
  const found: Stretch[] = [];
  const next =
    rule.isAtKeyword === true ? finderAt(pattern, text, places) : () => pattern.exec(text);
  pattern.lastIndex = 0;
  for (let match = next(); match !== null; match = next()) {
    if (rule.findAll !== undefined) {
      const { secrets, end } = rule.findAll(match.index + match[0].length, text);
      found.push(...secrets);
      pattern.lastIndex = Math.max(end, match.index + 1);
      continue;
    }
    search.heads += 1;
    if (search.heads > HEADS_MAX) break;
    const secret = read.secretAt(match);
    if (secret !== undefined) found.push(secret);
    // A refused match is short, so searching again from its second character stays linear.
    pattern.lastIndex = secret?.end ?? match.index + 1;
  }
  return found;
}

/** Returns a function that finds a sticky pattern's next match at one of the places. */
function finderAt(
  pattern: RegExp,
  text: string,
  places: readonly number[],
): () => RegExpExecArray | null {
  let place = 0;
  return () => {
    const from = pattern.lastIndex;
    for (; place < places.length; place += 1) {
      const at = places[place] ?? 0;
      if (at < from) continue;
      pattern.lastIndex = at;
      const match = pattern.exec(text);
      if (match !== null) return match;
    }
    return null;
  };
}

/**
 * Finds values that their names show. The first rule that accepts a name reads its value; if none does,
 * readNamedValue() reads it. Undefined if there are more names than MASKED_NAMES_MAX.
 */
function findNamed(text: string): readonly Stretch[] | undefined {
  const first = findName(text, 0);
  if (first === -1) return [];
  const readers = NAME_RULES.map((rule) => new RuleReader(text, rule));
  const found: Stretch[] = [];
  let names = 0;
  for (let at = first; at !== -1;) {
    names += 1;
    if (names > MASKED_NAMES_MAX) return undefined;
    let secret: Stretch | undefined;
    for (const reader of readers) {
      secret = reader.secretFrom(at);
      if (secret !== undefined) break;
    }
    secret ??= readNamedValue(text, at);
    if (secret !== undefined) found.push(secret);
    // Go on behind the name, even if its value ends before it ("X is my password"): else the same name is found again.
    at = findName(text, Math.max(secret?.end ?? 0, at + 1));
  }
  return found;
}

class RuleReader {
  readonly #text: string;
  readonly #rule: SecretRule;
  readonly #endOfRest: (from: number) => number;
  readonly #endOfQuoted: (from: number) => number;

  constructor(text: string, rule: SecretRule) {
    this.#text = text;
    this.#rule = rule;
    this.#endOfRest = restReader(text, rule.rest ?? WORD_REST);
    this.#endOfQuoted = restReader(text, rule.quotedRest ?? rule.rest ?? WORD_REST);
  }

  /** Returns the secret at an index, for a rule with a sticky pattern. */
  secretFrom(index: number): Stretch | undefined {
    this.#rule.pattern.lastIndex = index;
    const match = this.#rule.pattern.exec(this.#text);
    return match === null ? undefined : this.secretAt(match);
  }

  secretAt(match: RegExpExecArray): Stretch | undefined {
    const { findEnd, accepts } = this.#rule;
    const context = match.groups?.['keep'] ?? '';
    const start = match.index + context.length;
    const headEnd = match.index + match[0].length;
    const endOf = findEnd ?? (/["'`]$/.test(context) ? this.#endOfQuoted : this.#endOfRest);
    const end = endOf(headEnd, this.#text);
    if (end === undefined) return undefined;
    const secret = this.#text.slice(start, Math.min(end, start + JUDGED_CHARS));
    const isSecret = accepts?.({ context, secret, next: this.#text.charAt(end) }) ?? true;
    return isSecret ? { start, end } : undefined;
  }
}

/**
 * Returns a function that finds the end of a run of `rest`. A run is read only once, even with many refused matches
 * in it: otherwise `password=password=…` would take quadratic time.
 */
function restReader(text: string, rest: RegExp): (from: number) => number {
  let runStart = 0;
  let runEnd = -1;
  return (from) => {
    if (from >= runStart && from <= runEnd) return runEnd;
    rest.lastIndex = from;
    rest.test(text);
    runStart = from;
    runEnd = rest.lastIndex;
    return runEnd;
  };
}
