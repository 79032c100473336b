/**
 * Finds passwords without their name in front of them: mostly the second of two words that a colon, a slash or a blank
 * joins. A word for a login, the program, or the form of the line shows that the second one is a password. Also finds
 * values in front of their name, the literals that functions of passwords take, and keys of networks and products.
 */

import {
  isArgument,
  isChosen,
  isChosenWord,
  isPassPhrase,
  isPlaceholder,
  isSimplePassword,
  isTechnical,
  looksMade,
  looksRandom,
  NOUN_OF_SECRETS,
} from './secret-likeness.ts';
import { findInsertedValues } from './secret-regions.ts';
import { type Candidate, type FoundAll, NO_REST, type SecretRule } from './secret-rule.ts';

const USER = '["\'`]?[\\w.@+-]{2,64}["\'`]?';
const BARE_VALUE = '[^\\s"\'`\\\\<>[\\](){},;]{4,80}';
/** Words that announce a user's name and password. */
const LOGIN_WORDS =
  '(?:basic[ _-]?auth(?:entication)?|http[ _-]?auth|stats auth|auth(?:entication)?|creds?|credentials?|logins?|log ?in(?: (?:with|as))?|sign(?:ed)?[ -]?in(?: (?:with|as))?|account|zugang(?:sdaten)?|anmeldung|melde (?:dich|mich)|identifiants|connecte-toi|credenciales|accesso|accedi|entr[ae]r?|ログイン|로그인|登录|логин)';
const USER_WORDS =
  '(?:id|user(?:[ _-]?(?:name|id))?|login|account|benutzer(?:name)?|계정|아이디|email|e-mail|mail)';
const SECRET_WORDS = '(?:pw|pwd|pass(?:w(?:or)?d|wort|code|phrase)?|kennwort|비번|비밀번호)';
const CLAUSE_END =
  '(?=["\'`*]{0,3}(?:[.,;)!](?:\\s|$)|\\s{0,4}(?:\\n|$)|[ \\t]{1,4}(?:\\(|#|//|--|and|or|for|on|to|in|at|as|if|when|und|für|auf|et|y|e)(?![\\w-])))';

export const PAIR_RULES: readonly SecretRule[] = [
  atKeyword('A login as two words: "creds: ops:…", "login ops / …", "stats auth ops:…"', {
    keywords: (
      'basic;http auth;http_auth;http-auth;stats auth;auth;cred;login;log in;sign;account;zugang;' +
      'anmeldung;melde ;identifiants;connecte;accesso;accedi;entra ;entre ;entrar ;ログイン;로그인;логин'
    ).split(';'),
    pattern: new RegExp(
      `(?<keep>(?<![\\w.$/@-])${LOGIN_WORDS}(?: (?:is|are|with|as|sind|for|on|mit|als|avec|con|come?|como?|com)(?: \\w{1,16}){0,3}?)?(?:[ ]?[:=→]|[ ]->)?[ ]{1,2}(?!\\w{1,12}://)${USER}(?: ?[:/] ?| // | (?:and|with|und|mit) (?=[^\\s]{0,60}\\d))["'\`]?)${BARE_VALUE}${CLAUSE_END}`,
      'iy',
    ),
    accepts: isPairSecret,
  }),
  atKeyword('The words for both in front: "ID/PW: ops/…", "user and password: ops …"', {
    keywords:
      'id/;id /;id (;id(;id:;id|;id,;id &;id p;id and;user;login;account;benutzer;계정/;계정,;계정(;아이디;mail'.split(
        ';',
      ),
    pattern: new RegExp(
      `(?<keep>(?<![\\w-])${USER_WORDS}(?: ?[/|,&:(+-] ?| and | und | )${SECRET_WORDS}(?![\\wäöüß])\\)?(?: (?:are|is|for [\\w.-]{1,24}))?[ \\t]{0,2}(?:[:=(→-]|->)?[ \\t]{0,2}["'\`]?(?!none|the|is|are|must|or|and|not)[\\w.@+-]{2,40}["'\`]?(?: ?[/:,|(] ?| // | and | )["'\`]?)${BARE_VALUE}${CLAUSE_END}`,
      'iy',
    ),
    accepts: (candidate) =>
      isPairSecret(candidate) &&
      (/(?:[/:,|(] ?|\/\/ | and )["'`]?$/.test(candidate.context) ||
        isSimplePassword(candidate.secret)),
  }),
  atKeyword('A login in parentheses: "log into the router (admin/…)"', {
    keywords: ['log', 'sign', 'ssh', 'einlog', 'anmeld', 'connect', 'conect'],
    pattern: new RegExp(
      `(?<keep>\\b(?:log(?:ged|ging)?[ -]?in(?:to)?|logins?|sign[ -]?in|ssh|einlogg\\w{1,4}|anmelde\\w{0,3}|connect\\w{0,3}|conect\\w{1,4})\\b[^\\n()[\\]]{0,60}\\((?:admin\\w{0,10}|root|user|test|demo|guest|sa|pi|postgres)(?:[:/,]| / | : |, ))${BARE_VALUE}(?=\\))`,
      'iy',
    ),
    accepts: isPairSecret,
  }),
  atKeyword('A login in two letters: "u: ops p: …"', {
    keywords: ['u: '],
    pattern: new RegExp(
      `(?<keep>(?<![\\w-])u: ["'\`]?[\\w.@-]{2,40}["'\`]?[ ,;/|]{1,3}p(?:w|wd|ass)?: ?["'\`]?)${BARE_VALUE}${CLAUSE_END}`,
      'iy',
    ),
    accepts: isPairSecret,
  }),
  pair('The login of an administrator: "admin:…", with letters, a digit and a mark', {
    keywords: ['admin', 'root'],
    pattern: new RegExp(
      `(?<keep>(?:^|[\\s"'\`(])(?:admin(?:istrator)?|root)(?::| / ))(?=[^\\s]{0,60}[!@#$%^&*?])(?=[^\\s]{0,60}\\d)${BARE_VALUE}${CLAUSE_END}`,
      'gi',
    ),
    accepts: ({ secret }) =>
      secret.length >= 8 &&
      /[a-z]{3}/i.test(secret) &&
      isSimplePassword(secret) &&
      isArgument(secret),
  }),
  atKeyword('A login at a machine: "ssh: ops/…", "vpn: ops / …"', {
    keywords: ['ssh', 'sftp', 'rdp', 'vnc', 'vpn', 'telnet', 'wifi', 'wi-fi', 'wlan'],
    pattern: new RegExp(
      `(?<keep>(?<![\\w.$/@-])(?:ssh|sftp|rdp|vnc|vpn|telnet|wi-?fi|wlan)(?:[ ]?[:=→]|[ ]->)[ ]{1,2}["'\`]?[A-Za-z][\\w.@+-]{1,64}(?: / |/))${BARE_VALUE}${CLAUSE_END}`,
      'iy',
    ),
    // A plain word directly after a slash may be the second part of a path.
    accepts: (candidate) =>
      isPairSecret(candidate) &&
      (candidate.context.endsWith(' ') || !/^[\w-]*$/.test(candidate.secret)),
  }),
  {
    kind: 'password',
    isAtKeyword: true,
    keywords: (
      ' for basic; for the basic; for auth; for http; for login; for the login; as login;' +
      ' as credentials; as basic; to log in; to sign in; für basic; für den login'
    ).split(';'),
    pattern:
      / (?:for|as|to|für) (?:(?:the|a|den|basic|http) ){0,2}(?:basic|auth\w{0,12}|log ?in|sign ?in|credentials)\b/iy,
    findAll: findPairBefore,
    source: 'The login in front of its word: "use ops:… for basic auth"',
  },
  {
    kind: 'secret',
    isAtKeyword: true,
    keywords:
      ' is the ; is my ; is our ; is a ; is an ; ist der ; ist das ; ist mein; ist unser'.split(
        ';',
      ),
    pattern:
      / (?:is|ist) (?:the|my|our|an?|der|das|mein|unser)\w{0,2} (?:[\w-]{1,16} ){0,3}?(?:passw(?:ord|ort)|passphrase|token|(?:api|access|deploy|license|licence|secret)[ -]?key|secret)(?=["'`*]{0,3}(?:[.,;:!?)]|\s{0,2}(?:\n|$)| (?:for|of|on|to|from|in|at|that|which|we|you|i|and|but|für|vom|von|zum|zur)\b))/iy,
    findAll: findValueBefore,
    source: 'The secret in front of its name: "… is the token for the staging API"',
  },
  {
    kind: 'url-password',
    keywords: ['@'],
    pattern: /@(?=(?:[\w-]{1,40}\.){1,5}[a-z]{2,12}\b|[\w.-]{1,40}:\d{2,5}\b)/g,
    findAll: findLoginBefore,
    source: 'A user and a password in front of a host, without a scheme',
  },
  pair('Postfix: a host and a login on one line of sasl_passwd', {
    keywords: [':'],
    pattern: new RegExp(
      `(?<keep>:(?<=(?:^|\\n)\\[?[\\w.-]{3,64}\\]?:)(?:\\d{2,5}|smtps?|submissions?)[ \\t]{1,8}[\\w.@+-]{2,64}:)${BARE_VALUE}(?=[ \\t]{0,4}(?:\\r?\\n|$|#))`,
      'g',
    ),
    accepts: isOfFile,
  }),
  pair('PPP: chap-secrets and pap-secrets', {
    keywords: ['* ', '*\t', '*"'],
    pattern:
      /(?<keep>[ \t]"?\*(?<=(?:^|\n)"?[\w.@\\+-]{1,64}"?[ \t]{1,16}"?\*)"?[ \t]{1,16}"?)(?![#*])[^\s"'`\\<>[\]]{4,80}(?="?[ \t]{1,16}(?:"?\*"?|\d{1,3}(?:\.\d{1,3}){3})[ \t]{0,4}(?:\r?\n|$))/g,
    accepts: isOfFile,
  }),
  pair('strongSwan: ipsec.secrets', {
    keywords: ['psk ', 'xauth ', 'eap '],
    pattern:
      /(?<keep>:[ \t](?:PSK|XAUTH|EAP)[ \t]{1,4}"?)[^\s"'`\\<>[\]]{4,80}(?="?[ \t]{0,4}(?:\r?\n|$))/g,
    accepts: isOfFile,
  }),
  pair('Dovecot: a password without a hash', {
    keywords: ['{plain}', '{cleartext}'],
    pattern: /(?<keep>:\{(?:PLAIN|CLEARTEXT)\})[^\s:"'`\\<>[\]]{4,80}/g,
    accepts: isOfFile,
  }),
  atKeyword('Lines of a protocol: Redis AUTH, FTP and POP3 PASS, IMAP LOGIN', {
    keywords: ['auth ', 'pass ', 'login '],
    pattern:
      /(?<keep>(?:AUTH (?<=(?:^|[\n>] ?)AUTH )(?:[\w-]{2,32} )?|PASS (?<=(?:^|\n)USER \S{1,64}\s{1,4}PASS )|LOGIN (?<=(?:^|\n)(?:\w{1,8} )?LOGIN )[\w.@+-]{2,64} ))["']?[^\s"'`\\<>[\]]{4,80}(?=["']?[ \t]{0,4}(?:\r?\n|$))/y,
    accepts: (candidate) => isPairSecret(candidate) && !/^[A-Z-\d]+$/.test(candidate.secret),
  }),
  pair('Caddy: a user and a password on the line of basicauth, or in its block', {
    keywords: ['basicauth', 'basic_auth'],
    pattern:
      /(?<keep>\bbasic_?auth(?: [^\s{[\]]{1,64}){0,2}(?: \{\s{1,24}| (?:\/\S{0,40} )?)[\w.@+-]{2,64} )[^\s"'`\\<>[\]{}]{4,160}/g,
    accepts: ({ secret }) => isArgument(secret),
  }),
  atKeyword('RADIUS, TACACS and other shared keys of network devices', {
    keywords:
      'radius;tacacs;key-string;crypto isakmp;pre-shared-key;message-digest-key;enable ;secret '.split(
        ';',
      ),
    pattern:
      /(?<keep>\b(?:(?:radius|tacacs)(?:-server)?\b[^\n[\]]{0,80}?\bkey|key-string|crypto isakmp key|pre-shared-key(?: (?:local|remote|ascii-text))?|message-digest-key \d{1,3} md5|(?:enable|(?<=(?:^|\n) ?username [^\n]{1,64}? )) ?secret)(?: \d)? )["']?[^\s"'`\\<>[\]]{4,64}/iy,
    accepts: ({ secret }) => {
      const bare = secret.replace(/^["']/, '');
      return isArgument(bare) && !NOUN_OF_SECRETS.test(bare);
    },
  }),
  atKeyword('The key of a wireless network', {
    keywords: ['wifi', 'wi-fi', 'wlan', 'ssid', 'hotspot', 'wpa'],
    pattern: new RegExp(
      `(?<keep>\\b(?:wi-?fi|wlan|ssid|hotspot|wpa\\d?)(?![\\w-])[^\\n[\\]]{0,48}?[ ,;/(](?:key|code|schlüssel|clave|clé)(?: is|:| =|=) ?["'\`]?)${BARE_VALUE}`,
      'iy',
    ),
    accepts: isPairSecret,
  }),
  atKeyword('A product or recovery key in a sentence', {
    keywords: ['license', 'licence', 'product', 'activation', 'recovery', 'unlock', 'backup'],
    pattern: new RegExp(
      `(?<keep>\\b(?:licen[sc]e|product|activation|recovery|unlock|backup)[ _-](?:key|code)(?: (?:is|was)|:| =|=) ?["'\`]?)${BARE_VALUE}`,
      'iy',
    ),
    accepts: (candidate) => isPairSecret(candidate) && !/^[a-z]+$/.test(candidate.secret),
  }),
  {
    kind: 'password',
    keywords: ['insert', 'replace into'],
    pattern:
      /\b(?:insert|replace)(?: ignore)? into\b[^\n()[\]]{1,128}\((?=[^()[\]]{0,400}?(?:pass|pwd|secret|token|api_?key))/gi,
    findAll: findInsertedValues,
    source: 'SQL: the column of a list says which value is a password',
  },
  atKeyword('The literal that a function of passwords is given', {
    keywords: (
      'bcrypt;argon;scrypt;passlib;pwd_context;hasher;crypt;ph.;password_hash;password_verify;hashpw;' +
      'checkpw;generate_password_hash;make_password;check_password_hash;pbkdf2;authenticate;hash;' +
      'pgp_sym;createhmac;sensitive;secret;redacted;securestring;jwt.;pragma;password.;password::;redis;jedis;client;conn'
    ).split(';'),
    pattern:
      /(?<keep>\b(?:(?:bcrypt|bcryptjs|argon2\w{0,2}|argon|scrypt|passlib|pwd_context|hasher|crypt|ph)\w{0,8}(?:\.|::|->)\w{0,12}(?:hash|compare|verify|check)\w{0,12}|(?:password_hash|password_verify|hashpw|checkpw|generate_password_hash|make_password|check_password_hash|scryptSync|pbkdf2Sync|pbkdf2_hmac|crypt|authenticate)|hash_?[pP]assword|pgp_sym_(?:en|de)crypt|createHmac|(?:Sensitive|Secret(?:Str|String|Box|Text)?(?:::new|\.make|\.of)|SecretStr|SecretString|Redacted\.make|SecureString::from)|jwt\.(?:sign|verify|encode|decode)|Password(?:\.of|\.from|::new)|(?:redis|jedis|client|conn|connection)\w{0,8}\.auth)\((?:[\w.$ ]{1,40}, {0,2}|["'][^"'\n[\]]{1,64}["'], {0,2}|\{[^{}\n]{0,120}\}, {0,2}){0,1}[bru]?["'`]|pragma (?:re)?key ?= ?["'])[^"'`\n\\<>[\]]{4,120}(?=["'`])/iy,
    accepts: ({ context, secret }) =>
      isLiteral(secret) &&
      !/(?:createHmac|authenticate)\([bru]?["'`]$|jwt\.\w+\([bru]?["'`]$/i.test(context),
  }),
];

function atKeyword(...[source, rule]: Parameters<typeof pair>): SecretRule {
  return { ...pair(source, rule), isAtKeyword: true };
}

function pair(
  source: string,
  rule: Partial<SecretRule> & Pick<SecretRule, 'pattern' | 'keywords' | 'accepts'>,
): SecretRule {
  return { kind: 'password', rest: NO_REST, source, ...rule };
}

/**
 * Says whether the second word of a pair can be a secret. Parts of paths, numbers and plain words of NOT_A_SECRET
 * cannot. Such a word with a digit ("server01") can.
 */
function isPairSecret({ secret, next }: Candidate): boolean {
  const bare = secret.replace(/[.,;:!?*]+$/, '');
  if (!isArgument(bare) || isTechnical(bare) || /^[/~.]|\/|^\d+$/.test(bare) || next === '(')
    return false;
  return (
    isSimplePassword(bare) || looksMade(bare) || (isChosenWord(bare) && !NOT_A_SECRET.test(bare))
  );
}

/** Says whether a value can be a password at a place where a file of this form has only passwords. */
function isOfFile({ secret }: Candidate): boolean {
  return isArgument(secret) && (isSimplePassword(secret) || isChosen(secret) || looksMade(secret));
}

/** Matches words that follow a word for a login and a slash or colon, and are no password: "login/logout". */
const NOT_A_SECRET =
  /^(?:log(?:out|off|in)|sign(?:up|out|in|off|-up|-out)|register|registration|session\w*|cookie\w*|profile\w*|callback|account\w*|billing|settings?|user\w*|admin\w*|role\w*|group\w*|token\w*|editors?|viewers?|owners?|writers?|readers?|manager|failed|success\w*|error\w*|denied|security|access|authori[sz]\w+|permission\w*|member\w*|service\w*|server\w*|client\w*|provider\w*|module\w*|handler\w*|index|router?|routes?|middleware|controller|github|gitlab|google|oauth\w*|basic|bearer|digest|email|phone|website|platform|device|browser|payment|contact|subscription|\w+\.(?:[jt]sx?|py|go|rb|php|md|html?|json|ya?ml))$/i;

function isLiteral(secret: string): boolean {
  if (/\$\{|\{\{|^\$/.test(secret) || isPlaceholder(secret)) return false;
  if (/\s/.test(secret)) return isPassPhrase(secret, false);
  return isChosen(secret) || isSimplePassword(secret) || looksMade(secret);
}

/** Characters before the `@` in which a login is searched for. */
const LOGIN_CHARS = 104;
const LOGIN = /(?:^|[\s"'`(=])(?!mailto:)[A-Za-z][\w.-]{1,32}:([^\s:/@"'`\\<>[\](){},;]{4,64})$/;

/** Finds the password of `ops:…@db.example.com:5432`; `headEnd` is the index after the `@`. */
function findLoginBefore(headEnd: number, text: string): FoundAll {
  const end = headEnd - 1;
  const secret = LOGIN.exec(text.slice(Math.max(0, end - LOGIN_CHARS), end))?.[1] ?? '';
  const isSecret = secret !== '' && (isSimplePassword(secret) || looksMade(secret));
  return { secrets: isSecret ? [{ start: end - secret.length, end }] : [], end: headEnd };
}

const PAIR =
  /(?:^|[\s:])["'`]?(?!https?:)[\w.@+-]{2,40}(?<join>[:/]| \/ )([^\s"'`\\<>[\](){},;]{4,64})["'`]?$/;

/** Finds the password of "ops:… for basic auth". The words after the pair end at `headEnd`. */
function findPairBefore(headEnd: number, text: string): FoundAll {
  const from = Math.max(0, headEnd - LOGIN_CHARS - PAIR_WORDS_CHARS);
  const before = text.slice(from, headEnd).replace(/ (?:for|as|to|für) [\w ]{1,40}$/i, '');
  const found = PAIR.exec(before);
  const secret = found?.[2] ?? '';
  const end = from + before.length - (/["'`]$/.test(before) ? 1 : 0);
  // Two words with a slash between blanks may be two ways to log in: "use Google / Apple to log in".
  const isSecret =
    secret !== '' &&
    isPairSecret({ context: '', secret, next: ' ' }) &&
    (found?.groups?.['join'] !== ' / ' || isSimplePassword(secret));
  return { secrets: isSecret ? [{ start: end - secret.length, end }] : [], end: headEnd };
}

/** Most characters of the words after a pair, such as " for basic auth". */
const PAIR_WORDS_CHARS = 48;

const BEFORE_NAME =
  /(?:^|[\s"'`*(])([^\s"'`\\<>[\](){},;]{8,128})["'`*]{0,3} (?:is|ist) [\w -]{1,80}$/i;
const BEFORE_NAME_CHARS = 224;

/** Finds the secret of "… is the token"; the name ends at `headEnd`. */
function findValueBefore(headEnd: number, text: string): FoundAll {
  const before = text.slice(Math.max(0, headEnd - BEFORE_NAME_CHARS), headEnd);
  const found = BEFORE_NAME.exec(before);
  const secret = found?.[1] ?? '';
  const isPassword = /passw\w{3}$/i.test(before) && isSimplePassword(secret) && isArgument(secret);
  if (found === null || isPlaceholder(secret) || !(looksRandom(secret) || isPassword)) {
    return { secrets: [], end: headEnd };
  }
  const start = headEnd - before.length + found.index + found[0].indexOf(secret);
  return { secrets: [{ start, end: start + secret.length }], end: headEnd };
}
