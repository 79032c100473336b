/**
 * The names of settings, fields and things that hold a secret. The text is searched once for these names, and the rules
 * examine the text around each of them.
 */

/** Words for a password in other languages, which people use in notes and not in code. */
export const FOREIGN_NAMES =
  'passwort|passord|kennwort|mot[ _-]?de[ _-]?passe|contrase[ñn]a|clave(?=:| =| es | (?:de(?:l| la)? )?(?:acceso|wi-?fi|root|admin|servidor|usuario|correo|router|red)(?![\\w-]))|senha|palavra-passe|wachtwoord|has[łl]o(?![a-z])|' +
  'heslo|l[öo]senord|adgangskode|salasana|parola|[şs]ifre(?![a-z])|jelsz[óo]|lozinka|κωδικός|пароль|密[码碼]|口令|' +
  'パスワード|暗証番号|비밀번호|비번|암호|패스워드';
export const SPOKEN_NAMES = `pass(?:wor[dt]|wd|[ -]?phrase|code)|(?:unlock|key)[ -]phrase|passw|${FOREIGN_NAMES}`;
/** The letters of the languages of `SPOKEN_NAMES`, as part of a character class. */
const LETTERS = '\\w\\u00c0-\\u024f\\u0400-\\u04ff';
/** Prepositions, some joined with an article, between a secret's name and what the secret is for. */
const FOR =
  '(?:for|of|on|at|in|für|von|vom|zum|zur|der|des|auf|im|am|beim|pour|du|des|del?|au|aux|sur|para|en|di|d[aeo]l(?:l[aeo])?|per|sul|d[aeo]|no|na|em|voor|van|till?|от|для|к)';
/**
 * Matches what a secret is for: "for the staging database (read only)". In Romance languages the preposition may be
 * missing: "mot de passe root".
 */
export const OF_PLACE = `(?: (?:${FOR} |d(?:ell)?['’])[${LETTERS}. @/'’-]{1,40}?(?: \\([^()\\n]{1,30}\\))?|(?<=passe|mdp|contrase[ñn]a|clave|senha)(?: [${LETTERS}-]{2,16}){1,2}?)?`;
/** The verb between a name and its value in a sentence, in the languages of `SPOKEN_NAMES`. */
export const VERB_IS =
  "(?:is|was|ist|war|lautet|heißt|heisst|est|sera|c['’]est|es|era|será|è|sarà|é|jest|är|er|este|(?<=has[łl]o )to|(?<=salasana )on|(?<=heslo )je)";
/** Adverbs that may precede the value, after the verb or directly after the name. */
export const ADVERBS =
  '(?: (?:now|still|currently|previously|simply|just|again|only|jetzt|nun|noch|früher|bisher|immer|weiterhin|einfach|maintenant|toujours|encore|désormais|simplement|ahora|todavía|aún|simplemente|ora|adesso|ancora|semplicemente|agora|ainda|simplesmente)){0,2}';
/** Names of passwords. `pass` is also a verb, so it counts only beside a sign or a word of a setting (`db_pass`). */
export const PASSWORDS =
  `${SPOKEN_NAMES}|pwd|(?<=[a-z0-9][_-])pass(?![a-z])|(?<![\\w-])pass(?=["'>]|(?<=[\\s({]:pass) ["']|</key>|[ ]{0,4}:?=|: |:(?=[^\\s:/"'\`]{5})| (?:<-|->|→) |\\s{1,40}value:)|` +
  '(?<=(?:db|database|sql|pg|mysql|redis|mongo|smtp|imap|mail|ftp|ssh|ldap|bind|proxy|http|user|admin|root|sudo|become|auth|login|key|store|wifi|remote|local|my))' +
  'pass(?![a-z])|(?<=[a-z\\d]_|root|bind|admin|user|db|auth|sudo|wifi|mail|smtp|ldap|key|zip|master|proxy|my)pw(?![a-z])|\\bpw|' +
  '(?<![a-z])(?:mdp|p/w|psk|pswd|authtok)(?![a-z])|(?<=\\b(?:my|our|your|db|database|root|admin|sudo|ssh|ftp|smtp|wi-?fi|vpn|router) )pass(?= (?:is|to) )';
/** Names of settings that hold a secret; `_`, `-`, `.` or nothing may join the words. */
export const NAMES =
  `${PASSWORDS}|secret|token|credentials?|\\bcreds|(?<![a-z])auth(?![a-z])|client[_-]key[_-]data|unseal[_ -]?key(?: \\d{1,2})?|` +
  '(?:api|access|account|auth|private|secret|encryption|signing|master|shared|service|session|' +
  'consumer|client|license|subscription|deploy|webhook|jwt|app|pre-?shared|integration)[_.-]?key|api key|' +
  "api[ -]?schl(?:ü|ue)ssel|clé (?:d['’])?api|clave (?:de )?api|chiave api|jeton|" +
  'connection[_-]?string|erlang[_-]?cookie|(?<=[a-z0-9]_)hmac(?![a-z])|(?<=[a-z0-9])_(?:key|pat|dsn)(?![a-z])';
/** Matches a name that is only an ending, such as `_key`. The value of such a name is a secret only if it is random. */
export const WEAK_NAME = /^_/;

/**
 * Names of vendors of which some keys have no recognisable form. A random value that is assigned to such a name counts
 * as a secret; see isVendorValue().
 */
export const VENDORS =
  '(?<![a-z])(?:adafruit|agora|airtable|algolia|alibaba|asana|atlassian|beamer|bitbucket|bittrex|cloudflare|codecov|cohere|' +
  'coinbase|confluence|confluent|contentful|datadog|droneci|dropbox|etsy|fastly|finicity|finnhub|flickr|' +
  'freshbooks|gitter|heroku|hubspot|intercom|jfrog|artifactory|jira|kraken|kucoin|launchdarkly|linkedin|' +
  'mailchimp|mailgun|mattermost|meraki|message[_-]?bird|netlify|new[_-]?relic|nytimes|okta|plaid|privateai|' +
  'rapidapi|sendbird|snyk|squarespace|sumologic|telegram|travis|trello|twitch|twitter|zendesk)|contribsys__com';

/** Names of secrets that people choose, so that the value may be a word. */
export const CHOSEN = `(?:${PASSWORDS}|secret)`;

/**
 * Matches one of these parts; every name contains at least one. Parts are searched for first, because a search for
 * whole names takes ten times as long.
 */
const NAME_PART = new RegExp(
  `pass|kennwort|mdp|p/w|pswd|contrase|clave|senha|phrase|wachtwoord|has[łl]o|heslo|senord|adgangskode|salasana|parola|ifre|jelsz|lozinka|κωδικός|пароль|密[码碼]|口令|パスワード|暗証|비밀|비번|암호|패스|pwd|pw|psk|secret|token|cred|auth|key|schl(?:ü|ue)ssel|clé|chiave|jeton|connection|cookie|hmac|_pat|_dsn|${VENDORS}`,
  'gi',
);
/** Matches `pass` in "user anna and pass …". Only one of NAME_RULES reads it, because there it is mostly a verb. */
export const PASS_OF_LOGIN = '(?<=\\b(?:and|with) |, )pass(?= )';
const SECRET_NAME = new RegExp(`${NAMES}|${VENDORS}|${PASS_OF_LOGIN}`, 'gi');
/** Most characters of a name before the part that NAME_PART matches, and one more for lookbehinds. */
const BEFORE_PART_CHARS = 16;
const AFTER_PART_CHARS = 24;

/** Matches a word before a name that says that the value is public or valid for one request only. */
const PUBLIC_BEFORE =
  /(?:public|csrf|xsrf|authenticity|pagination|next|page|continuation|(?<!r)sync)[_.-]?$/i;
/** Characters before a name in which PUBLIC_BEFORE is searched for. */
const PUBLIC_CHARS = 16;

/** Returns the index of the next name at or after `from` that may have a secret value; -1 if there is none. */
export function findName(text: string, from: number): number {
  NAME_PART.lastIndex = from;
  for (let part = NAME_PART.exec(text); part !== null; part = NAME_PART.exec(text)) {
    const name = nameAround(text, part.index, from);
    if (name === undefined) continue;
    if (!PUBLIC_BEFORE.test(text.slice(Math.max(0, name - PUBLIC_CHARS), name))) return name;
  }
  return -1;
}

/** Returns the index at which the name around a part begins, undefined if it is no name. `partAt`: the part's index. */
function nameAround(text: string, partAt: number, from: number): number | undefined {
  const windowStart = Math.max(0, partAt - BEFORE_PART_CHARS);
  const window = text.slice(windowStart, partAt + AFTER_PART_CHARS);
  SECRET_NAME.lastIndex = Math.max(from - windowStart, windowStart === 0 ? 0 : 1);
  const name = SECRET_NAME.exec(window);
  return name === null || windowStart + name.index > partAt ? undefined : windowStart + name.index;
}

/** Matches a name's suffix: `_access_key`, `ForStaging`, `_123`, `[0]`. */
export const SUFFIX = '[\\w.-]{0,24}(?:\\[\\d{0,4}\\])?';
/** Matches the last word of a name whose value is not the secret: `…_id`, `…_path`, `…_hash`. */
const DESCRIPTION =
  /^(?:ids?|ur[il]s?|names?|paths?|files?|types?|sizes?|lengths?|count(?:er|s)?|hash(?:es)?|digests?|sha\d{0,3}|endpoints?|fields?|labels?|refs?|versions?|prefix|suffix|limits?|max|min|usage|used|expir(?:es|y|ation)\w{0,4}|ttl|at|audience|issuer|scopes?|status|policy|budgets?|arn|vault|fingerprint|checksum|formats?|regex|patterns?|placeholder|title|class|selectors?|params?|index|stores?|ring|hint|help|text|size|bytes|chars|tokens|per\w{0,12}|in|out|total\w{0,6})$/i;

/** Says whether a name has no suffix, or one that only says which secret it is: `_prod`, `_old`, `_2`. */
export function isPlainName(context: string): boolean {
  return PLAIN_SUFFIX.test(suffixOf(context));
}

const PLAIN_SUFFIX =
  /^(?:[_.-]?(?:key|base|value|prod(?:uction)?|stag(?:e|ing)|dev(?:elopment)?|test|live|main|old|new|current|default|confirm(?:ation)?|again|db|et|en|\d{1,3}))*$/i;

/** Says whether the value of a name only describes a secret: `tokenId: …`, `secretName: …`. */
export function isDescription(context: string): boolean {
  const suffix = suffixOf(context);
  const lastWord = /(?:[A-Z]?[a-z\d]{1,24}|[A-Z\d]{1,24})[_.-]?$/.exec(suffix)?.[0] ?? '';
  return lastWord !== '' && DESCRIPTION.test(lastWord.replace(/[_.-]$/, ''));
}

/** Returns what follows the word for a secret in a name: `_hash` of `password_hash`. */
function suffixOf(context: string): string {
  return /^[\p{L}\w.-]{0,80}/u.exec(context.replace(OF_NAMES, ''))?.[0] ?? '';
}

/** Matches the name at the beginning of a context. The text before the name is not part of a context. */
const OF_NAMES = new RegExp(`^(?:${NAMES}|pass|pw)`, 'i');
export const IS_CHOSEN = new RegExp(`^(?:${CHOSEN}|pass|pw)`, 'i');
