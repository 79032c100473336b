/**
 * Finds secrets that can only be recognised by their name: `password = …`, `"api_key": "…"`, `--token …`. The text is
 * searched once for such names. At each name the rules are tried from top to bottom.
 */

import {
  describesSecret,
  hasMixedCharacters,
  isBase32Seed,
  isEncodedLogin,
  isMadeUp,
  isPlaceholder,
  isPublicExample,
  isSimplePassword,
  isTechnical,
  isBareChosen,
  isChosen,
  isPassPhrase,
  looksMade,
  looksRandom,
  VALIDATION,
} from './secret-likeness.ts';
import {
  ADVERBS,
  CHOSEN,
  FOREIGN_NAMES,
  IS_CHOSEN,
  isDescription,
  isPlainName,
  NAMES,
  OF_PLACE,
  PASS_OF_LOGIN,
  PASSWORDS,
  SPOKEN_NAMES,
  SUFFIX,
  VENDORS,
  VERB_IS,
  WEAK_NAME,
} from './secret-names.ts';
import { BARE_REST, type Candidate, NO_REST, QUOTED_REST, type SecretRule } from './secret-rule.ts';

/** Matches the sign before a YAML block (`|` or `>`), whose value begins on the next line. */
const BLOCK = '(?:[|>][+-]?[ \\t]{0,4}\\n[ \\t]{1,24})?';
/** Matches the opening of a literal, which in TOML or Python may begin on the next line. */
const OPENING = '(?:[bru@$]?["\'`]{1,3}(?:(?<="""|\'\'\')\\r?\\n[ \\t]{0,24})?)?';
const ASSIGN =
  "(?:[\"'`]\\]?\\)?)?(?:[ \\t]{0,8}:[ \\t]{0,4}(?:&(?:'static )?str|string)|[ \\t]{1,4}(?:as )?string)?[ \\t]{0,8}" +
  '(?:[?:.+|]{0,3}=>?|:)(?![=?])[ \\t]{0,8}' +
  BLOCK;
/** Matches `public string Password { get; set; } = "…"` after the name. */
const PROPERTY = '[ \\t]{1,4}\\{[ \\w;]{0,40}\\}[ \\t]{0,4}=[ \\t]{0,4}(?=["\'])';
/** Matches `setProperty("API_TOKEN", "…")` after the name. */
const ARGUMENT = '["\'`][ \\t]{0,4},[ \\t]{0,4}(?=["\'`])';
/** Matches `- name: DB_PASSWORD` with `value: …` on the next line; also as an attribute, and in JSON. */
const NAMED_VALUE =
  '(?:["\'`],?\\s{0,40}|,?\\s{1,40})["\'`]?value["\'`]?[ \\t]{0,4}[:=][ \\t]{0,4}';
/** Matches `"password": { "value": "…" }`, as in Terraform's state. */
const NESTED_VALUE =
  '["\'`][ \\t]{0,4}:[ \\t]{0,4}\\{\\s{0,40}["\'`]value["\'`][ \\t]{0,4}:[ \\t]{0,4}';
/** Matches `variable "db_password" { default = "…" }`, with type and description before the value. */
const DEFAULT_VALUE =
  '["\'][ \\t]{0,4}\\{(?:\\s{1,40}(?:type|description|sensitive)[ \\t]{0,24}=[^\\n[\\]]{0,120}){0,3}\\s{1,40}default[ \\t]{0,24}=[ \\t]{0,4}';
/** Matches what may come between a tag and its text. */
const CDATA = '(?:<!\\[CDATA\\[)?';
const ATTRIBUTES = '(?:\\s{1,4}[\\w:.-]{1,40}=["\'][^"\'<>\\n[\\]]{0,80}["\']){0,4}[ ]?';
/** Matches `<password type="plain">…`: attributes may follow a name only inside a tag. */
const TEXT = `(?:>|(?<=<[\\w:.-]{1,64})${ATTRIBUTES}>)\\s{0,60}(?:<(?:\\w{1,12}:)?value>\\s{0,60})?${CDATA}`;
/** Matches what comes between a name and its value in the next XML element: property lists, Hadoop, Java. */
const NEXT_ELEMENT =
  '</(?:key|(?:[\\w:.]{1,24}-)?name)>\\s{0,40}(?:<[\\w-]{1,24}-type>[\\w.]{1,40}</[\\w-]{1,24}-type>\\s{0,40})?' +
  `<(?:string|(?:[\\w:.]{1,24}-)?value)>\\s{0,60}${CDATA}`;
/** Matches `<entry key="db.password">…`, and `<setting name="password"><value>…`. */
const NAMED_TEXT = `["']${ATTRIBUTES}>\\s{0,60}(?:<(?:\\w{1,12}:)?value>\\s{0,60})?${CDATA}`;
const NAME_ATTRIBUTE =
  '(?:\\s[^<>\\n[\\]]{0,120})?\\s(?:name|(?:\\w{1,8}:)?key)=["\'][\\w.:-]{0,60})';
/** Element names of settings. Other elements may hold texts of an interface: `<string name="password">Kennwort`. */
const SETTING_ELEMENT =
  '(?:\\w{1,12}:)?(?:property|prop|entry|setting|param(?:eter)?|option|env|var(?:iable)?|attribute|constructor-arg|arg)';
/** Matches any element's name except those of forms, links and `meta`, because text of the page follows these. */
const NO_FIELD =
  '(?!(?:input|button|label|select|textarea|option|a|form|meta|field)\\b)[\\w:.-]{1,40}';
/** Matches `setApiKey("…")` after the name. */
const SETTER = '(?<=(?:set|with)_?(?:\\w{0,16}_)?[\\w]{0,40})\\([ \\t]{0,4}(?=["\'`])';
/** Matches what joins a name and its value in code and data. XML has TEXT, NEXT_ELEMENT and NAMED_TEXT. */
const GIVEN = `(?:${ASSIGN}|${PROPERTY}|${ARGUMENT}|${NAMED_VALUE}|${NESTED_VALUE}|${DEFAULT_VALUE}|${SETTER})`;

/** Matches where no `(` precedes on the line: in a call, `password=` may be followed by a variable. */
const OUTSIDE_CALL = '(?<=(?:^|\\n)[^\\n(]{0,200})';
/** Matches what may precede the name in a setting: the beginning of a longer name, in quotes or not. */
const NAME_START = '(?<=(?:^|[\\s"\'?&;=]|-)[\\w.:-]{0,40})';
/** Matches in front of a value that ends its line, or that only a comment follows. */
const TO_LINE_END = '(?=\\S{6,80}[ \\t]{0,4}(?:\\r?\\n|$|#|//[ ]))';
/** Matches in front of a value that ends its clause. */
const TO_CLAUSE_END =
  '(?=\\S{6,80}(?:(?<=["\'`.,;!)。，])|\\s{0,2}$|[ \\t]{0,2}\\r?\\n| (?:and|for|on|please|und|für|et|y|e|but)\\b))';
/** Matches what joins a name and its value in a sentence, in the languages of `SPOKEN_NAMES`. */
const IS =
  `(?: (?:is|was|has been) (?:generated|created|set)${OF_PLACE}:[ ]|` +
  ` ${VERB_IS}${ADVERBS}:?[ ]{1,2}|[是は은는][ ]?)`;
/** Matches a colon, also one inside or after bold text of Markdown. */
const COLON = '(?:[ ]?:(?:\\*\\*)? [ ]?|：[ ]?)';
const QUOTE_MARKS = '["\'`*]{0,3}';

export const NAME_RULES: readonly SecretRule[] = [
  named('A flag on a command line: --password VALUE', {
    ...quoted(
      `(?<=(?<![\\w-])--?(?:\\w[\\w-]{0,24})?)(?:${NAMES})${SUFFIX}(?:[ \\t]{1,4}|=)["']?`,
      { charsMin: 4 },
    ),
    accepts: isFlagValue,
  }),
  named('Code, JSON, environment files, YAML, query and connection strings', {
    pattern: after(`(?:${NAMES})${SUFFIX}${GIVEN}${OPENING}`, '"\'`', 6),
    rest: BARE_REST,
    quotedRest: QUOTED_REST,
    accepts: (candidate) =>
      isQuoted(candidate)
        ? isLiteralSecret(candidate)
        : isBareSecret(candidate) || isQuotedLine(candidate),
  }),
  named('A password in quotes, with any characters but square brackets', {
    pattern: new RegExp(`(?<keep>${CHOSEN}${SUFFIX}${GIVEN}[bru@$]?["'\`])[^\\s"'\`[\\]]{6}`, 'iy'),
    rest: /[^\s"'`[\]]*/y,
    accepts: ({ context, secret, next }) =>
      !IN_TEMPLATE.test(secret) &&
      /^["'`[\]]?$/.test(next) &&
      isLiteralSecret({ context, secret, next: '' }),
  }),
  named('Several words in quotes, as in a pass phrase', {
    pattern: new RegExp(
      `(?<keep>(?:${SPOKEN_NAMES}|pwd|pw|secret)${SUFFIX}(?:${GIVEN}|${OF_PLACE}(?:${IS}|${COLON}))["'\`])[^\\s"'\`[\\]<>{}\\\\]{2,24} (?=[^"'\`\\n[\\]]{4,120}["'\`])`,
      'iuy',
    ),
    rest: /[^"'`\n[\]<>{}\\]*/y,
    accepts: ({ context, secret, next }) =>
      context.endsWith(next) &&
      next !== '' &&
      !isDescription(context) &&
      isPassPhrase(secret, /phrase/i.test(context)),
  }),
  named('A default in a shell, a compose file or Spring: ${DB_PASSWORD:-…}', {
    ...quoted(`(?<=\\$\\{[\\w.-]{0,40})(?:${NAMES})${SUFFIX}(?::?[-=]|:)(?=[^\\s{}]{6,80}\\})`),
    accepts: ({ context, secret }) =>
      !isDescription(context) &&
      !/^[$/~?+-]/.test(secret) &&
      (looksMade(secret) ||
        (IS_CHOSEN.test(context) &&
          isPlainName(context) &&
          (isSimplePassword(secret) || isChosen(secret)))),
  }),
  named('A chosen secret in the environment: the name is in capitals', {
    pattern: after(`${CHOSEN}${SUFFIX}=["']?`, '"\'`();&|', 6),
    rest: BARE_REST,
    accepts: ({ context, secret, next }) =>
      /^[A-Z_\d]+=/.test(context) &&
      /^[\s"']?$/.test(next) &&
      isPlainName(context) &&
      isChosen(secret),
  }),
  named('The same in front of the next command of a shell', {
    pattern: after(`(?<=\\b(?:export|set) \\w{0,40})${CHOSEN}${SUFFIX}=`, '"\'`();&|', 6),
    rest: BARE_REST,
    accepts: ({ context, secret, next }) =>
      /[;&]/.test(next) && isPlainName(context) && isChosen(secret),
  }),
  named('A chosen secret in a query, a form or a connection string', {
    ...bare(
      `(?<=[?&;] ?[\\w.-]{0,24}|[\\s"']user(?:name)?=[^\\s(,]{1,64},|\\b(?:host|user|username|uid|dbname|port|server)=\\S{1,64} )${CHOSEN}${SUFFIX}=`,
    ),
    accepts: ({ context, secret, next }) =>
      /^[\s"'`;&]?$/.test(next) && isPlainName(context) && isChosen(secret),
  }),
  named('A chosen secret in an assignment of a shell, of a file of settings, or of a flag', {
    ...bare(`${OUTSIDE_CALL}${NAME_START}${CHOSEN}${SUFFIX}=`),
    accepts: ({ context, secret, next }) =>
      /^[\s"'`]?$/.test(next) &&
      isPlainName(context) &&
      isChosen(secret) &&
      !MEMBER_ACCESS.test(secret) &&
      // `password=enabled` states whether there is a password.
      !/(?:ed|able|ible|ing)$/.test(secret),
  }),
  named('A chosen secret in a setting on a line of its own', {
    ...bare(
      `(?<=(?:^|\\n)[ \\t]{0,40}(?:[-*] )?(?:\\*\\*|export |name: ?)?["']?[\\w.-]{0,40})${CHOSEN}${SUFFIX}` +
        `(?:["']?(?::\\*\\*|\\*\\*:|:) {1,4}${BLOCK}|${NAMED_VALUE})${TO_LINE_END}`,
    ),
    accepts: ({ context, secret, next }) =>
      /^\s?$/.test(next) &&
      isPlainName(context) &&
      (isBareChosen(secret) ||
        (isSimplePassword(secret) && !isCodeName(secret) && !/^[/~.]/.test(secret))),
  }),
  named('The same with blanks around the sign, where code would have a variable', {
    ...bare(`(?<=(?:^|\\n)[ \\t]{0,8}[\\w.-]{0,40})${CHOSEN}${SUFFIX} {1,8}= {1,8}${TO_LINE_END}`),
    accepts: ({ context, secret, next }) =>
      /^\s?$/.test(next) &&
      isPlainName(context) &&
      !/^[a-z_]+$/.test(secret) &&
      isBareChosen(secret),
  }),
  named('The same below the head of a section, as only a file of settings has it', {
    ...bare(
      `(?<=(?:^|\\n)\\[(?!masked)[\\w .:"-]{1,40}\\][ \\t]{0,4}\\r?\\n[^[\\]]{0,400})` +
        `(?<=\\n[ \\t]{0,8}[\\w.-]{0,40})${CHOSEN}${SUFFIX} {1,8}= {1,8}${TO_LINE_END}`,
    ),
    accepts: ({ context, secret, next }) =>
      /^\s?$/.test(next) && isPlainName(context) && (isChosen(secret) || isSimplePassword(secret)),
  }),
  named('A blank between: set -x NAME value, ENV NAME value, #define NAME "value"', {
    ...quoted(
      `(?<=(?:^|\\n)[ \\t]{0,8}(?:[$%#>] )?(?:set(?: -{1,2}\\w{1,8}){1,3}|ENV|setenv|setx|#define|fastcgi_param) {1,4}\\w{0,40})(?:${NAMES})${SUFFIX} {1,8}["']?`,
    ),
    accepts: ({ context, secret, next }) =>
      /^[\s"']?$/.test(next) &&
      !isDescription(context) &&
      !isPlaceholder(secret) &&
      (looksMade(secret) ||
        (IS_CHOSEN.test(context) && (isSimplePassword(secret) || isChosen(secret)))),
  }),
  named('A note: "password for prod: …"', {
    ...bare(
      `(?:(?<=\\b(?:the|my|our) (?:\\w{1,16} )?)(?:${PASSWORDS})|(?:${PASSWORDS})(?= |：)${OF_PLACE}|${FOREIGN_NAMES})${COLON}${QUOTE_MARKS}(?=\\S{6,80}(?:\\s|$))`,
      { except: '*' },
    ),
    accepts: (candidate) => /^[\r\n"'`*,;]?$/.test(candidate.next) && isChosenIn(candidate),
  }),
  named('In quotes behind a function or a verb: define("DB_PASSWORD", "…"), use the password "…"', {
    ...quoted(
      `(?:(?<=\\b(?:define|set|put|set(?:Property|Item|Env)|fill(?:_?[iI]n)?|type)\\([ \\t]?["'][\\w.#=[-]{0,40})${CHOSEN}${SUFFIX}\\]?["'][ \\t]{0,2},[ \\t]{0,4}|` +
        `(?:${PASSWORDS})["']\\){1,2}\\.(?:fill|type|send_?[kK]eys|val)\\(|` +
        `(?<=\\b(?:use|using|with|try|enter|mit) (?:the |an? |das )?(?:\\w{1,16} )?)(?:${PASSWORDS}) )["'\`]`,
    ),
    accepts: isQuotedPassword,
  }),
  named('In quotes behind a name alone: Clojure and Lisp, Erlang, Scheme, Gradle', {
    ...quoted(
      `(?<=[({]|[({\\s]:|(?:^|\\n)[ \\t]{0,40}\\w{0,24}|\\b(?:setq?|def\\w{0,12}) \\*?[\\w.-]{0,24})${CHOSEN}${SUFFIX}(?:,| \\.|\\*)? ["']`,
    ),
    accepts: isQuotedPassword,
  }),
  named('A login in a sentence: "as anna with password …"', {
    ...bare(
      `(?<=\\b(?:user(?:name)?|as|login|account|e-?mail|benutzer(?:name)?|utilisateur|identifiant|usuario|usuário|utente)[: ]{1,2}["'\`]?[\\w.@-]{2,40}["'\`]?(?: ?[,/|] ?| (?:and|with|mit|und|et|avec|y|con|e|com) | \\(| )(?:the |an? |das |le |la |a )?)` +
        `(?:${PASSWORDS}|${PASS_OF_LOGIN})(?: |: ?|=)${QUOTE_MARKS}${TO_CLAUSE_END}`,
      { except: '*' },
    ),
    accepts: ({ context, secret }) =>
      isSimplePassword(secret) ||
      (isBareChosen(secret) && (/[:=]\W{0,4}$/.test(context) || !NOUN_OF_PASSWORDS.test(secret))),
  }),
  named('A login in one line: "credentials: anna / …"', {
    ...bare(
      `(?:(?:(?:credentials|creds)(?: (?:are|is)|:)|(?<=\\buser(?:name)?/)pass(?:word)?:) {1,2}["'\`]?(?!user|name|login|read|key)[\\w.@-]{2,40} ?[/:]|(?:credentials|creds) \\((?!user|name|login|e-?mail|key|token)[\\w.@-]{2,40} ?[,/:]) ?["'\`]?`,
      { except: '*' },
    ),
    accepts: ({ secret, next }) =>
      /^[\s"'`,;)]?$/.test(next) && (isSimplePassword(secret) || isBareChosen(secret)),
  }),
  named('A change: "set the root password to …"', {
    ...quoted(
      `(?<=\\b(?:set|chang\\w{1,3}|reset|updat\\w{1,3}|rotat\\w{1,3}) (?:\\w{1,16} ){0,3})(?:${PASSWORDS})${OF_PLACE} to ${QUOTE_MARKS}${TO_CLAUSE_END}`,
      { except: '*' },
    ),
    accepts: isChosenIn,
  }),
  named('A sentence: "the password for prod is …"', {
    ...quoted(
      `(?:${PASSWORDS}|(?<=\\b(?:client|app|jwt|api|session|webhook|shared|signing)[ -])secret(?: key)?)${OF_PLACE}${IS}${QUOTE_MARKS}${TO_CLAUSE_END}`,
      { except: '*' },
    ),
    accepts: (candidate) =>
      isChosenIn(candidate) && !describesSecret(candidate.secret, candidate.context),
  }),
  named('Settings of a program, one on a line: password = …, and value: … below its name', {
    ...bare(`${CHOSEN}${SUFFIX}${GIVEN}`),
    accepts: ({ context, secret, next }) =>
      /^\s?$/.test(next) &&
      !isDescription(context) &&
      isSimplePassword(secret) &&
      !VERDICT.test(context) &&
      !COUNTED_NAME.test(secret) &&
      !isCodeName(secret) &&
      !/^[/~.]/.test(secret),
  }),
  named('XML: an element, on one line or on three', {
    ...quoted(
      `(?:${NAMES}|${VENDORS})${SUFFIX}(?:${TEXT}|${NEXT_ELEMENT})|` +
        `(?<=<${SETTING_ELEMENT}${NAME_ATTRIBUTE}(?:${NAMES}|${VENDORS})${SUFFIX}${NAMED_TEXT}`,
    ),
    accepts: ({ context, secret, next }) =>
      /^[\s<\]]?$/.test(next) &&
      !isDescription(context) &&
      (isSimplePassword(secret) ||
        looksMade(secret) ||
        isNumber(context, secret) ||
        (IS_CHOSEN.test(context) && (isBareChosen(secret) || (next === '<' && isChosen(secret))))),
  }),
  named('XML: a value that Maven encrypted with a key that is known', {
    pattern: /(?<keep>(?:password|passphrase|master)>\{)[A-Za-z0-9+/]{16}/iy,
    rest: /[A-Za-z0-9+/=]*/y,
    accepts: ({ secret, next }) => next === '}' && looksRandom(secret),
  }),
  named('XML: the text of any other element that has the name, where no words can stand', {
    ...quoted(`(?<=<${NO_FIELD}${NAME_ATTRIBUTE}(?:${NAMES}|${VENDORS})${SUFFIX}${NAMED_TEXT}`),
    accepts: ({ context, secret, next }) =>
      /^[\r\n<\]]?$/.test(next) &&
      !isDescription(context) &&
      (looksMade(secret) || isNumber(context, secret) || isSimplePassword(secret)) &&
      !isPlaceholder(secret) &&
      !COUNTED_NAME.test(secret),
  }),
  named('A vendor’s name and a random value', {
    pattern: after(
      `(?:${VENDORS})[\\w.-]{0,20}(?: (?:bot|api|key|token))?(?:${GIVEN})["'\`]{0,3}`,
      '"\'`',
      14,
    ),
    rest: BARE_REST,
    accepts: isVendorValue,
  }),
  named('A name and a value with a blank between: .netrc, notes', {
    ...bare(`(?:${NAMES})[ ]["'\`]?`, { charsMin: 12 }),
    accepts: ({ secret, next }) =>
      (looksRandom(secret) || isBase32Seed(secret)) &&
      !isPlaceholder(secret) &&
      !/^[([{]$/.test(next),
  }),
  named('Vault and Nomad: the secret of a role or of a token is called an id', {
    pattern:
      /(?<keep>secret[_ -]?id["']?\s{0,12}[=:]\s{0,4}["']?)[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}/iy,
    rest: NO_REST,
  }),
  named('ODBC: a value in braces, which may have any character', {
    pattern: /(?<keep>(?<=;\s{0,2})(?:pwd|password)=\{)[^{}[\]\n]{4}/iy,
    rest: /[^{}[\]\n]*/y,
    accepts: ({ secret, next }) => next === '}' && !isPlaceholder(secret),
  }),
  named('Plain language: "the password for staging is …"', {
    ...quoted(
      `(?:${NAMES})s?(?:[ \\w-]{0,32}?|${OF_PLACE})(?:${IS}| to |${COLON}| ?= ?)${QUOTE_MARKS}`,
      { except: '*' },
    ),
    accepts: ({ context, secret, next }) =>
      !isDescription(context) &&
      (/[:：=]\s*["'`*]{0,3}$/.test(context) && !VERB_BEFORE_COLON.test(context)
        ? IN_SENTENCE.test(context) &&
          looksMade(secret) &&
          !isPlaceholder(secret) &&
          !/^[([{]$/.test(next)
        : isSimplePassword(secret) || looksMade(secret)),
  }),
  named(
    'On a line of its own, also of a code block: "Here is the API key:", an empty line, the key',
    {
      pattern: after(
        `(?:${NAMES})s?(?:[ \\w-]{0,32}?|${OF_PLACE})(?: is| are)?[ ]?[:：](?:\\*\\*)?[ \\t]{0,4}(?:\\r?\\n[ \\t>]{0,8}){1,2}(?:\`{3}\\w{0,12}\\r?\\n[ \\t]{0,8}|[-*] )?["'\`]?`,
        '"\'`(),;',
        14,
      ),
      rest: QUOTED_REST,
      accepts: ({ context, secret, next }) =>
        /^[\s"'`]?$/.test(next) &&
        !isDescription(context) &&
        looksRandom(secret) &&
        !isPlaceholder(secret),
    },
  ),
  named(
    'Below or beside its label, as a console shows it: a line "Client secret" and a line with the value',
    {
      pattern: after(
        `(?:${NAMES})(?=[\\w ()]{0,60}?(?:\\s{2}|[\\t\\r\\n]))(?: \\w{1,16}){0,2}(?: \\([\\w ]{1,24}\\))?(?<=(?:^|\\n)[ \\t]{0,8}(?:[A-Za-z][\\w’'() -]{1,60}))(?:[ \\t]{0,4}\\r?\\n[ \\t]{0,8}|\\t| {2,40})(?=\\S{6,128}[ \\t]{0,4}(?:\\r?\\n|$))`,
        '"\'`(),;./',
        6,
      ),
      rest: BARE_REST,
      accepts: ({ context, secret, next }) =>
        /^\s?$/.test(next) &&
        !isDescription(context) &&
        !isPlaceholder(secret) &&
        (IS_CHOSEN.test(context)
          ? isSimplePassword(secret) && !isVariable(secret) && !/^[a-z_]+\d{1,2}$/.test(secret)
          : looksRandom(secret) && !/^(?:[\da-f]{40}|[\da-f]{64})$/.test(secret)),
    },
  ),
  named('Notes and YAML: "password for the database: …". In code a variable may stand there', {
    ...bare(`(?:${PASSWORDS})[ \\w-]{0,32}${COLON}`),
    accepts: ({ context, secret, next }) =>
      isSimplePassword(secret) &&
      !/^[([{]$/.test(next) &&
      !VERDICT.test(context) &&
      !isCodeName(secret),
  }),
];

/** Matches "PASS: ", with which test programs report a result. */
const VERDICT = /^PASS: /;

/** Matches the beginning of variable names, as code passes them to a member `password`. */
const VARIABLE =
  /^(?:pass|pwd|pw\d|p\d|secret|token|hash|user|new|old|current|input|form|req|args?|db|opts?)/i;

/**
 * Matches what shows that a word is a password and no variable: a punctuation mark after a digit ("d1!"), a digit in
 * place of a letter ("w0rd"), or three digits after "pass".
 */
const NO_VARIABLE = /\d[!@#$%^&*?+~]|[a-z][013-9][a-z]|^[Pp]ass[a-z]*\d{3}/;

function isVariable(secret: string): boolean {
  return VARIABLE.test(secret) && !NO_VARIABLE.test(secret);
}

/** Says whether a value is a variable in code or a member of an object. */
function isCodeName(secret: string): boolean {
  return MEMBER_ACCESS.test(secret) || isVariable(secret);
}

/** Matches a template with a place to fill, or code. */
const IN_TEMPLATE = /\$\{|\{\{|<%|=>|<\//;
/** Matches a numbered name, as variables in code have: `field1`. */
const COUNTED_NAME = /^[a-z_]+\d{1,2}$/i;
const MEMBER_ACCESS = /^[A-Za-z_$][\w$]{0,40}(?:[?!]?\.|\?\.?\[)[A-Za-z_$]/;

function named(
  source: string,
  rule: Pick<SecretRule, 'pattern' | 'rest' | 'accepts' | 'quotedRest'>,
): SecretRule {
  return { kind: 'secret', keywords: [], source, ...rule };
}

interface Edges {
  /** Fewest characters of a value. */
  readonly charsMin?: number;
  /** One more character that the first `charsMin` characters of a value do not have. */
  readonly except?: string;
}

/** Matches an unquoted value after `context`. A blank, quotation mark, backslash, bracket or one of ,;&| ends it. */
function bare(context: string, { charsMin = 6, except = '' }: Edges = {}) {
  return { pattern: after(context, `"'\`(),;&|${except}`, charsMin), rest: BARE_REST };
}

/** Matches a value after `context`. A quotation mark, a blank, a backslash or a bracket that is not round ends it. */
function quoted(context: string, { charsMin = 6, except = '' }: Edges = {}) {
  return { pattern: after(context, `"'\`${except}`, charsMin), rest: QUOTED_REST };
}

/** Returns a pattern for `context` and a value's beginning, without brackets of masks, tags and templates. */
function after(context: string, excluded: string, charsMin: number): RegExp {
  return new RegExp(`(?<keep>${context})[^\\s\\\\<>\\[\\]{}${excluded}]{${charsMin}}`, 'iy');
}

function isQuoted({ context }: Candidate): boolean {
  return /["'`]$/.test(context);
}

/** Says whether the value is a whole line of a literal that begins on the previous line. */
function isQuotedLine({ context, secret, next }: Candidate): boolean {
  const isLine = /["']\r?\n[ \t]*$/.test(context) && /^[\r\n"']$/.test(next);
  return isLine && isLiteralSecret({ context, secret, next: '' });
}

function isChosenIn(candidate: Candidate): boolean {
  const { secret, next } = candidate;
  return isQuoted(candidate) ? /^["'`]$/.test(next) && isChosen(secret) : isBareChosen(secret);
}

function isQuotedPassword({ secret, next }: Candidate): boolean {
  return /^["'`]$/.test(next) && (isChosen(secret) || isSimplePassword(secret));
}

/** Matches a noun that follows "password" and is no value: "with password authentication". */
const NOUN_OF_PASSWORDS =
  /(?:ion|ment|ing|ity|ence|ance|ies|ure|s|policy|field|check|login|access|rules?)[.,;!"']*$/;
/** Matches words between the name and its sign: "here is the token: …", "API key for the weather service = …". */
const IN_SENTENCE = / [\w ]{0,40}:|：| (?:for|of|on|at|für|pour|para) [^=]{1,32}=/;
/** Matches "The password for prod is: …", to which the rules for a sentence apply in spite of the colon. */
const VERB_BEFORE_COLON = new RegExp(`(?:${PASSWORDS})${OF_PLACE}${IS}${QUOTE_MARKS}$`, 'iu');

/** Says whether the value of a flag such as `--password` can be a secret: it is no variable and no other flag. */
function isFlagValue({ context, secret }: Candidate): boolean {
  if (isDescription(context) || isPlaceholder(secret) || /^[-$%/~.]/.test(secret)) return false;
  if (looksRandom(secret) || (hasMixedCharacters(secret) && !isTechnical(secret))) return true;
  return looksMade(secret) || (BARE_FLAG.test(context) && isBareChosen(secret));
}

/** Matches a password's flag with one blank or `=` behind it. In a list of flags, blanks and a description follow. */
const BARE_FLAG = /^(?:pass(?:word|phrase|wd)|(?:(?<=-)|^)secret)[ \t=]["']?$/i;

const IS_PASSWORD = new RegExp(`^(?:${PASSWORDS}|pass|secret|credential|creds)`, 'i');

function isLiteralSecret({ context, secret, next }: Candidate): boolean {
  // If another character than a closing quote follows, the value is part of a sentence or of a template.
  if (!/^["'`\\]?$/.test(next) || isDescription(context) || isPlaceholder(secret)) return false;
  if (isPublicExample(secret)) return false;
  if (isNumber(context, secret)) return true;
  if (/^auth/i.test(context)) return looksRandom(secret) || isEncodedLogin(secret);
  if (isBase32Seed(secret)) return true;
  if (VALIDATION.test(secret)) return false;
  if (!isSimplePassword(secret)) {
    if (looksMade(secret) && !IN_LIST.test(context)) return true;
    return HOLDS_CHOSEN.test(context) && isPlainOrPassword(context) && isChosen(secret);
  }
  if (WEAK_NAME.test(context)) return looksMade(secret);
  return IS_PASSWORD.test(context) || !isIdentifier(secret);
}

/** Matches a password's name and what gives it a value, except in a list of arguments. */
const HOLDS_CHOSEN = new RegExp(
  `^(?:${CHOSEN}|pass)[\\w.-]{0,24}(?:["'\`]?[\\])]{0,2}(?:[^\\n,]*[:=]|\\()|${NAMED_VALUE}|${DEFAULT_VALUE})`,
  'i',
);
/** Matches the comma between a name and a value that are both literals in a list. */
const IN_LIST = /["'`][ \t]*,[ \t]*["'`]$/;
/**
 * Says whether a name is plain (see isPlainName) or begins with another word than "secret": a longer name that begins
 * with "secret" often means something else.
 */
function isPlainOrPassword(context: string): boolean {
  return isPlainName(context) || !/^secret/i.test(context);
}
/** Says whether a value is an identifier: words and a number, as in `sm_pat_x1` and `ns2:TypeName`. */
function isIdentifier(secret: string): boolean {
  if (/^\d+:/.test(secret)) return !BOT_TOKEN.test(secret);
  if (TYPE_NAME.test(secret)) return true;
  return !looksRandom(secret) && /^[a-z]+\d*(?:[_-][a-z0-9]+|:[A-Za-z]+)+$/i.test(secret);
}

const TYPE_NAME = /^[a-z]{1,12}\d{0,8}:(?:[A-Z][a-z]{1,20}){1,8}$/;
/** Matches Telegram's tokens: a number and a value in a fixed form. */
const BOT_TOKEN = /^\d{5,16}:[\w-]{30,40}$/;

function isBareSecret({ context, secret, next }: Candidate): boolean {
  // A call, an index, a template or a path is code that names a secret, and no secret.
  if (/^[([{]$/.test(next) || MEMBER_ACCESS.test(secret) || /^[/~.]\w{0,20}\//.test(secret))
    return false;
  if (/^.{0,5}[(),;&|]/.test(secret) || isDescription(context)) return false;
  if (isNumber(context, secret)) return true;
  if (isPlaceholder(secret) || isTechnical(secret) || isPublicExample(secret)) return false;
  if (/^auth/i.test(context) && isEncodedLogin(secret)) return true;
  if (context.endsWith('=') && isBase32Seed(secret)) return true;
  // Only directly behind `=` do a chosen value and the value of a weak name count: elsewhere code may have a variable.
  if (WEAK_NAME.test(context)) return looksMade(secret) && context.endsWith('=');
  return looksMade(secret) || (context.endsWith('=') && hasMixedCharacters(secret));
}

/** Fewest digits of a token that is a number, as some vendors issue. A time in milliseconds has fewer digits. */
const NUMBER_DIGITS_MIN = 15;

function isNumber(context: string, secret: string): boolean {
  return (
    /token(?:["'`\]) \t\n:=>|?,]|string){1,24}$/i.test(context) &&
    /^\d+$/.test(secret) &&
    secret.length >= NUMBER_DIGITS_MIN &&
    !isMadeUp(secret)
  );
}

function isVendorValue({ context, secret, next }: Candidate): boolean {
  if (isDescription(context) || isPlaceholder(secret) || isTechnical(secret)) return false;
  if (/^[([{]$/.test(next) || /[/@]/.test(secret) || MEMBER_ACCESS.test(secret)) return false;
  // Commits and digests are public, and also appear beside such names.
  return (
    looksRandom(secret) && !isIdentifier(secret) && !/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(secret)
  );
}
