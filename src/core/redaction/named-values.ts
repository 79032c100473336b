/**
 * Reads the value beside a secret's name, whatever joins the two: a sign, a call, a space, a word. It serves the names
 * that no rule of `name-rules.ts` accepts. Here the place shows the value: a literal, the rest of a line of settings, a
 * word of a note or of a sentence.
 */

import {
  describesSecret,
  isBareChosen,
  isChosen,
  isChosenWord,
  isCodeWord,
  isMemberAccess,
  isPassPhrase,
  isPlaceholder,
  isSimplePassword,
  isTechnical,
  looksMade,
  looksRandom,
  VALIDATION,
  VERSIONED_WORD,
} from './secret-likeness.ts';
import {
  ADVERBS,
  FOREIGN_NAMES,
  IS_CHOSEN,
  isDescription,
  isPlainName,
  OF_PLACE,
  NAMES,
  SPOKEN_NAMES,
  VERB_IS,
} from './secret-names.ts';
import { endOfMatch, type Stretch } from './secret-rule.ts';

interface Named {
  readonly text: string;
  /** The index of the name. */
  readonly at: number;
  /** The text before the name on its line: its last BEFORE_CHARS characters. */
  readonly before: string;
  readonly name: string;
  /** The name with the words joined to it: `DB_PASSWORD` for `PASSWORD`. */
  readonly whole: string;
  readonly nameEnd: number;
  /** True if people choose such a secret, so that it may be an ordinary word. */
  readonly isPassword: boolean;
}

/** Matches a name. A dot is part of the name of a setting (`password.prod = …`); elsewhere it begins a call. */
const NAME = new RegExp(
  `(?:${NAMES}|pass)[\\w-]{0,24}(?:\\.(?!should|to\\b)\\w{1,20}(?=["'\`]?[ \\t]{0,4}[:=]))?`,
  'iy',
);
const BEFORE_CHARS = 120;

/** Returns the range of the secret whose name begins at `at`; undefined if the name has no value or no secret one. */
export function readNamedValue(text: string, at: number): Stretch | undefined {
  const end = text.startsWith('[masked: ', at - 9) ? undefined : endOfMatch(NAME, text, at);
  if (end === undefined) return undefined;
  const name = text.slice(at, end).replace(/[.-]+$/, '');
  // True if code types the value into a form's field of this name.
  const isFilled = /^\.(?:set_?[tv]|fill|type|send)/i.test(text.slice(end, end + 6));
  if (isDescription(name) && !isFilled) return undefined;
  const line = text.slice(Math.max(0, at - BEFORE_CHARS), at);
  const before = line.slice(line.lastIndexOf('\n') + 1);
  const named: Named = {
    text,
    at,
    before,
    name,
    whole: (/[\w.-]*$/.exec(before)?.[0] ?? '') + name,
    nameEnd: at + name.length,
    isPassword: IS_CHOSEN.test(name) && (isFilled || isPlainName(name)),
  };
  return (
    readLiteral(named) ??
    readHeader(named) ??
    readLine(named) ??
    readNote(named) ??
    readRow(named) ??
    readBehindBlank(named) ??
    readSentence(named) ??
    readBefore(named)
  );
}

// Literals.

const REMARK = '(?: \\([^()\\n]{1,30}\\))?';
const TYPE =
  "(?:[ \\t]{0,4}:[ \\t]{0,4}(?:&(?:'static )?)?[A-Za-z][\\w.:]{0,24}(?:\\[\\w{1,12}\\])?\\??(?=[ \\t]{0,4}=)|[ \\t]{1,4}(?:as )?string|\\[\\d{0,5}\\])?";
const SIGN =
  '(?:[:?]=|={1,3}>?|!={1,2}|=>|->|<-|→|:|\\|\\||\\?\\?=?|\\?:|\\bor\\b|\\belse\\b|\\bin ?\\(|(?:\\.should )?==|\\bby lazy \\{|\\{(?=[ ]?"))';
/** Matches the start of a call with a secret as its argument: a constructor, a hash or an encoding. */
const WRAPPER =
  '(?:\\[\\]byte\\(|by lazy \\{ ?|(?:new )?(?:(?:MD5|SHA[12]?|ENCRYPT|HASHBYTES)|String(?:::from|\\.valueOf)?|Some|Just|Optional\\.of|Ok|b64encode|btoa|Buffer\\.from|(?:\\w{1,20}(?:\\.|::))?\\w{0,16}(?:Secret|Sensitive|Redacted|Password|Secure)\\w{0,12}(?:(?:::|\\.)(?:new|from|of|make))?)\\([ \\t]{0,4})?';
const OPEN = '[bBrRuUfNL@$]{0,2}(?:"""|\'\'\'|["\'`])';
/** Matches what follows the name in `Password string \`env:"DB_PASSWORD" default:"…"\``. */
const STRUCT_TAG =
  '[ \\t]{1,8}string[ \\t]{1,8}`[^`\\n[\\]]{0,80}\\b(?:env[dD]efault|default):(?=")';
/** Matches what follows the name in `{"name": "DB_PASSWORD", "type": "string", "value": "…"}`. */
const MEMBER_VALUE =
  '["\'],\\s{0,40}(?:["\']?\\w{1,20}["\']?:\\s{0,4}["\'][^"\'\\n[\\]]{0,60}["\'],\\s{0,40}){1,3}["\']?value["\']?:\\s{0,4}';
/** Matches what follows the name in `password.equals("…")`. */
const COMPARED =
  '\\.(?:equals\\w{0,12}|eq|compare(?:To)?|(?:should|to) ?(?:==|eq)?|toBe|toEqual)[ (]{0,2}(?=["\'])';
/** Matches what follows the name in `get("input[name=password]").type("…")`. */
const FIELD =
  '["\'\\])]{0,4}(?:\\.\\w{1,16}\\(\\)){0,2}\\.(?:fill|type|val|set_?[vV]alue|set_?[tT]ext|send_?[kK]eys|enterText|typeText|press_?[sS]equentially)\\((?=["\'`])';
const VALUE_OF = new RegExp(
  `(?:${STRUCT_TAG}|${FIELD}|${COMPARED}|${MEMBER_VALUE})${OPEN}|(?:["'\`]\\]?\\)?)?\\*{0,2}${REMARK}${TYPE}[ \\t]{0,12}${SIGN}\\s{0,12}${WRAPPER}${OPEN}`,
  'y',
);
/** Matches what follows the name in `os.getenv("DB_PASSWORD", "…")`. */
const DEFAULT_OF = /["'`][ \t]{0,4},[ \t]{0,4}(?=["'`])/y;
/** Matches what follows the name in `keyring.set_password("svc", "ops", "…")` and `.password("…")`. */
const CALL =
  /\([ \t]{0,4}(?:[\w$.]{1,40},[ \t]{0,4}|["'][^"'\n[\]]{1,64}["'],[ \t]{0,4}){0,3}(?=["'`])/y;
/** Matches the text before the name of a function that takes a password, such as `set_password(…)`. */
const GIVES =
  /(?:^|[^\w]|(?:set|with|use|using|change|update|check|verify|validate|compare|match(?:es)?|hash|encrypt|encode|create|add|type|enter|fill|is_?valid|authenticate|reset|make)_?\w{0,12})$/i;
/** Matches the text before a bare call such as `password("…")`, whose argument is a name, a prompt or a rule. */
const TAKES_NAME = /(?:^|[^.\w:>])$/;

function readLiteral(named: Named): Stretch | undefined {
  const { text, nameEnd } = named;
  const opened = endOfMatch(VALUE_OF, text, nameEnd);
  if (opened !== undefined) return literalAt(named, opened, true);
  const element = endOfMatch(ELEMENT, text, nameEnd);
  if (element !== undefined) return phraseOfElement(named, element);
  const fallback = endOfMatch(DEFAULT_OF, text, nameEnd);
  if (
    fallback !== undefined &&
    /(?:getenv|environ|env|fetch|config|settings|default|property|append|set\w{0,12}|put|add\w{0,12}|header|\w{0,8}param|attr|with\w{0,8}|define|insert|field)\w{0,12}(?:\.\w{1,12})?\(["'`][\w.:-]{0,40}$/i.test(
      named.before,
    )
  ) {
    return literalAt(named, fallback + 1, false);
  }
  const call = endOfMatch(CALL, text, nameEnd);
  if (
    call === undefined ||
    !named.isPassword ||
    !GIVES.test(named.before) ||
    TAKES_NAME.test(named.before)
  )
    return undefined;
  return literalAt(named, call + 1, true);
}

const ELEMENT = /(?:["'][^"'<>\n[\]]{0,80})?>(?:<!\[CDATA\[)?(?=\p{Ll})/uy;

/** Returns a pass phrase in an XML element. It skips labels, which begin with a capital or name a password. */
function phraseOfElement({ text, isPassword }: Named, start: number): Stretch | undefined {
  const window = text.slice(start, start + LITERAL_CHARS_MAX);
  const length = window.search(/[\n<\]]/);
  const phrase = window.slice(0, Math.max(0, length));
  const isSecret =
    isPassword &&
    /^[\p{Ll}\d '-]+$/u.test(phrase) &&
    / /.test(phrase) &&
    isPassPhrase(phrase, false);
  return isSecret ? { start, end: start + length } : undefined;
}

const LITERAL_CHARS_MAX = 160;

function literalAt(named: Named, start: number, mayBePhrase: boolean): Stretch | undefined {
  const { text } = named;
  const quote = text.charAt(start - 1);
  const window = text.slice(start, start + LITERAL_CHARS_MAX);
  const length = window.search(/[\n"'`[\]]/);
  if (length < 4 || window.charAt(length) !== quote) return undefined;
  const secret = window.slice(0, length);
  const scheme = SCHEME.exec(secret)?.[0].length ?? 0;
  if (scheme > 0 && looksRandom(secret.slice(scheme)))
    return { start: start + scheme, end: start + length };
  if (!isLiteralSecret(named, secret, mayBePhrase)) return undefined;
  return { start, end: start + length };
}

/** Matches the scheme in front of a credential: "Token …", "FlyV1 …". */
const SCHEME = /^[A-Za-z]\w{1,15} (?=\S+$)/;

const TEMPLATE = /[$#%]\{|\{\{|<%|<\/|%\(|^[$%]/;

/** Says whether a name is that of an issued key (see ASSIGNED_KEY), or of a variable such as `DEPLOY_TOKEN`. */
function isAssignedKey(whole: string): boolean {
  return (
    (ASSIGNED_KEY.test(whole) && !/^accesskey$/i.test(whole)) ||
    /^[A-Z\d_]+_(?:TOKEN|SECRET)$/.test(whole)
  );
}

function isLiteralSecret(
  { text, at, name, whole, isPassword }: Named,
  secret: string,
  mayBePhrase: boolean,
): boolean {
  if (TEMPLATE.test(secret) || whole.toLowerCase().endsWith(secret.toLowerCase())) return false;
  if (/\s/.test(secret)) {
    return (
      isPassword &&
      mayBePhrase &&
      !isPlaceholder(secret) &&
      (!/^pass$/i.test(name) ||
        /\b(?:user(?:name)?|auth|login|host)\b["']?\s{0,4}[:=,]|_$/i.test(
          text.slice(Math.max(0, at - 60), at),
        )) &&
      isPassPhrase(secret, /phrase|^psk/i.test(name))
    );
  }
  if (VALIDATION.test(secret)) return false;
  if (isPassword) return isChosen(secret) || isSimplePassword(secret) || looksMade(secret);
  return isAssignedKey(whole) && (isChosen(secret) || looksMade(secret));
}

/** Matches names of keys that a vendor issues. A name that is only `token` mostly belongs to a grammar or theme. */
const ASSIGNED_KEY =
  /(?:(?:api|access|secret|auth|client|bearer|bot|session|npm|git\w{2,4}|deploy|license|app|signing|encryption|master|private)[ _.-]?(?:key|token|secret)|credential)$/i;

// Header arguments of a command: -H "X-Api-Key: …".

const HEADER_BEFORE = /(?:-H|--header)[ =]?["'][\w-]{0,40}$/;
const HEADER_VALUE = /: ?(?:Bearer |Token )?(?=[^\s"'[\]]{4,200}["'])/iy;

function readHeader({ text, nameEnd, before }: Named): Stretch | undefined {
  if (!HEADER_BEFORE.test(before)) return undefined;
  const value = valueAfter(HEADER_VALUE, BLANK_VALUE, text, nameEnd);
  if (value === undefined || isReference(value.secret) || isPlaceholder(value.secret))
    return undefined;
  return { start: value.start, end: value.end };
}

/** Returns the match of `value` directly behind that of `lead` at `from`; undefined if one of them does not match. */
function valueAfter(
  lead: RegExp,
  value: RegExp,
  text: string,
  from: number,
): (Stretch & { readonly secret: string }) | undefined {
  const start = endOfMatch(lead, text, from);
  const end = start === undefined ? undefined : endOfMatch(value, text, start);
  if (start === undefined || end === undefined) return undefined;
  return { start, end, secret: text.slice(start, end) };
}

// Lines of settings.

/** Matches what may precede the name if its line is a setting. */
const BEFORE_SETTING =
  /^[ \t>]*(?:[-*+•#;$%]+ {0,2}|\/\/ ?|\d{1,2}[.)] )?(?:\*\*|__|["'`])?(?:(?:export|set|setx|env|ENV|ARG|let|local|global|declare -x|Environment=|my|The|Your|the|your) ?["']?)?[\w.:/ ()-]{0,48}$/;
const SETTING =
  /(?:\[\d{0,4}\])?["'`]?\*{0,2}_{0,2}(?: \([^()\n]{1,30}\))?[ \t]{0,12}(?:[:?]=|=>?|->|<-|→|[:：]\*{0,2}|\n[ \t]{0,4}:|[ \t]–|[ \t]—)[ \t]{0,12}(?:[|>][+-]?[ \t]{0,4}\n[ \t]{1,24})?["'`*]{0,3}/y;
const TO_END =
  /[^\s"'`<>[\]]{4,200}(?=["'`*]{0,3}(?:[ \t]{0,8}(?:\r?\n|$)|[ \t]{1,8}(?:#|\/\/|\(|;|--)))/y;

function readLine(named: Named): Stretch | undefined {
  const { text, nameEnd, before } = named;
  const value = valueAfter(SETTING, TO_END, text, nameEnd);
  if (value === undefined || !BEFORE_SETTING.test(before)) return undefined;
  const { start, end, secret } = value;
  const sign = text.slice(nameEnd, start);
  if (!isClosed(text, start, end) || /\b(?:const|let|var|val|def|return)\b/.test(before))
    return undefined;
  if (isReference(secret) || /[;,({]$/.test(secret) || named.whole.endsWith(secret))
    return undefined;
  if (named.isPassword) {
    // With spaces around the sign, a program may assign one variable to another.
    if (/ :?=>? |<-/.test(sign) && (isCodeWord(secret) || isMember(before))) return undefined;
    // A test program also reports `pass: …`.
    if (/^pass$/i.test(named.name) && /: /.test(sign) && !/[^\w.-]/.test(secret)) return undefined;
  } else {
    const isHeader = /^[ \t"'-]*(?:-H ["']?)?x-[\w-]*$/i.test(before) && sign.includes(':');
    if (!isHeader && !isAssignedKey(named.whole)) {
      // Many values called "token" are no secret. These seldom have both capitals and small letters beside digits.
      const isMixed = /[a-z]\d|\d[a-z]/.test(secret) && /[A-Z]\d|\d[A-Z]/.test(secret);
      return isMixed && isKeyLike(named.name, secret) ? trimmed(text, start, end) : undefined;
    }
    if (/ = /.test(sign) && isCodeWord(secret)) return undefined;
  }
  // Behind `password=` at the beginning of a line, an ordinary word counts too, because no sentence follows there.
  const isAssigned = named.isPassword && sign === '=' && /^(?:export )?[\w.-]*$/.test(before);
  return isBareChosen(secret) || isSimpleBare(secret) || (isAssigned && isChosen(secret))
    ? trimmed(text, start, end)
    : undefined;
}

/** Says whether the name is a member in code: `this.password = value`, `user.password = value`. */
function isMember(before: string): boolean {
  return /(?:\b(?:self|this|user|account|props|state|params|args|req|form|input|values|options|opts)\.|[@$])\w{0,24}$/.test(
    before,
  );
}

/** Says whether the value is a path, an address, a flag, a variable, a call, a member, or a form's validation rule. */
function isReference(secret: string): boolean {
  return (
    /^[$%@~&*/.|?+-]|^![A-Z]\w+$/.test(secret) ||
    /^[\w$.?!]{0,60}\(|\)\(|\$\{|\{\{|=>|::|:\/\//.test(secret) ||
    VALIDATION.test(secret) ||
    isMemberAccess(secret)
  );
}

function isSimpleBare(secret: string): boolean {
  const bare = secret.replace(/[.,;:!?)]+$/, '');
  return (
    bare.length >= 4 &&
    isSimplePassword(bare) &&
    !isTechnical(bare) &&
    !NAMES_A_SECRET.test(bare) &&
    !isReference(bare) &&
    !VERSIONED_WORD.test(bare)
  );
}

/** Matches a name for a secret in code: `AuthenticationMD5Password`, `password1`. */
const NAMES_A_SECRET = /^[\w$]*(?:pass|token|secret|credential)[\w$]*$/i;

/** Returns a range without the punctuation, closing parentheses and asterisks at its end. */
function trimmed(text: string, start: number, end: number): Stretch {
  const marks = /[.,;:)*]+$/.exec(text.slice(start, end))?.[0].length ?? 0;
  return { start, end: end - marks };
}

/** Says whether a value has both quotes or none. With only an opening quote it is the first word of a quoted text. */
function isClosed(text: string, start: number, end: number): boolean {
  const quote = text.charAt(start - 1);
  return !/["'`]/.test(quote) || text.charAt(end) === quote;
}

// Notes: a name and a value among other words.

const NOTE = new RegExp(
  `["'\`]?\\*{0,2}${REMARK}${OF_PLACE}[ \\t]{0,2}(?:[:：=]|(?<= )-(?= )|->|→|=>|–|—|\\.{3,24})[ \\t]{0,2}["'\`*]{0,3}`,
  'iuy',
);
const NOTE_VALUE = /[^\s"'`<>[\]{},;&|()]{4,80}/y;
const AFTER_NOTE =
  /^["'`*]{0,3}(?:$|[\n.,;)/]|[ \t]+(?:$|[\n(#/|–—]|(?:and|or|for|on|in|at|to|is|please|und|für|et|y|e|but|then|also|user|login)\b))/;

function readNote(named: Named): Stretch | undefined {
  const { text, nameEnd, before } = named;
  const read = valueAfter(NOTE, NOTE_VALUE, text, nameEnd);
  if (read === undefined) return undefined;
  const { start, end, secret } = read;
  const bare = trimmed(text, start, end);
  if (isReference(secret) || text.charAt(bare.end) === '(' || !isClosed(text, start, bare.end))
    return undefined;
  if (!named.isPassword) {
    const isQuery = /[?&][\w.-]{0,24}$/.test(before) && text.charAt(start - 1) === '=';
    if (!isQuery || !ASSIGNED_KEY.test(named.whole)) return undefined;
    const value = secret.split('&', 1)[0] ?? '';
    return isChosen(value) || isSimplePassword(value)
      ? { start, end: start + value.length }
      : undefined;
  }
  const value = text.slice(start, bare.end);
  const isWord = isBareChosen(value) && !isCodeWord(value);
  const isVariable = /^[A-Z\d_]+$/.test(named.whole) && text.charAt(start - 1) === '=';
  const isProse =
    !isCode(before) && (isVariable || !(text.charAt(bare.end) === ';' && isIdentifierLike(value)));
  if (LOGIN_BEFORE.test(before) && isSimpleBare(value)) return bare;
  if (
    LIST_BEFORE.test(before) &&
    /^(?:[,&;]\w|$|[\s"'])/.test(text.slice(bare.end, bare.end + 2)) &&
    isWord
  )
    return bare;
  // A test program reports `PASS: TestHeader2`.
  if (
    /^pass$/i.test(named.name) &&
    !PLACE_OF_PASS.test(before) &&
    text.slice(nameEnd, start).endsWith(' ') &&
    isIdentifierLike(value)
  )
    return undefined;
  // The value of `…:secret:app-x1` is part of an address.
  if (before.endsWith(':')) return undefined;
  if (isSimpleBare(value)) return !isProse && isIdentifierLike(value) ? undefined : bare;
  const opened = before.charAt(before.length - 1);
  if (/["'`]/.test(opened) && text.charAt(bare.end) === opened && isWord) return bare;
  return isProse &&
    (!/^pass$/i.test(named.name) || PLACE_OF_PASS.test(before)) &&
    isWord &&
    AFTER_NOTE.test(text.slice(bare.end, bare.end + 12))
    ? bare
    : undefined;
}

/** Matches a word such as "db " in front of `pass:`. Without one, the line may be the report of a test program. */
const PLACE_OF_PASS =
  /\b(?:db|database|root|admin|sudo|ssh|ftp|smtp|mail|vpn|wi-?fi|wlan|router|login|my|our|prod|staging|dev) $/i;
/** Matches `user = ops, pw =`: a login in two settings of one line, and no arguments of a call. */
const LOGIN_BEFORE =
  /^[^()]*\b(?:user|login|account)(?:name|id)?["']? ?[:=] ?["']?[\w.@-]{2,64}["']?[,;]? (?:and )?[\w.-]{0,24}$/i;
/** Matches `username=ops,password=`: a list of settings, and no arguments of a call. */
const LIST_BEFORE = /^[^()]*[\s,&;?"'][\w.-]{1,24}=[^\s,&;()]{1,64}[,&;][\w.-]{0,24}$/;

function isIdentifierLike(value: string): boolean {
  return /^[A-Za-z_$][\w$]*$/.test(value) && !looksRandom(value) && !/\d[A-Za-z]/.test(value);
}

/** Says whether the text before the name looks like code. */
function isCode(before: string): boolean {
  return /[{};=<]|\w\(|\b(?:const|let|var|def|fn|func|function|class|type|interface)\b/.test(
    before,
  );
}

// A space between name and value: directives, abbreviations, sentences.

const BLANK = new RegExp(
  `["'\`]?(?: - |[ \\t]{1,4}-Value[ \\t]{1,4}|${ADVERBS}[ \\t]{1,4}(?:for (?!(?:an?|the|my|our|your|each|every|all|any|this|that|its|their) )[\\w.-]{1,24} (?=\\S{4,64}$))?|\\((?=\\S{4,64}\\)))["'\`*]{0,3}`,
  'y',
);
const BLANK_VALUE = /[^\s"'`\\<>[\]{}]{4,80}/y;
const ENDS_CLAUSE =
  /^["'`*]{0,3}(?:[ \t]{0,4}(?:$|\r?\n)|[.,;!)](?:\s|$)| (?:to|for|and|or|on|in|at|as|when|please|if|instead|und|für|um|auf|et|pour|y|para|e|per|not|nicht|I|we|you|ich|wir|komm\w{1,3}|je|works?|geht|funktioniert)\b| (?:#|\()| (?:everywhere|now|today|again|here|yesterday|instead|btw|fyi|by the way|thanks|thx|until|till|since)\b)/;
/** Matches words in front of the name that show that a value follows: "use the password X". */
const LEADS =
  /(?:\b(?:the|with|using|use|and|mit|und|dem|das|le|la|el|il|con|com|avec|als|comme|como|come|type|enter|try|via|by|my|our|as|vault|wifi|root|admin|db|database|server|router|master|user(?:name)?|login)\b[^\n]{0,24}|[,/|(+&] ?)$/i;

/** Matches articles and conjunctions in front of a name that is not English. */
const FOREIGN_LEADS = /(?<![\p{L}\d])(?:a|o|y|e|et|und)\b[^\n]{0,24}$/iu;
const IS_FOREIGN = new RegExp(`^(?:${FOREIGN_NAMES}|mdp)`, 'i');

function readBehindBlank(named: Named): Stretch | undefined {
  const { text, nameEnd, before, name } = named;
  const read = valueAfter(BLANK, BLANK_VALUE, text, nameEnd);
  if (read === undefined) return undefined;
  const { start, end, secret } = read;
  if (
    isReference(secret) ||
    /[=:(]/.test(secret.slice(0, -1)) ||
    isDescription(`${name}_${secret}`)
  )
    return undefined;
  if (/^pass$/i.test(name) && !/[_.]$|\buser \S{1,40}, $/.test(before)) return undefined;
  if (/^ (?:is|was|ist|est|es|è|é) /.test(text.slice(end, end + 8))) return undefined;
  const bare = trimmed(text, start, end);
  const value = text.slice(bare.start, bare.end);
  const rest = text.slice(bare.end, bare.end + 14);
  if (isSimpleBare(value) && !isIdentifierWithMarks(value)) {
    return named.isPassword || isKeyLike(name, value) ? bare : undefined;
  }
  if (!isChosenWord(value.replace(/[?!]+$/, '')) || describesSecret(value, `${name} `))
    return undefined;
  const isSet =
    /^[ \t]{0,8}(?:[$%#>] )?(?:set(?: -{1,2}\w{1,8}){1,3}|ENV|setenv|setx|export|fastcgi_param) {1,4}\w{0,40}$/.test(
      before,
    );
  if (isSet && /^[A-Z\d_]+$/.test(named.whole) && /^["'`]?[ \t]{0,4}(?:;|\r?\n|$)/.test(rest))
    return bare;
  const isOrder =
    /^[ \t]{0,8}(?:(?:set|neighbor \S{1,40}|peer \S{1,40})[ ][\w-]{0,24}|set [\w .:/-]{1,100}-)$|\bconfig(?:ure)?(?: set)?(?: --\w{1,12})? [\w/.:-]{0,60}$/.test(
      before,
    ) && /^["'`]?[ \t]{0,4}(?:\r?\n|$)/.test(rest);
  if (isOrder && (named.isPassword || isAssignedKey(named.whole))) return bare;
  if (!named.isPassword) return undefined;
  const isDirective =
    /^[ \t]{0,12}(?:[$#] )?[\w.-]{0,40}$/.test(before) &&
    /[_.-]|^(?:rootpw|bindpw)$/.test(`${/[\w.-]*$/.exec(before)?.[0] ?? ''}${name}`) &&
    /^["'`]?[ \t]{0,4}(?:\r?\n|$)/.test(rest);
  if (isDirective) return bare;
  const isFlag =
    /(?:^|\s)--?[\w-]{0,30}$/.test(before) &&
    text.charAt(nameEnd) === ' ' &&
    /^["'`]?(?:\s|$)/.test(rest);
  if (isFlag && /(?:pass|pw|passwd|password|passphrase|secret)$/i.test(name)) return bare;
  if (
    /^(?:pw|pwd|pswd|mdp|p\/w)$/i.test(name) &&
    !/[\w$./-]$/.test(before) &&
    ENDS_CLAUSE.test(rest)
  )
    return bare;
  const isComplained =
    /["'`]$/.test(text.slice(nameEnd, start)) &&
    /\b(?:invalid|wrong|bad|weak|incorrect|says|the|my) (?:\w{1,16} )?$/.test(before);
  if (isComplained && text.charAt(bare.end) === text.charAt(start - 1)) return bare;
  // A name that is the last part of a path has no value: `/etc/backup/pw nightly`.
  const isPath = /\/[\w.-]*\/$|(?:^|\s)[~.]{0,2}\/$/.test(before);
  const isLed = LEADS.test(before) || (IS_FOREIGN.test(name) && FOREIGN_LEADS.test(before));
  const isSpoken = isLed && SPOKEN.test(name) && !isPath && !/[\w$.-]$/.test(before);
  return isSpoken && ENDS_CLAUSE.test(rest) ? bare : undefined;
}

const SPOKEN = new RegExp(`^(?:${SPOKEN_NAMES}|pwd|pw)$`, 'iu');

/** Says whether the name is that of a key, and the value looks like a short key: a letter beside a digit. */
function isKeyLike(name: string, value: string): boolean {
  return (
    /(?:token|key|secret)$/i.test(name) &&
    /[a-z]\d|\d[a-z]/i.test(value) &&
    value.length >= 8 &&
    isSimpleBare(value) &&
    !isIdentifierWithMarks(value)
  );
}

/** Says whether a value looks like a name of words and numbers: `web-01`, `utf_8`, `x/y`, `JIRA-12`. */
function isIdentifierWithMarks(value: string): boolean {
  return (
    /^[a-z]+(?:[-_/.][a-z\d]+)+$/i.test(value) ||
    /^[\d.,:%/-]+\w{0,3}$/.test(value) ||
    /^(?:[A-Z]{2,5}-?\d{1,6}|RFC\d+)$/.test(value)
  );
}

// A row of a table with two cells.

const ROW =
  /["'`*]{0,3}(?: \([^()\n]{1,30}\))?[ \t]{1,40}\|[ \t]{1,40}["'`*]{0,3}(?=[^\s|]{4,80}[ \t]{1,80}\|[ \t]{0,4}(?:\r?\n(?!\|?[ \t]{0,4}:?--)|$))/y;

function readRow({ text, nameEnd, before, isPassword }: Named): Stretch | undefined {
  if (!isPassword || !/^[ \t]{0,4}\|[ \t]{1,4}[^|]{0,40}$/.test(before)) return undefined;
  const read = valueAfter(ROW, BLANK_VALUE, text, nameEnd);
  if (read === undefined) return undefined;
  const { start, end, secret } = read;
  const isSecret = isSimpleBare(secret) || isChosenWord(secret);
  return isSecret && !isReference(secret) ? trimmed(text, start, end) : undefined;
}

// Sentences.

const GIVEN_BY_VERB =
  /(?: [\w. -]{1,32}?)?(?: (?:was|has been|is|got|wurde))?(?: (?:changed|set|reset|updated|rotated|geändert|gesetzt))?(?: from \S{1,64})?(?: to|,? (?:then |and |just |please )?(?:type|enter|use|try|say|give|send|answer|write)(?: in)?:?) ["'`*]{0,3}/y;
/** Matches "habe ich auf", "cambiada a" and the like in front of a value in quotes. */
const PUT_TO =
  /(?: [\p{L}\d.-]{1,24}){0,4} (?:auf|zu|en|a|à|par|por|per|para|in|como|på|til|naar|na|на) (?:["'`](?=[^\s"'`]{4,80}["'`])|(?=\S{4,80} (?:geändert|gesetzt|gestellt|changé|cambiad[oa]|cambiata|alterad[oa]|mudad[oa])\b))/uy;
const SET_TO =
  /(?: \p{L}[\p{L}\d.'’-]{0,23}){0,4} (?:auf|en|a|à|par|por|para|in|como) (?=\S{4,80}(?:\s|$))/uy;
/** Matches "password to …", where no verb such as "changed" says that the password got a value. */
const TO_ALONE = /^ (?:[\w. -]{1,32} )?(?<!(?:changed|set|reset|updated|rotated) )to ["'`*]{0,3}$/;
const FORMER =
  /^(?<join>(?: (?:for|of|on|at|in) [\w. -]{1,32}?)?(?: (?:was|has been|is))?(?: (?:changed|set|reset|updated|rotated))? from )(?<secret>[^\s"'`]{4,64}) to /;
const SETS =
  /\b(?:set|chang\w{1,3}|reset|updat\w{1,3}|rotat\w{1,3}|made|put|turn\w{0,2}) (?:\w{1,16} ){0,3}[\w.-]{0,24}$/i;
/** Matches the verbs of SETS in other languages. SET_TO has the prepositions that follow these verbs. */
const PUTS =
  /(?<![\p{L}\d])(?:änder\p{L}{0,2}|setze|stelle|changé|cambi\p{L}{1,4}|impost\p{L}{1,4}|mud[aeo]\p{L}{0,2}|altere\p{L}{0,2}|defin[aei]\p{L}{0,2}|modifi[cé]\p{L}{0,4}|mets|mettez|pon|puse|metti) (?:\p{L}{1,16} ){0,3}[\w.-]{0,24}$/iu;
const IS = new RegExp(
  `(?: \\([^()\\n]{1,24}\\))?(?: (?:I|we|you|they) \\w{1,12}(?: \\w{1,12})?)?${OF_PLACE}(?: (?:(?:will|should|must) be|${VERB_IS})${ADVERBS}:?|(?: (?:has|was|got|is))? (?:changed|reset|rotated|updated|new)[,.;:]{1,2} (?:it['’]s|it is)${ADVERBS}:?|[?,.]{0,3} (?:which (?:is|was)|it(?:['’]s| is) (?:currently|now)|the (?:new|current|right|correct) one is|(?<=\\? )(?:(?:[Ii]t|[Tt]hat)(?:['’]s| is)|[Ee]s ist|[Cc]['’]est))${ADVERBS}:?) ["'\`*]{0,3}`,
  'y',
);
/** Matches a word of time after the value: "the password was … yesterday". */
const WHEN = /^["'`*]{0,3} (?:yesterday|today|tonight|now|last|this|again|heute|gestern)\b/;

function readSentence(named: Named): Stretch | undefined {
  const { text, nameEnd, before, whole, isPassword } = named;
  if (isCode(before) || !(isPassword || isAssignedKey(whole))) return undefined;
  const isSet = isPassword && SETS.test(before);
  const byVerb = isPassword ? endOfMatch(GIVEN_BY_VERB, text, nameEnd) : undefined;
  const given =
    byVerb !== undefined && (isSet || !TO_ALONE.test(text.slice(nameEnd, byVerb)))
      ? byVerb
      : undefined;
  const put = isPassword ? endOfMatch(PUT_TO, text, nameEnd) : undefined;
  const start =
    given ??
    put ??
    (isPassword && PUTS.test(before) ? endOfMatch(SET_TO, text, nameEnd) : undefined) ??
    endOfMatch(IS, text, nameEnd);
  if (start === undefined) return undefined;
  const end = endOfMatch(BLANK_VALUE, text, start);
  if (end === undefined || !isClosed(text, start, trimmed(text, start, end).end)) return undefined;
  const bare = trimmed(text, start, end);
  const value = text.slice(start, bare.end);
  const rest = text.slice(bare.end, bare.end + 14);
  const isEnd = start === put || ENDS_CLAUSE.test(rest) || WHEN.test(rest);
  const lead = text.slice(nameEnd, start);
  const isWord =
    (start === put ? isChosen(value) : isChosenWord(value)) && !SAID_OF_TOKENS.test(value);
  const isSecret =
    !isReference(value) &&
    isEnd &&
    !describesSecret(value, lead) &&
    !(/ be /.test(lead) && !isSimpleBare(value)) &&
    (isWord || (isPassword && isSimpleBare(value) && !isIdentifierWithMarks(value)));
  if (start !== given) return isSecret ? bare : undefined;
  // In "changed from … to …" both values are secrets, and one mask covers both.
  const former = FORMER.exec(lead);
  // If another word follows the name, it is not the password that changed: "the password check from client to server".
  if (former?.groups === undefined) return isSecret && !/ from /.test(lead) ? bare : undefined;
  const { join = '', secret = '' } = former.groups;
  const formerStart = nameEnd + join.length;
  if (isSecret) return { start: formerStart, end: bare.end };
  return isSimpleBare(secret) || isChosenWord(secret)
    ? { start: formerStart, end: formerStart + secret.length }
    : undefined;
}

/** Matches words that describe a token and are no value: "the token is missing". */
const SAID_OF_TOKENS =
  /^(?:single|double|scoped|opaque|global|stale|cached|fresh|unique|bearer|static|active|inactive|optional|useless|temporary|permanent|available|unavailable|present|absent|current|longer|needed|enough|correct|stored|nowhere|everywhere|elsewhere|critical|special|primary|secondary|foreign|exactly|usually|anyone\w*|someone\w*|nobody|yours|theirs|mine|itself|myself|yourself|simply|lowercase|uppercase|numeric|alphanumeric|hexadecimal|base64|plaintext|cleartext|internal|external|allowed|blank|expire|rotate|continue|proceed|unlock|connect|authenticate|access|decrypt|encrypt|verify|confirm|cancel|login|log)$/i;

// A value in front of its name.

const AFTER_NAME =
  /^["'`*]{0,2}(?:[ \t]{0,2}(?:$|\n)|[.,;!)]| (?:for|of|everywhere|anywhere)(?: |$|[.,;!)]))/;
const VALUE_BEFORE =
  /(?<value>["'`][^\s"'`[\]]{4,64}["'`]|(?<![\w"'`.-])[^\s"'`<>[\](){}]{3,63}[^\s"'`<>[\](){},;:]),? (?:(?:(?:that|this|which|it|das|c|ce) )?(?:is|was|as|ist|war|als|est|était|comme|es|era|como|è|come|é) (?:now )?(?:the|my|our|its|a|your|das|mein|le|la|el|o|il) (?:\w{1,16} ){0,2}|(?:as|als|comme|como|come) |\(the )$/;

/** Matches "type … when it asks for the ". */
const TYPED_BEFORE =
  /\b(?:type|enter|use|try|give|say|gib|tape|escribe|digita|digite) (?<value>["'`]?[^\s"'`<>[\](){},;:]{4,64}["'`]?) (?:when|if|where|wenn|quand|cuando|quando) [^.\n]{1,32}$/i;

/** Matches `"…".equals(password)` and `"…" == password`. */
const COMPARED_BEFORE =
  /["']([^"'\s[\]]{4,64})["'](?:\.equals(?:IgnoreCase)?\(| ={2,3} | != )[\w.]{0,40}$/;

function readBefore(named: Named): Stretch | undefined {
  const { text, at, nameEnd, before } = named;
  const compared = COMPARED_BEFORE.exec(before);
  if (compared?.[1] !== undefined && named.isPassword) {
    const start = at - before.length + compared.index + 1;
    return isLiteralSecret(named, compared[1], false)
      ? { start, end: start + compared[1].length }
      : undefined;
  }
  if (
    !named.isPassword ||
    !SPOKEN.test(named.name) ||
    !AFTER_NAME.test(text.slice(nameEnd, nameEnd + 16))
  )
    return undefined;
  const found = VALUE_BEFORE.exec(before) ?? TYPED_BEFORE.exec(before);
  const value = found?.groups?.['value'];
  if (found === null || value === undefined) return undefined;
  const isInQuotes = /^["'`]/.test(value);
  const secret = isInQuotes ? value.slice(1, -1) : value;
  const start = at - before.length + before.indexOf(value, found.index) + (isInQuotes ? 1 : 0);
  const isSecret = isInQuotes
    ? isChosen(secret) || isSimplePassword(secret)
    : isSimpleBare(secret) ||
      (isChosenWord(secret) &&
        (/\b(?:with|use|using|try|mit) $/i.test(before.slice(0, found.index)) ||
          !/^[A-Z][a-z]+$/.test(secret)));
  return isSecret && !isReference(secret) ? { start, end: start + secret.length } : undefined;
}
