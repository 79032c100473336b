/** The rules for secrets that have a form of their own, in order. Values known only by a name: `name-rules.ts`. */

import { COMMAND_RULES } from './command-rules.ts';
import { PAIR_RULES } from './pair-rules.ts';
import { findCards, findCodes, findRecoveryCodes, findSeedWords } from './spoken-secrets.ts';
import { findKeyBlockEnd, findPuttyKeyEnd } from './secret-pem.ts';
import { isChosen, isMadeUp, isSimplePassword, looksRandom } from './secret-likeness.ts';
import { findKubernetesValues, findTableCells } from './secret-regions.ts';
import { BASE64_REST, NO_REST, QUOTED_REST, type SecretRule } from './secret-rule.ts';
import { VENDOR_FORMATS } from './vendor-formats.ts';
import { WIRE_RULES } from './wire-rules.ts';

const KEY_FILES: readonly SecretRule[] = [
  {
    kind: 'private-key',
    keywords: ['private key', 'static key'],
    pattern: /-----? ?BEGIN [A-Za-z0-9 ]{0,40}(?:PRIVATE KEY(?: BLOCK)?|Static key V1) ?-----?/g,
    findEnd: findKeyBlockEnd,
    source: 'RFC 7468, OpenPGP, SSH2 and OpenVPN; a block that was cut off counts as well',
  },
  {
    kind: 'private-key',
    keywords: ['putty-user-key-file'],
    pattern: /PuTTY-User-Key-File-\d: /g,
    findEnd: findPuttyKeyEnd,
    source: 'PuTTY: the whole file, public lines as well',
  },
  {
    kind: 'private-key',
    keywords: ['encrypted secret key', 'minisign'],
    pattern: /(?<keep>secret key\s{1,4})RW[A-Za-z0-9+/]{100}/g,
    rest: BASE64_REST,
    source: 'minisign and signify',
  },
  {
    kind: 'private-key',
    keywords: ['ls0tls1crudjti'],
    // Skip public files: these are the base64 letters of CERTIFICATE and of PUBLIC.
    pattern: /LS0tLS1CRUdJTi(?!BDRVJU|BQVUJM|BUUlVT|BYNTA5)[A-Za-z0-9+/]{24}/g,
    rest: BASE64_REST,
    source: 'A PEM block once more in base64, as in a kubeconfig',
  },
  {
    kind: 'secret',
    keywords: ['"key"', '"signingkey"'],
    pattern:
      /(?<keep>"\w{0,24}(?:jwt|auth|token|encrypt|crypt|sign)\w{0,24}"\s{0,4}:\s{0,4}\{[^{}[\]]{0,160}"(?:signing)?key"\s{0,4}:\s{0,4}")[^\s"\\<>[\]{}]{14}/gi,
    rest: QUOTED_REST,
    accepts: ({ secret }) => looksRandom(secret) && !isMadeUp(secret),
    source: 'Settings in JSON: a key in a part that is called after what it signs or encrypts',
  },
  {
    kind: 'secret',
    keywords: ['_key', '_salt'],
    pattern:
      /(?<keep>define\( ?'(?:AUTH|SECURE_AUTH|LOGGED_IN|NONCE)_(?:KEY|SALT)', {1,8}')[^'\n[\]]{16}/g,
    rest: /[^'\n[\]]*/y,
    accepts: ({ secret }) => /[^\w\s]/.test(secret) && /\d/.test(secret),
    source: 'WordPress: keys and salts of any printable characters',
  },
  {
    kind: 'private-key',
    keywords: ['"kty"'],
    pattern: /(?<keep>"(?:d|p|q|dp|dq|qi|k)"\s{0,4}:\s{0,4}")[\w-]{22}/g,
    source: 'RFC 7517: the private members of a JSON web key',
  },
];

const STORED: readonly SecretRule[] = [
  {
    kind: 'password-hash',
    keywords: ['$'],
    pattern:
      /(?<![\w$])\$(?:2[abxy]?\$\d\d\$|(?:1|5|6|7|y|gy|apr1|sha1)\$|argon2(?:id|i|d)\$|scrypt\$|pbkdf2[\w-]{0,8}\$|P\$|H\$)[\w./+=,$-]{16}/g,
    rest: /[\w./+=,$-]*/y,
    accepts: ({ secret }) => looksRandom(secret) && !isMadeUp(secret),
    source: 'crypt(5): shadow files and htpasswd',
  },
  {
    kind: 'password-hash',
    keywords: ['sha}', 'pbkdf2_sha256$'],
    pattern: /(?:\{S?SHA(?:256|512)?\}|pbkdf2_sha256\$\d{4,8}\$)[A-Za-z0-9+/$]{24}/g,
    rest: /[A-Za-z0-9+/=$]*/y,
    source: 'RFC 2307 and Django',
  },
  {
    kind: 'password',
    keywords: [':54', ':55', ':64', ':65', ':*:'],
    pattern:
      /(?<keep>(?<=^|\n)[\w.*-]{1,128}:(?:5[45]\d\d|6[45]\d\d|\*):[\w.*-]{1,64}:[\w.*@-]{1,64}:)[^\s:"'`\\<>[\](){};=/]{4}/g,
    rest: /[^\s"'`\\<>[\]]*/y,
    accepts: ({ context, secret, next }) =>
      /^\s?$/.test(next) && (isSimplePassword(secret) || (HOST.test(context) && isChosen(secret))),
    source:
      '.pgpass: host, port, database, user, password. A match of grep has a file and a line there',
  },
  {
    kind: 'secret',
    keywords: ['secret'],
    pattern: /\bkind["']?: {0,4}["']?[Ss]ecret\b/g,
    findAll: findKubernetesValues,
    source: 'Kubernetes: the values under data and stringData',
  },
  {
    kind: 'password',
    keywords: ['pass', 'pw', 'kennwort', 'secret', 'contraseña', 'senha'],
    pattern:
      /(?:passw(?:or[dt]|d)|pass|pwd?|kennwort|secret|contraseña|senha|mot de passe)(?=[ "*`]{0,32}(?:[|,;\t]|\r?\n))(?<=(?:[|,;\t][ "*`]{0,16}|(?:^|\n)[ "]{0,16})(?:\w{1,16}[_ ])?(?:passw(?:or[dt]|d)|pass|pwd?|kennwort|secret|contraseña|senha|mot de passe))/gi,
    findAll: findTableCells,
    source: 'A column of a Markdown table, of a database client and of CSV',
  },
];

/** Matches a host before a colon. The list of endings excludes names of source files (`main.ts:`). */
const HOST =
  /^(?:\*|[\w-]+|\d{1,3}(?:\.\d{1,3}){3}|[\w.-]+\.(?:com|net|org|io|dev|cloud|internal|local|lan|svc|de|fr|eu)):/;

const SPOKEN: readonly SecretRule[] = [
  {
    kind: 'one-time-code',
    keywords: ['otp', 'code', 'pin', 'tan', 'puk'],
    pattern:
      /\b(?:t?otp(?:[- ]code)?|tan|pin|puk|pass ?code|sms[- ]?code|(?:one[- ]time|verification|security|login|sign-?in|confirmation|2fa|mfa|two-factor|door|gate|alarm|building|garage|safe|locker|auth(?:entication|enticator)?|access)[- ](?:pass)?(?:code|pin|password))s?\b/gi,
    findAll: findCodes,
    source: 'Codes of four to eight digits that a person is sent',
  },
  {
    kind: 'one-time-code',
    keywords: [' is your ', ' ist dein '],
    pattern:
      /(?<![\w.,-])(?:[A-Z]-)?(?:\d{3}[ -]\d{3}|\d{4,8})(?= (?:is|ist) (?:your|dein|Ihr)\b[^\n]{0,60}?(?:code|otp|passcode|pin)\b)/gi,
    rest: NO_REST,
    source: 'The same with the code first, as in text messages',
  },
  {
    kind: 'recovery-code',
    keywords:
      'recovery code;backup code;scratch code;recovery-code;backup-code;recovery_code;backup_code'.split(
        ';',
      ),
    pattern: /\b(?:recovery|backup|scratch)[ _-]codes?\b/gi,
    findAll: findRecoveryCodes,
    source: 'Lists of codes that replace the second factor',
  },
  {
    kind: 'recovery-code',
    keywords: ['-'],
    pattern: /(?<![\w-])\d{6}-\d{6}-\d{6}-\d{6}-\d{6}-\d{6}-\d{6}-\d{6}(?![\w-])/g,
    rest: NO_REST,
    source: 'BitLocker: eight groups of six digits',
  },
  {
    kind: 'seed-phrase',
    keywords: ['seed', 'mnemonic', 'phrase'],
    pattern:
      /\b(?:seed(?:[ _-]?(?:phrase|words))?|mnemonic(?:[ _-]phrase)?|(?:recovery|secret|backup)[ _-]phrase)\b/gi,
    findAll: findSeedWords,
    source: 'BIP 39: 12 to 24 words',
  },
  {
    kind: 'card-number',
    keywords: ['3', '4', '5', '6'],
    // Matches where a long number begins. The lookbehind excludes versions, identifiers and parts of longer numbers.
    pattern: /(?=[23456]\d{3}(?:[ -]?\d){9})(?<![\w.,/:+=#-])/g,
    findAll: findCards,
    source: 'ISO/IEC 7812: a known first digit, a known length and the check digit of Luhn',
  },
];

export const SECRET_RULES: readonly SecretRule[] = [
  ...KEY_FILES,
  ...VENDOR_FORMATS,
  ...WIRE_RULES,
  ...COMMAND_RULES,
  ...PAIR_RULES,
  ...STORED,
  ...SPOKEN,
];
