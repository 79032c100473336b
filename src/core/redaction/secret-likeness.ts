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
/** So many of them stand for a step: one in 5,000 random values of 24 characters has only three. */
const CAPITAL_PAIRS_OF_A_STEP = 5;

const PLACEHOLDER_WORD =
  /^(?:your|my[-_]|the[-_]|example|sample|dummy|fake|change[-_]?(?:me|this|it)|placeholder|redacted|masked|removed|hidden|insert|enter|replace|todo|none|null|undefined|true|false|string|x{3})/i;
const PLACEHOLDER_FORM =
  /^(?:\*{3}|\.{3}|#|\$[A-Z{(]|\$\w{1,40}$|%|@|:|<|\{|process\.|env[.:]|os\.)/i;

/** Names of algorithms and types have digits, too: "the password is base64 encoded". */
const TECHNICAL_WORD =
  /^(?:base-?\d|sha-?\d|md5|argon2|pbkdf2|scrypt|bcrypt|oauth|utf-?\d|u?int\d|float\d|x-?509|aes-?\d|rsa-?\d|ipv\d|python\d|node\d)/i;
const TECHNICAL_FORM = /^(?:http|\d+(?:\.\d+)?[a-z%]{0,12}$)/i;

/** Stands for a secret in documents and templates. */
export function isPlaceholder(value: string): boolean {
  return PLACEHOLDER_FORM.test(value) || beginsWithWord(PLACEHOLDER_WORD, value);
}

/** The name of an algorithm or a type, an address, a number with its unit. */
export function isTechnical(value: string): boolean {
  return TECHNICAL_FORM.test(value) || beginsWithWord(TECHNICAL_WORD, value);
}

/** A random value begins like a word once in a while: "xxX5Yl8fo4Sr…" is no placeholder. */
function beginsWithWord(word: RegExp, value: string): boolean {
  return word.test(value) && !looksRandom(value);
}

/** Letters beside digits or marks, as in a password that a person chose. */
export function hasMixedCharacters(value: string): boolean {
  return /[A-Za-z]/.test(value) && /[0-9!@#$%^&*?~+]/.test(value) && distinctIn(value) >= 4;
}

/** As a machine makes them: long, many different characters, letters and digits in no order. */
export function looksRandom(value: string): boolean {
  if (value.length < RANDOM_CHARS_MIN || distinctIn(value) < RANDOM_DISTINCT_MIN) return false;
  const { steps, capitalPairs } = countNeighbours(value);
  const capitalSteps = capitalPairs >= CAPITAL_PAIRS_OF_A_STEP ? 1 : 0;
  if (steps + capitalSteps < RANDOM_STEPS_MIN || !/[A-Za-z]/.test(value)) return false;
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
