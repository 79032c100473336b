import { hash } from 'node:crypto';
import type { Candidate } from './secret-rule.ts';

/**
 * Decides whether a value can be a secret, mostly for rules that know only its name or its place and no format.
 * Most rules judge a value by its first 64 characters (see Candidate): more would hardly change the result.
 */

/**
 * Least length of a random value, and its least numbers of different characters and of steps (see countNeighbours).
 * Random base36 of 14 characters has 11 different ones and 6 steps on average; names mostly have fewer.
 */
const RANDOM_CHARS_MIN = 14;
const RANDOM_DISTINCT_MIN = 8;
const RANDOM_STEPS_MIN = 4;
/** Fewest pairs of adjacent capitals in a random value without digits; names seldom have any. */
const RANDOM_CAPITAL_PAIRS_MIN = 2;
/**
 * So many pairs of adjacent capitals count as one more step. Without that step, one in 5,000 random values of 24
 * characters would have only three steps, and so not count as random.
 */
const CAPITAL_PAIRS_OF_A_STEP = 5;

const PLACEHOLDER_WORD =
  /^(?:your|my[-_]|the[-_]|example|sample|dummy|fake|change[-_]?(?:me|this|it)|placeholder|redacted|masked|removed|hidden|insert|enter|replace|todo|none|null|undefined|true|false|string|-?anonymous|user(?:name)?@|x{3})/i;
const PLACEHOLDER_FORM =
  /^(?:\*{3}|\.{3}|#|\$[A-Z{(]|\$\w{1,40}$|\$\d|%\w{1,40}%|@|:|<|\{|process\.|env[.:]|os\.)/i;

/** Matches names of algorithms and types with digits: "the password is base64 encoded". */
const TECHNICAL_WORD =
  /^(?:base-?\d|sha-?\d|md5|argon2|pbkdf2|scrypt|bcrypt|oauth|utf-?\d|u?int\d|float\d|x-?509|aes-?\d|rsa-?\d|ipv\d|python\d|node\d)/i;
const TECHNICAL_FORM =
  /^(?:https?(?:[:\d_-]|$)|\d+(?:\.\d+)?[a-z%]{0,12}$|[au]rn:|[a-z]{2}-[a-z]{4,9}-\d:|!(?:vault|secret|env_var|include)$)/i;

/** Says whether documents and templates use the value in place of a secret. */
export function isPlaceholder(value: string): boolean {
  return PLACEHOLDER_FORM.test(value) || beginsWithWord(PLACEHOLDER_WORD, value) || isMadeUp(value);
}

/** Says whether a value is the name of an algorithm or a type, an address, or a number with its unit. */
export function isTechnical(value: string): boolean {
  return TECHNICAL_FORM.test(value) || beginsWithWord(TECHNICAL_WORD, value);
}

/** Says whether a value begins with a match of `word`. A random value may too ("xxX5Yl8fo4Sr…"), but does not count. */
function beginsWithWord(word: RegExp, value: string): boolean {
  return word.test(value) && !looksRandom(value);
}

/** Says whether a value has letters together with digits or marks, like a password that a person chose. */
export function hasMixedCharacters(value: string): boolean {
  return /[A-Za-z]/.test(value) && /[0-9!@#$%^&*?~+]/.test(value) && distinctIn(value) >= 4;
}

/** Says whether a machine probably made the value: it is long, and has many different characters in no order. */
export function looksRandom(value: string): boolean {
  if (value.length < RANDOM_CHARS_MIN || distinctIn(value) < RANDOM_DISTINCT_MIN) return false;
  const { steps, capitalPairs } = countNeighbours(value);
  const capitalSteps = capitalPairs >= CAPITAL_PAIRS_OF_A_STEP ? 1 : 0;
  if (steps + capitalSteps < RANDOM_STEPS_MIN || !/[A-Za-z]/.test(value)) return false;
  return /\d/.test(value) || capitalPairs >= RANDOM_CAPITAL_PAIRS_MIN;
}

/**
 * Share of characters that follow their neighbour in the alphabet, from which on a value is an invented example; in
 * random values it is 1/40.
 */
const SEQUENCE_SHARE_MIN = 0.35;
/** Share of equal neighbours from which on a value is an invented example; in random hex it is 1/16. */
const REPEAT_SHARE_MIN = 0.35;
/** Least length of an invented example: in a shorter value, repetitions may be chance. */
const JUDGED_CHARS_MIN = 14;
/** Matches a UUID. isMadeUp() is false for every UUID, because even a memorable one may be a credential. */
export const UUID = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/i;

/** Says whether a key is an invented example: much repetition, much of the alphabet in order, or EXAMPLE at its end. */
export function isMadeUp(value: string): boolean {
  if (value.length < JUDGED_CHARS_MIN || UUID.test(value)) return false;
  if (/EXAMPLE(?:KEY)?$/.test(value)) return true;
  let repeated = 0;
  let ascending = 0;
  for (let at = 1; at < value.length; at += 1) {
    const step = value.charCodeAt(at) - value.charCodeAt(at - 1);
    if (step === 0) repeated += 1;
    if (step === 1) ascending += 1;
  }
  const pairs = value.length - 1;
  return ascending / pairs >= SEQUENCE_SHARE_MIN || repeated / pairs >= REPEAT_SHARE_MIN;
}

/** Keys that vendors published in samples of their own libraries: the beginning of each key's sha256. */
const PUBLIC_EXAMPLES: ReadonlySet<string> = new Set(
  (
    'f56e323494a6 2037abcaffb2 3f370c9dd822 e4a5542bb7fd a19f89ab3555 0b476bdf9acf eb540d2b6ee2 ' +
    '37f8f09bdf12 8731261cb72d 49f777db995e 27a9a42931df dc0fcf046c61 4c98242dcadc ea9bb1082cf9 ' +
    '3a8b61d0f636 a6c814bc555a 2f21fd9c8167 7f39f4576795'
  ).split(' '),
);

export function isPublicExample(value: string): boolean {
  return PUBLIC_EXAMPLES.has(hash('sha256', value, 'hex').slice(0, 12));
}

/** Largest share of vowels in a random base32 value: there it is a sixth, in words a third. */
const VOWEL_SHARE_MAX = 0.3;

/** Says whether a value looks like a TOTP secret: base32 in capitals, and with fewer vowels than words have. */
export function isBase32Seed(value: string): boolean {
  if (!/^[A-Z2-7]{16,64}$/.test(value) || distinctIn(value) < RANDOM_DISTINCT_MIN) return false;
  return value.replaceAll(/[^AEIOU]/g, '').length / value.length <= VOWEL_SHARE_MAX;
}

/** Says whether a value is the base64 of `user:password`, as docker and npm store it. */
export function isEncodedLogin(value: string): boolean {
  if (!/^[A-Za-z0-9+/_-]{8,64}={0,2}$/.test(value)) return false;
  return /^[\x20-\x39\x3b-\x7e]{1,40}:[\x20-\x7e]{1,48}/.test(
    Buffer.from(value, 'base64').toString('latin1'),
  );
}

function distinctIn(text: string): number {
  return new Set(text).size;
}

/**
 * Counts steps and pairs of adjacent capitals. A step is a change between capitals, small letters and digits from one
 * character to the next. From a capital to a small letter is no step, because names are written so.
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

/** Least length of a chosen password, in characters. */
const WORDED_CHARS_MIN = 6;
const WORDED_FORM = /^\p{L}[\p{L}!@#%^*+~?._-]{5,63}$/u;
/** Matches names of types, states, algorithms and passwords, as they occur in data and sentences. */
const PLAIN_WORD =
  /^(?:string|varchar|function|symbol|bigint|property|number|integer|boolean|buffer|object|unknown|option(?:al)?|undefined|required|mandatory|continue|proceed|regain|restore|recover|unlock|prevent|protect|complete|ensure|invalid|incorrect|correct|missing|strong|secure|insecure|unsafe|expired?|hidden|visible|invisible|readonly|read-only|unset|empty|default|plain-?text|public|private|random|unique|different|similar|identical|obvious|strict|simple|simply|always|already|another|anything|nothing|everywhere|anywhere|something|whatever|either|neither|rather|perhaps|really|mostly|across|inside|outside|before|during|between|without|within|through|because|against|longer|shorter|stronger|weaker|wrong|case-(?:in)?sensitive|opaque|ascii|base-?64|argon|column|field|flags?|options?|arguments?|parameters?|switch(?:es)?|label|database|username|e-?mail|postgres|superuser|administrator|letters|characters|generate|disable|enable|contrase\p{L}+|wachtwoord|salasana|parola|l\p{L}senord|adgangskode|incorrect\p{L}{1,3}|requerid[oa]|obligato\p{L}+|inv[aá]lid[oa]|errat[ao]|sbagliat[ao]|onjuist|verplicht|неверн\p{L}+|обязател\p{L}+|falsch|richtig|sicher|unsicher|notwendig|erforderlich)$/iu;
/** Matches words that name a secret or a part of a program, and are no password: `tokenHash`, `UserService`. */
const NAMING_WORD =
  /pass|pwd|kennwort|^secret|[_.]secret|token|hash|crypt|prompt|input|string|value$|[Cc]onfig|(?:current|new|old|user|your|default)[A-Z_-]|(?:Str|Text|Bytes?|Type|Field|Schema|Data|Dto|Props|Digest|Policy|Option|Object|Key|Provider|Manager|Service|Client|Handler|Factory|Ref|Param|Arg|Value|Array|List|Map|Spec|Entity|Model|Info|Name|Store|Session|State|Settings|Context|Builder|Result|Response|Request|Like)$/;
/** Matches participles and adjectives that describe a password: "the password is mandatory, encrypted, changeable". */
const DESCRIBING_WORD =
  /^(?:(?:non|un|over|multi|pre|self|case|read|write|lower|upper|soft|well|base|zero|one|two|short|long)-[a-z]+|[a-z]+(?:ed|ing|able|ible|ive|ory|ary|ous|ful|less|ant|ent|lich|isch)|[a-z]+(?<!f)ly|[a-z]+t[oó]ri[oa]s?|written|chosen|broken|stolen|forgotten|overwritten|(?:ab|an|auf|aus|ein|um|weg|zu)?ge[a-z]+(?:t|en)|ver[a-zäöüß]{3,10}(?:en|t|d))$/;

/** Says whether an unquoted value is a password that a person chose, and no word of a sentence or of code. */
export function isBareChosen(secret: string): boolean {
  const bare = secret.replace(SENTENCE_END, '');
  return (
    isChosen(secret) &&
    !DESCRIBING_WORD.test(bare) &&
    !BARE_PRIMITIVE.test(bare) &&
    !/^[a-z_$]\w{0,40}(?:[?!]?\.[A-Za-z_$]{1,40}\d?){1,8}$/.test(bare)
  );
}

/** Matches adjectives and participles of Romance languages that describe a password: "la contraseña es compartida". */
const ROMANCE_WORD =
  /^\p{Ll}{2,20}(?:[aiu][dt][oa]s?|ée?s?|ect[oa]s?|[aá]ri[oa]s?|ferente|uel(?:le)?|(?:o|u|or)al|[ai]bles?|tiv[oa]s?|vel)$/u;
/** Matches German verbs and adjectives that describe a password ("das Passwort zurücksetzen"). */
const GERMAN_VERB = /^\p{Ll}{2,20}(?:en|ern|eln|iert|ig|lich|isch|bar|ück)$/u;
const ROMANCE_LEAD =
  /(?: |['’])(?:est|sera|es|era|será|è|sarà|é):?\s["'`*]{0,3}$|(?:passe|mdp|contrase[ñn]a|clave|senha) $/i;
const GERMAN_LEAD = /(?:wort|ist|war|lautet|einfach|jetzt)\s["'`*]{0,3}$/i;

/** Says whether a word of a sentence describes a secret instead of being one. `lead`: the text before the word. */
export function describesSecret(word: string, lead: string): boolean {
  return (
    (ROMANCE_WORD.test(word) && ROMANCE_LEAD.test(lead)) ||
    (GERMAN_VERB.test(word) && GERMAN_LEAD.test(lead))
  );
}

/** Matches names in code for something that has a password: a variable, a parameter, a column. */
const CODE_WORD =
  /^(?:pass|pwd|pw\d?|p\d|secret|token|hash|user|new|old|current|input|form|req|args?|db|opts?|value|values?|data|line|text|str|string|buf(?:fer)?|bytes?|result|res|response|body|param(?:eter)?s?|field|element|event|target|state|props|context|ctx|config|conf|settings?|options?|env|self|this|undefined|null|none|nil|true|false|plain(?:text)?|cipher\w*|encoded|decoded|raw|tmp|temp|item|entry|row|record|column|payload|reader|writer|stdin|prompt|random|generate\w*|get\w*|read\w*|load\w*|find\w*|make\w*|create\w*|fetch\w*)(?:[A-Z_.\d]|[,;)]|$)/;

/** Says whether a word is more likely a variable than a secret. */
export function isCodeWord(word: string): boolean {
  return (
    CODE_WORD.test(word) ||
    /^[a-z]+(?:_[a-z]+)+\d?$/.test(word) ||
    /^[a-z]+[A-Z]\w*(?:Value|Input|Text|Field|Param|Arg|Ref|State)$/.test(word)
  );
}

/** Matches numbered things and algorithms: `field1`, `test_2`, `web01`, `HS256`, `ES2020`. */
export const VERSIONED_WORD =
  /^(?:pass(?:word|wd)?|pwd|pw|secret|token|hash|user|field|test|param|option|step|line|column|col|version|ver|type|key|node|web|host|server|rev|arg|input|item|section|chapter|figure|table|page|level|phase|stage|part|group|case|example|level|rule|slot|row|v|p|t|x|r|h|e?s|rs|hs|es|ps|ed|k|n|no)[_-]?\d{1,4}$/i;

/** Says whether a value is a member access: `foo.bar.baz`, `Config.DbPassword`. */
export function isMemberAccess(value: string): boolean {
  return /^[A-Za-z_$]{1,40}\d?(?:[?!]?\.[A-Za-z_$]{1,40}\d?){1,8}[,;)]?$/.test(value);
}

/** Matches round amounts and Unix times, which are no passwords if they have no quotes. */
const BARE_PRIMITIVE = /^(?:\d{6,}0{3,}|1[5-9]\d{8}(?:\d{3})?)$/;
const SENTENCE_END = /[.,;:!?)。，]+$/;

/** Says whether a person may choose the value as a password: a word, words joined by signs, or a number. */
export function isChosen(secret: string): boolean {
  const bare = secret.replace(SENTENCE_END, '');
  if (/^\d{6,20}$/.test(bare)) return distinctIn(bare) >= 3;
  return (
    bare.length >= WORDED_CHARS_MIN &&
    WORDED_FORM.test(bare) &&
    !IDEOGRAMS.test(bare) &&
    distinctIn(bare) >= 4 &&
    !isPlaceholder(bare) &&
    !ALPHABET.includes(bare.toLowerCase()) &&
    !isTechnical(bare) &&
    !PLAIN_WORD.test(bare) &&
    !NAMING_WORD.test(bare) &&
    !/pass|token|secret|credential/i.test(bare)
  );
}

/** Matches Chinese, Japanese and Korean characters, because passwords are seldom typed in these scripts. */
const IDEOGRAMS = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/u;
const ALPHABET = 'abcdefghijklmnopqrstuvwxyz';

/** Least length of a random value that has only letters. */
const SCRAMBLED_CHARS_MIN = 16;
/**
 * Largest share of vowels in a random value of letters: a quarter of random letters are vowels, in words two fifths.
 */
const SCRAMBLED_VOWEL_SHARE_MAX = 0.29;

const CAMEL_CASE = /^(?:[A-Z]?[a-z]{1,2}){0,2}(?:[A-Z]{1,4}[a-z]{2,}){2,}$/;

/**
 * Says whether a value looks random (see looksRandom), or has only letters with few vowels or five consonants in a row.
 */
export function looksMade(value: string): boolean {
  if (looksRandom(value)) return true;
  if (value.length < SCRAMBLED_CHARS_MIN || !/^[A-Za-z]+$/.test(value) || isMadeUp(value))
    return false;
  if (distinctIn(value) < RANDOM_DISTINCT_MIN || CAMEL_CASE.test(value)) return false;
  const vowels = value.length - value.replaceAll(/[aeiouy]/gi, '').length;
  return vowels / value.length <= SCRAMBLED_VOWEL_SHARE_MAX || /[b-df-hj-np-tv-xz]{5}/i.test(value);
}

/**
 * Says whether a text is a pass phrase ("correct horse battery staple"): four to twelve words that are no sentence, or
 * three to twelve of any kind if its name says that it is a phrase. A text about passwords is none.
 */
export function isPassPhrase(text: string, isCalledPhrase: boolean): boolean {
  const words = text.split(' ');
  if (words.length < (isCalledPhrase ? 3 : 4) || words.length > 12) return false;
  if (!words.every((word) => PHRASE_WORD.test(word)) || isPlaceholder(text)) return false;
  if (ABOUT_PASSWORDS.test(text)) return false;
  // A sentence is no pass phrase. A text in lower case without punctuation is a sentence only if it has a word such as
  // "is", "you" or "if".
  return (
    isCalledPhrase || !(/^[\p{Ll}\d '-]+$/u.test(text) ? CLAUSE_WORD : SENTENCE_WORD).test(text)
  );
}

const PHRASE_WORD = /^[\p{L}\d][\p{L}\d'-]{0,20}[.!]?$/u;
/** Matches texts of an interface or of documents that are about passwords. */
const ABOUT_PASSWORDS =
  /pass|kennw|secret|token|\bkeys?\b|login|character|letter|field|confirm|forgot|\b(?:enter|must|your|please|invalid|required|should|ihr|bitte)\b/i;
const CLAUSE_WORD =
  /\b(?:is|are|be|been|was|were|has|have|had|do|does|did|can|could|may|might|must|shall|should|will|would|not|no|never|you|we|they|it|this|that|if|when|which|used?|set|see|get|gets|ist|muss|nicht|sie|est|doit|es|debe|to be|e\.g)\b/i;
const SENTENCE_WORD =
  /\b(?:the|an?|is|are|be|was|can|could|not|no|you|we|this|that|to|of|for|with|and|or|at|in|on|if|it|ist|muss|nicht|sie|zu|und|oder|mit|für|le|la|est|doit|el|es|su|debe)\b/i;

/** Says whether a value may be a password: letters with digits or marks, and neither a placeholder nor technical. */
export function isSimplePassword(secret: string): boolean {
  return hasMixedCharacters(secret) && !isPlaceholder(secret) && !isTechnical(secret);
}

/** Matches words that often follow "password" and are no password: "password manager", "password again". */
export const NOUN_OF_SECRETS =
  /^(?:\w+(?:ion|ions|ial|onal|ment|ments|ing|ings|ity|ities|ence|ance|ies|ures?|ness|ship|izer|iser|ators?|ers|ors|ists?|ses)|manager|tests?|hints?|inputs?|attempts?|limits?|formats?|scripts?|events?|clients?|agents?|alerts?|lists?|sets?|components?|requirements?|accounts?|objects?|constraints?|defaults?|arguments?|contents?|managers|policy|field|prompt|prompts|database|file|files|store|storage|string|strings|callback|entry|entries|record|history|vault|keeper|reader|handler|helper|hasher|service|module|plugin|provider|endpoint|change|changes|update|updates|dialog|screen|window|option|column|setting|length|strength|format|leak|leaks|breach|dump|spray|attack|attacks|guess|guesses|rules?|resets?|requests?|response|challenge|grant|login|logins|access|complexity|manual|safely|securely|before|after|again|twice|here|below|above|instead|while|until|unless|since|though|although|because|whether|where|which|their|there|these|those|them|they|would|could|should|shall|might|cannot|never|often|every|either|neither|other|others|people|person|admin|users?|owner|accounts?|anonymous|combo|combos|combination|pair|pairs|table|tables|value|values|rotate|rotates|hunter)$/i;

/** Says whether a person may have chosen the word: it is neither code nor a noun about secrets. */
export function isChosenWord(word: string): boolean {
  return isBareChosen(word) && !isCodeWord(word) && !NOUN_OF_SECRETS.test(word);
}

/** Matches a form's validation rules: "required|min:8". */
export const VALIDATION = /^[a-z_]+(?::[\w,]+)?(?:\|[a-z_]+(?::[\w,]+)?)+$/;

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
