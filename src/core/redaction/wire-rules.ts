/** Rules for secrets on the wire: headers, cookies, signed values and addresses. */

import {
  hasMixedCharacters,
  isPlaceholder,
  isTechnical,
  isUrlPassword,
  looksRandom,
  UUID,
} from './secret-likeness.ts';
import { findCookies } from './secret-regions.ts';
import { BASE64_REST, type Candidate, NO_REST, type SecretRule, URL_REST } from './secret-rule.ts';

const SIGNED_THINGS: readonly SecretRule[] = [
  {
    kind: 'jwt',
    keywords: ['eyj'],
    // Try a run only at its beginning: no `\w` or `-` may precede, except the letter of an escape such as `\n`.
    pattern: /eyJ(?<=(?:^|[^\w-]|\\[nrt])eyJ)[\w-]{8,2048}\.[\w-]{0,8192}\.[\w-]{8}/g,
    rest: /[\w.-]*/y,
    source: 'RFC 7519; a JSON object in base64url begins with eyJ',
  },
  {
    kind: 'jwt',
    keywords: ['ey'],
    pattern: /ey(?<=(?:^|[^\w-])ey)[A-Za-z0-9]{17,1024}\.ey[\w/-]{17,4096}\.(?:[\w/-]{8})?/g,
    rest: /[\w./=-]*/y,
    accepts: ({ secret }) => looksRandom(secret),
    source: 'RFC 7519 with blanks before the first name, or with no signature',
  },
  {
    kind: 'jwt',
    keywords: ['zxlk'],
    pattern: /(?<![A-Za-z0-9+/])ZXlK[A-Za-z0-9+/_-]{60}/g,
    rest: BASE64_REST,
    source: 'A JSON web token once more in base64',
  },
  {
    kind: 'azure-key',
    keywords: ['key=', 'secret='],
    pattern: /(?<keep>(?:AccountKey|SharedAccessKey|SharedSecret)=)[A-Za-z0-9+/]{20}/gi,
    rest: BASE64_REST,
    source: 'Azure Storage and Service Bus connection strings',
  },
  {
    kind: 'url-signature',
    keywords: ['sig=', 'signature=', 'hmac='],
    pattern:
      /(?<keep>(?:[?&;]|\bX-(?:Amz|Goog|Ms|Oss)-)(?:sig|signature|hmac)=)[A-Za-z0-9%+/_~-]{16}/gi,
    rest: /[A-Za-z0-9%+/=_~-]*/y,
    source: 'Signed URLs: Azure shared access, Amazon, Google, CloudFront',
  },
  {
    kind: 'url-signature',
    keywords: ['api_sig'],
    pattern: /(?<keep>(?<![\w-])api_sig["']?[ ]?[=:][ ]?["']?)[A-Za-z0-9%+/=_~-]{14}/g,
    rest: /[A-Za-z0-9%+/=_~-]*/y,
    accepts: isSignature,
    source: 'Flickr and Last.fm: a signature over the secret. Others write it in base64',
  },
];

const WEBHOOKS: readonly SecretRule[] = [
  webhook(
    'slack-webhook',
    /(?<keep>hooks\.slack(?:-gov)?\.com\/(?:services|workflows|triggers)\/)[\w/+-]{16}/g,
    'hooks.slack',
  ),
  webhook(
    'discord-webhook',
    /(?<keep>discord(?:app)?\.com\/api\/(?:v\d{1,2}\/)?webhooks\/)\d{6,22}\/[\w-]{16}/g,
    'discord',
  ),
  webhook(
    'teams-webhook',
    /(?<keep>(?:webhook|outlook)\.office(?:365)?\.com\/webhook(?:b2)?\/)[\w@/.-]{20}/g,
    '.office',
  ),
  webhook('webhook', /(?<keep>hooks\.zapier\.com\/hooks\/catch\/)[\w/]{8}/g, 'hooks.zapier'),
  webhook(
    'webhook',
    /(?<keep>maker\.ifttt\.com\/trigger\/[\w-]{1,60}\/with\/(?:json\/)?key\/)[\w-]{16}/g,
    'maker.ifttt',
  ),
  webhook(
    'webhook',
    /(?<keep>open\.(?:feishu\.cn|larksuite\.com)\/open-apis\/bot\/v2\/hook\/)[\w-]{16}/g,
    'open-apis/bot',
  ),
  webhook(
    'webhook',
    /(?<keep>qyapi\.weixin\.qq\.com\/cgi-bin\/webhook\/send\?key=)[\w-]{16}/g,
    'qyapi.weixin',
  ),
];

const HEADERS: readonly SecretRule[] = [
  {
    kind: 'basic-auth',
    keywords: ['authorization'],
    pattern:
      /(?<keep>authorization["'`]?[ \t]{0,4}[:=,][ \t]{0,4}["'`]?basic[ \t]{1,4})[A-Za-z0-9+/]{6}/gi,
    rest: BASE64_REST,
    // A value followed by a dot is no base64, so no login.
    accepts: ({ secret, next }) => next !== '.' && !isPlaceholder(secret),
    source: 'RFC 7617',
  },
  {
    kind: 'authorization',
    keywords: ['authorization'],
    pattern:
      /(?<keep>authorization["'`]?[ \t]{0,4}[:=,][ \t]{0,4}["'`]?(?!aws4-|basic\b|digest\b|hawk\b|oauth\b)(?:[A-Za-z][\w-]{1,24}(?:[ \t]{1,4}|=))?)[\w.~+/=@:|-]{8}/gi,
    rest: /[\w.~+/=@:|-]*/y,
    accepts: isHeaderValue,
    source: 'RFC 9110: a scheme, when there is one, and the credential',
  },
  {
    kind: 'authorization',
    keywords: ['authorization'],
    pattern:
      /(?<keep>authorization["'`]?[ \t]{0,4}[:=,][ \t]{0,4}["'`]?(?:aws4-hmac-sha256|digest|hawk|oauth)[ \t][^\n[\]]{0,1000}?\b(?:signature|response|mac|oauth_token)=\\?["']?)[\w%+/=-]{16}/gi,
    rest: /[\w%+/=-]*/y,
    source: 'Amazon, RFC 7616, Hawk and OAuth 1: the part that proves the rest',
  },
  {
    kind: 'authorization',
    keywords: ['-h', '--header'],
    pattern:
      /(?<keep>(?:-H|--header)[ =]["'](?:x-)?[\w-]{0,24}(?:key|token|secret):[ \t]{0,4})[\w~=@.+/-]{8}/gi,
    rest: /[\w.~+/=@|-]*/y,
    accepts: isHeaderValue,
    source: 'A header of curl that holds a key',
  },
  {
    kind: 'bearer-token',
    keywords: ['bearer'],
    pattern: /(?<keep>\bbearer[ \t]{1,4})[\w.~+/=-]{16}/gi,
    rest: /[\w.~+/=-]*/y,
    accepts: ({ secret }) => looksRandom(secret) && !isPlaceholder(secret),
    source: 'RFC 6750, in prose or code: "Bearer authentication-schemes" is none',
  },
  {
    kind: 'cookie',
    keywords: ['cookie'],
    pattern: /cookies?(?: header)?["'`]?(?: {0,2}[:=] {0,2}| )["'`]?(?=[^\s;=[\]]{1,128}=)/gi,
    findAll: findCookies,
    source: 'RFC 6265: every cookie of a line',
  },
  {
    kind: 'cookie',
    keywords: ['curl'],
    pattern: /(?<![\w./-])curl [^\n|;&[\]]{0,400}?-b[ =]?["']?(?=[^\s;=[\]"'/]{1,128}=)/gi,
    findAll: findCookies,
    source: 'curl -b: the same line as an argument. Without a sign = it is a file',
  },
  {
    kind: 'cookie',
    keywords: ['sess', 'connect.sid', 'auth-token='],
    pattern:
      /(?<keep>(?:sess(?:ion)?(?:[_-]?id|[_-]?token)?|connect\.sid|auth-token)=)[\w%+/.:=-]{16}/gi,
    rest: /[\w%+/.:=-]*/y,
    // Agents and servers log session ids that are UUIDs, which mostly grant no access.
    accepts: ({ secret }) => looksRandom(secret) && !isPlaceholder(secret) && !UUID.test(secret),
    source: 'Session cookies as frameworks call them, without their header',
  },
];

const URLS: readonly SecretRule[] = [
  {
    kind: 'url-password',
    keywords: ['://'],
    pattern: /(?<keep>:\/\/[^\s/:"'`<>[\]]{0,128}:)[^\s/"'`<>[\]]{1,256}(?=@)/g,
    rest: NO_REST,
    accepts: isUrlPassword,
    source: 'RFC 3986 userinfo: database and proxy URLs',
  },
  {
    kind: 'url-password',
    keywords: ['@tcp(', '@unix('],
    pattern: /(?<keep>["'`=][\w.-]{1,64}:)[^\s/"'`<>[\]]{1,256}(?=@(?:tcp|unix)\()/g,
    rest: NO_REST,
    accepts: isUrlPassword,
    source: 'The data source of MySQL in Go',
  },
  {
    kind: 'url-token',
    keywords: ['://'],
    pattern: /(?<keep>:\/\/)[\w-]{20,256}(?=@)/g,
    rest: NO_REST,
    accepts: ({ secret }) => looksRandom(secret),
    source: 'A token in the place of a user: git over https',
  },
  {
    kind: 'url-password',
    keywords: ['jdbc:oracle', 'sqlplus'],
    pattern: /(?<keep>(?:jdbc:oracle:\w{1,8}:|sqlplus (?:-\w )?)[\w$#]{1,40}\/)[^\s@/"'`<>[\]]{4}/g,
    rest: /[^\s@/"'`<>[\]]*/y,
    accepts: isUrlPassword,
    source: 'Oracle: user/password@host',
  },
];

export const WIRE_RULES: readonly SecretRule[] = [
  ...SIGNED_THINGS,
  ...WEBHOOKS,
  ...HEADERS,
  ...URLS,
];

function webhook(kind: string, pattern: RegExp, keyword: string): SecretRule {
  return { kind, pattern, keywords: [keyword], rest: URL_REST, source: 'Who has the URL can post' };
}

function isSignature({ secret, next }: Candidate): boolean {
  if (/^[\da-f]+$/i.test(secret)) return true;
  return next !== '(' && looksRandom(secret) && !isPlaceholder(secret) && !WORDS.test(secret);
}

/** Matches a name of words, such as `md5OfAllParameters`. */
const WORDS = /^[a-z]{1,16}\d?(?:[A-Z][a-z]{1,16}){2,12}$/;

/** Says whether a header's value is a secret: "Authorization: Bearer authentication" is prose. */
function isHeaderValue({ secret, next }: Candidate): boolean {
  if (isPlaceholder(secret) || /^[([{<]$/.test(next)) return false;
  if (/^[A-Za-z_$][\w$]{0,40}\.[A-Za-z_$]/.test(secret) && !looksRandom(secret)) return false;
  if (secret.length >= LONG_VALUE_CHARS || looksRandom(secret)) return true;
  return hasMixedCharacters(secret) && !isTechnical(secret);
}

/** Least length of a value that is too long for a word of a sentence. */
const LONG_VALUE_CHARS = 20;
