/**
 * Could this value be a secret? Questions about one value, for the rules that go by a name or a
 * place and not by a format.
 *
 * A longer value is never less likely a secret than its beginning: so a value that was cut off is
 * judged like the whole one.
 */

/** Random base62 of 16 characters has 14 different ones and 7 steps on average; names have fewer. */
const RANDOM_CHARS_MIN = 16;
const RANDOM_DISTINCT_MIN = 8;
const RANDOM_STEPS_MIN = 4;
/** Without a digit: names have capitals, too, but seldom side by side. */
const RANDOM_CAPITAL_PAIRS_MIN = 2;

const PLACEHOLDER =
  /^(?:your|my[-_]|the[-_]|example|sample|dummy|fake|change[-_]?(?:me|this|it)|placeholder|redacted|masked|removed|hidden|insert|enter|replace|todo|none|null|undefined|true|false|string|x{3}|\*{3}|\.{3}|#|\$[A-Z{(]|\$\w{1,40}$|%|@|:|<|\{|process\.|env[.:]|os\.)/i;

// A random value begins like this once in a while: "MY-IMiQBdNEY8y1b…" is no placeholder.
const WORD_FIRST = /^(?:my|the)[-_]/i;

/** Stands for a secret in documents and templates. */
export function isPlaceholder(value: string): boolean {
  return PLACEHOLDER.test(value) && !(WORD_FIRST.test(value) && looksRandom(value));
}

/** Letters beside digits or marks, as in a password that a person chose. */
export function hasMixedCharacters(value: string): boolean {
  return /[A-Za-z]/.test(value) && /[0-9!@#$%^&*?~+]/.test(value) && distinctIn(value) >= 4;
}

/** As a machine makes them: long, many different characters, letters and digits in no order. */
export function looksRandom(value: string): boolean {
  if (value.length < RANDOM_CHARS_MIN || distinctIn(value) < RANDOM_DISTINCT_MIN) return false;
  const { steps, capitalPairs } = countNeighbours(value);
  if (steps < RANDOM_STEPS_MIN || !/[A-Za-z]/.test(value)) return false;
  return /\d/.test(value) || capitalPairs >= RANDOM_CAPITAL_PAIRS_MIN;
}

function distinctIn(text: string): number {
  return new Set(text).size;
}

/**
 * A step is a change of the kind of character between neighbours. From a capital to a small letter
 * does not count: that is how names are written.
 */
function countNeighbours(text: string): { steps: number; capitalPairs: number } {
  let steps = 0;
  let capitalPairs = 0;
  let before = 'other';
  for (const character of text) {
    const kind = kindOf(character);
    const isName = before === 'capital' && kind === 'small';
    if (kind !== before && kind !== 'other' && before !== 'other' && !isName) steps += 1;
    if (kind === 'capital' && before === 'capital') capitalPairs += 1;
    before = kind;
  }
  return { steps, capitalPairs };
}

function kindOf(character: string): 'capital' | 'small' | 'digit' | 'other' {
  if (character >= 'a' && character <= 'z') return 'small';
  if (character >= 'A' && character <= 'Z') return 'capital';
  return character >= '0' && character <= '9' ? 'digit' : 'other';
}
