/** Formats of the keys of cloud providers, and of services that store, build and run code. */

import { isMadeUp, isPublicExample } from './secret-likeness.ts';
import { BASE64_REST, NO_REST, type SecretRule } from './secret-rule.ts';
import { DOTTED_REST, format, isRandomAfter } from './vendor-format.ts';

export const CLOUD_FORMATS: readonly SecretRule[] = [
  {
    kind: 'aws-secret-key',
    keywords: ['akia', 'asia'],
    pattern:
      /(?<keep>(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z2-7]{16}(?:["',;:|/\s]|\\[nrt]){1,8}(?:aws_)?(?:secret\w{0,16}["' ]{0,2}[:=]["' ]{0,3})?)[A-Za-z0-9+/]{40}/gi,
    rest: BASE64_REST,
    source: 'AWS: 40 base64 characters that follow their key id, as in a credentials CSV',
  },
  {
    kind: 'aws-secret-key',
    keywords: ['access_key', 'accesskey'],
    pattern:
      /(?<keep>secret_?access_?key\\?["']?[ \t]{0,4}[:=][ \t]{0,4}\\?["']?)[A-Za-z0-9+/]{40}/gi,
    rest: BASE64_REST,
    accepts: ({ secret }) => !isMadeUp(secret),
    source: 'AWS: the credentials file, its JSON and its environment variable',
  },
  format(
    'aws-key-id',
    ['AKIA', 'ASIA', 'ABIA', 'ACCA', 'A3T'],
    /(?<![A-Za-z0-9])(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}/g,
    { source: 'AWS IAM unique identifiers: base32 after the prefix' },
  ),
  format(
    'aws-bedrock-key',
    'ABSK',
    /(?<![A-Za-z0-9+/])ABSK[A-Za-z0-9+/]{109,269}(?![A-Za-z0-9+/])/g,
    {
      rest: BASE64_REST,
      accepts: () => true,
      source: 'Amazon Bedrock, long-lived: base64 of a name and a secret',
    },
  ),
  format('aws-bedrock-key', 'bedrock-api-key-', /bedrock-api-key-YmVkcm9jay5hbWF6b25hd3MuY29t/g, {
    rest: BASE64_REST,
    source: 'Amazon Bedrock, short-lived: base64 of a signed URL',
  }),
  format('google-key', 'AIza', /(?<![\w-])AIza[\w-]{35}(?![\w-])/g, {
    rest: NO_REST,
    accepts: ({ secret }) => !isMadeUp(secret) && !isPublicExample(secret),
  }),
  format('google-oauth', ['ya29.', 'GOCSPX-'], /(?:ya29\.|GOCSPX-)[\w-]{20}/g),
  format('google-key', 'AQ.Ab', /(?<![\w.])AQ\.Ab[\w-]{40}/g, {
    source: 'Google AI Studio since 2026: a key that is bound to a service account',
  }),
  format('google-oauth', ['1//0', '4/0A'], /(?<![\w/.])(?:1\/\/0|4\/0A)[\w-]{30}/g, {
    source: 'Google OAuth: refresh tokens and authorization codes',
  }),
  format('azure-secret', 'q~', /(?<![\w~.-])[\w~.]{3}\dQ~[\w~.-]{31,34}(?![\w~.-])/g, {
    rest: /[\w~.-]*/y,
    isRun: false,
    source: 'Microsoft Entra client secrets',
  }),
  format(
    'azure-key',
    ['JQQJ9', 'AZDO'],
    /(?<![A-Za-z0-9])[A-Za-z0-9]{52}(?:JQQJ9[A-Za-z0-9]{27}|[A-Za-z0-9]{24}AZDO[A-Za-z0-9]{4})(?![A-Za-z0-9])/g,
    { rest: NO_REST, source: 'Microsoft: 84 characters with a signature at a known place' },
  ),
  format('alibaba-key-id', 'LTAI', /(?<![A-Za-z0-9])LTAI[A-Za-z0-9]{16}(?:[A-Za-z0-9]{4})?(?!\w)/g),
  format('tencent-key-id', 'AKID', /(?<![A-Za-z0-9])AKID[A-Za-z0-9]{28}/g, isRandomAfter(4)),
  format(
    'yandex-key',
    ['AQVN', 'YCAJ', 'YCM', 'YCN'],
    /(?<![\w-])(?:AQVN[\w-]{35}|YC[A-Z][\w-]{37})(?![\w-])/g,
    isRandomAfter(4),
  ),
  format('yandex-token', 't1.', /(?<![\w.])t1\.[A-Z0-9a-z_-]{3,40}={0,2}\.[\w-]{86}/g, {
    rest: DOTTED_REST,
    isRun: false,
    accepts: isRandomAfter(10),
  }),
  format('digitalocean-token', ['dop_v1_', 'doo_v1_', 'dor_v1_'], /do[opr]_v1_[A-Za-z0-9]{40}/g),
  format('scaleway-key', 'SCW', /(?<![A-Za-z0-9])SCW[A-Z0-9]{17}(?![A-Z0-9])/g, isRandomAfter(3)),
  format('cloudflare-key', 'v1.0-', /(?<!\w)v1\.0-[a-f0-9]{24}-[a-f0-9]{100}/g),
  format('cloudflare-token', ['cfk_', 'cfut_', 'cfat_'], /(?<!\w)cf(?:k|ut|at)_[A-Za-z0-9]{40}/g, {
    source: 'Cloudflare since 2026: 40 characters and a checksum',
  }),
  format('heroku-key', 'HRKU-', /HRKU-[A-Za-z0-9_-]{36}/g),
  format(
    'fly-token',
    ['fo1_', 'fm1a', 'fm1r', 'fm2_'],
    /(?<![\w-])(?:fo1_[\w-]{43}(?![\w-])|fm(?:1[ar]|2)_[A-Za-z0-9+/]{100})/g,
    { rest: BASE64_REST },
  ),
  format('scalingo-token', 'tk-us-', /tk-us-[\w-]{48}/g),
  format('openshift-token', 'sha256~', /sha256~[\w-]{43}(?![\w-])/g, {
    isRun: false,
    source: 'OpenShift: a digest has a colon, a token a tilde',
  }),
];

export const CODE_FORMATS: readonly SecretRule[] = [
  format('github-token', ['ghp_', 'gho_', 'ghu_', 'ghs_', 'ghr_'], /gh[oprsu]_[A-Za-z0-9]{20}/g),
  format('github-token', 'github_pat_', /github_pat_[A-Za-z0-9_]{20}/g),
  format(
    'gitlab-token',
    'gl',
    /gl(?:pat|oas|dt|rt|rtr|cbt|ptt|ft|imt|agent|soat|ffct)-[\w-]{16}/g,
    { rest: /[\w.-]*/y },
  ),
  format('gitlab-token', 'GR1348941', /GR1348941[\w-]{20}/g),
  format('bitbucket-token', 'ATBB', /(?<![A-Za-z0-9])ATBB[A-Za-z0-9]{24}/g, isRandomAfter(4)),
  format('atlassian-token', ['ATATT3', 'ATCTT3'], /AT(?:ATT|CTT)3[\w=-]{50}/g, {
    rest: BASE64_REST,
  }),
  format('npm-token', 'npm_', /npm_[A-Za-z0-9]{30}/g),
  format('pypi-token', 'pypi-', /pypi-[\w-]{50}/g),
  format('rubygems-key', 'rubygems_', /rubygems_[a-f0-9]{48}/g),
  format('hex-key', 'hex_', /(?<!\w)hex_[0-9a-f]{40}(?!\w)/g),
  format('packagist-token', 'packagist_', /(?<!\w)packagist_[a-z]{2,4}_[0-9a-f]{60}/g),
  format('clojars-token', ['CLOJARS_', 'clojars_'], /clojars_[a-z0-9]{60}/gi),
  format('cargo-token', 'cio', /(?<!\w)cio[A-Za-z0-9]{32}(?!\w)/g, isRandomAfter(3)),
  format('nuget-key', 'oy2', /(?<!\w)oy2[a-z0-9]{43}(?!\w)/g, isRandomAfter(3)),
  format('docker-token', 'dckr_', /dckr_(?:pat|oat)_[\w-]{20}/g),
  format('artifactory-key', 'AKCp', /(?<![A-Za-z0-9])AKCp[A-Za-z0-9]{69}(?![A-Za-z0-9])/g),
  format('artifactory-token', 'cmVmd', /(?<![A-Za-z0-9])cmVmd[A-Za-z0-9]{59}(?![A-Za-z0-9])/g),
  format('terraform-token', '.atlasv1.', /[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{40}/g, {
    rest: /[\w=-]*/y,
    isRun: false,
  }),
  format('pulumi-token', 'pul-', /(?<!\w)pul-[a-f0-9]{40}/g),
  format('vault-token', ['hvs.', 'hvb.', 'hvr.'], /(?<![A-Za-z0-9])hv[bsr]\.[\w-]{20}/g, {
    rest: /[\w.-]*/y,
  }),
  format('vault-token', 's.', /(?<![\w.])s\.[A-Za-z0-9]{24}(?![\w.(-])/g, {
    rest: NO_REST,
    accepts: isRandomAfter(2),
    source: 'HashiCorp Vault before 1.10',
  }),
  format('sourcegraph-token', 'sgp_', /sgp_(?:(?:[a-fA-F0-9]{16}|local)_)?[a-fA-F0-9]{40}/g),
  format('octopus-key', 'API-', /(?<![\w-])API-[A-Z0-9]{26}(?![\w-])/g, isRandomAfter(4)),
  format(
    'harness-key',
    ['pat.', 'sat.'],
    /(?<![\w.])[ps]at\.[\w-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}/g,
  ),
  format('prefect-key', 'pnu_', /(?<![A-Za-z0-9])pnu_[A-Za-z0-9]{36}/g),
  format('infracost-key', 'ico-', /(?<![\w.])ico-[A-Za-z0-9]{32}(?!\w)/g),
  format('databricks-token', 'dapi', /(?<![A-Za-z0-9])dapi[0-9a-f]{32}(?![0-9A-Za-z])/g),
  format('onepassword-token', 'ops_eyJ', /ops_eyJ[A-Za-z0-9+/]{60}/g, { rest: BASE64_REST }),
  format(
    'onepassword-key',
    'A3-',
    /(?<![\w-])A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}/g,
    { rest: NO_REST },
  ),
  format('age-key', 'AGE-', /AGE-(?:SECRET-KEY|PLUGIN-[A-Z0-9-]{1,20})-1[0-9A-Z]{30}/g, {
    accepts: () => true,
    source: 'age: Bech32 after the prefix',
  }),
  format(
    'clickhouse-key',
    '4b1d',
    /(?<![A-Za-z0-9])4b1d[A-Za-z0-9]{38}(?![A-Za-z0-9])/g,
    isRandomAfter(4),
  ),
  format('supabase-token', ['sbp_', 'sb_secret_'], /sb(?:p_[0-9a-f]{40}|_secret_[\w-]{20})/g),
  format('planetscale-token', 'pscale_', /pscale_(?:tkn|pw|oauth)_[\w.=-]{32}/g, {
    rest: DOTTED_REST,
  }),
  format('neon-key', 'napi_', /napi_[a-z0-9]{40}/g),
  format('prisma-key', 'prisma_', /prisma_[a-z]{2,8}_[\w-]{30}/g, isRandomAfter(7)),
  format('render-key', 'rnd_', /(?<!\w)rnd_[A-Za-z0-9]{24}/g, isRandomAfter(4)),
  format('notion-secret', 'secret_', /(?<!\w)secret_[A-Za-z0-9]{40}/g, isRandomAfter(7)),
  format('netlify-token', 'nfp_', /nfp_[A-Za-z0-9]{36}/g),
  format('vercel-token', 'vc', /(?<![A-Za-z0-9])vc[piark]_[A-Za-z0-9]{24}/g),
  format('definednetworking-key', 'dnkey-', /dnkey-[\w=-]{26}-[\w=-]{52}/g, {
    rest: /[\w=-]*/y,
    isRun: false,
  }),
  format('tailscale-key', 'tskey-', /tskey-[a-z]{3,10}-[\w-]{16}/g),
  format(
    'authress-key',
    ['sc_', 'ext_', 'scauth_', 'authress_'],
    /(?<![A-Za-z0-9])(?:sc|ext|scauth|authress)_[A-Za-z0-9]{5,30}\.[A-Za-z0-9]{4,6}\.acc[_-][a-z0-9-]{10,32}\.[\w+/=-]{30}/g,
    { rest: BASE64_REST },
  ),
];
