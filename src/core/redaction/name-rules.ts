/**
 * Values that only their name gives away: `password = …`, `"api_key": "…"`, `--token …`. The text is
 * searched once for such names, and these rules are tried at each of them, from top to bottom.
 */

import {
  hasMixedCharacters,
  isBase32Seed,
  isEncodedLogin,
  isMadeUp,
  isPlaceholder,
  isPublicExample,
  isSimplePassword,
  isTechnical,
  isBareWordedPassword,
  isWordedPassword,
  looksRandom,
} from './secret-likeness.ts';
import { BARE_REST, type Candidate, QUOTED_REST, type SecretRule } from './secret-rule.ts';

const PASSWORDS =
  'pass(?:wor[dt]|wd|phrase|code)|passw|kennwort|contrase[ñn]a|senha|pwd|(?<=[a-z0-9][_-])pass(?![a-z])|(?<=["\'])pass(?=["\'])|\\bpw|\\bpsk';
/** Names of settings that hold a secret, with `_`, `-`, `.` or nothing between the words. */
const NAMES =
  `${PASSWORDS}|secret|token|credentials?|\\bcreds|(?<![a-z])auth(?![a-z])|client[_-]key[_-]data|unseal[_ -]?key(?: \\d{1,2})?|` +
  '(?:api|access|account|auth|private|secret|encryption|signing|master|shared|service|session|' +
  'consumer|client|license|subscription|deploy|webhook|jwt|app|pre-?shared|integration)[_.-]?key|api key|' +
  'connection[_-]?string|(?<=[a-z0-9])_(?:key|pat|dsn)(?![a-z])';
/** Such a name promises less: only a random value is a secret. */
const WEAK_NAME = /^_/;

/** Vendors whose keys have no form of their own: a random value that is assigned to their name. */
const VENDORS =
  '(?<![a-z])(?:adafruit|airtable|algolia|alibaba|asana|atlassian|beamer|bitbucket|bittrex|cloudflare|codecov|cohere|' +
  'coinbase|confluence|confluent|contentful|datadog|droneci|dropbox|etsy|fastly|finicity|finnhub|flickr|' +
  'freshbooks|gitter|heroku|hubspot|intercom|jfrog|artifactory|jira|kraken|kucoin|launchdarkly|linkedin|' +
  'mailchimp|mailgun|mattermost|meraki|message[_-]?bird|netlify|new[_-]?relic|nytimes|okta|plaid|privateai|' +
  'rapidapi|sendbird|snyk|squarespace|sumologic|telegram|travis|trello|twitch|twitter|zendesk)|contribsys__com';

/** A part of every name, looked for first: the names themselves take ten times as long. */
const NAME_PART = new RegExp(
  `pass|kennwort|contrase|senha|pwd|pw|psk|secret|token|cred|auth|key|connection|_pat|_dsn|${VENDORS}`,
  'gi',
);
const SECRET_NAME = new RegExp(`${NAMES}|${VENDORS}`, 'gi');
/** From the start of the longest name to the part of it, and a character for looking back. */
const BEFORE_PART_CHARS = 16;
const AFTER_PART_CHARS = 24;

/** A name that is said to be public, or to be of use for one request only, holds no secret. */
const PUBLIC_BEFORE =
  /(?:public|csrf|xsrf|authenticity|pagination|next|page|continuation|sync)[_.-]?$/i;
const PUBLIC_CHARS = 16;

/** The next name from `from` on that may have a secret; -1 when there is none. */
export function findName(text: string, from: number): number {
  NAME_PART.lastIndex = from;
  for (let part = NAME_PART.exec(text); part !== null; part = NAME_PART.exec(text)) {
    const name = nameAround(text, part.index, from);
    if (name !== undefined && !PUBLIC_BEFORE.test(before(text, name))) return name;
  }
  return -1;
}

/** Where the name begins that has its part at `partAt`. */
function nameAround(text: string, partAt: number, from: number): number | undefined {
  const windowStart = Math.max(0, partAt - BEFORE_PART_CHARS);
  const window = text.slice(windowStart, partAt + AFTER_PART_CHARS);
  SECRET_NAME.lastIndex = Math.max(from - windowStart, windowStart === 0 ? 0 : 1);
  const name = SECRET_NAME.exec(window);
  return name === null || windowStart + name.index > partAt ? undefined : windowStart + name.index;
}

function before(text: string, at: number): string {
  return text.slice(Math.max(0, at - PUBLIC_CHARS), at);
}

/** The suffixes that a name may have: `_access_key`, `ForStaging`, `_123`. */
const SUFFIX = '[\\w.-]{0,24}';
/** Such a name says what a secret is like, or where it is, and not the secret. */
const DESCRIPTION =
  /^(?:ids?|ur[il]s?|names?|paths?|files?|types?|sizes?|lengths?|count(?:er|s)?|hash(?:es)?|digests?|sha\d{0,3}|endpoints?|fields?|labels?|refs?|versions?|prefix|suffix|limits?|max|min|usage|used|expir(?:es|y|ation)\w{0,4}|ttl|at|audience|issuer|scopes?|status|policy|budgets?|arn|vault|fingerprint|checksum|formats?|regex|patterns?|placeholder|title|class|selectors?|params?|index|stores?|ring|hint|help|text|size|bytes|chars|tokens|per\w{0,12}|in|out|total\w{0,6})$/i;

const ASSIGN =
  '(?:["\'`]\\]?\\)?)?(?:[ \\t]{0,8}:[ \\t]{0,4}string|[ \\t]{1,4}string)?[ \\t]{0,8}' +
  '(?:[?:.+|]{0,3}=>?|:)(?!=)[ \\t]{0,8}(?:[|>][+-]?[ \\t]{0,4}\\n[ \\t]{1,24})?';
/** `setProperty("API_TOKEN", "…")`. */
const ARGUMENT = '["\'`][ \\t]{0,4},[ \\t]{0,4}(?=["\'`])';
/** `- name: DB_PASSWORD`, and on the next line `value: …`; the same as an attribute, and in JSON. */
const NAMED_VALUE =
  '(?:["\'`],?\\s{0,40}|,?\\s{1,40})["\'`]?value["\'`]?[ \\t]{0,4}[:=][ \\t]{0,4}';
/** `"password": { "value": "…" }`, as in the state of Terraform. */
const NESTED_VALUE =
  '["\'`][ \\t]{0,4}:[ \\t]{0,4}\\{\\s{0,40}["\'`]value["\'`][ \\t]{0,4}:[ \\t]{0,4}';
/** `setApiKey("…")`. */
const SETTER = '(?<=(?:set|with)_?(?:\\w{0,16}_)?[\\w]{0,40})\\([ \\t]{0,4}(?=["\'`])';
const GIVEN = `(?:${ASSIGN}|${ARGUMENT}|${NAMED_VALUE}|${NESTED_VALUE}|${SETTER})`;

export const NAME_RULES: readonly SecretRule[] = [
  named('A flag on a command line: --password VALUE', {
    pattern: after(
      `(?<=(?<![\\w-])--?(?:\\w[\\w-]{0,24})?)(?:${NAMES})${SUFFIX}(?:[ \\t]{1,4}|=)["']?`,
      '"\'`',
      4,
    ),
    rest: QUOTED_REST,
    accepts: isFlagValue,
  }),
  named('Code, JSON, environment files, YAML, query and connection strings', {
    pattern: after(`(?:${NAMES})${SUFFIX}${GIVEN}(?:[bru@$]?["'\`]{1,3})?`, '"\'`', 6),
    rest: BARE_REST,
    quotedRest: QUOTED_REST,
    accepts: (candidate) =>
      isQuoted(candidate) ? isLiteralSecret(candidate) : isBareSecret(candidate),
  }),
  named('A password in quotes, with any characters but square brackets', {
    pattern: new RegExp(
      `(?<keep>(?:${PASSWORDS}|secret)${SUFFIX}${GIVEN}[bru@$]?["'\`])[^\\s"'\`[\\]]{6}`,
      'iy',
    ),
    rest: /[^\s"'`[\]]*/y,
    accepts: ({ context, secret, next }) =>
      !IN_TEMPLATE.test(secret) &&
      /^["'`[\]]?$/.test(next) &&
      isLiteralSecret({ context, secret, next: '' }),
  }),
  named('A password in the environment, of letters alone', {
    pattern: /(?<keep>(?:PASS(?:WORD|WD)?|PWD|SECRET(?:_KEY)?)=["']?)\p{L}[\p{L}!@#%^*+~?._-]{5}/uy,
    rest: BARE_REST,
    accepts: ({ secret, next }) => /^[\s"';]?$/.test(next) && isWordedPassword(secret),
  }),
  named('A password of letters alone in a query or a connection string', {
    pattern: after(
      `(?<=[?&;] ?|\\b(?:host|user|username|uid|dbname|port|server)=\\S{1,64} )(?:${PASSWORDS})=`,
      '"\'`(),;&|',
      6,
    ),
    rest: BARE_REST,
    accepts: ({ secret, next }) => /^[\s"'`;&]?$/.test(next) && isWordedPassword(secret),
  }),
  named('A password of letters alone in a setting on a line of its own', {
    pattern: after(
      `(?<=(?:^|\\n|(?:^|[ \\t])--?[\\w-]{1,24}=)[ \\t]{0,40}(?:- )?(?:export |name: ?)?["']?[\\w.-]{0,40})(?:${PASSWORDS})` +
        `(?:["']?: {1,4}|=|${SUFFIX}${NAMED_VALUE})(?=\\S{6,80}[ \\t]{0,4}(?:#|\\r?\\n|$))`,
      '"\'`(),;&|',
      6,
    ),
    rest: BARE_REST,
    accepts: ({ secret, next }) => /^\s?$/.test(next) && isBareWordedPassword(secret),
  }),
  named('The same with blanks around the sign, where code would have a variable', {
    pattern: after(
      `(?<=(?:^|\\n)[ \\t]{0,8}[\\w.-]{0,40})(?:${PASSWORDS}) = (?=\\S{6,80}[ \\t]{0,4}(?:\\r?\\n|$))`,
      '"\'`(),;&|',
      6,
    ),
    rest: BARE_REST,
    accepts: ({ secret, next }) =>
      /^\s?$/.test(next) && !/^[a-z_]+$/.test(secret) && isBareWordedPassword(secret),
  }),
  named('A password of letters alone in a note: "password for prod: …"', {
    pattern: after(
      `(?:${PASSWORDS}) (?:for|of|on|at|für) [\\w -]{1,24}: {1,2}["'\`]?`,
      '"\'`(),;&|',
      6,
    ),
    rest: BARE_REST,
    accepts: (candidate) => /^[\r\n"'`,;]?$/.test(candidate.next) && isWordedIn(candidate),
  }),
  named('A password of letters alone in quotes: define("DB_PASSWORD", "…"), use the password "…"', {
    pattern: after(
      `(?:(?<=\\bdefine\\([ \\t]?["'][A-Z_]{0,40})(?:${PASSWORDS})["'][ \\t]{0,2},[ \\t]{0,4}|` +
        `(?<=\\b(?:use|using|with|try) (?:the |an? )?(?:\\w{1,16} )?)(?:${PASSWORDS}) )["'\`]`,
      '"\'`',
      6,
    ),
    rest: QUOTED_REST,
    accepts: isWordedIn,
  }),
  named('A password of letters alone in a sentence: "the password for prod is …"', {
    pattern: after(
      `(?:${PASSWORDS})(?: (?:for|of|on|at|für) [\\w -]{1,24})? (?:is|was|ist)(?: now)?:?[ ]{1,2}["'\`*]{0,3}` +
        '(?=\\S{6,80}(?:(?<=["\'`.,;!)])|\\s{0,2}$|[ \\t]{0,2}\\r?\\n| (?:and|for|on|please|und)\\b))',
      '"\'`*',
      6,
    ),
    rest: QUOTED_REST,
    accepts: isWordedIn,
  }),
  named('Settings of a program, one on a line: password = …, and value: … below its name', {
    pattern: after(`(?:${PASSWORDS})${SUFFIX}${GIVEN}`, '"\'`(),;&|', 6),
    rest: BARE_REST,
    accepts: ({ context, secret, next }) =>
      /^\s?$/.test(next) &&
      !isDescription(context) &&
      isSimplePassword(secret) &&
      !COUNTED_NAME.test(secret) &&
      !MEMBER_ACCESS.test(secret) &&
      !VARIABLE.test(secret) &&
      !/^[/~.]/.test(secret),
  }),
  named('XML: an element, on one line or on three', {
    pattern: after(`(?:${NAMES}|${VENDORS})${SUFFIX}>\\s{0,60}`, '"\'`', 6),
    rest: QUOTED_REST,
    accepts: ({ context, secret, next }) =>
      /^[\s<]?$/.test(next) &&
      !isDescription(context) &&
      (isSimplePassword(secret) ||
        isNumber(context, secret) ||
        (IS_PASSWORD.test(context) && isBareWordedPassword(secret))),
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
    pattern: after(`(?:${NAMES})[ ]["'\`]?`, '"\'`(),;&|', 12),
    rest: BARE_REST,
    accepts: ({ secret, next }) =>
      looksRandom(secret) && !isPlaceholder(secret) && !/^[([{]$/.test(next),
  }),
  named('Plain language: "the password for staging is …"', {
    pattern: after(
      `(?:${NAMES})s?[ \\w-]{0,32}?[ ](?:is|was|to|ist|es|est)(?: now)?:?[ ]{1,2}["'\`*]{0,3}`,
      '"\'`*',
      6,
    ),
    rest: QUOTED_REST,
    accepts: ({ context, secret, next }) =>
      isSimplePassword(secret) ||
      (isQuoted({ context, secret, next }) && /^["'`]$/.test(next) && isLongWord(secret)),
  }),
  named('Notes and YAML: "password for the database: …". In code a variable may stand there', {
    pattern: after(`(?:${PASSWORDS})[ \\w-]{0,32}: `, '"\'`(),;&|', 6),
    rest: BARE_REST,
    accepts: ({ secret, next }) =>
      isSimplePassword(secret) &&
      !/^[([{]$/.test(next) &&
      !MEMBER_ACCESS.test(secret) &&
      !VARIABLE.test(secret),
  }),
];

/** How code calls what it gives to a member `password`. */
const VARIABLE =
  /^(?:pass|pwd|pw\d|p\d|secret|token|hash|user|new|old|current|input|form|req|args?|db|opts?)/i;

/** A template with a place to fill, or code. */
const IN_TEMPLATE = /\$\{|\{\{|<%|=>|<\//;
/** A name with a number, as code has it. */
const COUNTED_NAME = /^[a-z_]+\d{1,2}$/i;
const MEMBER_ACCESS = /^[A-Za-z_$][\w$]{0,40}[.?!]{1,2}[A-Za-z_$]/;

function named(
  source: string,
  rule: Pick<SecretRule, 'pattern' | 'rest' | 'accepts' | 'quotedRest'>,
): SecretRule {
  return { kind: 'secret', keywords: [], source, ...rule };
}

/**
 * `context`, and a value's first characters. The brackets of a mask, of a tag and of a template are
 * never in it.
 */
function after(context: string, excluded: string, charsMin: number): RegExp {
  return new RegExp(`(?<keep>${context})[^\\s\\\\<>\\[\\]{}${excluded}]{${charsMin}}`, 'iy');
}

function isQuoted({ context }: Candidate): boolean {
  return /["'`]$/.test(context);
}

function isWordedIn(candidate: Candidate): boolean {
  const { secret, next } = candidate;
  return isQuoted(candidate)
    ? /^["'`]$/.test(next) && isWordedPassword(secret)
    : isBareWordedPassword(secret);
}

/** As long as two words: no adjective that says what is wrong with a password. */
function isLongWord(secret: string): boolean {
  return /^[a-z]{14,}$/.test(secret) && isBareWordedPassword(secret);
}

/** As the form of a login's flag: anything that is no variable and no next flag. */
function isFlagValue({ context, secret }: Candidate): boolean {
  if (isDescription(context) || isPlaceholder(secret) || /^[-$%/~.]/.test(secret)) return false;
  if (looksRandom(secret) || (hasMixedCharacters(secret) && !isTechnical(secret))) return true;
  return BARE_FLAG.test(context) && isBareWordedPassword(secret);
}

/** In a table of flags more blanks follow, and a description. */
const BARE_FLAG = /^pass(?:word|phrase|wd)[ \t=]["']?$/i;

/** `tokenId: …` and `secretName: …` name something that is no secret. */
function isDescription(context: string): boolean {
  const name = /^[\w.-]{1,80}/.exec(context)?.[0] ?? '';
  const suffix = name.replace(OF_NAMES, '');
  const lastWord = /(?:[A-Z]?[a-z\d]{1,24}|[A-Z\d]{1,24})[_.-]?$/.exec(suffix)?.[0] ?? '';
  return lastWord !== '' && DESCRIPTION.test(lastWord.replace(/[_.-]$/, ''));
}

const OF_NAMES = new RegExp(`^(?:${NAMES})`, 'i');
const IS_PASSWORD = new RegExp(`^(?:${PASSWORDS}|secret|credential|creds)`, 'i');

function isLiteralSecret({ context, secret, next }: Candidate): boolean {
  // Anything but a closing quote after it: a sentence or a template, not a literal.
  if (!/^["'`\\]?$/.test(next) || isDescription(context) || isPlaceholder(secret)) return false;
  if (isPublicExample(secret)) return false;
  if (isNumber(context, secret)) return true;
  if (/^auth/i.test(context)) return looksRandom(secret) || isEncodedLogin(secret);
  if (isBase32Seed(secret)) return true;
  if (VALIDATION.test(secret)) return false;
  if (!isSimplePassword(secret)) {
    return HOLDS_PASSWORD.test(context) && isWordedPassword(secret);
  }
  if (WEAK_NAME.test(context)) return looksRandom(secret);
  return IS_PASSWORD.test(context) || !isIdentifier(secret);
}

/** A name of a password, and what gives it its value: no list of arguments. */
const HOLDS_PASSWORD = new RegExp(
  `^(?:${PASSWORDS}|pass)[\\w.-]{0,24}["'\`]?[\\])]{0,2}(?:[^\\n,]*[:=]|\\()`,
  'i',
);
/** Rules of a form for its field: "required|min:8". */
const VALIDATION = /^[a-z_]+(?::[\w,]+)?(?:\|[a-z_]+(?::[\w,]+)?)+$/;

/** `sm_pat_x1` and `ns2:TypeName`: words and a number, as variables, fields and types are called. */
function isIdentifier(secret: string): boolean {
  if (/^\d+:/.test(secret)) return !BOT_TOKEN.test(secret);
  if (TYPE_NAME.test(secret)) return true;
  return !looksRandom(secret) && /^[a-z]+\d*(?:[_-][a-z0-9]+|:[A-Za-z]+)+$/i.test(secret);
}

const TYPE_NAME = /^[a-z]{1,12}\d{0,8}:(?:[A-Z][a-z]{1,20}){1,8}$/;
/** A number and a value are what Telegram calls a token, and it has one form. */
const BOT_TOKEN = /^\d{5,16}:[\w-]{30,40}$/;

function isBareSecret({ context, secret, next }: Candidate): boolean {
  // A call, an index, a template or a path: code that names a secret is not one.
  if (/^[([{]$/.test(next) || MEMBER_ACCESS.test(secret) || /^[/~.]\w{0,20}\//.test(secret))
    return false;
  if (/^.{0,5}[(),;&|]/.test(secret) || isDescription(context)) return false;
  if (isNumber(context, secret)) return true;
  if (isPlaceholder(secret) || isTechnical(secret) || isPublicExample(secret)) return false;
  if (/^auth/i.test(context) && isEncodedLogin(secret)) return true;
  if (context.endsWith('=') && isBase32Seed(secret)) return true;
  // With blanks around it, it may be a name in code: only what no person would type as a name counts.
  if (WEAK_NAME.test(context)) return looksRandom(secret) && context.endsWith('=');
  return looksRandom(secret) || (context.endsWith('=') && hasMixedCharacters(secret));
}

/** Some vendors' tokens are numbers; no date in milliseconds has so many digits. */
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
  // A commit and a digest are public, and appear beside names as well.
  return (
    looksRandom(secret) && !isIdentifier(secret) && !/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(secret)
  );
}
