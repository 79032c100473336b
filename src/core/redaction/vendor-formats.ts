/** Formats of vendors' keys, by kind of vendor. If two can match the same text, the more precise one comes first. */

import { CLOUD_FORMATS, CODE_FORMATS } from './cloud-formats.ts';
import { isMadeUp, looksRandom } from './secret-likeness.ts';
import { BASE64_REST, NO_REST, type SecretRule } from './secret-rule.ts';
import { DOTTED_REST, format, isRandomAfter } from './vendor-format.ts';

const AI_FORMATS: readonly SecretRule[] = [
  format('anthropic-oauth', 'sk-ant-o', /sk-ant-o[ar]t\d\d-[\w-]{16}/g),
  format('anthropic-key', 'sk-ant-', /sk-ant-[a-z]{3,8}\d\d-[\w-]{93}AA(?![\w-])/g, {
    rest: NO_REST,
    accepts: () => true,
    source: 'Anthropic console: 93 characters and AA',
  }),
  format('anthropic-key', 'sk-ant-', /sk-ant-[\w-]{16}/g, {
    source: 'Other lengths than 93 and AA: a key that was cut off, or one of a later form',
  }),
  format('openai-key', 'sk-', /sk-(?:proj|svcacct|admin|None|service)-[\w-]{16}/g),
  format('openrouter-key', 'sk-or-v1-', /sk-or-v1-[0-9a-f]{32}/g),
  format('api-key', 'sk-', /sk-(?<![A-Za-z0-9]sk-)[\w-]{20}/g, {
    // `sk-circle-fade-dot` is a CSS class, not a key.
    accepts: isRandomAfter(3),
    source: 'Old OpenAI keys and many that copy their form',
  }),
  format('svc-key', 'svc_', /svc_(?:local|live)_[\w-]{16}/g, {
    accepts: isRandomAfter(9),
    source: 'The local token and service key of svc itself',
  }),
  format(
    'huggingface-token',
    ['hf_', 'api_org_'],
    /(?<![A-Za-z0-9])(?:hf_|api_org_)[A-Za-z0-9]{30}/g,
    isRandomAfter(3),
  ),
  format('groq-key', 'gsk_', /gsk_[A-Za-z0-9]{32}/g),
  format('xai-key', 'xai-', /xai-[A-Za-z0-9]{40}/g),
  format('perplexity-key', 'pplx-', /pplx-[A-Za-z0-9]{32}/g),
  format('replicate-token', 'r8_', /r8_(?<![A-Za-z0-9]r8_)[A-Za-z0-9]{32}/g),
  format('fireworks-key', 'fw_', /(?<![A-Za-z0-9])fw_[A-Za-z0-9]{22,24}(?!\w)/g, isRandomAfter(3)),
  format('nvidia-key', 'nvapi-', /nvapi-[\w-]{40}/g),
  format('tavily-key', 'tvly-', /tvly-(?:dev-|prod-)?[A-Za-z0-9]{20}/g),
  format('langsmith-key', 'lsv2_', /lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}/g),
  format('wandb-key', 'wandb_v1_', /wandb_v1_[\w-]{30}/g),
  format('cerebras-key', 'csk-', /(?<![\w-])csk-[a-z0-9]{40}/g, isRandomAfter(4)),
  format('together-key', 'tgp_v1_', /(?<!\w)tgp_v1_[\w-]{40}/g),
  format('pinecone-key', 'pcsk_', /(?<!\w)pcsk_[A-Za-z0-9]{4,8}_[A-Za-z0-9]{40}/g),
  format('sandbox-key', ['e2b_', 'dtn_'], /(?<!\w)(?:e2b_[0-9a-f]{40}|dtn_[0-9a-f]{64})(?!\w)/g, {
    source: 'E2B and Daytona',
  }),
  format('context7-key', 'ctx7sk-', /(?<![\w-])ctx7sk-[\w-]{20}/g),
  format('cursor-key', ['key_', 'crsr_'], /(?<!\w)(?:key|crsr)_[0-9a-f]{64}(?!\w)/g),
];

const HYPHEN_REST = /[A-Za-z0-9-]*/y;
const CHAT_FORMATS: readonly SecretRule[] = [
  format(
    'slack-token',
    'xox',
    /xoxb-[0-9]{8,14}-(?:[0-9]{10,13}-[A-Za-z0-9]{16}|[A-Za-z0-9]{18})/g,
    {
      rest: HYPHEN_REST,
      source: 'Slack bots: two ids and a secret, or one id in the old form',
    },
  ),
  format('slack-token', 'xoxb-', /xoxb-[0-9]{10,13}-[0-9]{10,13}/g, { rest: HYPHEN_REST }),
  format('slack-token', 'xox', /xox[pe](?:-[0-9]{10,13}){3}-[A-Za-z0-9-]{28}/g, {
    rest: HYPHEN_REST,
  }),
  format('slack-token', 'xoxe', /xoxe(?:\.xox[bp])?-\d-[A-Z0-9]{40}/gi, { rest: HYPHEN_REST }),
  format('slack-token', 'xox', /xox[os]-\d{4,14}-\d{4,14}-\d{4,14}-[a-fA-F\d]{6}/g, {
    rest: HYPHEN_REST,
  }),
  format('slack-token', 'xox', /xox[acdrs]-(?:\d-)?[0-9A-Za-z-]{8}/g, {
    rest: HYPHEN_REST,
    accepts: ({ secret, next }) =>
      next !== '.' && /\d/.test(secret.slice(5)) && !/x{4}/i.test(secret),
  }),
  format('slack-token', ['xapp-', 'XAPP-'], /xapp-\d-[A-Za-z0-9-]{10}/gi),
  format('discord-token', '.', /(?<![\w-])[MNO][A-Za-z0-9_-]{22,27}\.[\w-]{6}\.[\w-]{24}/g, {
    source: 'Discord bots: base64 of the id, a time, a signature',
  }),
  format('telegram-token', ':A', /(?<keep>(?<![A-Za-z0-9])(?:bot)?)\d{8,10}:[A-Za-z0-9_-]{34}/g, {
    // `12345678:` and a git hash is a log line.
    accepts: ({ secret }) => /[A-Z]/.test(secret) && /[a-z]/.test(secret),
    source: 'Telegram Bot API: id, colon, 35 characters',
  }),
  format('sendgrid-key', 'sg.', /(?<![A-Za-z0-9])SG\.[\w=.-]{60}/gi, {
    rest: DOTTED_REST,
    isRun: false,
    accepts: isRandomAfter(3),
  }),
  format('mailgun-key', 'key-', /(?:pub)?key-(?<![\w-](?:pub)?key-)[0-9a-f]{32}/g),
  format('mailchimp-key', '-us', /(?<![\w-])[0-9a-f]{32}-us\d{1,2}(?!\w)/g, { rest: NO_REST }),
  format('brevo-key', ['xkeysib-', 'xsmtpsib-'], /x(?:key|smtp)sib-[a-f0-9]{64}-[A-Za-z0-9]{16}/g),
  format('twilio-key', ['SK', 'AC'], /(?<![A-Za-z0-9])(?:SK|AC)[0-9a-fA-F]{32}(?![0-9A-Za-z])/g),
  format('twilio-token', ':', /(?<keep>\]:)[0-9a-f]{32}/g, {
    isRun: false,
    source: 'Twilio basic authentication: the account, masked before, a colon, the auth token',
  }),
  format('resend-key', 're_', /(?<![A-Za-z0-9])re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20}/g),
];

const MONEY_FORMATS: readonly SecretRule[] = [
  format('stripe-key', 'k_', /[prs]k_(?:live|test|prod)_[A-Za-z0-9]{10}/g),
  format('webhook-secret', 'whsec_', /whsec_[A-Za-z0-9+/]{20}/g, { rest: BASE64_REST }),
  format('square-token', 'sq0', /sq0(?:atp|csp|idp)-[^\s"'`;<>[\]]{20}/g, {
    isRun: false,
    rest: /[^\s"'`;<>[\]]*/y,
  }),
  format('square-token', 'EAAA', /(?<![A-Za-z0-9])EAAA[\w-]{56,60}(?![\w-])/g),
  format('facebook-token', 'EAA', /(?<![A-Za-z0-9])EAA[A-Z][A-Za-z0-9]{100}/g),
  format('facebook-token', '|', /(?<!\w)\d{15,16}[|%][0-9A-Za-z_-]{27,40}(?![\w-])/g, {
    rest: NO_REST,
    isRun: false,
    accepts: ({ secret }) => looksRandom(secret.slice(16)),
  }),
  format('shopify-token', 'shp', /shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}/g),
  format('shippo-token', 'shippo_', /shippo_(?:live|test)_[a-fA-F0-9]{40}/g),
  format(
    'lob-key',
    ['live_', 'test_'],
    /(?<![A-Za-z0-9_])(?:live|test)_(?:pub_)?[a-f0-9]{31,35}(?!\w)/g,
  ),
  format(
    'easypost-key',
    ['EZAK', 'EZTK'],
    /(?<![A-Za-z0-9+/])EZ[AT]K[A-Za-z0-9]{54}(?![A-Za-z0-9])/g,
  ),
  format('flutterwave-key', 'FLW', /FLW(?:SECK|PUBK)(?:_TEST)?-[a-hA-H0-9]{12,32}(?:-X)?/g),
  format(
    'plaid-token',
    'access-',
    /access-(?:sandbox|development|production)-[0-9a-f]{8}-[0-9a-f-]{27}/g,
  ),
  format(
    'gocardless-token',
    ['live_', 'sandbox_'],
    /(?<![A-Za-z0-9_])(?:live|sandbox)_[\w=-]{40}/g,
    { rest: /[\w=-]*/y, accepts: isRandomAfter(8) },
  ),
  format('duffel-token', 'duffel_', /duffel_(?:test|live)_[\w=-]{30}/g, {
    rest: /[\w=-]*/y,
    isRun: false,
  }),
  format('settlemint-token', 'sm_', /(?<![A-Za-z0-9])sm_[aps]at_[A-Za-z0-9]{16}(?!\w)/g),
  format(
    'coinbase-key',
    'organizations/',
    /(?<keep>organizations\/[0-9a-f-]{36}\/apiKeys\/)[0-9a-f-]{36}/g,
  ),
];

const OTHER_FORMATS: readonly SecretRule[] = [
  format('newrelic-key', 'NR', /NR(?:AK|II|JS|AA|AL)-[A-Za-z0-9-]{16}/g),
  format('sentry-token', 'sntryu_', /(?<!\w)sntryu_[a-f0-9]{64}(?![\w])/g, { rest: NO_REST }),
  format(
    'sentry-token',
    'sntrys_',
    /(?<!\w)sntrys_eyJpYXQiO[A-Za-z0-9+/=]{20,400}_[A-Za-z0-9+/]{43}(?![A-Za-z0-9+/])/g,
    { rest: NO_REST },
  ),
  format('grafana-token', 'glc_', /(?<!\w)glc_[A-Za-z0-9+/]{32}/g, { rest: BASE64_REST }),
  format('grafana-token', 'glsa_', /(?<!\w)glsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}/g),
  format('grafana-key', 'eyJrIjoi', /(?<!\w)eyJrIjoi[A-Za-z0-9]{40}/gi, { rest: BASE64_REST }),
  format('dynatrace-token', 'dt0', /dt0[a-z]\d\d\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{64}/gi),
  format('postman-key', 'PMAK-', /PMAK-[0-9a-f]{24}-[0-9a-f]{30}/gi),
  format('figma-token', 'fig', /fig[dou]_[\w-]{30}/g),
  format('linear-key', 'lin_', /lin_(?:api|oauth)_[A-Za-z0-9]{30}/g),
  format('notion-token', 'ntn_', /(?<![A-Za-z0-9])ntn_[A-Za-z0-9]{40}/g),
  format('airtable-token', 'pat', /(?<![\w-])pat[A-Za-z0-9]{14}\.[0-9a-f]{64}/g),
  format(
    'doppler-token',
    'dp.',
    /(?<![A-Za-z0-9])dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z][\w-]{0,31}\.)?[\w-]{30}/g,
  ),
  format('adobe-secret', 'p8e-', /(?<![\w-])p8e-[A-Za-z0-9_-]{32}/g),
  format('frameio-token', 'fio-u-', /fio-u-[\w=-]{64}/g, { isRun: false, rest: /[\w=-]*/y }),
  format('readme-key', 'rdme_', /rdme_[a-z0-9]{70}/g),
  format('typeform-token', 'tfp_', /tfp_[\w.=-]{40}/g, { rest: DOTTED_REST, isRun: false }),
  format('maxmind-key', '_mmk', /(?<![A-Za-z0-9])[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk/g),
  format('intra42-secret', 's-s4t2', /s-s4t2(?:ud|af)-[a-f0-9]{64}/gi),
  format('sonar-token', 'sq', /(?<![A-Za-z0-9])sq[uap]_[a-f0-9]{40}/g),
  format('contentful-token', 'CFPAT-', /CFPAT-[\w-]{43}/g),
  format(
    'mapbox-token',
    ['pk.', 'sk.'],
    /(?<![A-Za-z0-9])[ps]k\.[A-Za-z0-9_-]{50,120}\.[\w-]{20}/g,
  ),
  format('hubspot-token', 'pat-', /pat-(?:na|eu)\d-[0-9a-f]{8}-[0-9a-f-]{27}/g),
  format('asana-token', '/', /(?<!\w)\d\/\d{12,20}(?:\/\d{12,20})?:[0-9a-f]{32}/g),
  format('firecrawl-key', 'fc-', /(?<![\w-])fc-[0-9a-f]{32}(?![\w-])/g),
  format('nostr-key', 'nsec1', /(?<![A-Za-z0-9])nsec1[a-z0-9]{58}(?![A-Za-z0-9])/g),
  format(
    'wallet-key',
    '0x',
    /(?<keep>\bprivate[ _-]?key\b[^\n[\]]{0,24}?)\b0x[\da-f]{64}(?!\w)/gi,
    { keywords: ['private key', 'private-key', 'private_key'], isRun: false },
  ),
  format('honeycomb-key', ['hca', 'hcb', 'hcx'], /(?<!\w)hc[abx](?:ik|mk|lk)_[a-z0-9]{50}/g),
  format('posthog-key', ['phx_', 'phs_'], /(?<!\w)ph[xs]_[A-Za-z0-9]{40}/g, {
    source: 'PostHog: personal and secure keys; a project key (phc_) is public',
  }),
  format(
    'launchdarkly-key',
    ['sdk-', 'api-'],
    /(?<![\w-])(?:sdk|api)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?![\w-])/g,
  ),
  format('unkey-key', 'unkey_', /(?<!\w)unkey_[A-Za-z0-9_]{20}/g, isRandomAfter(6)),
  format('browserbase-key', 'bb_', /(?<!\w)bb_(?:live|test)_[\w-]{24}/g, isRandomAfter(8)),
  format('deepgram-key', 'dg_', /(?<!\w)dg_[A-Za-z0-9]{36}/g),
  format('elevenlabs-key', 'sk_', /(?<!\w)sk_[a-f0-9]{48}(?!\w)/g),
];

/** Words that a vendor puts between its own name and the random part of a key: `polar_oat_…`, `apify_api_…`. */
const KEY_WORDS = 'sk pat oat sat tkn token secret apikey api live prod'.split(' ');
/** Words with which a vendor's keys begin: `secret-…`, `signkey-prod-…`. */
const FIRST_WORDS = 'secret signkey apikey authkey seckey privkey sktsec'.split(' ');

/**
 * Keys of vendors that no rule names: a word for a key, a vendor's name before it or none, and at least 20 characters
 * with a random end. Identifiers have the same form without such a word: `msg_…`, `toolu_…`, `user_…`.
 */
const WORDED_FORMATS: readonly SecretRule[] = [
  format(
    'api-key',
    KEY_WORDS.map((word) => `_${word}_`),
    new RegExp(
      `(?<![\\w-])(?:[a-z][a-z0-9]{0,11}_){1,2}(?:${KEY_WORDS.join('|')})_(?=[A-Za-z0-9]{12})[\\w-]{20}`,
      'g',
    ),
    ({ secret }) => isRandomTail(secret, '_'),
  ),
  format(
    'api-key',
    FIRST_WORDS.flatMap((word) => [`${word}-`, `${word}_`]),
    new RegExp(
      `(?<![\\w.-])(?:${FIRST_WORDS.join('|')})[_-](?:(?:live|prod|test|dev|branch)[_-])?(?=[A-Za-z0-9]{12})[\\w-]{20}`,
      'g',
    ),
    ({ secret }) => isRandomTail(secret, '-') || isRandomTail(secret, '_'),
  ),
];

/** Says whether a key's last part of at least 12 characters is random, and the key is no made-up example. */
function isRandomTail(secret: string, joint: string): boolean {
  const tail = secret.split(joint).findLast((part) => part.length >= 12) ?? '';
  return looksRandom(tail) && !isMadeUp(secret);
}

export const VENDOR_FORMATS: readonly SecretRule[] = [
  ...AI_FORMATS,
  ...CLOUD_FORMATS,
  ...CODE_FORMATS,
  ...CHAT_FORMATS,
  ...MONEY_FORMATS,
  ...OTHER_FORMATS,
  ...WORDED_FORMATS,
];
