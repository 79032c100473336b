/**
 * What a secret looks like: one table, read by `redaction.ts` from top to bottom.
 *
 * Every pattern costs a bounded number of steps at each place of the text, however hostile: counted
 * repetitions only, none inside another. What a secret has beyond the head that a pattern needs is
 * eaten once, by `rest`.
 *
 * The order matters: a precise format comes before a general one, and assignments come last.
 */

import { hasMixedCharacters, isPlaceholder, isTechnical, looksRandom } from './secret-likeness.ts';
import { findKeyBlockEnd } from './secret-pem.ts';

export interface SecretRule {
  /** Stands in the mask, so that the reader still knows what kind it was. */
  readonly kind: string;
  /** Global. The named group `keep`, when it is there, is context that stays in the text. */
  readonly pattern: RegExp;
  /** Sticky, one class. What else belongs to a secret once its head was found. Default: `[\w-]*`. */
  readonly rest?: RegExp;
  /** Read in place of `rest` when the context ends with a quote. */
  readonly quotedRest?: RegExp;
  /**
   * What a text must have at all before the rule is tried on it. 'run': an unbroken run of 15
   * characters or more, where the whole format lies; 'name': a name that promises a secret.
   */
  readonly needs?: 'run' | 'name';
  /** For a block: the index after its end, undefined when it holds no secret. */
  readonly findEnd?: (headEnd: number, text: string) => number | undefined;
  /** Without it every match is a secret. */
  readonly accepts?: (candidate: Candidate) => boolean;
  /** Where the format is written down, or why the rule is as it is. */
  readonly source: string;
}

export interface Candidate {
  /** The text of the group `keep`. */
  readonly context: string;
  /** The secret's first 64 characters: they say enough, and keep the work bounded. */
  readonly secret: string;
  /** The character after the secret, '' at the end of the text. */
  readonly next: string;
}

const BASE64_REST = /[A-Za-z0-9+/=_-]*/y;
const QUOTED_REST = /[^\s"'`\\<>[\]{}]*/y;
const BARE_REST = /[^\s"'`\\<>[\](){},;&|]*/y;
const URL_REST = /[\w/@.-]*/y;

/** Names of settings that hold a secret, in any case, with `_`, `-` or nothing between the words. */
const SECRET_NAMES =
  'pass(?:wor[dt]|wd|phrase|code)|kennwort|contrase[ñn]a|pwd|\\bpw|secret|token|credentials?|' +
  '(?:api|access|account|auth|private|secret|encryption|signing|master|shared|service|session|' +
  'consumer|deploy|webhook|jwt|app)[_-]?key|connection[_-]?string';
/** Looked for once: most texts have none. */
export const SECRET_NAME = new RegExp(`${SECRET_NAMES}|api key`, 'i');
const NAME_SUFFIX = '(?:[_-]?(?:access|key|value|base|string|\\d{1,2})){0,3}';
const ASSIGN =
  '(?:\\\\?["\'`]\\]?)?[ \\t]{0,8}(?::[ \\t]{0,4}string[ \\t]{0,4})?(?::=|=>|[:=])(?!=)[ \\t]{0,8}';

export const SECRET_RULES: readonly SecretRule[] = [
  {
    kind: 'private-key',
    pattern: /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/g,
    findEnd: findKeyBlockEnd,
    source: 'RFC 7468 and OpenPGP armour; a block that was cut off counts as well',
  },
  prefixed('age-key', /AGE-SECRET-KEY-1[0-9A-Z]{30}/g, 'age: Bech32 after the prefix'),

  prefixed('anthropic-oauth', /sk-ant-o[ar]t\d\d-[\w-]{16}/g, 'Claude Code sign-in tokens'),
  prefixed('anthropic-key', /sk-ant-[\w-]{16}/g, 'Anthropic console: sk-ant-api03-…, -admin01-…'),
  prefixed(
    'openai-key',
    /sk-(?:proj|svcacct|admin|None|service)-[\w-]{16}/g,
    'OpenAI project, service account and admin keys',
  ),
  prefixed('openrouter-key', /sk-or-v1-[0-9a-f]{32}/g, 'OpenRouter: 64 hexadecimal digits'),
  {
    ...prefixed(
      'api-key',
      /sk-(?<![A-Za-z0-9]sk-)[\w-]{20}/g,
      'Old OpenAI keys and many that copy it',
    ),
    // `sk-circle-fade-dot` is a style sheet's class, not a key.
    accepts: ({ secret }) => looksRandom(secret.slice(3)),
  },
  prefixed('svc-key', /svc_(?:local|live)_[\w-]{16}/g, 'Our own local token and service key'),

  {
    kind: 'aws-secret-key',
    pattern:
      /(?<keep>(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z2-7]{16}(?:["',;:|\s]|\\[nrt]){1,8}(?:aws_)?(?:secret\w{0,16}["' ]{0,2}[:=]["' ]{0,3})?)[A-Za-z0-9+/]{40}/gi,
    rest: BASE64_REST,
    source: 'AWS: 40 base64 characters that follow their key id, as in a credentials CSV',
  },
  {
    kind: 'aws-secret-key',
    pattern:
      /(?<keep>secret_?access_?key\\?["']?[ \t]{0,4}[:=][ \t]{0,4}\\?["']?)[A-Za-z0-9+/]{40}/gi,
    rest: BASE64_REST,
    source: 'AWS: the credentials file, its JSON and its environment variable',
  },
  prefixed(
    'aws-key-id',
    /(?<![A-Za-z0-9])(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}/g,
    'AWS IAM unique identifiers: base32 after the prefix',
  ),
  prefixed('google-key', /AIza[\w-]{30}/g, 'Google API keys: 39 characters'),
  prefixed('google-oauth', /(?:ya29\.|GOCSPX-)[\w-]{20}/g, 'Google access token, client secret'),
  {
    kind: 'azure-key',
    pattern: /(?<keep>(?:AccountKey|SharedAccessKey|SharedSecret)=)[A-Za-z0-9+/]{20}/gi,
    rest: BASE64_REST,
    source: 'Azure Storage and Service Bus connection strings',
  },
  {
    kind: 'azure-signature',
    pattern: /(?<keep>[?&]sig=)[A-Za-z0-9%+/_-]{20}/g,
    rest: /[A-Za-z0-9%+/=_-]*/y,
    source: 'Azure shared access signatures, and other signed URLs',
  },

  prefixed('github-token', /gh[oprsu]_[A-Za-z0-9]{20}/g, 'GitHub: 36 characters after the prefix'),
  prefixed('github-token', /github_pat_[A-Za-z0-9_]{20}/g, 'GitHub fine-grained tokens'),
  prefixed(
    'gitlab-token',
    /gl(?:pat|oas|dt|rt|rtr|cbt|ptt|ft|imt|agent|soat|ffct)-[\w-]{16}/g,
    'GitLab token prefixes',
  ),
  {
    ...prefixed('slack-token', /xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{10}/g, 'Slack token types'),
    rest: /[A-Za-z0-9.-]*/y,
  },
  prefixed('slack-token', /xapp-\d-[A-Za-z0-9-]{10}/g, 'Slack app-level tokens'),
  {
    kind: 'slack-webhook',
    pattern: /(?<keep>hooks\.slack(?:-gov)?\.com\/(?:services|workflows|triggers)\/)[\w/-]{16}/g,
    rest: URL_REST,
    source: 'Slack: who has the URL can post',
  },
  {
    kind: 'discord-webhook',
    pattern: /(?<keep>discord(?:app)?\.com\/api\/(?:v\d{1,2}\/)?webhooks\/)\d{6,22}\/[\w-]{16}/g,
    source: 'Discord: who has the URL can post',
  },
  {
    kind: 'teams-webhook',
    pattern: /(?<keep>webhook\.office\.com\/webhookb2\/)[\w@/.-]{20}/g,
    rest: URL_REST,
    source: 'Microsoft Teams incoming webhooks',
  },
  prefixed(
    'discord-token',
    /(?<![\w-])[MNO][A-Za-z0-9_-]{22,27}\.[\w-]{6}\.[\w-]{24}/g,
    'Discord bots: base64 of the id, a time, a signature',
  ),
  {
    ...prefixed(
      'telegram-token',
      /(?<keep>(?<![A-Za-z0-9])(?:bot)?)\d{8,10}:[A-Za-z0-9_-]{34}/g,
      'Telegram Bot API: id, colon, 35 characters',
    ),
    // `12345678:` and a git hash is a log line.
    accepts: ({ secret }) => /[A-Z]/.test(secret) && /[a-z]/.test(secret),
  },

  prefixed('stripe-key', /[prs]k_(?:live|test)_[A-Za-z0-9]{16}/g, 'Stripe API keys'),
  {
    ...prefixed('webhook-secret', /whsec_[A-Za-z0-9+/]{20}/g, 'Stripe and Standard Webhooks'),
    rest: BASE64_REST,
  },
  prefixed('square-token', /sq0(?:atp|csp|idp)-[\w-]{20}/g, 'Square access tokens and secrets'),
  prefixed('shopify-token', /shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}/g, 'Shopify Admin API'),
  prefixed('twilio-key', /(?<![A-Za-z0-9])(?:SK|AC)[0-9a-f]{32}/g, 'Twilio API key and account'),
  {
    kind: 'twilio-token',
    pattern: /(?<keep>\[masked: twilio-key\]:)[0-9a-f]{32}/g,
    source: 'Twilio basic authentication: the account, a colon, the auth token',
  },
  {
    ...prefixed('sendgrid-key', /SG\.[\w-]{16,32}\.[\w-]{16}/g, 'SendGrid API keys'),
    rest: /[\w.-]*/y,
  },
  prefixed('mailgun-key', /key-(?<![A-Za-z0-9]key-)[0-9a-f]{32}/g, 'Mailgun private API keys'),

  prefixed('huggingface-token', /(?:hf_|api_org_)[A-Za-z0-9]{30}/g, 'Hugging Face access tokens'),
  prefixed('groq-key', /gsk_[A-Za-z0-9]{32}/g, 'Groq'),
  prefixed('xai-key', /xai-[A-Za-z0-9]{40}/g, 'xAI'),
  prefixed('perplexity-key', /pplx-[A-Za-z0-9]{32}/g, 'Perplexity'),
  prefixed('replicate-token', /r8_(?<![A-Za-z0-9]r8_)[A-Za-z0-9]{32}/g, 'Replicate'),
  prefixed('npm-token', /npm_[A-Za-z0-9]{30}/g, 'npm: 36 characters after the prefix'),
  prefixed('pypi-token', /pypi-[\w-]{50}/g, 'PyPI: a macaroon in base64url'),
  prefixed('docker-token', /dckr_(?:pat|oat)_[\w-]{20}/g, 'Docker Hub'),
  prefixed('digitalocean-token', /do[opr]_v1_[A-Za-z0-9]{40}/g, 'DigitalOcean: 64 hex digits'),
  {
    ...prefixed('vault-token', /(?<![A-Za-z0-9])hv[bs]\.[\w-]{20}/g, 'HashiCorp Vault'),
    rest: /[\w.-]*/y,
  },
  prefixed('terraform-token', /\.atlasv1\.[\w-]{40}/g, 'Terraform Cloud'),
  prefixed('databricks-token', /(?<![A-Za-z0-9])dapi[0-9a-f]{32}/g, 'Databricks'),
  prefixed('supabase-token', /sb(?:p_[0-9a-f]{40}|_secret_[\w-]{20})/g, 'Supabase'),
  prefixed('planetscale-token', /pscale_(?:tkn|pw|oauth)_[\w.-]{32}/g, 'PlanetScale'),
  prefixed('newrelic-key', /NR(?:AK|II|JS|AA)-[A-Za-z0-9-]{20}/g, 'New Relic'),
  { ...prefixed('sentry-token', /sntry[su]_[A-Za-z0-9+/=_]{40}/g, 'Sentry'), rest: BASE64_REST },
  { ...prefixed('grafana-token', /gl(?:c|sa)_[A-Za-z0-9+/_]{30}/g, 'Grafana'), rest: BASE64_REST },
  prefixed('postman-key', /PMAK-[0-9a-f]{24}-[0-9a-f]{30}/g, 'Postman'),
  prefixed('figma-token', /fig[dou]_[\w-]{30}/g, 'Figma'),
  prefixed('linear-key', /lin_(?:api|oauth)_[A-Za-z0-9]{30}/g, 'Linear'),
  prefixed('notion-token', /(?<![A-Za-z0-9])ntn_[A-Za-z0-9]{40}/g, 'Notion'),
  { ...prefixed('atlassian-token', /AT(?:ATT|CTT)3[\w=-]{50}/g, 'Atlassian'), rest: BASE64_REST },
  prefixed('airtable-token', /(?<![\w-])pat[A-Za-z0-9]{14}\.[0-9a-f]{64}/g, 'Airtable'),
  prefixed(
    'doppler-token',
    /(?<![A-Za-z0-9])dp\.(?:pt|st|ct|sa|scim|audit)\.[\w-]{30}/g,
    'Doppler',
  ),

  {
    kind: 'jwt',
    // A run of these characters is tried once only, at its first one: `\w` and `-` may not precede.
    pattern: /eyJ(?<=(?:^|[^\w-]|\\[nrt])eyJ)[\w-]{8,2048}\.[\w-]{0,8192}\.[\w-]{8}/g,
    rest: /[\w.-]*/y,
    source: 'RFC 7519; a JSON object in base64url begins with eyJ',
  },
  {
    kind: 'basic-auth',
    pattern:
      /(?<keep>authorization["']?[ \t]{0,4}[:=][ \t]{0,4}["']?basic[ \t]{1,4})[A-Za-z0-9+/]{6}/gi,
    rest: BASE64_REST,
    source: 'RFC 7617',
  },
  {
    kind: 'authorization',
    pattern:
      /(?<keep>authorization["']?[ \t]{0,4}[:=][ \t]{0,4}["']?(?:bearer|token|apikey)[ \t]{1,4})[\w.~+/=-]{8}/gi,
    rest: /[\w.~+/=-]*/y,
    // "Authorization: Bearer authentication" is prose.
    accepts: ({ secret }) =>
      (secret.length >= 20 || hasMixedCharacters(secret)) && !isPlaceholder(secret),
    source: 'RFC 6750, as a header',
  },
  {
    kind: 'bearer-token',
    pattern: /(?<keep>\bbearer[ \t]{1,4})[\w.~+/=-]{16}/gi,
    rest: /[\w.~+/=-]*/y,
    accepts: ({ secret }) => looksRandom(secret) && !isPlaceholder(secret),
    source: 'RFC 6750, in prose or code: "Bearer authentication-schemes" is none',
  },
  {
    kind: 'url-password',
    pattern: /(?<keep>:\/\/[^\s/:@"'`<>[\]]{0,128}:)[^\s/"'`<>[\]]{1,256}(?=@)/g,
    rest: /(?:)/y,
    accepts: ({ secret }) => !isPlaceholder(secret) && !EXAMPLE_PASSWORD.test(secret),
    source: 'RFC 3986 userinfo: database and proxy URLs',
  },
  {
    kind: 'url-token',
    pattern: /(?<keep>:\/\/)[\w-]{20,256}(?=@)/g,
    rest: /(?:)/y,
    accepts: ({ secret }) => looksRandom(secret),
    source: 'A token in the place of a user: git over https',
  },
  {
    kind: 'cookie',
    pattern: /(?<keep>cookie["']?: {0,2}["']?[^\s;=[\]]{1,64}=)[^\s;"'`\\<>[\]{}]{16}/gi,
    rest: /[^\s;"'`\\<>[\]{}]*/y,
    accepts: ({ secret }) => looksRandom(secret),
    source: 'RFC 6265: the session is the first in its header nearly always',
  },
  {
    kind: 'password',
    pattern:
      /(?<keep>(?:^|\s)(?:-u|--user|--proxy-user)[ =]["']?[^\s:"'[\]]{1,64}:)[^\s"'`\\<>[\]{}]{6}/g,
    rest: QUOTED_REST,
    accepts: ({ secret }) => !isPlaceholder(secret) && !EXAMPLE_PASSWORD.test(secret),
    source: 'curl and its like: user and password in one argument',
  },
  {
    kind: 'secret',
    needs: 'name',
    pattern: new RegExp(
      `(?<keep>--?(?:${SECRET_NAMES})[ \\t]{1,4}["']?)${valueHead('"\'`', 6)}`,
      'gi',
    ),
    rest: QUOTED_REST,
    accepts: ({ secret }) => isShortSecret(secret),
    source: 'A flag on a command line: --password VALUE',
  },
  {
    kind: 'secret',
    needs: 'name',
    pattern: new RegExp(
      `(?<keep>(?:${SECRET_NAMES}|api key)${NAME_SUFFIX}${ASSIGN}(?:[bru]?\\\\?["'\`])?)${valueHead('"\'`', 6)}`,
      'gi',
    ),
    rest: BARE_REST,
    quotedRest: QUOTED_REST,
    accepts: (candidate) =>
      /["'`]$/.test(candidate.context) ? isLiteralSecret(candidate) : isBareSecret(candidate),
    source: 'Code, JSON, environment files, YAML, query and connection strings',
  },
  {
    kind: 'secret',
    needs: 'name',
    pattern: new RegExp(
      `(?<keep>(?:${SECRET_NAMES})(?:["'] value=["']|>))${valueHead('"\'`', 6)}`,
      'gi',
    ),
    rest: QUOTED_REST,
    accepts: ({ secret }) => isShortSecret(secret),
    source: 'XML, as an element or as a pair of attributes',
  },
  {
    kind: 'secret',
    needs: 'name',
    pattern: new RegExp(
      `(?<keep>(?:${SECRET_NAMES}|api key)[ ]["'\`]?)${valueHead('"\'`(),;&|', 12)}`,
      'gi',
    ),
    rest: BARE_REST,
    accepts: ({ secret, next }) => looksRandom(secret) && !/^[([{]$/.test(next),
    source: 'A name and a value with a blank between: .netrc, notes',
  },
  {
    kind: 'secret',
    pattern:
      /(?<keep>(?<!\w)[A-Z][A-Z0-9_]{1,60}_(?:KEY|AUTH|PAT|CREDENTIALS?)=["']?)[^\s"'`\\<>[\](){},;&|]{6}/g,
    rest: BARE_REST,
    accepts: ({ context, secret }) => !context.includes('PUBLIC') && looksRandom(secret),
    source: 'Environment variables of unknown vendors: ACME_KEY=…',
  },
  {
    kind: 'secret',
    needs: 'name',
    pattern: new RegExp(
      `(?<keep>\\b(?:${SECRET_NAMES}|api key)[ \\w-]{0,32}?[ ](?:is|was|to|ist|es|est)(?: now)?:?[ ]{1,2}["'\`]?)${valueHead('"\'`', 6)}`,
      'gi',
    ),
    rest: QUOTED_REST,
    accepts: ({ secret }) => isShortSecret(secret),
    source: 'Plain language: "the password for staging is …"',
  },
  {
    kind: 'secret',
    needs: 'name',
    pattern: new RegExp(
      `(?<keep>(?:pass(?:wor[dt]|phrase|code)|\\bpwd?)[ \\w-]{0,32}: )${valueHead('"\'`(),;&|', 6)}`,
      'gi',
    ),
    rest: BARE_REST,
    accepts: ({ secret, next }) =>
      isShortSecret(secret) &&
      !/^[([{]$/.test(next) &&
      !MEMBER_ACCESS.test(secret) &&
      !VARIABLE.test(secret),
    source: 'Notes and YAML: "password for the database: …". In code a variable may stand there',
  },
];

/** What people write into documents in place of a password. */
const EXAMPLE_PASSWORD =
  /^(?:pass(?:word|wd)?|pwd|pw|secret|token|user|root|admin|postgres|guest|p)$/i;

/** How code calls what it gives to a member `password`. */
const VARIABLE =
  /^(?:pass|pwd|pw\d|p\d|secret|token|hash|user|new|old|current|input|form|req|args?|db|opts?)/i;

const MEMBER_ACCESS = /^[A-Za-z_$][\w$]{0,40}[.?!]{1,2}[A-Za-z_$]/;

function prefixed(kind: string, pattern: RegExp, source: string): SecretRule {
  return { kind, pattern, source, needs: 'run' };
}

/** A value's first characters; the brackets of a mask, of a tag and of a template are never in it. */
function valueHead(excluded: string, charsMin: number): string {
  return `[^\\s\\\\<>\\[\\]{}${excluded}]{${charsMin}}`;
}

function isShortSecret(secret: string): boolean {
  return hasMixedCharacters(secret) && !isPlaceholder(secret) && !isTechnical(secret);
}

function isLiteralSecret({ secret, next }: Candidate): boolean {
  // Anything but a closing quote after it: a sentence or a template, not a literal.
  return /^["'`\\]?$/.test(next) && isShortSecret(secret);
}

function isBareSecret({ context, secret, next }: Candidate): boolean {
  // A call, an index, a template or a path: code that names a secret is not one.
  if (/^[([{]$/.test(next) || MEMBER_ACCESS.test(secret) || /^[/~.]/.test(secret)) return false;
  if (/^.{0,5}[(),;&|]/.test(secret)) return false;
  if (isPlaceholder(secret) || isTechnical(secret)) return false;
  // With blanks around it, it may be a name in code: only what no person would type as a name counts.
  return looksRandom(secret) || (context.endsWith('=') && hasMixedCharacters(secret));
}
